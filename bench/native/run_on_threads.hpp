#pragma once
// One workload on one index, on real threads: a run of a fixed number of operations, as
// bench/simulated/run_on_machine.hpp makes it on the simulated machine.
//
//   const native_result r = run_on_threads({.index = "btree/rtm", .workload = "insert-mix:50",
//                                           .dist = "uniform", .threads = 8});
//
// The map is filled, then each thread warms the caches with a tenth of its operations, then all
// threads are released together. A workload that loads or erases has no warm-up.
//
// Thread-safety: one run at a time in a process. Errors: bad_input for an unknown index or
// workload, and for one that the index cannot run.

#include <cstdint>
#include <optional>
#include <string>

#include "bench/indexes/asked_for.hpp"
#include "bench/runner/bench.hpp"

namespace elidex::bench {

struct native_request {
  std::string index = "ordered_map";
  std::string workload = "a";
  std::string dist = "uniform";
  std::uint64_t keys = 1'000'000;
  unsigned threads = 1;
  std::uint64_t operations = 100'000;  // of each thread
  std::uint64_t seed = 1;
  std::optional<std::uint32_t> retries;       // after conflicts
  leaf_version version = leaf_version::none;  // of btree/htm-dbx
};

struct native_result {
  bench_run run;  // of one round
  std::uint64_t keys = 0;
};

[[nodiscard]] native_result run_on_threads(const native_request& wanted);

}  // namespace elidex::bench
