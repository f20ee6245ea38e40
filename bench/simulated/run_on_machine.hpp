#pragma once
// One workload on one index on a simulated machine: a run of `elidex sim` or `elidex repro`.
//
//   const sim_request wanted{.index = "btree/htm-dbx", .workload = "a", .dist = "zipf:0.99", ...};
//   load_on_machine(wanted, [&](loaded_index& loaded) {
//     const sim_result r = loaded.run(wanted);
//   });
//
// The map is loaded before the machine starts; the L3 caches begin with it in them. Loading 20
// million keys takes a minute. Running a few thousand operations takes a second. So a process may
// load once and fork for each of several runs whose requests load_alike(). What a run gives does
// not depend on whether it has a load of its own.
//
// Each thread first runs a tenth of its operations for the caches' sake, then all threads meet and
// the clocks count from there. A workload that begins with an empty map counts from its first
// operation.
// bytes_per_key divides by the keys that store requests have added. Without store requests it
// divides by the size of the key set; a run of put:THETA may have inserted fewer keys. The requests
// themselves lie in memory that costs nothing, because a real measurement makes them without
// memory.
//
// Thread-safety: one run at a time in a process.

#include <cstdint>
#include <filesystem>
#include <functional>
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

/// An index with its keys, before the measured operations.
class loaded_index {
 public:
  loaded_index() = default;
  loaded_index(const loaded_index&) = delete;
  loaded_index& operator=(const loaded_index&) = delete;
  virtual ~loaded_index() = default;

  /// The operations of `wanted`, which must load alike. Call it once: the next run would find what
  /// this one has changed. Throws bad_input, and std::runtime_error for a run that got stuck.
  [[nodiscard]] virtual sim_result run(const sim_request& wanted) = 0;
};

/// Loads what `wanted` begins with, and calls then() with it. Throws bad_input, and what then()
/// throws.
void load_on_machine(const sim_request& wanted, const std::function<void(loaded_index&)>& then);

/// Returns whether two runs can share a load. They cannot if a workload fills the map by its own
/// rules, as `load` does.
[[nodiscard]] bool load_alike(const sim_request& one, const sim_request& other) noexcept;

}  // namespace elidex::bench
