#pragma once
// Paper 003's databases (section 7), loaded: for the registry (variants.cpp).
//
// Thread-safety and errors: those of native_company (native_run.hpp).

#include <cstdint>
#include <memory>

#include "lab/tpcc/variants.hpp"

namespace elidex::lab::tpcc {

std::unique_ptr<loaded_company> load_dbx_over_htm_btree(const scale& wanted, std::uint64_t seed, const kept_in& where);
std::unique_ptr<loaded_company> load_dbx_over_euno_btree(const scale& wanted, std::uint64_t seed, const kept_in& where);
std::unique_ptr<loaded_company> load_dbx_over_euno_btree_plus(const scale& wanted, std::uint64_t seed,
                                                              const kept_in& where);
std::unique_ptr<loaded_company> load_dbx_locking_over_htm_btree(const scale& wanted, std::uint64_t seed,
                                                                const kept_in& where);
std::unique_ptr<loaded_company> load_dbx_locking_over_euno_btree(const scale& wanted, std::uint64_t seed,
                                                                 const kept_in& where);
std::unique_ptr<loaded_company> load_dbx_locking_over_euno_btree_plus(const scale& wanted, std::uint64_t seed,
                                                                      const kept_in& where);
std::unique_ptr<loaded_company> load_silo_over_masstree(const scale& wanted, std::uint64_t seed, const kept_in& where);

}  // namespace elidex::lab::tpcc
