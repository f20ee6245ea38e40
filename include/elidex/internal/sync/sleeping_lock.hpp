// A lock that spins for a moment and then sleeps: 8 bytes, and no system call as long as nobody
// sleeps.
//
//   sleeping_lock lock;
//   { std::lock_guard guard(lock); ++shared; }
//
// It is what elidex::mutex (mutex.hpp) takes when it cannot elide. A thread that comes takes a free
// lock at once, also before threads that sleep (barging): handing the lock over to a sleeper would
// leave it unused until the sleeper runs, some microseconds in which a running thread does hundreds
// of short sections. Who leaves wakes one sleeper, but not while another that was woken (or one
// that spins) is still trying: that one will either take the lock or go to sleep and say so.
//
// State, one word: bit 0, held; bit 1, somebody awake is trying on behalf of the sleepers
// ("trying"); above, the sleepers that nobody has woken. And the tokens they sleep on.
//
//   lock()     free: sets held. Else spins; then counts itself among the sleepers, giving up
//              "trying" if it has it, in one exchange which sees held set; then takes a token. A
//              token comes with "trying" set, which now is this thread's.
//   unlock()   clears held; if there are sleepers and nobody is trying, the same exchange takes one
//              sleeper off the count and sets "trying", and then gives a token.
//
// No wake-up is lost: say there is a sleeper S, the lock is free and nobody is trying, for ever.
// The word came into this state by an exchange that cleared held or "trying", or counted S.
// Counting S, or giving up "trying" to sleep, needs held set. Taking the lock clears "trying" and
// sets held. So it was an unlock; but an unlock that finds sleepers and nobody trying appoints one.
// "trying" has one owner at a time, since it is set only by exchanges that find it clear, and its
// owner is awake or has a token waiting.
//
// A lock may be destroyed by whoever holds it last, right after unlock(), as with std::mutex:
// unlock() touches it after the exchange that frees it only to give a token, and then a sleeper is
// inside lock() until it has that token. The wake-up call that follows only names an address.
//
// Not fair: a sleeper may be overtaken again and again, as with std::mutex. Not recursive; unlock()
// by any thread frees it. Unlocking a lock that nobody holds changes nothing.
//
// For elision: held is set by a full exchange before the holder's first access to what the lock
// protects (internal/sync/spin_locks.hpp).
//
// Linearization: lock() and a successful try_lock() at the exchange that sets held, unlock() at the
// one that clears it.
//
// Thread-safety: all members, from any thread, outside of regions as soon as there is somebody to
// wait for. Nothing throws.
//
// From: the ideas are common property of Go's sync.Mutex (one woken thread at a time, barging) and
// of parking locks.
#pragma once

#if __has_include(<sys/single_threaded.h>)
#  include <sys/single_threaded.h>
#endif

#include <atomic>
#include <cstdint>

#include "elidex/internal/sync/futex_semaphore.hpp"

namespace elidex::internal {

class sleeping_lock {
 public:
  // How often a thread looks before it sleeps, with a round of backoff between: seven pauses that
  // double, then yields. Measured on 2 cores of a Zen 4 with 2 to 32 threads and short sections:
  // with 8 looks (one yield) the lock does 0.3 to 0.8 of what it does with 24, with 64 nothing
  // more.
  static constexpr std::uint32_t looks_before_sleep = 24;

  constexpr sleeping_lock() noexcept = default;
  sleeping_lock(const sleeping_lock&) = delete;
  sleeping_lock& operator=(const sleeping_lock&) = delete;

  void lock() noexcept {
    // relaxed, without a partner: there is nobody else.
    if (process_has_one_thread() && word_.load(std::memory_order_relaxed) == 0) {
      word_.store(held, std::memory_order_relaxed);  // as above
      return;
    }
    std::uint32_t expected = 0;
    // acquire: pairs with the release in unlock(). The failure is relaxed: wait_and_lock() looks
    // again.
    if (word_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                      std::memory_order_relaxed)) [[likely]] {
      return;
    }
    wait_and_lock();
  }

  // False: held by somebody at this moment.
  bool try_lock() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
    while ((seen & held) == 0) {
      // acquire: pairs with the release in unlock(). The failure is relaxed: a value to try again
      // with.
      if (word_.compare_exchange_weak(seen, seen | held, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  void unlock() noexcept {
    // relaxed, without a partner: there is nobody else.
    if (process_has_one_thread() && word_.load(std::memory_order_relaxed) == held) {
      word_.store(0, std::memory_order_relaxed);  // as above
      return;
    }
    std::uint32_t expected = held;
    // release: pairs with the acquires of whoever sets held next. The failure is relaxed: the other
    // way looks again.
    if (!word_.compare_exchange_strong(expected, 0, std::memory_order_release,
                                       std::memory_order_relaxed)) [[unlikely]] {
      unlock_and_wake();
    }
  }

  bool is_locked() const noexcept {
    // pairs with the release in unlock()
    return (word_.load(std::memory_order_acquire) & held) != 0;
  }

 private:
  static constexpr std::uint32_t held = 1;
  static constexpr std::uint32_t trying = 2;
  static constexpr std::uint32_t one_sleeper = 4;

  // As glibc's mutexes ask: before the first thread is created, and who creates one synchronises
  // with it. So a lock may be taken in one way and left in the other.
  static bool process_has_one_thread() noexcept {
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded != 0;
#else
    return false;
#endif
  }

  void wait_and_lock() noexcept;
  void unlock_and_wake() noexcept;

  std::atomic<std::uint32_t> word_{0};
  futex_semaphore tokens_;
};

}  // namespace elidex::internal
