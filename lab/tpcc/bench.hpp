#pragma once
// Compares databases on TPC-C, natively: variants interleaved within a round, medians over the rounds.
//
//   tpcc::bench_options options{.databases = {find_database("db/occ"), find_database("db/silo")}, .threads = {1, 2}};
//   for (const bench_run& run : tpcc::run_bench(options, {})) std::printf("%f\n", run.tps);
//
// Every run has a company of its own, loaded for it, so that none works on what another one left; one is in memory at a time.
//
// Thread-safety: none; it uses the whole machine. Errors: bad_input for warehouses that don't fit into memory, and for a folder in
// which nothing can be made; what workers throw.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lab/tpcc/variants.hpp"

namespace elidex::lab::tpcc {

struct bench_options {
  std::vector<const database_info*> databases;
  std::vector<std::uint32_t> warehouses{1};
  std::vector<unsigned> threads{1};
  /// Each is a variant of each database.
  std::vector<db::durability> levels{db::durability::none};
  /// In which each run with a log has one of its own, which is removed behind it; empty: the system's for temporary files.
  std::string folder = {};
  /// Its warehouses are those above.
  scale size;
  readers how = readers::as_snapshots;
  double seconds = 1;
  double warm_up_seconds = 0.1;
  unsigned rounds = 3;
  std::uint64_t seed = 1;
};

struct bench_run {
  const database_info* what = nullptr;
  std::uint32_t warehouses = 1;
  unsigned threads = 1;
  db::durability level = db::durability::none;
  std::vector<double> raw_tps = {};  // by round
  double tps = 0;                    // their median
  double tps_min = 0;
  double tps_max = 0;
  double ratio_to_first = 1;
  double bytes_per_row = 0;  // of the load
  /// Of all rounds together; rate and seconds are means.
  run_outcome outcome = {};
  latency_histogram latency = {};  // of all kinds

  [[nodiscard]] std::uint64_t transactions() const noexcept { return latency.samples(); }
};

struct bench_progress {
  double done = 0;  // 0 to 1
  std::string doing;
};

[[nodiscard]] std::vector<bench_run> run_bench(const bench_options& options,
                                               const std::function<void(const bench_progress&)>& progress);

}  // namespace elidex::lab::tpcc
