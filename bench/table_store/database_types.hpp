#pragma once
// The types of the databases that databases.hpp has by name, and a workload loaded into the one
// that is asked for.
//
//   // into db/silo
//   load_nth<smallbank::driven_bank>(own_databases{}, 1, {.customers = 1'000}, seed, {});
//
// Two lists, because compiling a large workload for all of them at once takes long: a workload may
// do each in a source of its own.
//
// Thread-safety and errors: those of native_run.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bench/table_store/native_run.hpp"
#include "bench/table_store/paper_databases.hpp"
#include "elidex/database.hpp"
#include "elidex/internal/txn/dbx_locking_commit.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"

namespace elidex::bench::table_store {

template <class... Databases>
struct database_list {
  static constexpr std::size_t size = sizeof...(Databases);
};

/// The first ones of databases(), in its order; those behind them.
using own_databases =
    database_list<basic_database<db::capability_commit>, basic_database<db::silo_commit>,
                  basic_database<db::dbx_commit<>>, basic_database<db::dbx_locking_commit<>>,
                  basic_database<db::two_phase_locking<>>>;
using paper_databases =
    database_list<dbx_locking_over<htm_btree_set>, dbx_locking_over<euno_btree_set>,
                  dbx_locking_over<released_euno_btree_set>, dbx_locking_over<euno_btree_plus_set>,
                  dbx_over<htm_btree_set>, dbx_over<euno_btree_set>, dbx_over<euno_btree_plus_set>,
                  silo_over_masstree>;

template <class Driven>
std::unique_ptr<loaded_workload> load_into(const typename Driven::settings& wanted,
                                           std::uint64_t seed, const kept_in& where) {
  return std::make_unique<native_run<Driven>>(wanted, seed, where);
}

/// Driven over the nth of the list, from 0.
template <template <class> class Driven, class Settings, class... Databases>
std::unique_ptr<loaded_workload> load_nth(database_list<Databases...>, std::size_t n,
                                          const Settings& wanted, std::uint64_t seed,
                                          const kept_in& where) {
  using loader =
      std::unique_ptr<loaded_workload> (*)(const Settings&, std::uint64_t, const kept_in&);
  static constexpr loader all[] = {&load_into<Driven<Databases>>...};
  return all[n](wanted, seed, where);
}

}  // namespace elidex::bench::table_store
