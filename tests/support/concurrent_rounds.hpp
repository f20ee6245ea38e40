#pragma once
// Threads that do something together, round after round, with a pause between rounds in which one
// looks at the result.

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace elidex::testing {

// In every round each thread calls work(thread, round); then between(round) is called once, and
// while it returns true the next round begins.
inline void run_rounds(int threads, const std::function<void(int, int)>& work,
                       const std::function<bool(int)>& between) {
  int round = 0;
  bool more = true;
  std::barrier begin(threads);
  std::barrier end(threads, [&]() noexcept { more = between(round++); });
  std::vector<std::jthread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      while (more) {
        const int now = round;
        begin.arrive_and_wait();
        work(t, now);
        end.arrive_and_wait();
      }
    });
  }
}

}  // namespace elidex::testing
