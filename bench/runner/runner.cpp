#include "bench/runner/runner.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "bench/runner/machine.hpp"

namespace elidex::bench {
namespace {

enum class gate : std::uint32_t { closed, open, cancelled };

using seconds_type = std::chrono::duration<double>;

std::uint64_t clock_cost_ns() {
  std::array<std::int64_t, 1001> costs{};
  for (auto& cost : costs) {
    const auto before = run_clock::now();
    cost = (run_clock::now() - before) / std::chrono::nanoseconds(1);
  }
  std::nth_element(costs.begin(), costs.begin() + costs.size() / 2, costs.end());
  return static_cast<std::uint64_t>(costs[costs.size() / 2]);
}

// Sleeps until `until`, waking a few times a second for the progress bar and when a worker has
// ended the phase.
void sleep_until(run_clock::time_point from, run_clock::time_point until,
                 const run_control& control, run_phase during,
                 const std::function<void(run_clock::time_point)>& tick) {
  constexpr auto nap = std::chrono::milliseconds(50);
  for (auto now = from; now < until; now = run_clock::now()) {
    // relaxed: partner of the stores in run_worker.
    if (control.now.load(std::memory_order_relaxed) != during) return;
    std::this_thread::sleep_for(std::min<run_clock::duration>(nap, until - now));
    if (tick) tick(run_clock::now());
  }
}

void run_the_clock(run_control& control, const run_settings& settings) {
  const auto start = run_clock::now();
  const auto whole = seconds_type(settings.warm_up_seconds + settings.seconds);
  std::function<void(run_clock::time_point)> tick;
  if (settings.tick) {
    tick = [&](run_clock::time_point now) {
      settings.tick(std::min(1.0, seconds_type(now - start) / whole));
    };
  }
  const auto length = [](double seconds) {
    return std::chrono::duration_cast<run_clock::duration>(seconds_type(seconds));
  };
  sleep_until(start, start + length(settings.warm_up_seconds), control, run_phase::warm_up, tick);
  run_phase expected = run_phase::warm_up;
  // relaxed here and below: partner of the load in run_worker; a flag without data behind it.
  control.now.compare_exchange_strong(expected, run_phase::measure, std::memory_order_relaxed);
  const auto measured_from = run_clock::now();
  sleep_until(measured_from, measured_from + length(settings.seconds), control, run_phase::measure,
              tick);
  control.now.store(run_phase::stop, std::memory_order_relaxed);
}

run_outcome summary(std::span<const worker_result> results, bool drain) {
  run_outcome outcome;
  auto first = results.front().begin;
  auto last = results.front().end;
  double rate = 0;
  double time_ns = 0;
  double wait_ns = 0;
  for (const worker_result& one : results) {
    const double seconds = seconds_type(one.end - one.begin).count();
    time_ns += seconds * 1e9;
    wait_ns += static_cast<double>(one.cpu_wait_ns);
    first = std::min(first, one.begin);
    last = std::max(last, one.end);
    outcome.seconds = std::max(outcome.seconds, one.requests > 0 ? seconds : 0);
    if (one.requests > 0 && seconds > 0) rate += static_cast<double>(one.requests) / seconds;
    outcome.requests += one.requests;
    outcome.misses += one.misses;
    outcome.added += one.added;
    outcome.checksum += one.checksum;
    outcome.counted_requests += one.all_requests;
    outcome.latency += one.latency;
  }
  if (drain) {
    outcome.seconds = seconds_type(last - first).count();
    rate = outcome.seconds > 0 ? static_cast<double>(outcome.requests) / outcome.seconds : 0;
  }
  outcome.mops = rate / 1e6;
  outcome.cpu_wait_pct = time_ns > 0 ? 100 * wait_ns / time_ns : 0;
  return outcome;
}

}  // namespace

template <class Key>
run_outcome run_threads(any_index<Key>& index, std::span<const request_stream<Key>> streams,
                        const run_settings& settings) {
  if (streams.empty()) return {};
  static const std::uint64_t clock_ns = clock_cost_ns();
  run_control control;
  control.drain = settings.drain;
  control.repeat = settings.repeat_streams;
  control.clock_ns = clock_ns;

  const std::vector<int> cpus = settings.cpus.empty() ? allowed_cpus() : settings.cpus;
  const index_counters before = index.counters();
  std::vector<worker_result> results(streams.size());
  std::vector<std::exception_ptr> failures(streams.size());
  std::atomic<gate> start{gate::closed};
  std::atomic<std::size_t> ready{0};

  std::vector<std::thread> workers;
  workers.reserve(streams.size());
  const auto open_gate = [&](gate how) {
    start.store(how);
    start.notify_all();
  };
  try {
    for (std::size_t t = 0; t < streams.size(); ++t) {
      workers.emplace_back([&, t] {
        pin_this_thread(cpus[t % cpus.size()]);
        ++ready;
        ready.notify_one();
        start.wait(gate::closed);
        if (start.load() == gate::cancelled) return;
        try {
          index.run(streams[t], control, results[t]);
        } catch (...) {
          failures[t] = std::current_exception();
          // relaxed: partner of the load in run_worker; the failure itself is handed over by
          // join().
          control.now.store(run_phase::stop, std::memory_order_relaxed);
        }
      });
    }
  } catch (...) {
    open_gate(gate::cancelled);
    for (auto& worker : workers) worker.join();
    throw;
  }
  for (std::size_t seen = ready.load(); seen < streams.size(); seen = ready.load())
    ready.wait(seen);
  open_gate(gate::open);
  if (!settings.drain) run_the_clock(control, settings);
  for (auto& worker : workers) worker.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }

  run_outcome outcome = summary(results, settings.drain);
  outcome.counters = index.counters() - before;
  if (outcome.counters.attempts == 0 && outcome.counters.aborts() > 0) {
    // Counted as restarts only: each request ended with one more pass.
    outcome.counters.commits = outcome.counted_requests;
    outcome.counters.attempts = outcome.counted_requests + outcome.counters.aborts();
  }
  return outcome;
}

template run_outcome run_threads(any_index<std::uint64_t>&,
                                 std::span<const request_stream<std::uint64_t>>,
                                 const run_settings&);
template run_outcome run_threads(any_index<std::string>&,
                                 std::span<const request_stream<std::string>>, const run_settings&);

}  // namespace elidex::bench
