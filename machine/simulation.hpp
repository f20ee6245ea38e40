// The simulated machine: runs a program's own compiled code on virtual cores with caches, a clock
// each, and hardware transactions.
//
//   const machine which = read_machine("machine/machines/haswell-ep-2x10.machine");
//   const report r = run(which, {.seed = 1}, {[&] { map.insert(1, 1); }, [&] { map.insert(2, 2);
//       }});
//   r.cycles, r.threads[0].aborts ...
//
// The program must be compiled for it (CMakeLists.txt here: elidex_sim_program): the compiler calls
// the machine at every memory access. Each body runs on a hardware thread of its own: first one per
// core, socket after socket, then the cores' second threads. The hardware thread whose clock is
// behind goes next, so the run is a function of program, machine and seed alone: every run gives
// the same result.
//
// An access to the thread's own stack takes part in conflicts but costs nothing: nearly all of them
// are temporaries that the compiler would keep in registers if it had not to announce them.
//
// Inside, threads, mutexes, condition variables, thread-local variables, new and delete, exceptions
// and clocks work and take simulated time. Input and output, signals and processes do not belong
// there.
//
// What the machine cannot show: reordering by store buffers (every run is sequentially consistent),
// instructions that touch no memory (charged by the access, or by spend()), code that was not
// compiled for it.
//
// Thread-safety: one run at a time in a process, and no other thread that touches the program's
// data meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.hpp"

namespace elidex::sim {

// Chooses who goes next, for exploring interleavings: see schedule.hpp.
class strategy {
 public:
  static constexpr unsigned nobody = ~0u;  // `current` at the beginning

  virtual ~strategy() = default;
  // `able` holds the threads that can go on, in ascending order; `current` is the one that is
  // running and may be among them. `waits` says that current can do nothing useful before another
  // has run. Returns one of `able`.
  virtual unsigned choose(const unsigned* able, unsigned count, unsigned current, bool waits) = 0;
};

struct run_options {
  std::uint64_t seed = 1;
  // How far ahead of the others a thread may run before it has to wait. 0 for published numbers.
  std::uint64_t quantum_cycles = 0;
  // The run counts as stuck when it takes longer.
  std::uint64_t cycles_max = std::uint64_t{1} << 50;
  // Instead of the clocks; null: the clocks.
  strategy* schedule = nullptr;
  bool record_events = false;  // for a timeline
  // The L3 caches begin with the program's heap in them, page by page in turn, as if it had been
  // written just before.
  bool warm_l3 = false;
};

// Why a transaction ended, as the machine knows it: finer than what the program is told.
enum class abort_reason : std::uint8_t {
  conflict,
  write_capacity,  // a written line had to leave the L1
  read_capacity,   // the table of reads that have left the L1 was full
  explicit_,
  interrupt,
  page_fault,
  system_call,  // or another instruction that a transaction cannot contain
  nesting,
  elision,  // HLE: the lock's word did not get its value back, or one lock too many
};
inline constexpr std::size_t abort_reasons = 9;
std::string_view to_string(abort_reason reason) noexcept;

struct thread_report {
  std::uint64_t cycles = 0;  // its clock at its end
  std::uint64_t accesses = 0;
  std::uint64_t begun = 0;
  std::uint64_t committed = 0;
  std::uint64_t committed_lines =
      0;  // that committed transactions read or wrote, those of the thread's own stack left out
  std::array<std::uint64_t, abort_reasons> aborts{};
  std::uint64_t transactional_cycles = 0;  // in transactions, as a CPU's counters have it
  std::uint64_t aborted_cycles = 0;        // those of them that were thrown away
  // what the aborts themselves took, behind the transactions
  std::uint64_t aborting_cycles = 0;

  std::uint64_t aborted() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : aborts) sum += n;
    return sum;
  }
};

// Where conflicts happened: on the lines of one kind of memory (name_memory()).
struct conflict_report {
  std::string where;
  std::uint64_t true_sharing = 0;   // the bytes of both overlap
  std::uint64_t false_sharing = 0;  // only the line is the same
};

// Accesses that a core's own caches did not serve, by the line of one kind of memory: where cores
// meet, in transactions or not.
struct fetch_report {
  std::string where;
  std::uint64_t line = 0;  // of the block, or of the whole where there are no blocks
  std::uint64_t accesses = 0;
  // of these: lines that another core had changed, and writes to lines that others had
  std::uint64_t met_others = 0;
  // The cycles of all these accesses, including waits for a busy line. An abort ends an access in
  // progress. So these are disjoint parts of the threads' cycles, and their sum does not exceed the
  // threads' run time.
  std::uint64_t cycles = 0;
};

// Why a transaction was aborted.
struct abort_cause {
  abort_reason why;
  std::uint8_t code = 0;      // of an explicit abort
  std::uint64_t address = 0;  // of the access or line that caused it; 0: none
  // Of a conflict: the access that the transaction was aborted for.
  bool write = false;
  bool same_bytes = false;  // as the transaction has used, not only the same line
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
  // The name of what lies at the address (name_memory()); empty: there is no address.
  std::string where{};
  std::uint64_t line = 0;      // of the block, or of the whole where there are no blocks
  bool fixed_address = false;  // whether it is the same in every run of the program
};

struct report {
  std::uint64_t cycles = 0;  // until the last thread's end
  std::vector<thread_report> threads;
  std::uint64_t l1_hits = 0, l2_hits = 0, l3_hits = 0, other_core_hits = 0, dram_accesses = 0;
  std::vector<conflict_report> conflicts;  // those with most first
  std::vector<fetch_report> fetches;       // those that took longest first
  std::vector<event> events;
  // Nothing: all threads came to their end. Otherwise what each of them hangs on; the program's
  // data is then as they have left it.
  std::string stuck;

  thread_report total() const noexcept;
};

// Calls each body on a hardware thread of its own, where it stands, not a copy: what it changes of
// its own stays changed. Throws std::invalid_argument for more bodies than hardware threads, and
// what a body throws.
report run(const machine& which, const run_options& options,
           const std::vector<std::function<void()>>& bodies);

// --- for the program that runs inside; without effect outside ---

// Lets the calling thread compute for so long.
void spend(std::uint64_t cycles) noexcept;
// The calling thread's clock in cycles.
std::uint64_t now() noexcept;
bool inside() noexcept;
// How often threads may have changed so far: a clock for all threads, never the same twice under
// run_options::schedule.
std::uint64_t steps() noexcept;
// Waits for all threads; from here on everything is counted anew, the cycles of report included.
void start_counting() noexcept;
// Whole pages whose accesses cost what a hit in the L1 costs and concern nobody: for data of the
// measurement itself.
void exempt_pages(const void* from, std::size_t bytes) noexcept;
// Pages that have never been touched, as if they came from the system just now.
void unmap_pages(void* from, std::size_t bytes) noexcept;
// What conflicts in these bytes shall be called in the report. Blocks of `block_bytes` begin at
// `from`; the first `head_bytes` of each are called "NAME head".
void name_memory(const void* from, std::size_t bytes, const char* name, std::size_t block_bytes,
                 std::size_t head_bytes) noexcept;

// While it lives, the program's memory comes from the system instead of the machine's heap: for
// requests, file names and what else differs from host to host, so that the addresses of everything
// else don't. Outside of runs, one at a time.
class system_memory {
 public:
  system_memory() noexcept;
  system_memory(const system_memory&) = delete;
  system_memory& operator=(const system_memory&) = delete;
  ~system_memory();
};

}  // namespace elidex::sim
