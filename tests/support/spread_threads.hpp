#pragma once
// Threads that really run at the same time.
//
//   std::jthread other([] { stay_on_nth_core(1); ... });
//
// Left to itself, the scheduler often keeps threads that have just begun on one core; then a test
// of a few milliseconds sees each of them run alone.

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace elidex::testing {

// For canaries: a planted bug that only threads at the same time show is looked for until it is
// found. On a machine with other work that may take a while; only a harness that cannot find it
// uses up the time.
template <class Attempt>
bool found_in_time(Attempt attempt) {
  constexpr auto limit = std::chrono::seconds(30);
  const auto begin = std::chrono::steady_clock::now();
  do {
    if (attempt()) return true;
  } while (std::chrono::steady_clock::now() - begin < limit);
  return false;
}

// Keeps the calling thread on the n-th of the cores that it may use, counted round and round.
// Threads begin with what their parent may use: so call it in threads that a test has made, never
// in the test's own.
inline void stay_on_nth_core(int n) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int ahead = n % CPU_COUNT(&allowed);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || ahead-- > 0) continue;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    sched_setaffinity(0, sizeof only, &only);  // if it fails the test only finds less
    return;
  }
}

// Runs body(n) in so many threads, each on a core of its own if there are enough.
template <class Body>
void in_threads(int many, const Body& body) {
  std::vector<std::thread> all;
  for (int n = 0; n < many; ++n) {
    all.emplace_back([&body, n] {
      stay_on_nth_core(n);
      body(n);
    });
  }
  for (std::thread& one : all) one.join();
}

// Where threads meet without sleeping: a barrier of the system wakes them microseconds apart, in
// which a short operation begins and ends. Gives up after a while, because there may be more
// threads than cores.
class spinning_meeting {
 public:
  explicit spinning_meeting(int threads) : threads_(threads) {}
  // The n-th meeting, counted from 0; each thread comes to each of them once.
  void meet(int n) {
    ++arrived_;
    for (int spins = 0; arrived_.load() < threads_ * (n + 1) && spins < 5'000; ++spins) {
    }
  }

 private:
  int threads_;
  std::atomic<int> arrived_{0};
};

}  // namespace elidex::testing
