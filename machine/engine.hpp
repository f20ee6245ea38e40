// The running machine: hardware threads, their turns, transactions, and waiting threads.
// simulation.hpp is its public interface. hooks.cpp and libc_calls.cpp call it on behalf of the
// program.
//
// Thread-safety: one thread of the system.
//
// Implementation notes
// A hook charges the access to the thread's clock. It then lets other threads run until that clock
// is the smallest, does the bookkeeping and returns. The access itself follows, and no other thread
// runs in between.
//
// An abort discards the engine's stack frames of the victim. So no code between take_turn() and the
// return to the program may have a destructor to run.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/caches.hpp"
#include "machine/fiber.hpp"
#include "machine/machine.hpp"
#include "machine/memory.hpp"
#include "machine/memory_names.hpp"
#include "machine/simulation.hpp"
#include "machine/transaction.hpp"

namespace elidex::sim {

inline constexpr std::uint32_t region_started = 0xffffffff;
inline constexpr std::uint64_t no_deadline = ~std::uint64_t{0};

// How a wait on a word ended. changed: the word did not have the expected value.
enum class word_wait : std::uint8_t { woken, timed_out, changed };

// Returns the word that Intel's XBEGIN returns after an abort.
std::uint32_t status_word(abort_reason reason, std::uint8_t code, bool nested) noexcept;

// A bucket of the kernel's table of waiting threads. Its lock serves threads in the order in which
// they came. It is a word that moves between caches as the program's words do.
struct alignas(line_bytes) futex_bucket {
  std::uint32_t next = 0;  // for the thread that comes next
  std::uint32_t served = 0;
};
// Leaves no bucket locked.
void forget_buckets() noexcept;

class engine {
 public:
  engine(const machine& which, const run_options& options, memory& where);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  report run(const std::vector<std::function<void()>>& bodies);

  // --- memory ---
  // `from` is the place in the program behind the call that announces the access (dependences.py),
  // or null.
  void access(std::uint64_t address, std::uint64_t bytes, bool write, const void* from = nullptr) {
    is_at(from);
    visit(address, bytes, write, false);
    if (write) pending_write_ = {address, bytes};
  }
  // Of a store that the instrumentation has found. If the compiler has just announced it, too, the
  // second time does not count.
  void access_unannounced(std::uint64_t address, std::uint64_t bytes, const void* from) {
    const std::uint64_t behind = address - pending_write_.begin;
    if (behind >= pending_write_.bytes || bytes > pending_write_.bytes - behind)
      access(address, bytes, true, from);
  }
  // Says which function makes the access that follows, if that is announced without `from`.
  void calls_from(const void* code) noexcept { now_running_->last_code = code; }
  // Two places in one turn: the first is written if `write_first`, and the second is read. The
  // caller then makes both accesses at once.
  void visit_both(std::uint64_t first, bool write_first, std::uint64_t second, std::uint64_t bytes);
  // A locked instruction. The caller makes the access before any other thread runs.
  void access_atomically(std::uint64_t address, std::uint64_t bytes, bool write,
                         const void* from = nullptr) {
    is_at(from);
    if (write) spend_fence();
    visit(address, bytes, write, true, write);
  }
  // A store that others must not overtake costs as much as a locked instruction.
  void store_atomically(std::uint64_t address, std::uint64_t bytes, bool sequentially_consistent,
                        const void* from = nullptr) {
    is_at(from);
    if (sequentially_consistent) spend_fence();
    visit(address, bytes, true, true, sequentially_consistent);
  }

  // --- time ---
  void spend(std::uint64_t cycles);
  void spend_fence() {
    charge_instructions();
    wait_for_misses(*now_running_);
    now_running_->clock += machine_.atomic_cycles;
  }
  void pause();
  void yield();
  void sleep(std::uint64_t cycles);
  std::uint64_t now() {
    charge_instructions();
    return now_running_->clock;
  }
  std::uint64_t nanoseconds() {
    const std::uint64_t clock = now();
    return clock / machine_.megahertz * 1000 +
           clock % machine_.megahertz * 1000 / machine_.megahertz;
  }
  std::uint64_t cycles_of(std::uint64_t nanoseconds) const noexcept {
    return nanoseconds / 1000 * machine_.megahertz + nanoseconds % 1000 * machine_.megahertz / 1000;
  }

  std::uint64_t steps() noexcept { return ++steps_; }

  // --- transactions ---
  bool has_rtm() const noexcept { return machine_.rtm != 0; }
  bool has_hle() const noexcept { return machine_.hle != 0; }
  bool in_transaction() const noexcept { return now_running_->tx.active(); }
  std::uint32_t begin(const registers& back);
  void commit();
  void abort(std::uint8_t code);
  // An operation that a transaction cannot contain. It aborts a transaction, and costs `cycles`
  // outside.
  void unfriendly(std::uint64_t cycles);
  void system_call() {
    unfriendly(machine_.system_call_cycles);
    take_turn();
  }
  // The hardware threads that the program may use.
  unsigned cpu_count() const noexcept { return static_cast<unsigned>(cpus_.size()); }
  // HLE: begins an elision and returns region_started. If it returns 0, the caller must make the
  // exchange.
  std::uint32_t begin_elision(const registers& back, std::uint32_t& word, std::uint32_t value);
  // Returns whether the store ended an elision. Otherwise the caller must make the store.
  bool end_elision(std::uint32_t& word, std::uint32_t value);
  // Returns the value that the calling thread sees in a word that it may be eliding.
  template <class Word>
  Word seen_in(const Word* address) const noexcept {
    const transaction& tx = now_running_->tx;
    if (static_cast<const void*>(address) == tx.elided_word && tx.elided_word != nullptr) {
      return static_cast<Word>(tx.elided_now);
    }
    return *address;
  }
  std::uint32_t value_before_elision() const noexcept { return now_running_->tx.elided_before; }

  // --- memory management ---
  void* allocate(std::size_t bytes, std::size_t alignment);
  void free(void* at);

  // --- threads and waiting ---
  // Returns the new thread's number, or -1 if there are threads_max already.
  int start_thread(std::function<void()> body);
  void wait_for_end(unsigned thread);
  // Allows another thread to use its number, at once or when the thread ends.
  void forget_thread(unsigned thread) noexcept;
  pthread_t handle_of(unsigned thread) const noexcept;
  int thread_of(pthread_t handle) const noexcept;
  unsigned current() const noexcept { return now_running_->number; }
  // Sleeps until another thread wakes the same key. `why` is for the report of a deadlock. Returns
  // false if the deadline has passed.
  bool wait(const void* key, const char* why, std::uint64_t deadline = no_deadline);
  // Wakes at most `count` threads. Returns the number of threads it woke.
  unsigned wake(const void* key, unsigned count);
  // A futex's wait, with the word as key: sleeps if the word has the expected value when the kernel
  // reads it. That is system_call_cycles after the call, or when the word's bucket is free.
  template <class Word>
  word_wait wait_on_word(const Word& word, Word expected, const char* why, std::uint64_t deadline) {
    system_call();
    futex_bucket& bucket = bucket_of(&word);
    lock_bucket(bucket);
    access_atomically(reinterpret_cast<std::uint64_t>(&word), sizeof word, false);
    const bool changed = word != expected;
    unlock_bucket(bucket);
    if (changed) return word_wait::changed;
    const std::uint64_t rest = machine_.futex_wait_cycles -
                               std::min(machine_.futex_wait_cycles, machine_.system_call_cycles);
    return wait_in_kernel(&word, why, deadline, rest) ? word_wait::woken : word_wait::timed_out;
  }
  // A futex's wake-up. A call that finds no thread costs system_call_cycles.
  unsigned wake_on_word(const void* key, unsigned count);
  void note_lock(const void* lock, bool held);
  // Ends the run although other threads have not ended, as the end of main() does. Returns only if
  // there are none.
  void end_with_others();

  void unmap(std::uint64_t from, std::uint64_t bytes);
  void exempt(std::uint64_t from, std::uint64_t bytes);
  void start_counting();
  // Registers a thread-local variable of the calling thread, for destruction at the thread's end.
  void at_thread_end(void (*destroy)(void*), void* object);

 private:
  // `ready`: able to run, but without a CPU.
  enum class state : std::uint8_t { free, able, ready, waiting, ended };

  // A request that waits for a line.
  struct line_wait {
    line* of = nullptr;  // null: none
    std::uint64_t began = 0;
    std::uint64_t address = 0;
    bool write = false;
    fetch_report* counted_in = nullptr;
    std::int16_t next = -1;  // the next later request for the line (link_of())
    bool called = false;     // is served next; until then the thread is in the queue of turns
    unsigned passes = 0;     // choices by same_socket_first while this request was the oldest
  };

  // A request whose transaction was aborted while it waited for a line (requests_outlive_aborts).
  struct abandoned_request {
    line* of = nullptr;  // null: none
    unsigned thread = 0;
    unsigned core = 0;
    std::uint64_t address = 0;
    bool write = false;
    std::int16_t next = -1;
    bool called = false;
    std::uint64_t at = 0;  // if it is called: when the line is free
    unsigned passes = 0;   // as in line_wait
  };

  // An access whose line has not arrived, while the thread runs on.
  struct outstanding_miss {
    std::uint64_t arrives = 0;
    std::uint64_t issued = 0;     // program_thread::instructions then
    std::uint64_t points_to = 0;  // what it loads, if that may be an address
    fetch_report* counted_in = nullptr;
    const void* place_in_program = nullptr;
    bool write = false;
  };

  // A thread of the program (engine_scheduler.cpp).
  struct program_thread {
    unsigned number = 0;
    unsigned cpu = 0;  // the one it has, or had last
    unsigned core = 0;
    std::uint64_t slice_began = 0;  // when it got its CPU
    bool gives_way = false;         // as soon as it is not in a transaction
    bool holds_bucket = false;      // or asks for one; the kernel lets no other thread run then
    state is = state::free;
    std::uint64_t clock = 0;
    std::uint64_t next_timer = 0;
    std::uint64_t next_stray = 0;
    std::uint64_t next_interrupt = 0;  // the earlier of the two
    std::uint64_t random = 0;
    unsigned place = 0;  // in the queue
    line_wait awaits;
    std::uint64_t instructions = 0;          // executed so far
    std::uint64_t instruction_part = 0;      // of a cycle, in 1/instruction_parts
    const void* place_in_program = nullptr;  // of the access that is being made
    const void* last_code = nullptr;         // behind the last call that had such a place
    std::uint64_t predicted_branches = 0;    // up to the next one that is mispredicted
    std::array<outstanding_miss, 17> misses;
    unsigned miss_count = 0;
    std::unique_ptr<fiber> runs;
    std::uint64_t stack_low = 0;  // of the fiber
    std::uint64_t stack_bytes = 0;
    bool has_on_stack(std::uint64_t address) const noexcept {
      return address - stack_low < stack_bytes;
    }
    transaction tx;
    // The number of the transaction's reads that have left the L1, for each set of the table.
    std::unordered_map<std::uint64_t, unsigned> read_table;
    thread_report counts;
    const void* waits_for = nullptr;
    const char* why = "";
    std::uint64_t waits_since = 0;
    bool woken = false;
    bool queued = false;  // also true while it waits with a deadline
    std::vector<std::pair<void (*)(void*), void*>> at_end;
    std::uint64_t deadline = no_deadline;
    std::vector<const void*> held;
    std::exception_ptr thrown;
    bool forgotten = false;
  };

  struct cpu {
    program_thread* runs = nullptr;  // null: idle
    const program_thread* ran_last = nullptr;
    std::uint64_t free_at = 0;
  };
  void make_able(program_thread& t, std::uint64_t at);
  int idle_cpu_for(const program_thread& t) const noexcept;
  void put_on(program_thread& t, unsigned number);
  futex_bucket& bucket_of(const void* word) noexcept;
  void lock_bucket(futex_bucket& bucket);
  void unlock_bucket(futex_bucket& bucket);
  bool wait_in_kernel(const void* key, const char* why, std::uint64_t deadline,
                      std::uint64_t cycles);
  void give_up_cpu(program_thread& me);
  void take_cpu(program_thread& me);
  void give_way();
  bool slice_has_ended(const program_thread& me) const noexcept;

  struct address_range {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };
  void is_at(const void* from) noexcept {
    now_running_->place_in_program = from;
    if (from != nullptr) now_running_->last_code = from;
  }
  void visit(std::uint64_t address, std::uint64_t bytes, bool write, bool atomic,
             bool waits_for_line = false);
  void touch_all(program_thread& me, std::uint64_t address, std::uint64_t bytes, bool write);
  void touch(program_thread& me, std::uint64_t address, std::uint64_t bytes, bool write);
  void wait_for_lines(program_thread& me, std::uint64_t address, std::uint64_t bytes, bool write);
  bool must_wait(const program_thread& me, std::uint64_t address, bool write);
  void wait_for_line(program_thread& me, std::uint64_t address, bool write);
  static bool is_anothers(const program_thread& me, const line& l);
  static std::uint64_t free_at(const program_thread& me, const line& l, bool write);
  void stop_waiting(program_thread& t);
  void wait_for_call(program_thread& me, std::uint64_t address);
  std::int16_t* link_of(std::int16_t request) noexcept;
  std::int16_t* link_to(line& l, std::int16_t request) noexcept;
  void call_next(line& l);
  unsigned* passes_of(std::int16_t request) noexcept;
  unsigned core_of(std::int16_t request) const noexcept;
  std::int16_t next_served(const line& l);
  std::int16_t number_of(const abandoned_request& a) const noexcept;
  void call(abandoned_request& next) noexcept;
  void abandon(program_thread& t);
  bool take_over(program_thread& me, line& l, const line_wait& request);
  abandoned_request* next_abandoned() noexcept;
  void serve_abandoned();
  void serve(const abandoned_request& request);
  // The clock of what happens now: of the running thread's access, or of a request that is served
  // without one.
  std::uint64_t clock_now() const noexcept {
    return serving_at_ != no_deadline ? serving_at_ : now_running_->clock;
  }
  void abort_others(program_thread& me, line& l, std::uint64_t address, std::uint64_t bytes,
                    bool write);
  void abort_owner_of_stack(program_thread& me, std::uint64_t address);
  void line_left_l1(unsigned core, line& l);
  void page_fault(page& p, std::uint64_t address);
  void charge_instructions();
  void mispredict(program_thread& me, std::uint64_t branches);
  void wait_for_place(program_thread& me, const line& l, bool write);
  void charge_access() {
    charge_instructions();
    if (machine_.instructions_per_100_cycles == 0)
      now_running_->clock += machine_.instruction_cycles;
  }
  void wait_for_misses(program_thread& me) {
    wait_for_loads(me);
    while (me.miss_count != 0) wait_for_miss(me, 0);
  }
  void wait_for_loads(program_thread& me);
  void wait_for_miss(program_thread& me, unsigned which);
  void wait_for_first_miss(program_thread& me);
  static unsigned stores_outstanding(const program_thread& me) noexcept;
  void wait_for_first_store(program_thread& me);
  void wait_for_dependences(program_thread& me, std::uint64_t address, bool write);
  void prepare_dependences();
  static bool needs(const program_thread& me, const outstanding_miss& m, std::uint64_t address);
  void run_on_behind(program_thread& me, const outstanding_miss& miss);
  void warm_l3();
  bool all_ready_to_count() const noexcept;
  void count_from_here();
  void interrupt();
  void expect_stray(program_thread& t);

  void take_turn(bool waits = false) {
    if (now_running_->clock > turn_ends_ || waits) next_turn(waits);
    while (now_running_->clock >= now_running_->next_interrupt) {
      interrupt();
      if (now_running_->clock > turn_ends_) next_turn(false);
    }
  }
  void next_turn(bool waits);
  // Returns the clock up to which the running thread may run before another thread's turn. With a
  // schedule it is 0, because the schedule chooses at every access.
  std::uint64_t end_of_turn() const noexcept {
    if (options_.schedule != nullptr) return 0;
    const std::uint64_t next = queue_.empty()
                                   ? ~std::uint64_t{0}
                                   : threads_[queue_.front()].clock + options_.quantum_cycles;
    return std::min(next, first_abandoned_at_);
  }
  void leave();  // the current thread cannot continue now
  void go_on_with(program_thread& next);
  program_thread& by_schedule(unsigned current, bool waits);
  // `format` has one conversion, for the number.
  void stop(const char* format, std::uint64_t number);
  void abort_thread(program_thread& victim, const abort_cause& cause);
  [[noreturn]] void abort_myself(const abort_cause& cause);
  void put_back(const transaction::entry& e);
  std::uint32_t roll_back(program_thread& victim, const abort_cause& cause);
  void cut_short(program_thread& victim) noexcept;
  void save_point(program_thread& me, const registers& back);
  // `aborted_for` is null if the transaction has committed.
  void end_transaction(program_thread& t, const abort_cause* aborted_for);
  void note_event(const program_thread& t, const abort_cause* aborted_for);
  void abort_for(program_thread& victim, const line& l, address_range at, bool write);
  bool count_conflict(program_thread& victim, const line& l, address_range at, bool write);
  std::string state_of_all() const;
  report make_report();

  // A heap with the smallest clock first. It holds the threads that are able to run but do not run,
  // and the threads that wait with a deadline.
  void push(program_thread& t);
  void enqueue(program_thread& t);
  program_thread& dequeue();
  void moved(program_thread& t);  // its clock has changed
  void unqueue(program_thread& t);
  bool before(unsigned a, unsigned b) const noexcept;
  void sift_up(unsigned place);
  void sift_down(unsigned place);

  const machine machine_;
  const run_options options_;
  memory& memory_;
  caches caches_;
  std::vector<program_thread> threads_;
  std::vector<cpu> cpus_;
  std::deque<unsigned> ready_;
  program_thread* now_running_ = nullptr;
  std::uint64_t turn_ends_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t line_order_random_ = 0;
  std::vector<unsigned> queue_;
  address_range pending_write_;
  bool waits_for_line_ = false;  // the access that is being made
  // Chosen. Beyond it a core takes its request back.
  static constexpr std::size_t abandoned_max = 256;
  std::vector<abandoned_request> abandoned_;
  std::uint64_t first_abandoned_at_ = no_deadline;  // of those that are called
  std::uint64_t serving_at_ = no_deadline;
  static constexpr unsigned nobody = ~0u;
  unsigned asked_by_ = nobody;  // the thread of the request that is served, unless it runs

  registers outside_;
  std::uint64_t outside_thread_pointer_ = 0;
  program_thread* ending_ = nullptr;  // the thread that has ended and still has a host
  std::string stuck_;
  unsigned ready_to_count_ = 0;
  std::uint64_t counting_from_ = 0;

  std::map<const void*, std::deque<unsigned>> waiting_;
  // initialised before any region, because the initialisation of a static aborts an open region
  memory_names& names_ = process_names();
  std::map<unsigned, conflict_report> conflicts_;  // by the name's number
  std::map<const void*, hot_spot> hot_spots_;      // by the code
  std::map<memory_names::place, fetch_report> fetches_;
  struct noted_event {
    event what;     // without its text, because a text allocates memory
    unsigned name;  // the text's number
  };
  std::vector<noted_event> events_;
};

// The program's two counters: instructions, and branches with a condition (instrument.py,
// program_memory.cpp).
extern std::uint64_t* counted_by_program;

// The pairs of places that dependences.py lists: an access, and a load that its address needs. They
// stay where they are.
void note_dependences(const std::uint32_t* begin, const std::uint32_t* end) noexcept;

// Forgets all locks that a previous run has left locked.
void forget_locks() noexcept;

// The engine of the run in progress, or null outside of runs.
extern engine* running;

}  // namespace elidex::sim
