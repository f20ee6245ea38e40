// Two spin locks of one word, without a queue or an owner. They are the plain locks that paper 001
// elides.
//
//   elidex::ttas_lock lock;
//   { std::lock_guard guard(lock); ++shared; }
//
//   tas_lock    exchanges until it gets the word. Every attempt takes the cache line away from the
//               holder.
//   ttas_lock   reads until the word is free and exchanges only then. It is nearly always the
//               better one, and the lock that an elided lock should wrap.
//
// Thread-safety: all members, from any thread. The locks are not fair and not recursive. unlock()
// by any thread frees the lock.
// Errors: nothing throws.
//
// Implementation notes
// Invariants: the word is 0 (free) or 1 (held).
// Elision (elided.hpp): a lock must be visible as held before its holder's first access to the data
// that it protects. x86 is the only supported CPU that commits regions. There the exchange is a
// full barrier with any C++ order.
// Linearization: lock() and a successful try_lock() at the exchange, unlock() at the store.
// From: paper 001 section 3.3.2 (test before taking), paper 004 figures 2.7 (exchange) and 2.4 (a
// 4-byte word). Deviation: a long wait ends in a sleep (parking.hpp), because the papers had a core
// for each thread.
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

  // Returns false if a thread holds the lock at this moment.
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
