#include "bench/simulated/tpcc_on_machine.hpp"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "bench/support/bad_input.hpp"
#include "bench/table_store/paper_databases.hpp"
#include "bench/tpcc/consistency.hpp"

namespace elidex::bench {
namespace {

using tpcc::kinds;

constexpr std::uint64_t warm_up_share = 10;  // one in ten transactions more

// The load runs outside of simulated time, where the machine's clock does not advance. So all of
// the load has one date.
std::uint64_t cycles_per_us = 1'000;  // one run at a time
tpcc::date simulated_clock() noexcept {
  return 1 + static_cast<tpcc::date>(sim::now() / cycles_per_us);
}

template <class Map>
lock_counts htm_counts_of(const Map& map) {
  if constexpr (requires { lock_counts_of(map.sync()); }) {
    return lock_counts_of(map.sync());
  } else if constexpr (requires { map.htm_counts(); }) {
    return map.htm_counts();
  } else {
    return {};
  }
}

template <class Company>
lock_counts index_counts(Company& of) {
  lock_counts sum;
  const auto add = [&](auto&... tables) { ((sum += htm_counts_of(tables.map())), ...); };
  add(of.warehouses, of.districts, of.customers, of.customers_by_name, of.payments, of.orders,
      of.orders_by_customer, of.new_orders, of.order_lines, of.items, of.stocks);
  return sum;
}

template <class Database>
lock_counts commit_counts(Database& db) {
  if constexpr (requires { db.protocol().htm_counts(); }) {
    return db.protocol().htm_counts();
  } else {
    return {};
  }
}

template <class Company>
std::size_t rows(Company& of) {
  std::size_t sum = 0;
  const auto add = [&](auto&... tables) { ((sum += tables.map().size()), ...); };
  add(of.warehouses, of.districts, of.customers, of.customers_by_name, of.payments, of.orders,
      of.orders_by_customer, of.new_orders, of.order_lines, of.items, of.stocks);
  return sum;
}

template <class Company>
std::size_t bytes(Company& of) {
  std::size_t sum = 0;
  const auto add = [&](auto&... tables) { ((sum += tables.memory_bytes()), ...); };
  add(of.warehouses, of.districts, of.customers, of.customers_by_name, of.payments, of.orders,
      of.orders_by_customer, of.new_orders, of.order_lines, of.items, of.stocks);
  return sum;
}

// A line is written at each step: no two terminals share one.
struct alignas(128) terminal_result {
  std::array<latency_histogram, kinds> latency;
  std::uint64_t rolled_back = 0;
};

template <class Database>
tpcc_result run_with(const tpcc_request& wanted) {
  const sim_request& how = wanted.run;
  // Made on the machine, because a database may ask what the machine can do.
  std::unique_ptr<Database> db;
  sim::run(how.machine, {}, {[&] { db = std::make_unique<Database>(); }});
  tpcc::company<Database> in(*db, wanted.size, how.seed, &simulated_clock);
  in.load();
  tpcc_result outcome;
  outcome.run.keys = rows(in);
  outcome.run.bytes_per_key =
      static_cast<double>(bytes(in)) / static_cast<double>(outcome.run.keys);

  std::vector<terminal_result> results(how.threads);
  const auto warm_up = how.operations / warm_up_share;
  const double ns_per_cycle = 1e3 / static_cast<double>(how.machine.megahertz);
  // Of the warm-up too: reading the counters of two dozen locks would take a terminal as long as
  // some transactions.
  const lock_counts commits_before = commit_counts(*db);
  const lock_counts look_ups_before = index_counts(in);
  const std::size_t repeated_before = db->stats().conflicts;
  std::vector<std::function<void()>> bodies;
  for (unsigned t = 0; t < how.threads; ++t) {
    bodies.emplace_back([&, t] {
      tpcc::terminal user(in, 1 + t % wanted.size.warehouses, how.seed * 1'000 + t, wanted.how);
      for (std::uint64_t i = 0; i < warm_up; ++i) user.step();
      sim::start_counting();
      terminal_result& mine = results[t];
      for (std::uint64_t i = 0; i < how.operations; ++i) {
        const std::uint64_t begin = sim::now();
        const tpcc::step_result done = user.step();
        const double ns = static_cast<double>(sim::now() - begin) * ns_per_cycle;
        mine.latency[static_cast<std::size_t>(done.what)].record(static_cast<std::uint64_t>(ns));
        mine.rolled_back += done.rolled_back ? 1 : 0;
      }
    });
  }
  sim_result& run = outcome.run;
  run.machine = sim::run(how.machine,
                         {.seed = how.seed,
                          .quantum_cycles = how.quantum_cycles,
                          .record_events = how.record_events,
                          .warm_l3 = true},
                         bodies);
  if (!run.machine.stuck.empty()) throw std::runtime_error(run.machine.stuck);
  outcome.commits = commit_counts(*db) - commits_before;
  outcome.look_ups = index_counts(in) - look_ups_before;
  outcome.repeated = db->stats().conflicts - repeated_before;
  for (const tpcc::violation& one : tpcc::violations(in))
    throw std::runtime_error(how.index + ": " + one.text);

  run.counters = counters_of(outcome.commits + outcome.look_ups);
  for (const terminal_result& one : results) {
    outcome.rolled_back += one.rolled_back;
    for (std::size_t k = 0; k < kinds; ++k) {
      outcome.latency[k] += one.latency[k];
      outcome.transactions[k] += one.latency[k].samples();
      run.latency += one.latency[k];
    }
  }
  run.operations = run.latency.samples();
  const double seconds =
      static_cast<double>(run.machine.cycles) / (static_cast<double>(how.machine.megahertz) * 1e6);
  run.mops = seconds > 0 ? static_cast<double>(run.operations) / seconds / 1e6 : 0;
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
};

}  // namespace

std::vector<std::string_view> databases_on_machine() {
  std::vector<std::string_view> names;
  for (const database_on_machine& one : all) names.push_back(one.name);
  return names;
}

tpcc_result run_tpcc_on_machine(const tpcc_request& wanted) {
  if (wanted.run.threads > wanted.run.machine.hardware_threads()) {
    throw bad_input("--cores: " + wanted.run.machine.name + " has " +
                    std::to_string(wanted.run.machine.hardware_threads()) +
                    " hardware threads, not " + std::to_string(wanted.run.threads));
  }
  conflict_retries_asked_for = wanted.run.retries;
  commit_retries_asked_for = wanted.commit_retries ? wanted.commit_retries : wanted.run.retries;
  cycles_per_us = wanted.run.machine.megahertz;
  for (const database_on_machine& one : all) {
    if (one.name == wanted.run.index) return one.run(wanted);
  }
  throw bad_input("--index: '" + wanted.run.index +
                  "' is not a database that is compiled for the simulated machine");
}

}  // namespace elidex::bench
