#pragma once
// One workload on one index on a simulated machine: what `elidex sim` runs, one process for each
// combination.
//
//   const sim_result r = run_on_machine({.index = "btree/htm-dbx", .workload = "a", .dist =
//       "zipf:0.99", ...});
//
// The map is loaded before the machine starts; the L3 caches begin with it in them. Each thread
// first runs a tenth of its operations for the caches' sake, then all threads meet and the clocks
// count from there. A workload that begins with an empty map counts from its first operation.
// bytes_per_key divides by the keys that store requests have added. Without store requests it
// divides by the size of the key set; a run of put:THETA may have inserted fewer keys. The requests
// themselves lie in memory that costs nothing, because a real measurement makes them without
// memory.
//
// Thread-safety: one run at a time in a process.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "bench/indexes/any_index.hpp"
#include "bench/indexes/asked_for.hpp"
#include "bench/runner/latency.hpp"
#include "bench/workload/workload.hpp"
#include "machine/simulation.hpp"

namespace elidex::bench {

struct sim_request {
  sim::machine machine;
  std::string index = "ordered_map";
  std::string workload = "a";
  std::string dist = "uniform";
  std::uint64_t keys = 1'000'000;
  bool string_keys = false;
  std::filesystem::path key_file;  // of strings; none: URLs
  unsigned threads = 1;
  unsigned cpus = 0;                 // hardware threads for them; 0: one each
  std::uint64_t operations = 2'000;  // of each thread
  std::uint64_t seed = 1;
  std::uint64_t quantum_cycles = 0;
  std::optional<std::uint32_t> retries;       // after conflicts, of btree/htm-dbx
  leaf_version version = leaf_version::none;  // likewise
  std::uint32_t scan_length_min = 100;
  std::uint32_t scan_length_max = 100;
  key_order order = key_order::random;
  bool record_events = false;
};

struct sim_result {
  sim::report machine;
  index_counters counters;
  latency_histogram latency;
  std::uint64_t keys = 0;
  std::uint64_t operations = 0;  // of all threads
  std::uint64_t misses = 0;
  double mops = 0;
  double bytes_per_key = 0;
};

/// Throws bad_input, and std::runtime_error for a run that got stuck.
[[nodiscard]] sim_result run_on_machine(const sim_request& wanted);

}  // namespace elidex::bench
