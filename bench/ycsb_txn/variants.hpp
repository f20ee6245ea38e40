#pragma once
// YCSB's transactions over rows in the database that is asked for.
//
//   std::unique_ptr<loaded_workload> loaded = ycsb_txn::load(*find_database("db/silo"), {.keys =
//       100'000}, seed, {});
//   run_outcome outcome = loaded->run({.threads = 2, .seconds = 5});
//
// Thread-safety: different ones are independent. Errors: std::invalid_argument for settings that
// cannot be.

#include <cstdint>
#include <memory>

#include "bench/table_store/databases.hpp"
#include "bench/table_store/workload.hpp"
#include "bench/ycsb_txn/ycsb_txn.hpp"

namespace elidex::bench::ycsb_txn {

[[nodiscard]] std::unique_ptr<table_store::loaded_workload> load(
    const table_store::database_info& in, const settings& wanted, std::uint64_t seed,
    const table_store::kept_in& where);

/// About what a row takes, its place in the index included, and as much for a version that
/// snapshots may still see.
inline constexpr double bytes_per_row = 2'300;

}  // namespace elidex::bench::ycsb_txn
