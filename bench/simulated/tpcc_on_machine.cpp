#include "bench/simulated/tpcc_on_machine.hpp"

#include <memory>
#include <stdexcept>
#include <string>

#include "bench/support/bad_input.hpp"
#include "bench/table_store/paper_databases.hpp"
#include "bench/tpcc/consistency.hpp"

namespace elidex::bench {
namespace {

// The load runs outside of simulated time, where the machine's clock does not advance. So all of
// the load has one date.
std::uint64_t cycles_per_us = 1'000;  // one run at a time
tpcc::date simulated_clock() noexcept {
  return 1 + static_cast<tpcc::date>(sim::now() / cycles_per_us);
}

// run_database()'s workload.
template <class Database>
class terminals {
 public:
  static constexpr std::size_t kinds = tpcc::kinds;
  terminals(Database& db, const tpcc_request& wanted)
      : in_(db, wanted.size, wanted.run.seed, &simulated_clock), wanted_(wanted) {
    in_.load();
  }
  template <class Fn>
  void for_each_table(const Fn& fn) {
    fn(in_.warehouses), fn(in_.districts), fn(in_.customers), fn(in_.customers_by_name);
    fn(in_.payments), fn(in_.orders), fn(in_.orders_by_customer), fn(in_.new_orders);
    fn(in_.order_lines), fn(in_.items), fn(in_.stocks);
  }
  auto make_user(unsigned number) {
    return tpcc::terminal(in_, 1 + number % wanted_.size.warehouses,
                          wanted_.run.seed * 1'000 + number, wanted_.how);
  }
  template <class User>
  table_store::step_result step(User& who) const {
    const tpcc::step_result done = who.step();
    return {static_cast<std::size_t>(done.what), done.rolled_back};
  }
  template <class User>
  void add(unsigned, const User&) const noexcept {}
  void check() {
    for (const tpcc::violation& one : tpcc::violations(in_))
      throw std::runtime_error(wanted_.run.index + ": " + one.text);
  }

 private:
  tpcc::company<Database> in_;
  const tpcc_request& wanted_;
};

template <class Database>
tpcc_result run_with(const tpcc_request& wanted) {
  const std::unique_ptr<Database> db = make_on_machine<Database>(wanted.run.machine);
  terminals<Database> in(*db, wanted);
  tpcc_result outcome = run_database(wanted.run, *db, in);
  in.check();
  return outcome;
}

// DBX's commit over HTM-B+Tree with the leaf versions asked for.
template <template <class> class Over>
tpcc_result run_htm_btree(const tpcc_request& wanted) {
  switch (wanted.run.version) {
    case leaf_version::in_head:
      return run_with<Over<table_store::versioned_htm_btree_set>>(wanted);
    case leaf_version::on_own_line:
      return run_with<Over<table_store::version_line_htm_btree_set>>(wanted);
    case leaf_version::none:
      break;
  }
  return run_with<Over<table_store::htm_btree_set>>(wanted);
}

struct database_on_machine {
  std::string_view name;
  tpcc_result (*run)(const tpcc_request& wanted);
};

constexpr database_on_machine all[] = {
    {"db/dbx-locking:htm-btree", &run_htm_btree<table_store::dbx_locking_over>},
    {"db/dbx-locking:euno-btree",
     &run_with<table_store::dbx_locking_over<table_store::euno_btree_set>>},
    {"db/dbx-locking:euno-btree/leaf-lock",
     &run_with<table_store::dbx_locking_over<table_store::released_euno_btree_set>>},
    {"db/dbx-locking:euno-btree+",
     &run_with<table_store::dbx_locking_over<table_store::euno_btree_plus_set>>},
    {"db/dbx:htm-btree", &run_htm_btree<table_store::dbx_over>},
    {"db/dbx:euno-btree", &run_with<table_store::dbx_over<table_store::euno_btree_set>>},
    {"db/dbx:euno-btree+", &run_with<table_store::dbx_over<table_store::euno_btree_plus_set>>},
    {"db/silo:masstree", &run_with<table_store::silo_over_masstree>},
    {"db/silo", &run_with<basic_database<db::silo_commit>>},
    {"db/occ", &run_with<basic_database<>>},
};

}  // namespace

std::vector<std::string_view> databases_on_machine() {
  std::vector<std::string_view> names;
  for (const database_on_machine& one : all) names.push_back(one.name);
  return names;
}

tpcc_result run_tpcc_on_machine(const tpcc_request& wanted) {
  check_threads(wanted.run);
  conflict_retries_asked_for = wanted.run.retries;
  commit_retries_asked_for = wanted.commit_retries ? wanted.commit_retries : wanted.run.retries;
  cycles_per_us = wanted.run.machine.megahertz;
  for (const database_on_machine& one : all) {
    if (one.name == wanted.run.index) return one.run(wanted);
  }
  std::string names;
  for (const database_on_machine& one : all)
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  throw bad_input("--index: '" + wanted.run.index +
                  "' is not a database that is compiled for the simulated machine (expected one "
                  "of " +
                  names + ")");
}

}  // namespace elidex::bench
