#include "lab/tpcc/paper_databases.hpp"

#include "lab/tpcc/index_sets.hpp"
#include "lab/tpcc/native_run.hpp"

namespace elidex::lab::tpcc {

std::unique_ptr<loaded_company> load_dbx_over_htm_btree(const scale& wanted, std::uint64_t seed, const kept_in& where) {
  return std::make_unique<native_company<dbx_over<htm_btree_set>>>(wanted, seed, where);
}
std::unique_ptr<loaded_company> load_dbx_over_euno_btree(const scale& wanted, std::uint64_t seed,
                                                         const kept_in& where) {
  return std::make_unique<native_company<dbx_over<euno_btree_set>>>(wanted, seed, where);
}
std::unique_ptr<loaded_company> load_dbx_over_euno_btree_plus(const scale& wanted, std::uint64_t seed,
                                                              const kept_in& where) {
  return std::make_unique<native_company<dbx_over<euno_btree_plus_set>>>(wanted, seed, where);
}
std::unique_ptr<loaded_company> load_dbx_locking_over_htm_btree(const scale& wanted, std::uint64_t seed,
                                                                const kept_in& where) {
  return std::make_unique<native_company<dbx_locking_over<htm_btree_set>>>(wanted, seed, where);
}
std::unique_ptr<loaded_company> load_dbx_locking_over_euno_btree(const scale& wanted, std::uint64_t seed,
                                                                 const kept_in& where) {
  return std::make_unique<native_company<dbx_locking_over<euno_btree_set>>>(wanted, seed, where);
}
std::unique_ptr<loaded_company> load_dbx_locking_over_euno_btree_plus(const scale& wanted, std::uint64_t seed,
                                                                      const kept_in& where) {
  return std::make_unique<native_company<dbx_locking_over<euno_btree_plus_set>>>(wanted, seed, where);
}
std::unique_ptr<loaded_company> load_silo_over_masstree(const scale& wanted, std::uint64_t seed, const kept_in& where) {
  return std::make_unique<native_company<silo_over_masstree>>(wanted, seed, where);
}

}  // namespace elidex::lab::tpcc
