// Waiting for another thread: pauses that double, then giving the processor away.
//
//   elidex::backoff wait;
//   while (lock.is_locked()) wait.once();
//
// With more threads than cores the thread waited for may not be running at all; then pausing only burns the
// time that it needs, and sched_yield lets it in. With a core for each thread the doubling keeps waiters off
// the lock's cache line.
//
// Invariants: one call takes at most backoff_pauses_max pauses or one yield. Never sleeps.
//
// Thread-safety: an object belongs to one thread. yield_processor() is a system call and aborts a hardware
// region.
#pragma once

#include <cstdint>

#include "elidex/sync/pause.hpp"

namespace elidex {

// The longest run of pauses between two looks. Chosen: some microseconds where a pause takes 40 to 140
// cycles, about the cost of the system call that follows it. Measured on 2 cores of a Zen 4: 8 and 32 threads
// on one ttas_lock lose nothing against 2 threads, with this value and with an eighth and sixteen times of
// it.
inline constexpr std::uint32_t backoff_pauses_max = 64;

// Lets another thread run on this core.
void yield_processor() noexcept;

// The longest run of pauses.
inline void pause_at_length() noexcept {
  for (std::uint32_t i = 0; i < backoff_pauses_max; ++i) cpu_pause();
}

class backoff {
 public:
  backoff() = default;
  // The first wait takes so many pauses.
  explicit backoff(std::uint32_t pauses) noexcept : pauses_(pauses) {}

  void once() noexcept {
    if (pauses_ > backoff_pauses_max) {
      yield_processor();
      return;
    }
    for (std::uint32_t i = 0; i < pauses_; ++i) cpu_pause();
    pauses_ *= 2;
  }

  // Whether the pauses are used up, so that every further wait yields.
  bool yields() const noexcept { return pauses_ > backoff_pauses_max; }

 private:
  std::uint32_t pauses_ = 1;
};

}  // namespace elidex
