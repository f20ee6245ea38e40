#pragma once
// SmallBank in the database that is asked for.
//
//   std::unique_ptr<loaded_workload> loaded = smallbank::load(*find_database("db/silo"),
//       {.customers = 18'000}, seed, {});
//   run_outcome outcome = loaded->run({.threads = 2, .seconds = 5});
//
// Thread-safety: different ones are independent. Errors: std::invalid_argument for settings that
// cannot be.

#include <cstdint>
#include <memory>

#include "bench/smallbank/smallbank.hpp"
#include "bench/table_store/databases.hpp"
#include "bench/table_store/workload.hpp"

namespace elidex::bench::smallbank {

[[nodiscard]] std::unique_ptr<table_store::loaded_workload> load(
    const table_store::database_info& in, const settings& wanted, std::uint64_t seed,
    const table_store::kept_in& where);

/// About what a customer takes, in three tables and their indexes, and a version of each row that
/// snapshots may still see.
inline constexpr double bytes_per_customer = 600;

}  // namespace elidex::bench::smallbank
