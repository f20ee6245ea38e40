#pragma once
// A randomised test has a fixed seed, and prints it when it fails. ELIDEX_TEST_SEED replaces it.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>

#include "support/thread_sanitizer.hpp"

namespace elidex::testing {

inline std::uint64_t seed_or(std::uint64_t usual) {
  const char* const wish = std::getenv("ELIDEX_TEST_SEED");
  return wish != nullptr ? std::strtoull(wish, nullptr, 0) : usual;
}

// How many times as long as usual the tests run; ELIDEX_TEST_LONG sets it.
inline int effort() {
  const char* const wish = std::getenv("ELIDEX_TEST_LONG");
  return wish != nullptr ? std::max(1, std::atoi(wish)) : 1;
}

// So many repetitions of something cheap. Fewer where each takes longer and finds more.
inline int repetitions(int natively) {
#if defined(ELIDEX_SIMULATED)
  constexpr int share = 20;
#elif defined(ELIDEX_THREAD_SANITIZER)
  constexpr int share = 2;
#else
  constexpr int share = 1;
#endif
  return natively * effort() / share;
}

// How far apart the points lie that a test tries, of all points of a run. Further where each takes
// longer.
inline constexpr std::uint64_t spacing(std::uint64_t natively) {
#if defined(ELIDEX_THREAD_SANITIZER)
  return 4 * natively;
#else
  return natively;
#endif
}

class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t operator()() { return engine_(); }
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace elidex::testing
