// A simulated machine's parameters, read from a data file.
//
//   const machine here = read_machine("machine/machines/haswell-ep-2x10.machine");
//   machine dearer = here;
//   set_parameter(dearer, "abort_cycles", 300);      // for a sensitivity table
//
// One parameter per line, each with where its value comes from, or the word "assumed":
//
//   # comment
//   l1_cycles = 4 -- Intel optimization manual 2014, table 2-13
//   page_fault_cycles = 2500 -- assumed
//
// All parameters must be there, each once. Times are cycles of the machine's own clock.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace elidex::sim {

// A machine file that is no good: "FILE:LINE: what is wrong".
class bad_machine : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct machine {
  std::string name;

  std::uint64_t sockets = 1;
  std::uint64_t cores_per_socket = 4;
  std::uint64_t threads_per_core = 1;
  std::uint64_t megahertz = 3000;

  // --- caches; lines are 64 bytes ---
  std::uint64_t l1_sets = 64;
  std::uint64_t l1_ways = 8;
  std::uint64_t l2_sets = 512;
  std::uint64_t l2_ways = 8;
  std::uint64_t l3_sets = 8192;  // of a socket
  std::uint64_t l3_ways = 16;

  // --- what an access costs ---
  std::uint64_t instruction_cycles = 1;  // the work between two accesses, per access
  std::uint64_t l1_cycles = 4;
  std::uint64_t l2_cycles = 12;
  std::uint64_t l3_cycles = 40;
  std::uint64_t dram_cycles = 200;
  std::uint64_t dirty_near_cycles = 80;    // a line that another core of the socket has changed
  std::uint64_t dirty_far_cycles = 250;    // a core of another socket
  std::uint64_t l3_far_cycles = 220;       // clean, in another socket's cache only
  std::uint64_t upgrade_near_cycles = 60;  // to write a line that others of the socket have read
  std::uint64_t upgrade_far_cycles = 180;
  std::uint64_t atomic_cycles = 18;  // what a locked instruction adds
  // for how long a line that goes from cache to cache cannot go on
  std::uint64_t line_busy_cycles = 20;
  std::uint64_t pause_cycles = 10;
  std::uint64_t page_fault_cycles = 2500;
  std::uint64_t system_call_cycles = 500;
  std::uint64_t allocate_cycles = 60;

  // --- interrupts ---
  std::uint64_t timer_period_cycles = 9'000'000;
  std::uint64_t timer_cycles = 4000;
  // Devices and other cores interrupt at random, so often in the mean.
  std::uint64_t stray_interrupt_period_cycles = 14'000'000;

  // --- transactions ---
  std::uint64_t rtm = 1;  // 0 or 1
  std::uint64_t hle = 1;
  std::uint64_t begin_cycles = 30;
  std::uint64_t commit_cycles = 20;
  std::uint64_t elision_cycles = 31;  // what HLE costs more than RTM
  std::uint64_t abort_cycles = 160;
  std::uint64_t nesting_max = 7;
  std::uint64_t elided_locks_max = 1;  // HLE: locks elided at the same time
  // Reads that have left the L1 are remembered in a table of so many sets and ways, by a hash of
  // the line's number.
  std::uint64_t read_table_sets = 8192;
  std::uint64_t read_table_ways = 7;

  std::uint64_t cores() const noexcept { return sockets * cores_per_socket; }
  std::uint64_t hardware_threads() const noexcept { return cores() * threads_per_core; }
  // Threads are dealt out to the cores, then once more to the same cores.
  std::uint64_t core_of(std::uint64_t thread) const noexcept { return thread % cores(); }
};

// What one parameter is; for listings and for the reader.
struct parameter {
  std::string_view name;
  std::uint64_t machine::* value;
  std::uint64_t min;
  std::uint64_t max;
};
std::span<const parameter> parameters() noexcept;

// Throws bad_machine.
machine read_machine(const std::filesystem::path& file);
// The same from text; `file` is for messages.
machine parse_machine(std::string_view text, std::string_view file, std::string_view name);
// Throws std::invalid_argument with a clause that names what the parameter takes.
void set_parameter(machine& which, std::string_view name, std::uint64_t value);

}  // namespace elidex::sim
