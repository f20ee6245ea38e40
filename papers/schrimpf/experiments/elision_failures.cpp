// What follows a failed elision: paper 004 sections 2.2 (the lemming effect) and 3.4 (a library's
// elided mutex, locked and tried). Counts of transactions come from the simulated machine.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "elidex/htm.hpp"
#include "elidex/internal/sync/pause.hpp"
#include "elidex/mutex.hpp"
#include "papers/schrimpf/experiments/experiment.hpp"
#include "papers/schrimpf/structures/locks.hpp"

namespace elidex::bench {

using namespace internal;

namespace {

// The thesis's "TAS lock": it exchanges again and again.
class exchanging_hle {
 public:
  void lock() noexcept {
    while (htm::hle_exchange_acquire(word_, 1) != 0) cpu_pause();
  }
  void unlock() noexcept { htm::hle_store_release(word_, 0); }

 private:
  alignas(64) std::atomic<std::uint32_t> word_{0};
};

struct section {
  std::uint64_t ended;
  bool took_the_lock;
};

// Of the sections that follow one that has taken the lock, the share, in per cent, that take it
// too. Every hundredth section of the first thread pauses, which ends its elision.
template <class Lock>
double taken_again_pct(const host::machine& which, const experiment_scale& scale,
                       unsigned threads) {
  constexpr std::uint64_t held_cycles = 200;
  constexpr std::uint64_t until_a_failure = 100;
  const std::uint64_t sections = scale.times(2'000, 20'000);
  Lock lock;
  std::vector<std::vector<section>> of_threads(threads);
  std::vector<std::function<void()>> bodies;
  for (unsigned t = 0; t < threads; ++t) {
    of_threads[t].reserve(sections);
    bodies.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < sections; ++i) {
        lock.lock();
        const bool elided = htm::test();
        if (t == 0 && i % until_a_failure == 0) cpu_pause();
        host::spend(held_cycles);
        lock.unlock();
        of_threads[t].push_back({host::now(), !elided});
      }
    });
  }
  host::run(which, {.seed = scale.seed}, bodies);
  std::vector<section> all;
  for (const auto& mine : of_threads) all.insert(all.end(), mine.begin(), mine.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const section& a, const section& b) { return a.ended < b.ended; });
  std::uint64_t taken = 0, again = 0;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    if (!all[i].took_the_lock) continue;
    ++taken;
    again += all[i + 1].took_the_lock ? 1u : 0u;
  }
  return taken == 0 ? 0 : 100 * static_cast<double>(again) / static_cast<double>(taken);
}

std::vector<series> lemmings(const host::machine& which, const experiment_scale& scale) {
  std::vector<series> both{{"TAS", {}}, {"TAS-T", {}}};
  for (const unsigned threads : {2u, 3u, 4u}) {
    both[0].points.emplace_back(threads, taken_again_pct<exchanging_hle>(which, scale, threads));
    both[1].points.emplace_back(threads, taken_again_pct<hle_spin_loop>(which, scale, threads));
  }
  return both;
}

// Listing 3.13: a simple addition under an elided mutex, taken by lock() or by trying again and
// again.
std::vector<series> library_mutex(const host::machine& which, const experiment_scale& scale) {
  std::vector<series> all{{"lock: transactional of all cycles, %", {}},
                          {"lock: aborted transactions, %", {}},
                          {"try and pause: transactional of all cycles, %", {}},
                          {"try and pause: aborted transactions, %", {}}};
  const std::uint64_t sections = scale.times(5'000, 50'000);
  for (const unsigned threads : {1u, 2u, 4u}) {
    for (const bool tries : {false, true}) {
      elidex::mutex lock;
      alignas(64) volatile std::uint64_t shared = 0;
      const std::vector<std::function<void()>> bodies(threads, [&] {
        for (std::uint64_t i = 0; i < sections; ++i) {
          if (tries) {
            while (!lock.try_lock()) cpu_pause();
          } else {
            lock.lock();
          }
          shared = shared + 1;
          lock.unlock();
        }
      });
      const host::thread_report total = host::run(which, {.seed = scale.seed}, bodies).total();
      const auto pct = [](std::uint64_t part, std::uint64_t whole) {
        return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
      };
      const std::size_t first = tries ? 2 : 0;
      all[first].points.emplace_back(threads, pct(total.transactional_cycles, total.cycles));
      all[first + 1].points.emplace_back(threads, pct(total.aborted(), total.begun));
    }
  }
  return all;
}

}  // namespace

std::vector<experiment> elision_failures() {
  return {{"S-2.2", lemmings, 4}, {"S-3.4", library_mutex, 4}};
}

}  // namespace elidex::bench
