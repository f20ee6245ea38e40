#pragma once
// TPC-C on one database on a simulated machine: what paper 003's figure 18 is made of, one process
// for each point.
//
//   tpcc_request wanted{.run = {.machine = which, .index = "db/dbx:htm-btree", .threads = 16,
//       .operations = 200}};
//   wanted.size = {.warehouses = 1, .customers = 300, .items = 10'000};
//   const tpcc_result r = run_tpcc_on_machine(wanted);
//   r.run.mops * 1e6, r.commits, r.run.machine.conflicts ...
//
// Loaded and run as database_run.hpp says. Terminals go round robin over the warehouses, draw the
// specification's mix, and the two kinds that only read are snapshots unless asked otherwise.
// After the run the consistency conditions are checked.
//
// A smaller scale than the specification's has the same proportions (bench/tpcc/random.hpp), but
// for items and stock, which are as many as asked for: fewer stocks are hotter ones.
//
// Thread-safety: one run at a time in a process.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/simulated/database_run.hpp"
#include "bench/tpcc/random.hpp"
#include "bench/tpcc/terminal.hpp"

namespace elidex::bench {

using namespace internal;

struct tpcc_request {
  /// The machine, the database's name in place of an index's, threads, transactions of each, seed,
  /// retries, leaf version.
  sim_request run;
  tpcc::scale size;
  tpcc::readers how = tpcc::readers::as_snapshots;
  std::optional<std::uint32_t> commit_retries;  // of the regions of commits; none: run.retries
};

using tpcc_result = database_result<tpcc::kinds>;

/// The databases' names.
[[nodiscard]] std::vector<std::string_view> databases_on_machine();

/// Throws bad_input; std::runtime_error for a run that got stuck or that broke a consistency
/// condition.
[[nodiscard]] tpcc_result run_tpcc_on_machine(const tpcc_request& wanted);

}  // namespace elidex::bench
