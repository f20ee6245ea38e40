#pragma once
// elidex bench over databases, whatever the workload: the flags that all of them have, the run, and
// its table or JSON.
//
//   database_bench bench = read_database_flags(flags, time, "tpcc");
//   bench.heading = "TPC-C, standard mix";
//   bench.kinds = tpcc::kind_names;
//   bench.columns = {{"warehouses", table::right}};
//   bench.add_group({{.point = {...}, .cells = {"2"}, .fields = {{"warehouses", 2}}}});
//   return run_database_bench(flags, bench);
//
// Thread-safety: none. Errors: bench::bad_input for flags.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/table_store/bench.hpp"
#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "elidex/internal/txn/transaction.hpp"

namespace elidex::cli {

using namespace internal;

/// A workload with its settings, and how it is told from the others.
struct told_point {
  bench::table_store::workload_point point;
  std::string workload;            // as --workload has it
  std::string dist;                // which rows are hot
  std::vector<std::string> cells;  // under the bench's columns
  nlohmann::ordered_json fields;   // of the JSON
};

struct database_bench {
  std::string heading;
  std::span<const std::string_view> kinds;  // of transactions; a point may have fewer
  std::vector<table::column> columns = {};
  /// How what is missing behind a run is called; empty: the workload keeps no sum.
  std::string missing = {};
  bench::table_store::bench_options options;
  std::vector<std::vector<told_point>> told = {};  // by group and point of the options

  /// Points that are interleaved and compared with each other.
  void add_group(std::vector<told_point> points);
};

/// Databases, durability, threads, times and seed; `workload` is for messages.
[[nodiscard]] database_bench read_database_flags(const bench_flags& flags, const bench_time& time,
                                                 std::string_view workload);

/// "none,sync" and so on.
[[nodiscard]] std::vector<internal::durability> read_durability(const std::string& text);

/// "serializable, repeatable-read, ..": serializable if empty.
[[nodiscard]] std::vector<internal::isolation> read_isolation(const std::string& text);
[[nodiscard]] std::string_view name_of(internal::isolation level);

/// The exit status: 1 if a run broke what must be true behind it.
int run_database_bench(const bench_flags& flags, const database_bench& bench);

}  // namespace elidex::cli
