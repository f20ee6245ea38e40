// Two spin locks: one word each, no queue, no owner. The plain locks that papers/001 elides.
//
//   elidex::ttas_lock lock;
//   { std::lock_guard guard(lock); ++shared; }
//
// tas_lock exchanges until it gets the word: every try takes the cache line away from the holder.
// ttas_lock reads until the word is free and exchanges only then; nearly always the better one, and
// what an elided lock should wrap.
//
// Invariants: the word is 0 (free) or 1 (held). Not fair, not recursive; unlock() by any thread
// frees it.
//
// For elision (elided.hpp) a lock must be visible as held before its holder's first access to what
// it protects. On x86, the only CPU here that commits regions, the exchange is a full barrier,
// whatever its C++ order.
//
// Thread-safety: all members, from any thread. Nothing throws. Linearization: lock() and a
// successful try_lock() at the exchange, unlock() at the store.
//
// From: papers/001 section 3.3.2 (test before taking), papers/004 figures 2.7 (exchange) and 2.4 (a
// 4-byte word). Deviation: a long wait ends in a sleep (parking.hpp); the papers had a core for
// each thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "elidex/internal/sync/parking.hpp"

namespace elidex::internal {

template <bool TestFirst>
class basic_spin_lock {
 public:
  basic_spin_lock() = default;
  basic_spin_lock(const basic_spin_lock&) = delete;
  basic_spin_lock& operator=(const basic_spin_lock&) = delete;

  void lock() noexcept {
    if (!try_lock()) wait_while<looks::often>(&word_, [this] { return !try_lock(); });
  }

  // False: held by somebody at this moment.
  bool try_lock() noexcept {
    if constexpr (TestFirst) {
      if (is_locked()) return false;
    }
    return word_.exchange(1, std::memory_order_acquire) == 0;  // pairs with the release in unlock()
  }

  void unlock() noexcept {
    // pairs with the acquires in try_lock() and is_locked()
    word_.store(0, std::memory_order_release);
    wake_waiters(&word_);
  }

  bool is_locked() const noexcept {
    return word_.load(std::memory_order_acquire) != 0;  // pairs with the release in unlock()
  }

 private:
  std::atomic<std::uint32_t> word_{0};
};

using tas_lock = basic_spin_lock<false>;
using ttas_lock = basic_spin_lock<true>;

}  // namespace elidex::internal
