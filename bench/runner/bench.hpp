#pragma once
// The comparison: every index under every workload, distribution and number of threads, in
// interleaved rounds.
//
//   bench_result result = run_bench(options, [](const bench_progress& at) { ... });
//
// For each (workload, distribution, threads) the request streams are made once, then round 1 runs
// every index, then round 2, and so on: a disturbance of the machine meets all of them alike. What
// is reported is the median over the rounds, with smallest, largest and all single values;
// percentiles are over the samples of all rounds.
//
// A map is loaded once and reused while nothing is inserted into it or erased from it; it is
// kept for the next run where the memory allows all maps at once, otherwise made anew for each run.
//
// bytes_per_key is the allocator's account: the bytes handed out between before and after the load,
// by the number of keys, one method for all indexes. Where an index itself reports more (memory
// that it maps past the allocator) that counts.
//
// Thread-safety: one bench at a time in a process (the allocator's account is global).

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/indexes/registry.hpp"
#include "bench/runner/runner.hpp"
#include "bench/workload/workload.hpp"

namespace elidex::bench {

/// What is done on which keys; all combinations are run.
struct workload_choice {
  std::vector<const index_info*> indexes;
  std::vector<const workload*> workloads;
  std::vector<distribution> distributions;
  std::optional<std::uint64_t> keys;  // none: a million, or all of the key file
  key_type keys_are = key_type::u64;
  std::filesystem::path key_file;  // of strings; none: URLs
  std::uint64_t seed = 1;
  std::uint32_t scan_length_min = 100;
  std::uint32_t scan_length_max = 100;
  key_order order = key_order::random;
};

struct bench_options : workload_choice {
  std::vector<unsigned> threads;
  double seconds = 1;
  double warm_up_seconds = 0.1;
  unsigned rounds = 3;
};

/// One index under one workload, distribution and number of threads.
struct bench_run {
  const index_info* index = nullptr;
  const workload* what = nullptr;
  std::string distribution_name;
  unsigned threads = 0;
  std::vector<double> raw_mops = {};  // by round
  double mops = 0;                    // their median
  double mops_min = 0;
  double mops_max = 0;
  double ratio_to_first = 1;  // of the medians, to the first index that ran this combination
  latency_histogram latency = {};
  double seconds = 0;  // measured, the mean over the rounds
  /// Share of the threads' time that they were ready to run but had no CPU, the mean over the
  /// rounds. With no more threads than CPUs it says how much other programs disturbed the run.
  double cpu_wait_pct = 0;
  std::uint64_t requests = 0;
  std::uint64_t misses = 0;
  index_counters counters = {};
  std::uint64_t counted_requests = 0;
  double bytes_per_key = 0;
  double own_bytes_per_key = 0;  // by the index's own account; 0: it keeps none
};

struct bench_skip {
  const index_info* index = nullptr;
  const workload* what = nullptr;
  unsigned threads = 0;
  std::string why;
};

struct bench_result {
  std::uint64_t keys = 0;
  std::vector<bench_run> runs;
  std::vector<bench_skip> skipped;
};

struct bench_progress {
  double done = 0;  // 0 to 1, by runs
  std::string doing;
};

/// Throws bad_input where the options cannot be run at all: a key file that is no good, more keys
/// than memory, nothing left to run.
[[nodiscard]] bench_result run_bench(const bench_options& options,
                                     const std::function<void(const bench_progress&)>& progress);

/// The middle value, or the mean of the two; 0 of none.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace elidex::bench
