#pragma once
// txbench over one kind of latches on the simulated machine: the body of run_txbench_on_machine(),
// in a header so that the variants, each of which compiles for half a minute, stand in several
// sources.
//
//   constexpr txbench_variant some[] = {{"db/2pl:hle", &run_txbench_with<hle_latches>}};
//
// Thread-safety and errors: txbench_on_machine.hpp.

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/indexes/elidex_map.hpp"
#include "elidex/database.hpp"
#include "elidex/internal/locking/lock_latches.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"
#include "papers/schrimpf/thesis_latches.hpp"
#include "papers/schrimpf/txbench/txbench_on_machine.hpp"

namespace elidex::bench {

using namespace internal;

struct txbench_variant {
  std::string_view name;
  txbench_result (*run)(const txbench_request& wanted);
};

/// The thesis's variants; those beside them.
[[nodiscard]] std::span<const txbench_variant> txbench_variants_of_the_thesis();
[[nodiscard]] std::span<const txbench_variant> txbench_variants_beside();

// A line is written at each step: no two clients share one.
struct alignas(128) txbench_client_result {
  std::array<latency_histogram, txbench::kinds> latency;
  std::uint64_t idle_cycles = 0;
};

// Fills in the rows of the loaded tables and the memory that they take.
template <class Store>
void measure_tables(Store& in, sim_result& run) {
  std::size_t bytes = 0;
  for (auto* const table : in.all) {
    run.keys += table->map().size();
    bytes += table->memory_bytes();
  }
  run.bytes_per_key = static_cast<double>(bytes) / static_cast<double>(run.keys);
}

// What the lock system has counted between two looks at it.
[[nodiscard]] inline lock_system_counts counts_between(const lock_system_counts& before,
                                                       const lock_system_counts& now) {
  return {.requests = now.requests - before.requests,
          .held_already = now.held_already - before.held_already,
          .implicit = now.implicit - before.implicit,
          .granted_at_once = now.granted_at_once - before.granted_at_once,
          .waits = now.waits - before.waits,
          .deadlocks = now.deadlocks - before.deadlocks,
          .timeouts = now.timeouts - before.timeouts,
          .conversions = now.conversions - before.conversions,
          .searches = now.searches - before.searches,
          .waited_ns = now.waited_ns - before.waited_ns};
}

// Throws std::runtime_error unless each row is what the clients' transactions leave behind.
// `seed_of` gives the seed of each client; each client has made so many steps.
template <class Store, class SeedOf>
void check_rows(Store& in, const sim_request& how, const SeedOf& seed_of, std::uint64_t steps) {
  txbench::expected<Store> want(in, how.seed);
  for (unsigned t = 0; t < how.threads; ++t) want.add(seed_of(t), steps);
  for (const std::string& one : want.violations()) throw std::runtime_error(how.index + ": " + one);
}

// Adds up what the clients have measured, and derives the throughput from the machine's cycles.
inline void add_up(const std::vector<txbench_client_result>& results, const sim::machine& machine,
                   txbench_result& outcome) {
  sim_result& run = outcome.run;
  for (const txbench_client_result& one : results) {
    outcome.idle_cycles += one.idle_cycles;
    for (std::size_t k = 0; k < txbench::kinds; ++k) {
      outcome.latency[k] += one.latency[k];
      run.latency += one.latency[k];
    }
  }
  run.operations = run.latency.samples();
  const double seconds =
      static_cast<double>(run.machine.cycles) / (static_cast<double>(machine.megahertz) * 1e6);
  run.mops = seconds > 0 ? static_cast<double>(run.operations) / seconds / 1e6 : 0;
}

template <class Latches>
txbench_result run_txbench_with(const txbench_request& wanted) {
  using database = basic_database<db::two_phase_locking<Latches>>;
  using store = txbench::store<database>;
  constexpr std::uint64_t warm_up_share = 10;  // one in ten transactions more
  const sim_request& how = wanted.run;
  // Made on the machine, because a latch may ask what the machine can do.
  std::unique_ptr<database> db;
  sim::run(how.machine, {}, {[&] { db = std::make_unique<database>(); }});
  auto& locks = db->protocol().locks();
  internal::name_memory(&locks, sizeof locks, "lock system");  // its mutexes
  store in(*db, wanted.is);
  in.load(how.seed);
  txbench_result outcome;
  sim_result& run = outcome.run;
  measure_tables(in, run);

  std::vector<txbench_client_result> results(how.threads);
  const auto seed_of = [&](unsigned t) { return how.seed * 1'000 + t; };
  const std::uint64_t warm_up = how.operations / warm_up_share;
  const double ns_per_cycle = 1e3 / static_cast<double>(how.machine.megahertz);
  const lock_system_counts locks_before = locks.counts();
  const lock_counts latches_before = locks.latch_counts();
  const std::size_t repeated_before = db->stats().conflicts;
  std::vector<std::function<void()>> bodies;
  for (unsigned t = 0; t < how.threads; ++t) {
    bodies.emplace_back([&, t] {
      txbench::client<store> one(in, seed_of(t));
      random_bits pauses(seed_of(t) + 500);
      // Gives the request, and how long the client took over it.
      const auto think = [&](std::uint64_t& took) -> const txbench::request& {
        const std::uint64_t begin = sim::now();
        const txbench::request& next = one.draw();
        const std::uint64_t wait =
            wanted.think_cycles == 0 ? 0 : pauses.below(2 * wanted.think_cycles);
        took = sim::now() - begin;
        if (took < wait) sim::spend(wait - took);
        took = sim::now() - begin;
        return next;
      };
      std::uint64_t idle = 0;
      for (std::uint64_t i = 0; i < warm_up; ++i) one.run(think(idle));
      sim::start_counting();
      txbench_client_result& mine = results[t];
      for (std::uint64_t i = 0; i < how.operations; ++i) {
        const txbench::request& next = think(idle);
        mine.idle_cycles += idle;
        const std::uint64_t begin = sim::now();
        one.run(next);
        const double ns = static_cast<double>(sim::now() - begin) * ns_per_cycle;
        mine.latency[static_cast<std::size_t>(next.what)].record(static_cast<std::uint64_t>(ns));
      }
    });
  }
  run.machine = sim::run(how.machine,
                         {.seed = how.seed,
                          .quantum_cycles = how.quantum_cycles,
                          .record_events = how.record_events,
                          .warm_l3 = true},
                         bodies);
  if (!run.machine.stuck.empty()) throw std::runtime_error(run.machine.stuck);
  outcome.locks = counts_between(locks_before, locks.counts());
  outcome.repeated = db->stats().conflicts - repeated_before;
  run.counters = counters_of(locks.latch_counts() - latches_before);

  check_rows(in, how, seed_of, warm_up + how.operations);
  if (!locks.is_consistent())
    throw std::runtime_error(how.index + ": the lock system's queues are not consistent");
  add_up(results, how.machine, outcome);
  return outcome;
}

}  // namespace elidex::bench
