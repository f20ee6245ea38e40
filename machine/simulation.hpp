// The simulated machine: runs a program's compiled code on virtual cores with caches, their own
// clocks, and hardware transactions.
//
//   const machine which = read_machine("machine/machines/haswell-ep-2x10.machine");
//   const report r =
//       run(which, {.seed = 1}, {[&] { map.insert(1, 1); }, [&] { map.insert(2, 2); }});
//   r.cycles, r.threads[0].aborts ...
//
// The program must be compiled for the machine: link the CMake target elidex_machine_program, and
// call elidex_instrument(TARGET) (machine/CMakeLists.txt). The compiler then calls the machine at
// every memory access. Bodies get hardware threads: one per core, socket after socket, then the
// cores' second threads. Further bodies take turns. The hardware thread with the smallest clock
// runs next. So a run depends only on the program, the machine and the seed, and every run gives
// the same result.
//
// Threads, mutexes, condition variables, thread-local variables, new and delete, exceptions and
// clocks work inside a run and take simulated time. Input and output, signals and processes must
// not be used inside a run.
//
// An access to the thread's own stack takes part in conflicts but costs nothing. Nearly all such
// accesses are to temporaries. The compiler would keep these in registers if it did not announce
// them.
//
// The machine does not show:
//   * reordering by store buffers, because every run is sequentially consistent
//   * how long a single instruction takes, such as a division. Instructions are charged by their
//     number, and the program can add time with spend().
//   * code that was not compiled for the machine
//
// Thread-safety: one run at a time in a process. No other thread may touch the program's data
// during a run.
// Errors: run() throws std::invalid_argument for too many bodies, and the exception of a body.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.hpp"

namespace elidex::sim {

// Chooses the thread that runs next, to explore interleavings. See schedule.hpp.
class strategy {
 public:
  static constexpr unsigned nobody = ~0u;  // `current` at the start of a run

  virtual ~strategy() = default;
  // `able` holds the threads that can continue, in ascending order. `current` is the running thread
  // and may be among them. `waits` is true if `current` can do nothing useful before another thread
  // has run. Returns one of `able`.
  virtual unsigned choose(const unsigned* able, unsigned count, unsigned current, bool waits) = 0;
};

struct run_options {
  std::uint64_t seed = 1;
  // How many cycles a thread may run ahead of the others. Published numbers use 0.
  std::uint64_t quantum_cycles = 0;
  // A run that takes more cycles than this ends, and report::stuck explains why.
  std::uint64_t cycles_max = std::uint64_t{1} << 50;
  // How many of the machine's hardware threads the program may use; 0: all. Further threads take
  // turns (engine_scheduler.cpp).
  unsigned cpus = 0;
  // Chooses the threads instead of the clocks, unless null. Each thread then has a CPU.
  strategy* schedule = nullptr;
  bool record_events = false;  // for a timeline
  // The run begins with the program's heap in the L3 caches, as if the program had just written it.
  // The sockets' caches get its pages in turn.
  bool warm_l3 = false;
};

// The reason of an abort. The machine distinguishes more reasons than the program's status word.
enum class abort_reason : std::uint8_t {
  conflict,
  write_capacity,  // the L1 evicted a written line
  read_capacity,   // the table of reads that have left the L1 was full
  explicit_,
  interrupt,
  page_fault,
  system_call,  // or another instruction that a transaction cannot contain
  nesting,
  // HLE: the program did not restore the lock's word, wrote a part of it, or began an elision
  // inside a transaction
  elision,
};
inline constexpr std::size_t abort_reasons = 9;
std::string_view to_string(abort_reason reason) noexcept;

struct transaction_counts {
  std::uint64_t begun = 0;
  std::uint64_t committed = 0;
  std::array<std::uint64_t, abort_reasons> aborts{};

  std::uint64_t aborted() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : aborts) sum += n;
    return sum;
  }
  transaction_counts& operator+=(const transaction_counts& other) noexcept;
};

struct thread_report : transaction_counts {
  std::uint64_t cycles = 0;  // the thread's clock at its end
  std::uint64_t accesses = 0;
  std::uint64_t instructions = 0;
  std::uint64_t ready_cycles = 0;  // of `cycles`: without a CPU, able to run
  // Of `cycles`: asleep, from the end of the system call until the thread may run again.
  std::uint64_t waiting_cycles = 0;
  transaction_counts elided;  // of the transactions: those by HLE
  std::uint64_t committed_lines =
      0;  // read or written by committed transactions, without those of the thread's own stack
  std::uint64_t transactional_cycles = 0;  // in transactions, as a CPU's counters count them
  std::uint64_t aborted_cycles = 0;        // of these: in transactions that aborted
  // the cost of the aborts themselves, after the transactions
  std::uint64_t aborting_cycles = 0;

  // The cycles in which the thread had a CPU.
  std::uint64_t running_cycles() const noexcept { return cycles - ready_cycles - waiting_cycles; }
};

// The conflicts on the lines of one kind of memory (name_memory()).
struct conflict_report {
  std::string where;
  std::uint64_t true_sharing = 0;   // the bytes of both overlap
  std::uint64_t false_sharing = 0;  // only the line is the same
};

// The accesses that a core's own caches did not serve, in transactions or not, by the line of one
// kind of memory. It shows where cores contend.
struct fetch_report {
  std::string where;
  std::uint64_t line = 0;  // in the block, or in the whole if there are no blocks
  std::uint64_t accesses = 0;
  // of these: lines that another core had changed, and writes to lines that others had
  std::uint64_t met_others = 0;
  // The cycles of all these accesses, including waits for a busy line. An abort ends an access in
  // progress. So these are disjoint parts of the threads' cycles, and their sum does not exceed the
  // threads' run time.
  std::uint64_t cycles = 0;
};

// The aborts of transactions whose threads were at one place of the program's code.
struct hot_spot {
  // The return address of the thread's last call of the machine: of an access, or of the begin of
  // the transaction. function_names.hpp names the function.
  const void* code = nullptr;
  std::uint64_t aborts = 0;
  std::uint64_t aborted_cycles = 0;  // of these transactions
};

// Why a transaction was aborted.
struct abort_cause {
  abort_reason why;
  std::uint8_t code = 0;      // of an explicit abort
  std::uint64_t address = 0;  // of the access or line that caused it, or 0
  // Of a conflict:
  bool write = false;       // whether the access that aborted the transaction was a write
  bool same_bytes = false;  // whether it used bytes of the transaction, not only the same line
};

// A transaction that has ended.
struct event {
  enum class kind : std::uint8_t { commit, abort } what;
  std::uint16_t thread;
  std::uint64_t begin_cycles;
  std::uint64_t end_cycles;
  // Of an abort:
  abort_cause cause{};
  std::uint16_t by = 0;  // the thread that caused it: another one, or the transaction's own
  // The name of the memory at the address (name_memory()). Empty if there is no address.
  std::string where{};
  std::uint64_t line = 0;      // in the block, or in the whole if there are no blocks
  bool fixed_address = false;  // whether the address is the same in every run of the program
};

struct report {
  std::uint64_t cycles = 0;  // until the last thread's end
  std::vector<thread_report> threads;
  std::uint64_t l1_hits = 0, l2_hits = 0, l3_hits = 0, other_core_hits = 0, dram_accesses = 0;
  std::vector<conflict_report> conflicts;  // ordered by count, the largest first
  std::vector<fetch_report> fetches;       // ordered by cycles, the largest first
  std::vector<hot_spot> hot_spots;         // ordered by `code`
  std::vector<event> events;
  // Empty if all threads have ended. Otherwise it names the object that each thread waits for, and
  // the program's data is in the state that the threads have left.
  std::string stuck;

  thread_report total() const noexcept;
};

// Runs each body as a thread of the program. It calls the body itself, not a copy, so changes of
// the body's own state remain. Throws std::invalid_argument for more than threads_max bodies, for
// more bodies than hardware threads under a schedule, and for `cpus` that the machine does not have
// or that are combined with a schedule. Passes on the exception of a body.
report run(const machine& which, const run_options& options,
           const std::vector<std::function<void()>>& bodies);

// --- for the program inside a run, without effect outside ---

// Lets the calling thread compute for `cycles` cycles.
void spend(std::uint64_t cycles) noexcept;
// Returns the calling thread's clock in cycles.
std::uint64_t now() noexcept;
bool inside() noexcept;
// Returns the next value of a counter that all threads share. Scheduling decisions also increment
// the counter. So under run_options::schedule the values order the calls of all threads. Outside of
// a run it returns 0.
std::uint64_t steps() noexcept;
// Waits for all threads, then resets all counts, including the cycles of the report.
void start_counting() noexcept;
// Exempts whole pages, for data of the measurement itself. Accesses to them cost as much as an L1
// hit and cause no conflicts.
void exempt_pages(const void* from, std::size_t bytes) noexcept;
// Marks pages as never touched, as if the system had just provided them.
void unmap_pages(void* from, std::size_t bytes) noexcept;
// Names these bytes in the reports. Blocks of `block_bytes` begin at `from`. The first `head_bytes`
// of each block are called "NAME head".
void name_memory(const void* from, std::size_t bytes, const char* name, std::size_t block_bytes,
                 std::size_t head_bytes) noexcept;

// While an object lives, the program's memory comes from the system instead of the machine's heap.
// It is for requests, file names and other data that differ from host to host. So the addresses of
// all other data do not differ. Use it outside of runs, one object at a time.
class system_memory {
 public:
  system_memory() noexcept;
  system_memory(const system_memory&) = delete;
  system_memory& operator=(const system_memory&) = delete;
  ~system_memory();
};

}  // namespace elidex::sim
