#pragma once
// txbench over one kind of latches on the simulated machine: the body of run_txbench_on_machine(),
// in a header so that the variants, each of which compiles for half a minute, stand in several
// sources.
//
//   constexpr txbench_variant some[] = {{"db/2pl:hle", &run_txbench_with<hle_latches>}};
//
// Thread-safety and errors: txbench_on_machine.hpp.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/indexes/elidex_map.hpp"
#include "elidex/database.hpp"
#include "elidex/internal/locking/lock_latches.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"
#include "papers/schrimpf/thesis_latches.hpp"
#include "papers/schrimpf/txbench/page_latches.hpp"
#include "papers/schrimpf/txbench/txbench_on_machine.hpp"

namespace elidex::bench {

using namespace internal;
using namespace papers;

struct txbench_variant {
  std::string_view name;
  txbench_result (*run)(const txbench_request& wanted);
};

/// The thesis's variants; those beside them.
[[nodiscard]] std::span<const txbench_variant> txbench_variants_of_the_thesis();
[[nodiscard]] std::span<const txbench_variant> txbench_variants_beside();

// The pages of the three tables, latched in one of the thesis's ways, or none at all.
template <class Latches>
class latched_pages {
 public:
  explicit latched_pages(std::uint64_t rows_of_table)
      : of_table_(1 + rows_of_table / rows_of_page + 1),
        all_(std::make_unique<pool>(txbench::tables * of_table_)) {}
  latched_pages() = default;

  // Finds a row's page below the table's root.
  void search(std::size_t table, std::uint64_t key) const {
    if (all_ == nullptr) return;
    const typename pool::hold root(*all_, table * of_table_, page_access::shared);
    const typename pool::hold leaf(*all_, leaf_of(table, key), page_access::shared);
  }
  // Returns to the page of a row that was found before.
  void read(std::size_t table, std::uint64_t key) const {
    if (all_ != nullptr)
      const typename pool::hold leaf(*all_, leaf_of(table, key), page_access::shared);
  }
  void write(std::size_t table, std::uint64_t key) const {
    if (all_ != nullptr)
      const typename pool::hold leaf(*all_, leaf_of(table, key), page_access::exclusive);
  }

 private:
  using pool = page_latches<page_latch_of<Latches>>;
  static constexpr std::uint64_t rows_of_page = 16 * 1024 / sizeof(txbench::item);

  std::size_t leaf_of(std::size_t table, std::uint64_t key) const noexcept {
    return table * of_table_ + 1 + key / rows_of_page;
  }

  std::size_t of_table_ = 0;  // the root is its first
  std::unique_ptr<pool> all_;
};

// A line is written at each step: no two clients share one.
struct alignas(128) txbench_client_result {
  std::array<latency_histogram, txbench::kinds> latency;
  std::array<std::uint64_t, txbench::kinds> cycles{};
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
      outcome.cycles[k] += one.cycles[k];
      run.latency += one.latency[k];
    }
  }
  run.operations = run.latency.samples();
  const double seconds =
      static_cast<double>(run.machine.cycles) / (static_cast<double>(machine.megahertz) * 1e6);
  run.mops = seconds > 0 ? static_cast<double>(run.operations) / seconds / 1e6 : 0;
}

// A client and its thread in the server.
template <class Store>
class served_client {
 public:
  served_client(Store& in, const txbench_request& wanted, std::uint64_t seed)
      : wanted_(wanted), one_(in, seed), pauses_(seed + 500) {}

  // The first `warm_up` transactions are not counted.
  void work(std::uint64_t warm_up, txbench_client_result& counted) {
    for (std::uint64_t i = 0; i < warm_up; ++i) one_.run(think());
    sim::start_counting();
    for (std::uint64_t i = 0; i < wanted_.run.operations; ++i) {
      const std::uint64_t from = sim::now();
      const txbench::request& next = think();
      counted.idle_cycles += sent_ - from;
      one_.run(next);
      const std::uint64_t took = sim::now() - sent_;
      const auto kind = static_cast<std::size_t>(next.what);
      counted.cycles[kind] += took;
      counted.latency[kind].record(static_cast<std::uint64_t>(nanoseconds_of(took).count()));
    }
  }

 private:
  // Returns the next request, when the client has sent it.
  const txbench::request& think() {
    const std::uint64_t begin = sim::now();
    const txbench::request& next = one_.draw();
    sent_ = sim::now();
    if (wanted_.think_cycles == 0) return next;
    const std::uint64_t drawn = sent_;
    sent_ = std::max(begin + pauses_.below(2 * wanted_.think_cycles), drawn);
    if (drawn < sent_) std::this_thread::sleep_for(nanoseconds_of(sent_ - drawn));
    return next;
  }

  std::chrono::nanoseconds nanoseconds_of(std::uint64_t cycles) const {
    const double ns_per_cycle = 1e3 / static_cast<double>(wanted_.run.machine.megahertz);
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(cycles) * ns_per_cycle));
  }

  const txbench_request& wanted_;
  txbench::client<Store> one_;
  random_bits pauses_;
  std::uint64_t sent_ = 0;  // the last request, in cycles
};

template <class Latches>
txbench_result run_txbench_with(const txbench_request& wanted) {
  using database = basic_database<db::two_phase_locking<Latches>>;
  using pages = latched_pages<Latches>;
  using store = txbench::store<database, pages>;
  constexpr std::uint64_t warm_up_share = 10;  // one in ten transactions more
  const sim_request& how = wanted.run;
  // Made on the machine, because a latch may ask what the machine can do.
  std::unique_ptr<database> db;
  pages latched;
  sim::run(how.machine, {}, {[&] {
             db = std::make_unique<database>();
             if (wanted.pages) latched = pages(wanted.is.rows_each());
           }});
  auto& locks = db->protocol().locks();
  internal::name_memory(&locks, sizeof locks, "lock system");  // its mutexes
  store in(*db, wanted.is, std::move(latched));
  in.load(how.seed);
  txbench_result outcome;
  sim_result& run = outcome.run;
  measure_tables(in, run);

  std::vector<txbench_client_result> results(how.threads);
  const auto seed_of = [&](unsigned t) { return how.seed * 1'000 + t; };
  const std::uint64_t warm_up = how.operations / warm_up_share;
  const lock_system_counts locks_before = locks.counts();
  const lock_counts latches_before = locks.latch_counts();
  const std::size_t repeated_before = db->stats().conflicts;
  std::vector<std::function<void()>> bodies;
  for (unsigned t = 0; t < how.threads; ++t) {
    bodies.emplace_back(
        [&, t] { served_client<store>(in, wanted, seed_of(t)).work(warm_up, results[t]); });
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
