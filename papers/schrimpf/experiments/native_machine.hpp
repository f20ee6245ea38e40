#pragma once
// The part of machine/simulation.hpp that the experiments use, implemented with real threads.
//
//   const report r = run(this_machine(), {.seed = 1}, {[&] { spend(1'000); }});
//   const double ms = r.cycles / (this_machine().megahertz * 1e3);
//
// A cycle is one of the time stamp counter, which runs at a fixed rate. spend() runs a loop of
// nops, as the thesis does: an iteration takes about a cycle of the core.
//
// Thread-safety: one run() at a time; all other functions from any thread, also inside a
// transaction.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "bench/runner/machine.hpp"

namespace elidex::bench::native {

struct machine {
  std::uint64_t megahertz = 1'000;
};

struct run_options {
  std::uint64_t seed = 1;  // nothing here depends on it
};

struct report {
  std::uint64_t cycles = 0;  // from the common start to the end of the last thread
};

[[nodiscard]] inline std::uint64_t now() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
#endif
}

inline void spend(std::uint64_t cycles) noexcept {
  for (std::uint64_t i = 0; i < cycles; ++i) asm volatile("nop");
}

// How many times as long experiments run here that measure a time or count rare events: on the
// simulated machine a few microseconds are enough.
inline constexpr std::uint64_t times_longer = 50;

// More than the last level of the caches holds, and at least as much as the thesis used.
[[nodiscard]] inline std::size_t more_than_the_caches() {
  constexpr long of_the_thesis = 8L * 1024 * 1024;
  return static_cast<std::size_t>(std::max(of_the_thesis, 2 * sysconf(_SC_LEVEL3_CACHE_SIZE)));
}

// The next access to each of these pages faults.
inline void unmap_pages(void* from, std::size_t bytes) noexcept {
  madvise(from, bytes, MADV_DONTNEED);
}

// Measures the counter's rate at the first call, which takes 20 ms.
[[nodiscard]] inline const machine& this_machine() {
  static const machine measured = [] {
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t from = now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::uint64_t cycles = now() - from;
    const double us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    const long rate = std::lround(static_cast<double>(cycles) / us);
    return machine{static_cast<std::uint64_t>(std::max(1L, rate))};
  }();
  return measured;
}

// A single body runs on the calling thread. Several run on a pinned thread each and begin together.
inline report run(const machine& /*which*/, const run_options& /*options*/,
                  const std::vector<std::function<void()>>& bodies) {
  if (bodies.size() == 1) {
    const std::uint64_t begin = now();
    bodies.front()();
    return {now() - begin};
  }
  const std::vector<int> cpus = allowed_cpus_by_core();
  std::barrier start(static_cast<std::ptrdiff_t>(bodies.size()));
  std::vector<std::uint64_t> begins(bodies.size()), ends(bodies.size());
  {
    std::vector<std::jthread> threads;
    threads.reserve(bodies.size());
    for (std::size_t t = 0; t < bodies.size(); ++t) {
      threads.emplace_back([&, t] {
        pin_this_thread(cpus[t % cpus.size()]);
        start.arrive_and_wait();
        begins[t] = now();
        bodies[t]();
        ends[t] = now();
      });
    }
  }
  return {std::ranges::max(ends) - std::ranges::min(begins)};
}

}  // namespace elidex::bench::native
