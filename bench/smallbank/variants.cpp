#include "bench/smallbank/variants.hpp"

#include "bench/smallbank/driven_bank.hpp"
#include "bench/table_store/database_types.hpp"

namespace elidex::bench::smallbank {

std::unique_ptr<table_store::loaded_workload> load(const table_store::database_info& in,
                                                   const settings& wanted, std::uint64_t seed,
                                                   const table_store::kept_in& where) {
  using own = table_store::own_databases;
  const std::size_t n = table_store::number_of(in);
  return n < own::size ? table_store::load_nth<driven_bank>(own{}, n, wanted, seed, where)
                       : table_store::load_nth<driven_bank>(table_store::paper_databases{},
                                                            n - own::size, wanted, seed, where);
}

}  // namespace elidex::bench::smallbank
