// The runner on a fake index that only counts, the percentiles, and the bench's medians and reuse
// of maps.

#include "bench/runner/runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <thread>

#include "bench/runner/bench.hpp"

namespace {

using namespace elidex::bench;

// Counts the requests it is given; what it answers and when it throws is up to the test.
class counting_index final : public any_index<std::uint64_t> {
 public:
  void run(const request_stream<std::uint64_t>& stream, run_control& control,
           worker_result& result) override {
    ++runs_;
    run_worker(stream, control, result,
               [this](auto&, const request<std::uint64_t>& wanted, std::size_t,
                      worker_result& counts) -> std::size_t {
                 if (++requests_ == throw_at) throw std::bad_alloc();
                 counts.misses += wanted.key == missing_key ? 1 : 0;
                 counts.checksum += wanted.key;
                 return 1;
               });
  }
  [[nodiscard]] index_counters counters() const override {
    return {.aborts_conflict = requests_ / 2};
  }

  std::atomic<std::uint64_t> runs_{0};
  std::atomic<std::uint64_t> requests_{0};
  std::uint64_t throw_at = 0;
  std::uint64_t missing_key = UINT64_MAX;
};

std::vector<request_stream<std::uint64_t>> streams_of(std::size_t threads, std::size_t requests) {
  request_stream<std::uint64_t> stream;
  for (std::size_t i = 0; i < requests; ++i) stream.append(request_kind::read, i);
  return {threads, stream};
}

TEST(runner, a_drain_runs_every_request_once) {
  counting_index index;
  const auto streams = streams_of(3, 1000);
  const run_outcome outcome = run_threads<std::uint64_t>(index, streams, {.drain = true});
  EXPECT_EQ(index.runs_, 3U);
  EXPECT_EQ(index.requests_, 3000U);
  EXPECT_EQ(outcome.requests, 3000U);
  EXPECT_EQ(outcome.checksum, 3U * 999U * 1000U / 2);
  EXPECT_EQ(outcome.misses, 0U);
  EXPECT_EQ(outcome.latency.samples(), 3U * 16U);  // one of each block of 64
  EXPECT_NEAR(outcome.mops, 0.003 / outcome.seconds, 0.003 / outcome.seconds * 1e-9);
}

TEST(runner, a_timed_run_repeats_its_streams_for_the_time_asked_for) {
  counting_index index;
  const auto streams = streams_of(2, 100);
  const run_outcome outcome =
      run_threads<std::uint64_t>(index, streams, {.seconds = 0.2, .warm_up_seconds = 0.05});
  EXPECT_GT(outcome.requests, 1000U);
  EXPECT_EQ(outcome.counted_requests, index.requests_);
  EXPECT_LT(outcome.requests, outcome.counted_requests) << "the warm-up is not measured";
  EXPECT_GT(outcome.seconds, 0.15);
  EXPECT_LT(outcome.seconds, 2);
  EXPECT_EQ(outcome.counters.aborts_conflict, index.requests_ / 2);
}

TEST(runner, a_stream_that_may_run_once_ends_the_run_and_is_measured) {
  counting_index index;
  const auto streams = streams_of(1, 100'000);
  const run_outcome outcome = run_threads<std::uint64_t>(
      index, streams, {.seconds = 60, .warm_up_seconds = 60, .repeat_streams = false});
  EXPECT_EQ(index.requests_, 100'000U);
  EXPECT_GE(outcome.requests, 70'000U);
  EXPECT_LT(outcome.seconds, 30);
}

TEST(runner, misses_are_counted) {
  counting_index index;
  index.missing_key = 7;
  const auto streams = streams_of(2, 1000);
  EXPECT_EQ(run_threads<std::uint64_t>(index, streams, {.drain = true}).misses, 2U);
}

TEST(runner, an_exception_in_a_worker_ends_the_run_and_comes_out) {
  counting_index index;
  index.throw_at = 5000;
  const auto streams = streams_of(2, 1000);
  EXPECT_THROW((void)run_threads<std::uint64_t>(index, streams, {.seconds = 60}), std::bad_alloc);
}

TEST(latency, percentiles_are_those_of_the_samples) {
  std::vector<std::uint64_t> samples;
  latency_histogram histogram;
  std::uint64_t x = 1;
  for (int i = 0; i < 100'000; ++i) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t ns = (x >> 40U) % 1000 < 990 ? (x >> 33U) % 3000 : (x >> 33U) % 40'000'000;
    samples.push_back(ns);
    histogram.record(ns);
  }
  std::sort(samples.begin(), samples.end());
  for (const double percent : {1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    const auto exact = static_cast<double>(
        samples[static_cast<std::size_t>(static_cast<double>(samples.size()) * percent / 100) - 1]);
    EXPECT_NEAR(histogram.percentile(percent), exact, exact * 0.016 + 0.5) << percent;
  }
}

TEST(latency, small_values_are_exact_and_huge_ones_kept) {
  latency_histogram histogram;
  EXPECT_EQ(histogram.percentile(50), 0);
  for (std::uint64_t ns = 0; ns < 64; ++ns) {
    histogram.clear();
    histogram.record(ns);
    EXPECT_EQ(histogram.percentile(50), static_cast<double>(ns));
  }
  histogram.clear();
  histogram.record(UINT64_MAX);
  EXPECT_GT(histogram.percentile(50), 6e10);
}

TEST(latency, merging_adds_up) {
  latency_histogram one;
  latency_histogram other;
  for (int i = 0; i < 99; ++i) one.record(10);
  other.record(1000);
  one += other;
  EXPECT_EQ(one.samples(), 100U);
  EXPECT_EQ(one.percentile(99), 10);
  EXPECT_NEAR(one.percentile(100), 1000, 16);
}

TEST(bench, medians) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

// With the call and without it, and never with two threads.
TEST(bench, loads_in_bulk) {
  bench_options options;
  options.indexes = {find_index("ordered_map"), find_index("btree/optimistic"),
                     find_index("absl+mutex")};
  options.workloads = {find_workload("bulk-load"), find_workload("c")};
  options.distributions = {*parse_distribution("uniform")};
  options.threads = {1, 2};
  options.keys = 5000;
  options.seconds = 0.02;
  options.warm_up_seconds = 0.005;
  options.rounds = 2;
  const bench_result result = run_bench(options, {});
  EXPECT_EQ(result.runs.size(), 3U * (1 + 2));
  EXPECT_EQ(result.skipped.size(), 3U);
  for (const bench_run& run : result.runs) {
    EXPECT_EQ(run.misses, 0U) << run.index->name << " " << run.what->name;
    if (run.what->loads()) {
      EXPECT_EQ(run.requests, 2U * 5000U);
    }
  }
}

TEST(bench, runs_the_product_in_rounds_and_skips_what_cannot_be) {
  bench_options options;
  options.indexes = {find_index("std+shared_mutex"), find_index("tbb"), find_index("libcds")};
  options.workloads = {find_workload("load"), find_workload("a"), find_workload("d"),
                       find_workload("e"), find_workload("delete")};
  options.distributions = {*parse_distribution("uniform"), *parse_distribution("zipf:0.99")};
  options.threads = {1, 2};
  options.keys = 2000;
  options.seconds = 0.02;
  options.warm_up_seconds = 0.005;
  options.rounds = 2;
  double last = 0;
  const bench_result result = run_bench(options, [&](const bench_progress& at) {
    EXPECT_GE(at.done, last - 1e-9);
    EXPECT_LE(at.done, 1 + 1e-9);
    last = at.done;
  });
  // load and delete once for both distributions; e without libcds, delete without tbb.
  EXPECT_EQ(result.runs.size(), 2U * (3 + 2 * 3 + 2 * 3 + 2 * 2 + 2));
  EXPECT_EQ(result.skipped.size(), 4U);
  for (const bench_run& run : result.runs) {
    EXPECT_EQ(run.misses, 0U) << run.index->name << " " << run.what->name;
    EXPECT_EQ(run.raw_mops.size(), 2U);
    EXPECT_GT(run.mops, 0);
    EXPECT_LE(run.mops_min, run.mops);
    EXPECT_LE(run.mops, run.mops_max);
    EXPECT_GT(run.latency.samples(), 0U);
    if (run.what->drains()) {
      EXPECT_EQ(run.requests, 2U * 2000U);
    }
    EXPECT_GT(run.bytes_per_key, 16);
    EXPECT_LT(run.bytes_per_key, 400);
  }
}

}  // namespace
