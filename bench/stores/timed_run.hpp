#pragma once
// Clients of one store, each in a thread of its own, for a time.
//
//   const timed_result got = run_clients(*rows, {plan, ..}, {.seconds = 1});
//   got.rate;   // transactions a second, of all threads together
//   got.logs;   // what they wrote, the warm-up included
//
// Thread-safety: one run at a time for each store. Errors: what a client throws ends the run and
// comes out of run_clients().

#include <string>
#include <vector>

#include "bench/runner/latency.hpp"
#include "bench/stores/client.hpp"
#include "bench/stores/store.hpp"

namespace elidex::bench::stores {

struct timed_settings {
  double seconds = 1;
  double warm_up_seconds = 0.1;
};

struct timed_result {
  double rate = 0;
  std::uint64_t transactions = 0;  // that ended while the clock ran
  double cpu_wait_pct = 0;
  latency_histogram latency = {};
  std::vector<write_log> logs = {};
  std::vector<std::string> problems = {};  // one of each client that had any
};

[[nodiscard]] timed_result run_clients(store& on, const std::vector<client_plan>& plans,
                                       const timed_settings& settings);

}  // namespace elidex::bench::stores
