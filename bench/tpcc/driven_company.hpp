#pragma once
// TPC-C as native_run (bench/table_store/native_run.hpp) drives it: a terminal for each thread,
// round robin over the warehouses, and the consistency conditions behind each run.
//
//   native_run<tpcc::driven_company<basic_database<db::silo_commit>>> c({.size = {.warehouses =
//       2}}, seed, {});
//
// Thread-safety: native_run's. Errors: std::invalid_argument for a scale that isn't possible.

#include <cstdint>

#include "bench/table_store/workload.hpp"
#include "bench/tpcc/consistency.hpp"
#include "bench/tpcc/terminal.hpp"
#include "bench/tpcc/variants.hpp"

namespace elidex::bench::tpcc {

using namespace internal;

template <class Database>
class driven_company {
 public:
  using database_type = Database;
  using settings = tpcc::settings;
  using user = terminal<company<Database>>;

  driven_company(Database& in, const settings& wanted, std::uint64_t seed)
      : company_(in, wanted.size, seed), how_(wanted.how) {}

  // The items, and each warehouse.
  std::size_t shares() const noexcept { return 1 + std::size_t{company_.size.warehouses}; }
  void load_share(std::size_t i) {
    if (i == 0) {
      company_.load_items();
    } else {
      company_.load_warehouse(static_cast<std::uint32_t>(i));
    }
  }

  std::size_t kinds() const noexcept { return tpcc::kinds; }
  user make_user(unsigned number, std::uint64_t seed) {
    return user(company_, 1 + number % company_.size.warehouses, seed, how_);
  }
  table_store::step_result step(user& who) const {
    const step_result done = who.step();
    return {static_cast<std::size_t>(done.what), done.rolled_back};
  }

  void add(const user&) const noexcept {}
  void check(table_store::run_outcome& outcome) {
    for (violation& one : violations(company_)) outcome.violations.push_back(std::move(one.text));
  }

 private:
  company<Database> company_;
  const readers how_;
};

}  // namespace elidex::bench::tpcc
