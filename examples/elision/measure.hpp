// What the examples of docs/ELISION.md share: the same sections under a lock that elides and under
// one that doesn't.
//
//   template <class Lock>
//   struct one_counter {
//     Lock lock;
//     std::uint64_t counter = 0;
//     void section(unsigned thread, unsigned number) { const std::lock_guard guard(lock);
//         ++counter; }
//   };
//   headline("sections");
//   compare<one_counter>("one counter", 1'000);
//
// Each example is a plain program, built twice: for this CPU and for the simulated machine, whose
// transactions commit (main_native.cpp, main_simulated.cpp). An example defines example().
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "elidex/mutex.hpp"

void example();

namespace elision_example {

inline constexpr unsigned threads = 4;

// The simulated machine shows with a thousand sections what real time needs many for.
#if defined(ELIDEX_SIMULATED)
inline constexpr unsigned times = 1;
#else
inline constexpr unsigned times = 20;
#endif

// Memory of its own, line by line.
struct alignas(64) line {
  std::uint64_t value = 0;
};

inline void headline(const char* what) {
  if (!elidex::htm::enabled()) {
    std::printf(
        "No transaction commits here: elidex::mutex takes its lock each time. One run each, so "
        "mind the noise.\n");
  }
  std::printf("%-28s %14s %14s %7s %9s %11s  aborts a section, by cause\n", what, "mutex, 1/ms",
              "taken, 1/ms", "ratio", "elided", "took lock");
}

// Sections per millisecond, all threads together.
template <class Case>
double rate(Case& one, unsigned sections) {
  using clock = std::chrono::steady_clock;
  std::vector<clock::time_point> begins(threads), ends(threads);
  std::vector<std::thread> running;
  const auto work = [&](unsigned t) {
    begins[t] = clock::now();
    for (unsigned i = 0; i < sections * times; ++i) one.section(t, i);
    ends[t] = clock::now();
  };
  // This thread is the first of them, because the simulated machine has one core for each thread.
  for (unsigned t = 1; t < threads; ++t) running.emplace_back(work, t);
  work(0);
  for (std::thread& thread : running) thread.join();
  const auto took =
      *std::max_element(ends.begin(), ends.end()) - *std::min_element(begins.begin(), begins.end());
  return 1e6 * threads * sections * times /
         static_cast<double>(std::chrono::nanoseconds(took).count());
}

// What locks without a name have counted.
inline elidex::lock_counts counts() {
  return elidex::record_of_unnamed_locks().counters.read();
}

template <template <class> class Case, class... Arguments>
void compare(const std::string& label, unsigned sections, Arguments... arguments) {
  elidex::forget_elision_pauses();  // of another lock that lay where this one will
  const auto elided = std::make_unique<Case<elidex::mutex>>(arguments...);
  const auto taken = std::make_unique<Case<elidex::basic_mutex<elidex::htm::never>>>(arguments...);
  const elidex::lock_counts before = counts();
  const double elided_rate = rate(*elided, sections);
  const elidex::lock_counts did = counts() - before;
  const double taken_rate = rate(*taken, sections);
  const double all = static_cast<double>(threads) * sections * times;
  std::printf("%-28s %14.1f %14.1f %6.2fx", label.c_str(), elided_rate, taken_rate,
              elided_rate / taken_rate);
  if (did.acquisitions() == 0) {
    std::printf("\n");
    return;
  }
  std::printf(" %7.1f %% %9.1f %%  ", 100.0 * static_cast<double>(did.commits) / all,
              did.fallback_pct());
  const char* separator = "";
  for (std::size_t i = 0; i < did.aborts.size(); ++i) {
    if (did.aborts[i] == 0) continue;
    std::printf("%s%s %.2f", separator, to_string(static_cast<elidex::htm::abort_cause>(i)),
                static_cast<double>(did.aborts[i]) / all);
    separator = ", ";
  }
  std::printf("\n");
}

}  // namespace elision_example
