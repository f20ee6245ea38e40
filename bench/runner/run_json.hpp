#pragma once
// What JSON documents say of every measured run on real threads, in the order of schema 1.
//
//   ordered_json document = measures_of(run);
//   document["seed"] = seed;
//
// Thread-safety: a function without state.

#include <nlohmann/json.hpp>

#include "bench/runner/bench.hpp"

namespace elidex::bench {

[[nodiscard]] inline nlohmann::ordered_json measures_of(const bench_run& run) {
  const index_counters& counts = run.counters;
  return {{"index", run.index->name},
          {"workload", run.what->name},
          {"dist", run.distribution_name},
          {"threads", run.threads},
          {"mops", run.mops},
          {"mops_min", run.mops_min},
          {"mops_max", run.mops_max},
          {"ns_p50", run.latency.percentile(50)},
          {"ns_p99", run.latency.percentile(99)},
          {"ns_p999", run.latency.percentile(99.9)},
          {"aborts_per_op", counts.aborts_per_request(run.counted_requests)},
          {"aborts",
           {{"conflict", counts.aborts_conflict},
            {"capacity", counts.aborts_capacity},
            {"explicit", counts.aborts_explicit},
            {"interrupt", counts.aborts_interrupt},
            {"other", counts.aborts_other}}},
          {"fallback_pct", counts.fallback_pct()}};
}

}  // namespace elidex::bench
