#pragma once
// A workload over the table store on a simulated machine: what tpcc_on_machine.hpp and
// ycsb_txn_on_machine.hpp have in common.
//
//   // made on the machine, because a database may ask what the machine can do
//   const std::unique_ptr<Database> db = make_on_machine<Database>(how.machine);
//   my_workload in(*db, ...);
//   database_result<2> r = run_database(how, *db, in);
//
// A Workload has
//   kinds                     of transactions
//   for_each_table(fn)        fn(table) for each
//   make_user(number)         one for each thread, from 0; made by that thread
//   step(user)                one transaction, as table_store::step_result
//   add(number, user)         the user has ended; called by its thread
//
// The rows are loaded before the machine starts, and the L3 caches start with these rows. Each user
// first runs a warm-up: a tenth as many transactions again, which are not counted. Counting starts
// when all users have finished it.
//
// Thread-safety: one run at a time in a process. Errors: std::runtime_error if the run does not
// end; bad_input from check_threads().

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/indexes/elidex_map.hpp"
#include "bench/simulated/run_on_machine.hpp"
#include "bench/support/bad_input.hpp"
#include "bench/table_store/workload.hpp"
#include "elidex/internal/sync/lock_stats.hpp"

namespace elidex::bench {

using namespace internal;

/// The results of a run. Members exclude the warm-up unless their comment says otherwise.
template <std::size_t Kinds>
struct database_result {
  /// Its operations are transactions that ended, its keys the rows of the load; its counters are
  /// those of all regions, with the warm-up's.
  sim_result run;
  std::array<std::uint64_t, Kinds> transactions{};
  std::array<latency_histogram, Kinds> latency;
  std::uint64_t rolled_back = 0;
  // With the warm-up's:
  std::uint64_t repeated = 0;  // attempts
  lock_counts commits;         // of the commit's regions
  lock_counts look_ups;        // of the indexes' regions, outside of commits
};

/// Throws bad_input if the machine has fewer hardware threads than the run.
inline void check_threads(const sim_request& how) {
  if (how.threads <= how.machine.hardware_threads()) return;
  throw bad_input("--cores: " + how.machine.name + " has " +
                  std::to_string(how.machine.hardware_threads()) + " hardware threads, not " +
                  std::to_string(how.threads));
}

template <class Database>
std::unique_ptr<Database> make_on_machine(const sim::machine& which) {
  std::unique_ptr<Database> db;
  sim::run(which, {}, {[&] { db = std::make_unique<Database>(); }});
  return db;
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

template <class Database>
lock_counts commit_counts(Database& db) {
  if constexpr (requires { db.protocol().htm_counts(); }) {
    return db.protocol().htm_counts();
  } else {
    return {};
  }
}

// A line is written at each step: no two users share one.
template <std::size_t Kinds>
struct alignas(128) user_result {
  std::array<latency_histogram, Kinds> latency;
  std::uint64_t rolled_back = 0;
};

template <class Workload>
lock_counts index_counts(Workload& in) {
  lock_counts sum;
  in.for_each_table([&](auto& table) { sum += htm_counts_of(table.map()); });
  return sum;
}

template <class Workload>
void note_size(Workload& in, sim_result& run) {
  std::size_t bytes = 0;
  in.for_each_table([&](auto& table) {
    run.keys += table.map().size();
    bytes += table.memory_bytes();
  });
  run.bytes_per_key = static_cast<double>(bytes) / static_cast<double>(run.keys);
}

template <std::size_t Kinds>
void sum_up(database_result<Kinds>& outcome, const std::vector<user_result<Kinds>>& results,
            std::uint64_t megahertz) {
  sim_result& run = outcome.run;
  run.counters = counters_of(outcome.commits + outcome.look_ups);
  for (const user_result<Kinds>& one : results) {
    outcome.rolled_back += one.rolled_back;
    for (std::size_t k = 0; k < Kinds; ++k) {
      outcome.latency[k] += one.latency[k];
      outcome.transactions[k] += one.latency[k].samples();
      run.latency += one.latency[k];
    }
  }
  run.operations = run.latency.samples();
  const double seconds =
      static_cast<double>(run.machine.cycles) / (static_cast<double>(megahertz) * 1e6);
  run.mops = seconds > 0 ? static_cast<double>(run.operations) / seconds / 1e6 : 0;
}

template <class Database, class Workload>
database_result<Workload::kinds> run_database(const sim_request& how, Database& db, Workload& in) {
  constexpr std::uint64_t warm_up_share = 10;  // one in ten transactions more
  database_result<Workload::kinds> outcome;
  note_size(in, outcome.run);
  std::vector<user_result<Workload::kinds>> results(how.threads);
  const std::uint64_t warm_up = how.operations / warm_up_share;
  const double ns_per_cycle = 1e3 / static_cast<double>(how.machine.megahertz);
  // Of the warm-up too: reading the counters of two dozen locks would take a user as long as some
  // transactions.
  const lock_counts commits_before = commit_counts(db);
  const lock_counts look_ups_before = index_counts(in);
  const std::size_t repeated_before = db.stats().conflicts;
  std::vector<std::function<void()>> bodies;
  for (unsigned t = 0; t < how.threads; ++t) {
    bodies.emplace_back([&, t] {
      auto user = in.make_user(t);
      for (std::uint64_t i = 0; i < warm_up; ++i) in.step(user);
      sim::start_counting();
      user_result<Workload::kinds>& mine = results[t];
      for (std::uint64_t i = 0; i < how.operations; ++i) {
        const std::uint64_t begin = sim::now();
        const table_store::step_result done = in.step(user);
        const double ns = static_cast<double>(sim::now() - begin) * ns_per_cycle;
        mine.latency[done.kind].record(static_cast<std::uint64_t>(ns));
        mine.rolled_back += done.rolled_back ? 1 : 0;
      }
      in.add(t, user);
    });
  }
  outcome.run.machine = sim::run(how.machine,
                                 {.seed = how.seed,
                                  .quantum_cycles = how.quantum_cycles,
                                  .record_events = how.record_events,
                                  .warm_l3 = true},
                                 bodies);
  if (!outcome.run.machine.stuck.empty()) throw std::runtime_error(outcome.run.machine.stuck);
  outcome.commits = commit_counts(db) - commits_before;
  outcome.look_ups = index_counts(in) - look_ups_before;
  outcome.repeated = db.stats().conflicts - repeated_before;
  sum_up(outcome, results, how.machine.megahertz);
  return outcome;
}

}  // namespace elidex::bench
