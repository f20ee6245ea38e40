#include "bench/stores/timed_run.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "bench/runner/machine.hpp"
#include "bench/runner/run_control.hpp"

namespace elidex::bench::stores {
namespace {

// Reads are short beside two readings of the clock, so one in so many requests is timed. All
// requests that commit are timed.
constexpr unsigned timed_one_in = 16;

struct alignas(128) worker {
  std::uint64_t transactions = 0;
  std::uint64_t cpu_wait_ns = 0;
  latency_histogram latency;
  write_log log{0};
  std::string problem;
  std::exception_ptr failure;
};

struct stop_at_exit {
  std::atomic<run_phase>& phase;
  ~stop_at_exit() { phase = run_phase::stop; }
};

// A transaction counts if it ends while the clock runs.
void work(client& one, worker& mine, unsigned timed, const std::atomic<run_phase>& phase,
          std::atomic<bool>& any) {
  bool measuring = false;
  for (unsigned i = 0;; ++i) {
    const bool is_timed = i % timed == 0;
    const auto before = is_timed ? run_clock::now() : run_clock::time_point();
    one.step();
    const auto after = is_timed ? run_clock::now() : run_clock::time_point();
    const run_phase now = phase;
    if (now == run_phase::stop) break;
    if (now != run_phase::measure) continue;
    if (!measuring) {
      measuring = true;
      any = true;
      mine.cpu_wait_ns = cpu_wait_ns();
    }
    ++mine.transactions;
    if (is_timed)
      mine.latency.record(
          static_cast<std::uint64_t>((after - before) / std::chrono::nanoseconds(1)));
  }
  mine.cpu_wait_ns = measuring ? cpu_wait_ns() - mine.cpu_wait_ns : 0;
}

void sleep_until(run_clock::time_point end, const std::atomic<run_phase>& phase) {
  constexpr auto nap = std::chrono::milliseconds(20);
  for (auto now = run_clock::now(); now < end && phase != run_phase::stop; now = run_clock::now())
    std::this_thread::sleep_for(std::min<run_clock::duration>(nap, end - now));
}

timed_result sum_of(std::vector<worker>& workers, double seconds) {
  timed_result sum;
  double waited_ns = 0;
  for (worker& one : workers) {
    if (one.failure) std::rethrow_exception(one.failure);
    sum.transactions += one.transactions;
    sum.latency += one.latency;
    waited_ns += static_cast<double>(one.cpu_wait_ns);
    sum.logs.push_back(std::move(one.log));
    if (!one.problem.empty()) sum.problems.push_back(one.problem);
  }
  sum.rate = static_cast<double>(sum.transactions) / seconds;
  sum.cpu_wait_pct = 100 * waited_ns / (seconds * 1e9 * static_cast<double>(workers.size()));
  return sum;
}

}  // namespace

timed_result run_clients(store& on, const std::vector<client_plan>& plans,
                         const timed_settings& settings) {
  std::atomic<run_phase> phase{run_phase::warm_up};
  std::atomic<std::size_t> ready{0};
  std::atomic<bool> any{false};  // transactions were counted
  std::vector<worker> workers(plans.size());
  double seconds = 0;
  {
    std::vector<std::jthread> threads;
    threads.reserve(plans.size());
    const stop_at_exit stop{phase};  // before the threads are joined
    for (std::size_t i = 0; i < plans.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          const std::unique_ptr<session> mine = on.connect();
          client one(*mine, plans[i]);
          ++ready;
          const request_mix& mix = plans[i].what->mix;
          const bool commits_all = mix.read_pct + mix.scan_pct == 0;
          work(one, workers[i], commits_all ? 1 : timed_one_in, phase, any);
          workers[i].log = one.log();
          workers[i].problem = one.problem();
        } catch (...) {
          workers[i].failure = std::current_exception();
          phase = run_phase::stop;
        }
      });
    }
    while (ready < plans.size() && phase != run_phase::stop) std::this_thread::yield();
    const auto after = [](double of) {
      return run_clock::now() +
             std::chrono::duration_cast<run_clock::duration>(std::chrono::duration<double>(of));
    };
    sleep_until(after(settings.warm_up_seconds), phase);
    run_phase expected = run_phase::warm_up;
    const auto begin = run_clock::now();
    phase.compare_exchange_strong(expected, run_phase::measure);
    sleep_until(after(settings.seconds), phase);
    // A commit may take longer than the whole time.
    while (!any && phase != run_phase::stop) sleep_until(after(settings.seconds), phase);
    phase = run_phase::stop;
    seconds = std::chrono::duration<double>(run_clock::now() - begin).count();
    threads.clear();
  }
  return sum_of(workers, seconds);
}

}  // namespace elidex::bench::stores
