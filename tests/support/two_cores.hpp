#pragma once
// Keeps two threads on two cores: left alone, a scheduler often runs both on one, and they never
// meet.

#include <sched.h>

#include <array>
#include <cstddef>

namespace elidex::testing {

using namespace internal;

// The core that the caller is on and the next one it may use: left to itself, the scheduler often
// keeps two threads that wait for each other on one core, where no store buffer shows. The same
// core twice if there is no other.
inline std::array<std::size_t, 2> two_cores() {
  const int current = sched_getcpu();
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (current < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {0, 0};
  const auto here = static_cast<std::size_t>(current);
  for (std::size_t step = 1; step < CPU_SETSIZE; ++step) {
    const std::size_t other = (here + step) % CPU_SETSIZE;
    if (CPU_ISSET(other, &allowed)) return {here, other};
  }
  return {here, here};
}

inline void stay_on(std::size_t core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  sched_setaffinity(0, sizeof only, &only);  // if it fails the test only finds less
}

}  // namespace elidex::testing
