#pragma once
// TPC-C loaded into the database that is asked for, and what that takes.
//
//   std::unique_ptr<loaded_workload> loaded = tpcc::load(*find_database("db/silo"), {.size =
//       {.warehouses = 2}}, seed, {});
//   run_outcome outcome = loaded->run({.threads = 2, .seconds = 5});
//   outcome.violations  // the consistency conditions, looked at behind the run
//
// Thread-safety: different companies are independent. Errors: std::invalid_argument for a scale
// that isn't possible.

#include <cstdint>
#include <memory>

#include "bench/table_store/databases.hpp"
#include "bench/table_store/workload.hpp"
#include "bench/tpcc/random.hpp"
#include "bench/tpcc/terminal.hpp"

namespace elidex::bench::tpcc {

struct settings {
  scale size;
  readers how = readers::as_snapshots;
};

[[nodiscard]] std::unique_ptr<table_store::loaded_workload> load(
    const table_store::database_info& in, const settings& wanted, std::uint64_t seed,
    const table_store::kept_in& where);

/// What a company of that scale takes at first, about: rows, bytes of memory.
[[nodiscard]] double rows_at_first(const scale& wanted) noexcept;
[[nodiscard]] double bytes_at_first(const scale& wanted) noexcept;

/// Upper bounds for what a run adds: mostly the order lines of NEW-ORDER, 4.5 of them for each
/// transaction of the mix.
inline constexpr double bytes_per_transaction = 1'000;
inline constexpr double transactions_per_second_max = 100'000;  // of a thread

namespace detail {
/// load() of the nth of paper 003's databases; compiled in a source of its own.
std::unique_ptr<table_store::loaded_workload> load_into_paper_database(
    std::size_t n, const settings& wanted, std::uint64_t seed, const table_store::kept_in& where);
}  // namespace detail

}  // namespace elidex::bench::tpcc
