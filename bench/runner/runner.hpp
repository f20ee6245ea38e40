#pragma once
// Runs streams against an index: one pinned thread for each stream, released together.
//
//   run_outcome outcome = run_threads(*index, streams, {.seconds = 3, .warm_up_seconds = 0.2});
//   outcome.mops;  // millions of requests per second, all threads together
//
// With a fixed duration the rate is the sum of the threads' own rates between the end of the
// warm-up and the stop. A drain (load, delete) has no warm-up, and its rate is all requests over
// the time from the release to the last thread's end. Threads go round robin over the CPUs that the
// process may use. An exception in a worker (std::bad_alloc, say) ends the run and is thrown from
// here.
//
// Thread-safety: one run at a time for each index.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/indexes/any_index.hpp"

namespace elidex::bench {

struct run_settings {
  double seconds = 1;
  double warm_up_seconds = 0.1;
  bool drain = false;
  bool repeat_streams = true;
  /// Thread t runs on CPU t of these, round robin; empty: all that the process may use.
  std::vector<int> cpus = {};
  /// Called a few times a second with the share of the time that is over; not during drains.
  std::function<void(double)> tick = {};
};

struct run_outcome {
  double mops = 0;
  double seconds = 0;  // the longest of the threads' measured times
  std::uint64_t requests = 0;
  std::uint64_t misses = 0;
  std::uint64_t added = 0;  // see worker_result
  std::uint64_t checksum = 0;
  double cpu_wait_pct = 0;  // of the threads' time, ready to run but without a CPU
  latency_histogram latency;
  index_counters counters;             // of the whole run, warm-up included
  std::uint64_t counted_requests = 0;  // the requests that the counters cover
};

template <class Key>
[[nodiscard]] run_outcome run_threads(any_index<Key>& index,
                                      std::span<const request_stream<Key>> streams,
                                      const run_settings& settings);

}  // namespace elidex::bench
