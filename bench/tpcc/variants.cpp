#include "bench/tpcc/variants.hpp"

#include "bench/table_store/database_types.hpp"
#include "bench/tpcc/driven_company.hpp"

namespace elidex::bench::tpcc {
namespace {

// Measured: 217 to 225 with one and two warehouses, indexes included.
constexpr double bytes_per_row = 225;

}  // namespace

std::unique_ptr<table_store::loaded_workload> load(const table_store::database_info& in,
                                                   const settings& wanted, std::uint64_t seed,
                                                   const table_store::kept_in& where) {
  using own = table_store::own_databases;
  const std::size_t n = table_store::number_of(in);
  return n < own::size ? table_store::load_nth<driven_company>(own{}, n, wanted, seed, where)
                       : detail::load_into_paper_database(n - own::size, wanted, seed, where);
}

double rows_at_first(const scale& wanted) noexcept {
  const double customers = double{scale::districts} * wanted.customers;
  // A customer's row, its name, its payment, its order twice, 0.3 of a new order and 10 lines.
  return wanted.items +
         double{1} * wanted.warehouses * (1 + scale::districts + wanted.items + customers * 15.3);
}

double bytes_at_first(const scale& wanted) noexcept {
  return bytes_per_row * rows_at_first(wanted);
}

}  // namespace elidex::bench::tpcc
