// A counting semaphore on a futex: std::counting_semaphore with a deadline. release(n) wakes n
// sleepers.
//
//   futex_semaphore sleepers;
//   sleepers.acquire();     // sleeps until there is a token, and takes it
//   sleepers.release(2);    // adds two tokens and wakes two sleepers
//
// Thread-safety: all members, from any thread, outside of regions. Actions before a release() are
// visible after the acquire() that took its token.
// Errors: nothing throws.
//
// Implementation notes
// Invariants: tokens at the start + tokens released = tokens acquired + value of the semaphore.
// Each token ends one acquire(), whether the token is released before or after that call began. So
// no wake-up is lost, and none is spurious. The tokens are the whole state, so a lock may free its
// memory after its last release().
//
// Linearization: acquire(), and a successful try_acquire() or try_acquire_until(), at the exchange
// that takes a token. release() at its addition.
#pragma once

#include <atomic>
#include <cstdint>

#include "elidex/internal/sync/futex.hpp"

namespace elidex::internal {

class futex_semaphore {
 public:
  constexpr explicit futex_semaphore(std::uint32_t tokens = 0) noexcept : tokens_(tokens) {}
  futex_semaphore(const futex_semaphore&) = delete;
  futex_semaphore& operator=(const futex_semaphore&) = delete;

  bool try_acquire() noexcept {
    // no partner: the exchange decides
    std::uint32_t there = tokens_.load(std::memory_order_relaxed);
    while (there != 0) {
      // acquire: pairs with the release in release(). The failure is relaxed: it only loads a value
      // for the next attempt.
      if (tokens_.compare_exchange_weak(there, there - 1, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  void acquire() noexcept {
    while (!try_acquire()) futex_wait(tokens_, 0);
  }

  // Returns false if the deadline has passed and no token was taken.
  bool try_acquire_until(futex_deadline deadline) noexcept {
    while (!try_acquire()) {
      if (!futex_wait_until(tokens_, 0, deadline)) return try_acquire();
    }
    return true;
  }

  void release(std::uint32_t count) noexcept {
    tokens_.fetch_add(count, std::memory_order_release);  // pairs with the acquire in try_acquire()
    futex_wake(tokens_, count);
  }

 private:
  futex_word tokens_;
};

}  // namespace elidex::internal
