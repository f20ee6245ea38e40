// A counting semaphore on a futex: what threads sleep on that somebody else has already counted.
//
//   wake_tokens sleepers;
//   sleepers.take();      // sleeps until there is a token, and takes it
//   sleepers.give(2);     // two more tokens, and two of the sleepers are woken
//
// Invariants: tokens at the start + tokens given = tokens taken + value(). Each token ends one take(), given before or after it began: no wake-up
// is lost, and none is spurious. The tokens are the whole state, so a lock may free its memory when it has given all.
//
// Linearization: take() and a successful try_take() or take_until() at the exchange that takes one off, give() at its addition. Both synchronise: what happened before
// give() is visible after the take() that took its token.
//
// Thread-safety: all members, from any thread, outside of regions. Nothing throws.
#pragma once

#include <atomic>
#include <cstdint>

#include "elidex/internal/sync/futex.hpp"

namespace elidex {

class wake_tokens {
 public:
  constexpr explicit wake_tokens(std::uint32_t tokens = 0) noexcept : tokens_(tokens) {}
  wake_tokens(const wake_tokens&) = delete;
  wake_tokens& operator=(const wake_tokens&) = delete;

  bool try_take() noexcept {
    std::uint32_t there = tokens_.load(std::memory_order_relaxed);  // no partner: the exchange decides
    while (there != 0) {
      // acquire: pairs with the release in give(). The failure is relaxed: it only brings a value to try again with.
      if (tokens_.compare_exchange_weak(there, there - 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  void take() noexcept {
    while (!try_take()) futex_wait(tokens_, 0);
  }

  // False: the deadline has passed, and no token was taken.
  bool take_until(futex_deadline deadline) noexcept {
    while (!try_take()) {
      if (!futex_wait_until(tokens_, 0, deadline)) return try_take();
    }
    return true;
  }

  void give(std::uint32_t count) noexcept {
    tokens_.fetch_add(count, std::memory_order_release);  // pairs with the acquire in try_take()
    futex_wake(tokens_, count);
  }

 private:
  futex_word tokens_;
};

}  // namespace elidex
