// Pauses between two attempts: each call takes twice as many as the one before, up to a limit.
//
//   for (backoff wait; !try_it(); wait.once()) {}
//
// Use it for attempts that fail only because another thread has succeeded. The doubling separates
// threads that make each other fail, and keeps them off the contended cache line. To wait for
// another thread's action, use wait_while() (parking.hpp). It sleeps after a while, because the
// other thread may not be running.
//
// One call of once() takes at most backoff_pauses_max pauses. It never sleeps and makes no system
// call.
// Thread-safety: an object belongs to one thread.
// Errors: nothing throws.
#pragma once

#include <cstdint>

#include "elidex/internal/sync/pause.hpp"

namespace elidex::internal {

// The longest run of pauses between two attempts. Chosen: one or two microseconds where a pause
// takes 40 to 140 cycles.
inline constexpr std::uint32_t backoff_pauses_max = 64;

// Lets another thread run on this core. once_or_yield() uses it.
void yield_processor() noexcept;

// Takes the longest run of pauses.
inline void pause_at_length() noexcept {
  for (std::uint32_t i = 0; i < backoff_pauses_max; ++i) cpu_pause();
}

class backoff {
 public:
  backoff() = default;
  // `pauses` is the length of the first wait.
  explicit backoff(std::uint32_t pauses) noexcept : pauses_(pauses) {}

  void once() noexcept {
    if (is_spent()) {
#if defined(ELIDEX_SIMULATED)
      cpu_pause();  // the machine's published figures were measured with one pause here
#else
      pause_at_length();
#endif
      return;
    }
    for (std::uint32_t i = 0; i < pauses_; ++i) cpu_pause();
    pauses_ *= 2;
  }

  // Like once(), but yields when the pauses have reached their limit. The yield is a system call,
  // which aborts a hardware region. Use it for a few rounds before a sleep. A holder that lost this
  // core to the caller can then continue, but beside busy programs each yield takes a time slice.
  void once_or_yield() noexcept {
    if (is_spent()) {
      yield_processor();
    } else {
      once();
    }
  }

  // Whether the pauses have reached their limit.
  bool is_spent() const noexcept { return pauses_ > backoff_pauses_max; }

 private:
  std::uint32_t pauses_ = 1;
};

}  // namespace elidex::internal
