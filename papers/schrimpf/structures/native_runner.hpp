#pragma once
// Runs the use cases of section 3.3 on real threads of this machine. A Runner of measurement.hpp.
//
//   native_runner run({1, 2, 4}, false, seed);
//   std::vector<series> curves = figure_3_16(run);      // operations per millisecond
//
// Idea: the same figure is run several times and the medians of its points are taken
// (native_experiments.cpp), so that variants are interleaved and a disturbance hits one round of
// all of them.
//
// Threads are pinned round robin to the CPUs that the process may use, one to a core first. They
// are released together, and measured until the last has ended. More threads than CPUs take turns,
// as in the thesis's figures with eight threads on four cores.
//
// Thread-safety: one measurement at a time. Throws what the use's check() throws.

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "bench/runner/machine.hpp"
#include "elidex/htm.hpp"
#include "papers/schrimpf/structures/measurement.hpp"
#include "papers/schrimpf/structures/use_cases.hpp"

namespace elidex::bench {

class native_runner {
 public:
  native_runner(std::vector<unsigned> thread_counts, bool full, std::uint64_t seed)
      : thread_counts_(std::move(thread_counts)), full_(full), seed_(seed) {}

  [[nodiscard]] const std::vector<unsigned>& thread_counts() const { return thread_counts_; }
  [[nodiscard]] std::size_t cpus() const { return cpus_.size(); }
  // as many counters as in the thesis, whatever runs them
  [[nodiscard]] std::size_t cores() const { return 4; }
  [[nodiscard]] bool regions_commit() const { return htm::enabled(); }
  [[nodiscard]] bool thesis_locks_only() const { return false; }
  // Chosen: a smoke run's measurement takes some ten milliseconds.
  [[nodiscard]] std::uint64_t operations(std::uint64_t few, std::uint64_t many) const {
    return full_ ? 20 * many : std::min(50 * few, 5 * many);
  }

  [[nodiscard]] const std::vector<std::size_t>& ages() const { return set_ages(full_); }

  template <class Use>
  [[nodiscard]] measurement measure(unsigned threads, std::uint64_t operations,
                                    const typename Use::settings& settings) const {
    using clock = std::chrono::steady_clock;
    Use use(settings, threads);
    const std::uint64_t warm_up = operations / 20 + 10;
    std::barrier release(threads);
    std::vector<clock::time_point> begins(threads), ends(threads);
    std::vector<std::exception_ptr> thrown(threads);
    {
      std::vector<std::jthread> running;
      running.reserve(threads);
      for (unsigned t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
          pin_this_thread(cpus_[t % cpus_.size()]);
          auto worker = use.worker(t, draws(use, t));
          try {
            for (std::uint64_t i = 0; i < warm_up; ++i) worker.operation();
          } catch (...) {
            thrown[t] = std::current_exception();
          }
          release.arrive_and_wait();
          begins[t] = clock::now();
          try {
            for (std::uint64_t i = 0; i < operations; ++i) worker.operation();
          } catch (...) {
            thrown[t] = std::current_exception();
          }
          ends[t] = clock::now();
        });
      }
    }
    for (const std::exception_ptr& one : thrown) {
      if (one != nullptr) std::rethrow_exception(one);
    }
    use.check(threads * (warm_up + operations));
    clock::time_point begin = begins[0], end = ends[0];
    for (unsigned t = 1; t < threads; ++t) {
      begin = std::min(begin, begins[t]);
      end = std::max(end, ends[t]);
    }
    const double ms = std::chrono::duration<double, std::milli>(end - begin).count();
    return {.per_ms = static_cast<double>(threads * operations) / ms};
  }

 private:
  template <class Use>
  [[nodiscard]] thread_draws draws(Use& use, unsigned thread) const {
    if constexpr (requires { use.generator(); }) return thread_draws(use.generator());
    return thread_draws(mix(seed_) + thread);
  }

  std::vector<unsigned> thread_counts_;
  bool full_;
  std::uint64_t seed_;
  std::vector<int> cpus_ = allowed_cpus_by_core();
};

}  // namespace elidex::bench
