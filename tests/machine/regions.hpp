// What the machine's own tests run: bodies on a machine without interrupts, and transactions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "elidex/htm.hpp"
#include "machine/simulation.hpp"

namespace elidex::sim {

using bodies = std::vector<std::function<void()>>;
using u64 = std::uint64_t;

inline machine here(const std::string& name = "haswell-ep-2x10") {
  machine m = read_machine(ELIDEX_TEST_MACHINES "/" + name + ".machine");
  // So that no interrupt comes in between where a test counts aborts.
  set_parameter(m, "timer_period_cycles", 100'000'000'000);
  set_parameter(m, "stray_interrupt_period_cycles", 100'000'000'000);
  // Tests count cycles: a thread waits for each access, and an abort leaves nothing behind.
  set_parameter(m, "jitter_cycles", 0);
  set_parameter(m, "instructions_per_100_cycles", 0);
  set_parameter(m, "shared_core_percent", 100);
  set_parameter(m, "window_instructions", 0);
  set_parameter(m, "requests_outlive_aborts", 0);
  set_parameter(m, "aborted_lines_in_l2", 0);
  set_parameter(m, "commit_writes_cycles", 0);
  set_parameter(m, "futex_wait_cycles", 500);
  set_parameter(m, "futex_wake_cycles", 0);
  set_parameter(m, "wake_up_cycles", 500);
  return m;
}

inline report run_here(const bodies& what, u64 seed = 1) {
  return run(here(), {.seed = seed}, what);
}

struct alignas(64) cell {
  std::atomic<u64> value{0};
};
struct alignas(4096) page_of_bytes {
  std::array<unsigned char, 4096> bytes{};
};

// The status of one region around `body`; started() if it has committed.
template <class Body>
htm::status region(Body body) {
  const htm::status entry = htm::begin();
  if (entry.started()) {
    body();
    htm::commit();
  }
  return entry;
}

}  // namespace elidex::sim
