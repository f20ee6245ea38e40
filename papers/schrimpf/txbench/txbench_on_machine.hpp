#pragma once
// txbench over two-phase locking on a simulated machine: what figures 5.4 and 5.5 of paper 004 are
// made of, one process for each point.
//
//   txbench_request wanted{.run = {.machine = which, .index = "db/2pl:hle", .threads = 4,
//       .operations = 200}};
//   wanted.think_cycles = 100'000;
//   const txbench_result r = run_txbench_on_machine(wanted);
//   r.run.mops * 1e6, r.idle_cycles, r.run.machine.conflicts ...
//
// The tables are loaded before the machine starts; the L3 caches begin with what fits of them. Each
// client first does a tenth of its transactions for the caches' sake, then all meet and the clocks
// count from there. Behind the run each row is looked at: the values as loaded, as many updates as
// were committed, texts that were written there.
//
// A client thinks between its transactions for a time drawn evenly between 0 and twice
// think_cycles, so that clients do not march in step. The server's thread sleeps meanwhile. Drawing
// the request is a part of that time: the thesis's client is another computer. Latency starts when
// the think time ends, so it includes the wait for a CPU. With more clients than hardware threads
// they take turns (machine/engine_scheduler.cpp).
//
// With `pages` a transaction takes InnoDB's page latches too, of pages of 16 KiB under one root for
// each table (page_latches.hpp).
//
// Thread-safety: one run at a time in a process. Errors: bad_input and std::invalid_argument for
// what cannot be run; std::runtime_error for a run that got stuck or left a wrong row. From:
// paper 004 sections 4.2, 5.2 and 5.3. Deviations: no SQL layer and no network. A page is latched
// exclusively for a moment after the update of its row, not during it: our update may wait for the
// row's lock, and InnoDB gives the page back before it waits. The thesis's own loop around HLE
// (TAS-T) stands beside the library's lock, for two variants (txbench_beside.cpp).

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bench/simulated/run_on_machine.hpp"
#include "elidex/internal/locking/lock_system.hpp"
#include "elidex/internal/sync/lock_stats.hpp"
#include "papers/schrimpf/txbench/txbench.hpp"

namespace elidex::bench {

using namespace internal;

struct txbench_request {
  /// The machine, the database's name in place of an index's, threads, transactions of each, seed.
  sim_request run;
  txbench::settings is;  // its think_time is not used
  std::uint64_t think_cycles = 0;
  bool pages = true;
};

/// Of the counted part, unless said otherwise.
struct txbench_result {
  /// Its operations are transactions, its keys the rows; its counters are the latches', with the
  /// warm-up's.
  sim_result run;
  std::array<latency_histogram, txbench::kinds> latency;
  std::array<std::uint64_t, txbench::kinds> cycles{};  // of all transactions of a kind
  std::uint64_t idle_cycles = 0;                       // that clients thought, together
  // With the warm-up's:
  std::uint64_t repeated = 0;  // attempts
  lock_system_counts locks;
};

/// The databases' names.
[[nodiscard]] std::vector<std::string_view> lock_variants_on_machine();

[[nodiscard]] txbench_result run_txbench_on_machine(const txbench_request& wanted);

}  // namespace elidex::bench
