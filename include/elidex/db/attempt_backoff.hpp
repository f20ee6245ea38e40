// Between a transaction's attempts: it lost to others, and should not meet the same ones again.
//
//   attempt_backoff wait;                                   // a thread's, from one transaction to the next
//   wait.begin(thread_number);
//   while (!run_and_commit()) wait.once();
//
// Pauses are drawn at random below a bound that doubles with each attempt: two that repeat each other's conflict come apart. From
// pauses_max on it sleeps. sched_yield() would return at once where nobody else wants the core, and cost a whole slice of theirs where
// somebody computes.
//
// Invariants: one call takes at most pauses_max pauses, or a sleep of sleep_ns and what the system adds to it.
//
// Thread-safety: an object belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "elidex/sync/pause.hpp"

namespace elidex::db {

class attempt_backoff {
 public:
  static constexpr std::uint32_t pauses_max = 1024;
  static constexpr std::uint32_t sleep_ns = 50'000;

  // Another transaction. Threads with different numbers draw different pauses, and the same ones each time a program runs.
  void begin(std::size_t thread_number) noexcept {
    if (random_ == 0) random_ = (static_cast<std::uint64_t>(thread_number) + 1) * 0x9E3779B97F4A7C15u;
    bound_ = 1;
  }

  void once() noexcept {
    if (bound_ > pauses_max) {
      sleep();
      return;
    }
    for (std::uint32_t left = 1 + draw() % bound_; left > 0; --left) cpu_pause();
    bound_ *= 2;
  }

 private:
  std::uint32_t draw() noexcept {
    // Marsaglia's xorshift: never 0, as the seed is not.
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<std::uint32_t>(random_ >> 32);
  }
  static void sleep() noexcept;

  std::uint64_t random_ = 0;
  std::uint32_t bound_ = 1;
};

}  // namespace elidex::db
