// A simulated machine's parameters, read from a data file.
//
//   const machine here = read_machine("machine/machines/haswell-ep-2x10.machine");
//   machine dearer = here;
//   set_parameter(dearer, "abort_cycles", 300);      // for a sensitivity table
//
// A file has one parameter per line, with the source of its value or the word "assumed":
//
//   # comment
//   l1_cycles = 4 -- Intel optimization manual 2014, table 2-13
//   page_fault_cycles = 2500 -- assumed
//
// Instead of a source, "unused: " and a reason mark a value without effect on this machine.
// The file must have each parameter exactly once. Times are cycles of the machine's clock.
//
// Thread-safety: values.
// Errors: read_machine() and parse_machine() throw bad_machine. set_parameter() throws
// std::invalid_argument.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace elidex::sim {

inline constexpr unsigned threads_max = 256;  // of a run

// An error in a machine file: "FILE:LINE: what is wrong".
class bad_machine : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct machine {
  std::string name;

  std::uint64_t sockets = 1;
  std::uint64_t cores_per_socket = 4;
  std::uint64_t threads_per_core = 1;
  // Of each socket, the cores that threads get first: thread 0 gets the first one of the first
  // socket. When all sockets have given so many, the other cores follow. 0: all of a socket.
  std::uint64_t cores_filled_first = 0;
  std::uint64_t megahertz = 3000;

  // --- caches, with lines of 64 bytes ---
  std::uint64_t l1_sets = 64;
  std::uint64_t l1_ways = 8;
  std::uint64_t l2_sets = 512;
  std::uint64_t l2_ways = 8;
  std::uint64_t l3_sets = 8192;  // of a socket
  std::uint64_t l3_ways = 16;

  // --- costs of an access ---
  // The work between two accesses, per access, unless instructions are charged.
  std::uint64_t instruction_cycles = 1;
  // How many instructions of a thread take 100 cycles, as long as it waits for no memory. 0: they
  // are not charged. instrument.py counts them.
  std::uint64_t instructions_per_100_cycles = 0;
  // The speed of a thread while the other thread of its core runs too.
  std::uint64_t shared_core_percent = 100;
  // A thread continues past an access that its L1 does not serve. It stops when
  // window_instructions have followed, when window_misses such accesses are outstanding, or when
  // the next address comes from the awaited value. With window_instructions = 0 it waits for each
  // access.
  std::uint64_t window_instructions = 0;
  std::uint64_t window_misses = 10;
  // As window_misses, of the accesses that write.
  std::uint64_t window_stores = 10;
  // How many of 1000 conditional branches are mispredicted, at random. A mispredicted branch waits
  // for all outstanding loads.
  std::uint64_t mispredicted_per_1000_branches = 0;
  std::uint64_t misprediction_cycles = 16;
  std::uint64_t l1_cycles = 4;
  std::uint64_t l2_cycles = 12;
  std::uint64_t l3_cycles = 40;
  std::uint64_t dram_cycles = 200;
  std::uint64_t dirty_near_cycles = 80;    // a line that another core of the socket has changed
  std::uint64_t dirty_far_cycles = 250;    // a line that a core of another socket has changed
  std::uint64_t l3_far_cycles = 220;       // clean, in another socket's cache only
  std::uint64_t upgrade_near_cycles = 60;  // to write a line that others of the socket have read
  std::uint64_t upgrade_far_cycles = 180;
  std::uint64_t atomic_cycles = 18;  // the extra cost of a locked instruction
  // The mean time for which a line that moved between caches cannot move again. Each time is drawn
  // evenly from 0 to twice the mean. If jitter_cycles is 0, each time is the mean.
  std::uint64_t line_busy_cycles = 20;
  // Which of the requests that wait for a line is served next: the one that was issued first, one
  // at random, or the first from the socket that has the line.
  static constexpr std::uint64_t first_issued = 0;
  static constexpr std::uint64_t random_order = 1;
  static constexpr std::uint64_t same_socket_first = 2;
  std::uint64_t line_order = first_issued;
  // Each access that leaves the core costs up to this many cycles more or fewer, at random by the
  // run's seed. At 0, threads may abort each other in a pattern that repeats forever.
  std::uint64_t jitter_cycles = 0;
  std::uint64_t pause_cycles = 10;
  std::uint64_t page_fault_cycles = 2500;
  std::uint64_t system_call_cycles = 500;
  // The costs of a futex call that sleeps, and of one that wakes a thread. Then the time from the
  // beginning of the waking call until the woken thread runs.
  std::uint64_t futex_wait_cycles = 500;
  std::uint64_t futex_wake_cycles = 0;
  std::uint64_t wake_up_cycles = 500;
  std::uint64_t allocate_cycles = 60;
  // With more threads than hardware threads: how long a thread runs before another one gets its
  // turn at a timer interrupt, and what the switch costs.
  std::uint64_t slice_cycles = 9'000'000;
  std::uint64_t context_switch_cycles = 5000;

  // --- interrupts ---
  std::uint64_t timer_period_cycles = 9'000'000;
  std::uint64_t timer_cycles = 4000;
  // the mean time between random interrupts of devices and other cores
  std::uint64_t stray_interrupt_period_cycles = 14'000'000;

  // --- transactions ---
  std::uint64_t rtm = 1;  // 0 or 1
  std::uint64_t hle = 1;
  std::uint64_t begin_cycles = 30;
  std::uint64_t commit_cycles = 20;
  // The extra cost of a commit if the transaction has written or elides a lock: what it has written
  // must reach the L1.
  std::uint64_t commit_writes_cycles = 31;
  // The part of commit_writes_cycles that passes before the transaction has committed. Until then
  // others can abort it.
  std::uint64_t commit_exposed_cycles = 31;
  std::uint64_t abort_cycles = 160;
  // Whether the core's L2 still has the lines that an aborted transaction has written. 0 or 1; with
  // 0 they come back from the L3.
  std::uint64_t aborted_lines_in_l2 = 0;
  // Whether the request of a transaction that is aborted stays in the line's queue. 0 or 1.
  std::uint64_t requests_outlive_aborts = 0;
  std::uint64_t nesting_max = 7;
  std::uint64_t elided_locks_max = 1;  // HLE: locks elided at the same time
  // A table of this many sets and ways records the reads that have left the L1, by a hash of the
  // line's number.
  std::uint64_t read_table_sets = 8192;
  std::uint64_t read_table_ways = 7;

  std::uint64_t cores() const noexcept { return sockets * cores_per_socket; }
  std::uint64_t hardware_threads() const noexcept { return cores() * threads_per_core; }
  // Threads get the cores in the order of cores_filled_first, then the same cores again.
  std::uint64_t core_of(std::uint64_t thread) const noexcept {
    const std::uint64_t n = thread % cores();
    const std::uint64_t first = filled_first();
    if (n < sockets * first) return n / first * cores_per_socket + n % first;
    const std::uint64_t rest = n - sockets * first;
    const std::uint64_t left = cores_per_socket - first;
    return rest / left * cores_per_socket + first + rest % left;
  }
  // The inverse of core_of(): the first thread on a core. The next one is cores() further.
  std::uint64_t first_thread_on(std::uint64_t core) const noexcept {
    const std::uint64_t first = filled_first();
    if (first == cores_per_socket) return core;
    const std::uint64_t socket = core / cores_per_socket;
    const std::uint64_t n = core % cores_per_socket;
    if (n < first) return socket * first + n;
    return sockets * first + socket * (cores_per_socket - first) + n - first;
  }

 private:
  std::uint64_t filled_first() const noexcept {
    return cores_filled_first == 0 ? cores_per_socket
                                   : std::min(cores_filled_first, cores_per_socket);
  }
};

// The description of one parameter, for listings and for the file reader.
struct parameter {
  std::string_view name;
  std::uint64_t machine::* value;
  std::uint64_t min;
  std::uint64_t max;
};
std::span<const parameter> parameters() noexcept;

// Throws bad_machine.
machine read_machine(const std::filesystem::path& file);
// The same from text. `file` is for messages.
machine parse_machine(std::string_view text, std::string_view file, std::string_view name);
// Throws std::invalid_argument. Its message names the values that the parameter takes.
void set_parameter(machine& which, std::string_view name, std::uint64_t value);

}  // namespace elidex::sim
