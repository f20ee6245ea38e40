#pragma once
// What the table store's benchmarks have in common: how long a workload runs in a database, what
// comes out, and the loaded workload itself.
//
//   std::unique_ptr<loaded_workload> bank = smallbank::load(*find_database("db/silo"), {.customers
//       = 1'000}, seed, {});
//   run_outcome outcome = bank->run({.threads = 2, .seconds = 5});
//   outcome.violations  // of what must be true behind a run; empty: all is well
//
// Thread-safety: one run at a time for each workload; different ones are independent. Errors: what
// workers throw comes out of run().

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/runner/latency.hpp"
#include "elidex/internal/log/redo_log.hpp"
#include "elidex/internal/sync/lock_stats.hpp"

namespace elidex::bench::table_store {

using namespace internal;

struct run_settings {
  unsigned threads = 1;
  double seconds = 1;
  double warm_up_seconds = 0.1;
  std::uint64_t seed = 1;
  /// Called a few times a second with the share of the time that is over.
  std::function<void(double)> tick = {};
};

/// How a database is kept: in memory only, or with a log in a directory.
struct kept_in {
  internal::durability level = internal::durability::none;
  std::string directory = {};
};

/// What a user's step did.
struct step_result {
  std::size_t kind = 0;  // of the workload's transactions, from 0
  bool rolled_back = false;
};

/// Of one run, while measuring.
struct run_outcome {
  std::vector<latency_histogram> latency =
      {};  // of each kind, from the first attempt to the last; with a sample of each
  std::uint64_t rolled_back = 0;
  double rate = 0;     // a second, all threads together
  double seconds = 0;  // the longest of the threads' measured times
  double cpu_wait_pct = 0;
  /// Of the whole run, warm-up included.
  std::uint64_t all_transactions = 0;
  std::uint64_t conflicts = 0;  // attempts that were repeated
  lock_counts regions = {};     // of the protocols that commit in hardware regions
  /// After the run: what must not be.
  std::vector<std::string> violations = {};
  /// After the run: by how much the sum that the workload keeps (money, counters) is less than what
  /// was committed.
  std::int64_t missing = 0;
};

/// A workload's rows in a database of some kind.
class loaded_workload {
 public:
  virtual ~loaded_workload() = default;
  [[nodiscard]] virtual run_outcome run(const run_settings& settings) = 0;
};

}  // namespace elidex::bench::table_store
