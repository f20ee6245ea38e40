#include "bench/native/run_on_threads.hpp"

#include "bench/indexes/registry.hpp"
#include "bench/runner/machine.hpp"
#include "bench/support/bad_input.hpp"
#include "bench/workload/fixed_runs.hpp"

namespace elidex::bench {
namespace {

using key = std::uint64_t;

native_result run_with(const native_request& wanted, const key_set<key>& keys,
                       const index_info& info, const workload& what, const distribution& where) {
  const stream_shape shape{
      .what = &what, .where = where, .requests = wanted.operations, .seed = wanted.seed};
  const std::vector<request_stream<key>> filling{filling_stream(keys, what, shape)};
  const auto measured = streams_for(keys, shape, wanted.threads);
  const auto warm_ups = streams_for(keys, warm_up_shape(what, shape), wanted.threads);
  const auto index = make_index<key>(info);
  const run_settings to_the_end{.drain = true, .cpus = allowed_cpus_by_core()};
  std::uint64_t added = run_threads<key>(*index, filling, to_the_end).added;
  if (!what.drains()) static_cast<void>(run_threads<key>(*index, warm_ups, to_the_end));
  const run_outcome outcome = run_threads<key>(*index, measured, to_the_end);
  added += outcome.added;
  native_result result{.run = {.index = &info, .what = &what, .distribution_name = wanted.dist},
                       .keys = added > 0 ? added : keys.size()};
  result.run.threads = wanted.threads;
  result.run.mops = result.run.mops_min = result.run.mops_max = outcome.mops;
  result.run.latency = outcome.latency;
  result.run.cpu_wait_pct = outcome.cpu_wait_pct;
  result.run.requests = outcome.requests;
  result.run.misses = outcome.misses;
  result.run.counters = outcome.counters;
  result.run.counted_requests = outcome.counted_requests;
  result.run.bytes_per_key =
      static_cast<double>(index->memory_bytes()) / static_cast<double>(result.keys);
  return result;
}

}  // namespace

native_result run_on_threads(const native_request& wanted) {
  const index_info* const index = find_index(wanted.index);
  if (index == nullptr) throw bad_input("--index: unknown index '" + wanted.index + "'");
  const workload* const what = find_workload(wanted.workload);
  const auto where = parse_distribution(wanted.dist);
  if (what == nullptr || !where) throw bad_input("unknown workload or distribution");
  if (const auto why = why_not(*index, *what, wanted.threads, key_type::u64))
    throw bad_input("--index: " + *why);
  conflict_retries_asked_for = wanted.retries;
  leaf_version_asked_for = wanted.version;
  return run_with(wanted, random_keys(wanted.keys, wanted.seed), *index, *what, *where);
}

}  // namespace elidex::bench
