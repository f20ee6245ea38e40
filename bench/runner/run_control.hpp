#pragma once
// What a worker thread and the thread that runs the clock say to each other, and the worker's loop.
//
// The clock thread moves `now` from warm_up through measure to stop. Each worker looks at it once
// per block of requests, starts counting where it sees `measure` and takes its own time there and
// at the end, so that its rate is exact even where the scheduler lets it see the change late.
//
// One request of each block is timed for the latency percentiles: two reads of the clock per
// request_block requests, about 1 ns per request, and the clock's own cost is taken off the sample.
//
// Invariants: only the block's first request is timed, and a run's requests are random, so the
// samples are unbiased.
//
// Thread-safety: run_control is shared; a worker_result belongs to its thread until that is joined.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "bench/runner/latency.hpp"
#include "bench/runner/machine.hpp"
#include "bench/workload/requests.hpp"

namespace elidex::bench {

using run_clock = std::chrono::steady_clock;

inline constexpr std::size_t request_block = 64;

enum class run_phase : std::uint32_t { warm_up, measure, stop };

struct run_control {
  alignas(64) std::atomic<run_phase> now{run_phase::warm_up};
  /// Run each stream once, from the first request to the last, and measure all of it.
  bool drain = false;
  /// At a stream's end begin again; only for streams that may be repeated (those that insert or
  /// erase may not).
  bool repeat = true;
  /// What two reads of the clock cost, in nanoseconds.
  std::uint64_t clock_ns = 0;
};

struct alignas(64) worker_result {
  std::uint64_t requests = 0;  // while measuring
  std::uint64_t all_requests = 0;
  // requests that found no key, or for an insert found one: 0 unless the index is wrong
  std::uint64_t misses = 0;
  std::uint64_t added = 0;     // keys that store requests have inserted
  std::uint64_t checksum = 0;  // of every value read, so that nothing is optimised away
  run_clock::time_point begin{};
  run_clock::time_point end{};
  std::uint64_t cpu_wait_ns = 0;  // of the time from begin to end, ready to run but without a CPU
  latency_histogram latency;
};

/// The loop of one worker. execute(cursor, request, most, result) does one request, or up to `most`
/// with those behind it (all, if they are one call), and says how many.
template <class Key, class Execute>
void run_worker(const request_stream<Key>& stream, run_control& control, worker_result& result,
                Execute&& execute) {
  request_cursor<Key> cursor(stream);
  bool measuring = control.drain;
  result.cpu_wait_ns = cpu_wait_ns();
  result.begin = run_clock::now();
  for (;;) {
    if (!control.drain) {
      // relaxed: a flag without data behind it; partners are the stores below and in run_threads.
      const run_phase phase = control.now.load(std::memory_order_relaxed);
      if (phase == run_phase::stop) break;
      if (!measuring && phase == run_phase::measure) {
        measuring = true;
        result.requests = result.misses = result.added = 0;
        result.latency.clear();
        result.cpu_wait_ns = cpu_wait_ns();
        result.begin = run_clock::now();
      }
      // A stream that may run only once keeps three quarters of itself for the measurement.
      if (!measuring && !control.repeat && cursor.position() > stream.size() / 4) {
        run_phase expected = run_phase::warm_up;
        // relaxed: partner of the load above.
        control.now.compare_exchange_strong(expected, run_phase::measure,
                                            std::memory_order_relaxed);
      }
    }
    const std::size_t block = std::min(request_block, cursor.remaining());
    if (block == 0) {
      if (control.drain || stream.size() == 0) break;
      if (control.repeat) {
        cursor.rewind();
        continue;
      }
      // relaxed: partner of the load above; the others end with the first one that has nothing left
      // to do.
      control.now.store(run_phase::stop, std::memory_order_relaxed);
      break;
    }
    const auto before = run_clock::now();
    std::size_t done = execute(cursor, cursor.next(), block, result);
    const auto after = run_clock::now();
    const auto ns = static_cast<std::uint64_t>((after - before) / std::chrono::nanoseconds(1));
    result.latency.record(ns > control.clock_ns ? ns - control.clock_ns : 0);
    while (done < block) done += execute(cursor, cursor.next(), block - done, result);
    result.requests += done;
    result.all_requests += done;
  }
  result.end = run_clock::now();
  result.cpu_wait_ns = cpu_wait_ns() - result.cpu_wait_ns;
  if (!measuring) result.requests = 0;
}

}  // namespace elidex::bench
