#pragma once
// The seed of a randomised test: fixed, unless ELIDEX_TEST_SEED replays another one. A test that
// fails prints it.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>

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

// So many repetitions of something cheap: fewer inside the simulated machine, which takes a hundred
// times as long and finds more in each.
inline int repetitions(int natively) {
#if defined(ELIDEX_SIMULATED)
  constexpr int share = 20;
#else
  constexpr int share = 1;
#endif
  return natively * effort() / share;
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
