#pragma once
// Compares databases on a workload, natively: variants interleaved within a round, medians over the
// rounds.
//
//   workload_point point{.label = "2 warehouses", .rows = ..., .load = [](const database_info& in,
//       auto seed, auto& where) { ... }};
//   bench_options options{.databases = {find_database("db/occ"), find_database("db/silo")}, .groups
//       = {{point}}, .threads = {1, 2}};
//   for (const bench_run& run : run_bench(options, {})) std::printf("%f\n", run.tps);
//
// Every run has rows of its own, loaded for it, so that none works on what another one left; those
// of one run are in memory at a time.
//
// Thread-safety: none; it uses the whole machine. Errors: bad_input for a directory in which
// nothing can be made; what workers throw.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/table_store/databases.hpp"
#include "bench/table_store/workload.hpp"

namespace elidex::bench::table_store {

/// A workload with its settings.
struct workload_point {
  std::string label;
  double rows = 0;  // at first, in all tables; for bytes_per_row
  std::function<std::unique_ptr<loaded_workload>(const database_info& in, std::uint64_t seed,
                                                 const kept_in& where)>
      load;
};

struct bench_options {
  std::vector<const database_info*> databases;
  /// Points of a group are variants of each database: interleaved with the others and compared with
  /// the first. Groups are not compared.
  std::vector<std::vector<workload_point>> groups;
  std::vector<unsigned> threads{1};
  /// Each is a variant of each database.
  std::vector<internal::durability> levels{internal::durability::none};
  /// In which each run with a log has one of its own, which is removed behind it; empty: the
  /// system's for temporary files.
  std::string directory = {};
  double seconds = 1;
  double warm_up_seconds = 0.1;
  unsigned rounds = 3;
  std::uint64_t seed = 1;
};

struct bench_run {
  const database_info* what = nullptr;
  std::size_t group = 0;
  std::size_t point = 0;  // of the group's
  unsigned threads = 1;
  internal::durability level = internal::durability::none;
  std::vector<double> raw_tps = {};  // by round
  double tps = 0;                    // their median
  double tps_min = 0;
  double tps_max = 0;
  double ratio_to_first = 1;
  double bytes_per_row = 0;  // of the load
  /// Of all rounds together; rate and seconds are means, missing adds up without signs.
  run_outcome outcome = {};
  latency_histogram latency = {};  // of all kinds

  [[nodiscard]] std::uint64_t transactions() const noexcept { return latency.samples(); }
};

struct bench_progress {
  double done = 0;  // 0 to 1
  std::string doing;
};

[[nodiscard]] std::vector<bench_run> run_bench(
    const bench_options& options, const std::function<void(const bench_progress&)>& progress);

/// How many bytes transactions may add by so many threads at most, of which no more run than there
/// are CPUs.
struct growth {
  double seconds = 0;
  unsigned threads = 1;
  double bytes_per_transaction = 0;
  double transactions_per_second_max = 0;

  [[nodiscard]] double bytes() const;
};

/// Throws bad_input if what `flag` asks for does not fit into memory: "--keys: 60000 of them need
/// about 70 MB, ...". `of_what` follows the number.
void refuse_what_does_not_fit(std::string_view flag, std::uint64_t wanted, std::string_view of_what,
                              double bytes_each, double bytes_besides);

}  // namespace elidex::bench::table_store
