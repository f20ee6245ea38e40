// A lock that spins briefly and then sleeps. It takes 8 bytes and makes no system call while no
// thread sleeps.
//
//   sleeping_lock lock;
//   { std::lock_guard guard(lock); ++shared; }
//
// elidex::mutex (mutex.hpp) takes this lock when it cannot elide.
//
// Thread-safety: all members, from any thread. A call that waits must run outside of regions.
// The lock is not fair: a sleeper may be overtaken again and again, as with std::mutex. The lock is
// not recursive. unlock() by any thread frees it. Unlocking a lock that no thread holds changes
// nothing.
// Lifetime: the last holder may destroy the lock right after unlock(), as with std::mutex.
// Errors: nothing throws.
//
// Implementation notes
// Barging: a thread that arrives takes a free lock at once, even if others sleep. A lock handed to
// a sleeper would be unused until the sleeper runs. In these microseconds a running thread executes
// hundreds of short sections. unlock() wakes one sleeper, but not while another woken or spinning
// thread is trying. That thread takes the lock, or goes to sleep and records that.
//
// State: one word, and the tokens on which threads sleep.
//
//   bit 0         held
//   bit 1         trying: an awake thread tries on behalf of the sleepers
//   bits 2 to 31  the number of sleepers that no thread has woken
//
//   lock()     If the lock is free, sets held. Otherwise spins. Then the thread adds itself to the
//              sleepers and clears `trying` if it owns it, in one exchange that sees held set.
//              Then it takes a token. A token comes with `trying` set, and its taker owns `trying`.
//   unlock()   Clears held. If there are sleepers and `trying` is clear, the same exchange
//              subtracts one sleeper and sets `trying`. Then the thread releases a token.
//
// No wake-up is lost. Suppose that one is: a sleeper S sleeps for ever while the lock is free and
// `trying` is clear. An exchange brought the word into this state. It cleared held, cleared
// `trying`, or added S.
//   * An exchange that adds S, or clears `trying` in order to sleep, sees held set.
//   * An exchange that takes the lock clears `trying` and sets held.
//   * So the exchange was an unlock(). But an unlock() that finds sleepers and finds `trying` clear
//     sets `trying`.
// `trying` has one owner at a time, because only an exchange that finds it clear sets it. Its owner
// is awake or has a token waiting.
//
// Destruction: after the exchange that frees the lock, unlock() accesses the lock only to release a
// token. In that case a sleeper is inside lock() until it has this token. The later wake-up call
// only names an address.
//
// Elision: held is set by a full exchange before the holder's first access to the data that the
// lock protects (internal/sync/spin_locks.hpp).
//
// Linearization: lock() and a successful try_lock() at the exchange that sets held, unlock() at the
// exchange that clears it.
//
// From: the ideas are common to Go's sync.Mutex (one woken thread at a time, barging) and to
// parking locks.
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
  // How often a thread checks the lock before it sleeps. Between two checks it does a round of
  // backoff: seven pauses that double, then yields. Measured on 2 cores of a Zen 4 with 2 to 32
  // threads and short sections: 8 checks (one yield) give 0.3 to 0.8 of the throughput of 24. 64
  // checks give no more than 24.
  static constexpr std::uint32_t looks_before_sleep = 24;

  constexpr sleeping_lock() noexcept = default;
  sleeping_lock(const sleeping_lock&) = delete;
  sleeping_lock& operator=(const sleeping_lock&) = delete;

  void lock() noexcept {
    // relaxed, without a partner: the process has only one thread.
    if (process_has_one_thread() && word_.load(std::memory_order_relaxed) == 0) {
      word_.store(held, std::memory_order_relaxed);  // as above
      return;
    }
    std::uint32_t expected = 0;
    // acquire: pairs with the release in unlock(). The failure is relaxed: wait_and_lock() loads
    // the word again.
    if (word_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                      std::memory_order_relaxed)) [[likely]] {
      return;
    }
    wait_and_lock();
  }

  // Returns false if a thread holds the lock at this moment.
  bool try_lock() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
    while ((seen & held) == 0) {
      // acquire: pairs with the release in unlock(). The failure is relaxed: it only loads a value
      // for the next attempt.
      if (word_.compare_exchange_weak(seen, seen | held, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  void unlock() noexcept {
    // relaxed, without a partner: the process has only one thread.
    if (process_has_one_thread() && word_.load(std::memory_order_relaxed) == held) {
      word_.store(0, std::memory_order_relaxed);  // as above
      return;
    }
    std::uint32_t expected = held;
    // release: pairs with the acquire of the next exchange that sets held. The failure is relaxed:
    // unlock_and_wake() loads the word again.
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

  // glibc's mutexes make the same check. It is true until the first thread is created, and the
  // creator synchronises with the new thread. So lock() may take one path and unlock() the other.
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
