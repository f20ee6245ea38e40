#pragma once
// The databases that TPC-C runs on, by name, each under one driver.
//
//   const database_info* silo = find_database("db/silo");
//   std::unique_ptr<loaded_company> loaded = silo->load({.warehouses = 2}, seed);
//   run_outcome outcome = loaded->run({.threads = 2, .seconds = 5});
//   outcome.violations                                   // the consistency conditions, looked at behind the run
//
// Thread-safety: one run at a time for each database; different databases are independent.
// Errors: what workers throw comes out of run().

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "elidex/db/redo_log.hpp"
#include "elidex/sync/lock_stats.hpp"
#include "lab/runner/latency.hpp"
#include "lab/tpcc/consistency.hpp"
#include "lab/tpcc/random.hpp"
#include "lab/tpcc/terminal.hpp"

namespace elidex::lab::tpcc {

struct run_settings {
  unsigned threads = 1;
  double seconds = 1;
  double warm_up_seconds = 0.1;
  readers how = readers::as_snapshots;
  std::uint64_t seed = 1;
  /// Called a few times a second with the share of the time that is over.
  std::function<void(double)> tick = {};
};

/// Of one run, while measuring.
struct run_outcome {
  std::array<std::uint64_t, kinds>
      transactions{};                            // those that ended, as committed or as the specification's rollbacks
  std::array<latency_histogram, kinds> latency;  // from the first attempt to the last
  std::uint64_t rolled_back = 0;
  double rate = 0;     // a second, all threads together
  double seconds = 0;  // the longest of the threads' measured times
  double cpu_wait_pct = 0;
  /// Of the whole run, warm-up included.
  std::uint64_t all_transactions = 0;
  std::uint64_t conflicts = 0;        // attempts that were repeated
  lock_counts regions;                // of the protocols that commit in hardware regions
  std::vector<violation> violations;  // after the run
};

/// What a database of that scale takes, about: rows at first, bytes of memory at first.
[[nodiscard]] double rows_at_first(const scale& wanted) noexcept;
[[nodiscard]] double bytes_at_first(const scale& wanted) noexcept;
/// What a run adds to that at most, about, by so many threads that have a CPU of their own.
[[nodiscard]] double bytes_of_transactions(double seconds, double threads) noexcept;

/// A loaded company in a database of some kind.
class loaded_company {
 public:
  virtual ~loaded_company() = default;
  [[nodiscard]] virtual run_outcome run(const run_settings& settings) = 0;
};

/// How a company is kept: in memory only, or with a log in a folder.
struct kept_in {
  db::durability level = db::durability::none;
  std::string folder = {};
};

struct database_info {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<loaded_company> (*load)(const scale& wanted, std::uint64_t seed, const kept_in& where);
  /// For a line behind the results; null or empty: nothing to tell.
  std::string (*remark)();
};

[[nodiscard]] std::span<const database_info> databases();
/// Null if there is none.
[[nodiscard]] const database_info* find_database(std::string_view name);

}  // namespace elidex::lab::tpcc
