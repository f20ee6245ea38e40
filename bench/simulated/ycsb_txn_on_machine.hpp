#pragma once
// YCSB's transactions (bench/ycsb_txn/ycsb_txn.hpp) on one database on a simulated machine.
//
//   ycsb_txn_request wanted{.run = {.machine = which, .index = "db/silo", .threads = 64,
//       .operations = 200}, .is = {.what = *ycsb_txn::find_mix("b"), .keys = 100'000}};
//   const ycsb_txn_result r = run_ycsb_txn_on_machine(wanted);
//
// Loaded and run as database_run.hpp says. After the run, the table's counters are compared with
// what the clients committed.
//
// Thread-safety: one run at a time in a process.

#include <string_view>
#include <vector>

#include "bench/simulated/database_run.hpp"
#include "bench/ycsb_txn/ycsb_txn.hpp"

namespace elidex::bench {

using namespace internal;

struct ycsb_txn_request {
  /// The machine, the database's name in place of an index's, threads, transactions per thread,
  /// seed.
  sim_request run;
  ycsb_txn::settings is;
};

using ycsb_txn_result = database_result<ycsb_txn::kind_names.size()>;

/// The names of the databases that can be run.
[[nodiscard]] std::vector<std::string_view> ycsb_txn_databases_on_machine();

/// Throws bad_input; std::runtime_error for a run that got stuck, or that lost or tore a change.
[[nodiscard]] ycsb_txn_result run_ycsb_txn_on_machine(const ycsb_txn_request& wanted);

}  // namespace elidex::bench
