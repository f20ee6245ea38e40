#include "bench/table_store/database_types.hpp"
#include "bench/tpcc/driven_company.hpp"

namespace elidex::bench::tpcc::detail {

std::unique_ptr<table_store::loaded_workload> load_into_paper_database(
    std::size_t n, const settings& wanted, std::uint64_t seed, const table_store::kept_in& where) {
  return table_store::load_nth<driven_company>(table_store::paper_databases{}, n, wanted, seed,
                                               where);
}

}  // namespace elidex::bench::tpcc::detail
