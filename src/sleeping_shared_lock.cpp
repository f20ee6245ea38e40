#include "elidex/internal/sync/sleeping_shared_lock.hpp"

#include "elidex/internal/sync/backoff.hpp"

namespace elidex::internal {

// All exchanges of this file are acquire if they take the lock, and release if they release it.
// Each kind pairs with the other. Exchanges that only announce are relaxed. So are loads before an
// exchange and failures of exchanges, which only load a value for the next attempt.

void sleeping_shared_lock::wait_and_lock() noexcept {
  std::uint64_t owned = 0;  // `trying`, if it is ours to clear
  for (;;) {
    backoff pauses;
    for (std::uint32_t look = 0; look < looks_before_sleep; ++look) {
      // no partner: the exchanges decide
      std::uint64_t seen = word_.load(std::memory_order_relaxed);
      if ((seen & (writer | readers)) == 0) {
        // acquire: pairs with the releases of both unlocks.
        if (word_.compare_exchange_weak(seen, (seen & ~owned) | writer, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
          return;
        }
      } else if (owned == 0 && (seen & trying) == 0) {
        // relaxed, without a partner: it publishes nothing.
        if (word_.compare_exchange_weak(seen, seen | trying, std::memory_order_relaxed))
          owned = trying;
      }
      pauses.once_or_yield();
    }
    std::uint64_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
    bool sleeps = false;
    while ((seen & (writer | readers)) != 0 && !sleeps) {
      // relaxed, without a partner: it publishes nothing.
      sleeps = word_.compare_exchange_weak(seen, (seen & ~owned) + one_sleeping_writer,
                                           std::memory_order_relaxed);
    }
    if (!sleeps) continue;
    writers_asleep_.acquire();
    owned = trying;
  }
}

void sleeping_shared_lock::wait_and_lock_shared() noexcept {
  for (;;) {
    backoff pauses;
    for (std::uint32_t look = 0; look < looks_before_sleep; ++look) {
      pauses.once_or_yield();
      if (try_lock_shared()) return;
    }
    std::uint64_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
    while ((seen & (writer | trying | sleeping_writers)) != 0) {
      // relaxed, without a partner: it publishes nothing; the token will synchronise.
      if (word_.compare_exchange_weak(seen, seen + one_sleeping_reader,
                                      std::memory_order_relaxed)) {
        readers_asleep_.acquire();
        return;  // the writer that left has counted us in
      }
    }
  }
}

void sleeping_shared_lock::unlock_and_wake() noexcept {
  std::uint64_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
  while ((seen & writer) != 0) {
    const std::uint64_t freed = seen - writer;
    const std::uint64_t let_in = (seen & sleeping_readers) / one_sleeping_reader;
    const std::uint64_t next =
        let_in != 0 ? (freed & ~sleeping_readers) + let_in * one_reader : appointed(freed);
    // release: pairs with the acquires of the next holder.
    if (!word_.compare_exchange_weak(seen, next, std::memory_order_release,
                                     std::memory_order_relaxed))
      continue;
    if (let_in != 0) {
      readers_asleep_.release(static_cast<std::uint32_t>(let_in));
    } else if (next != freed) {
      writers_asleep_.release(1);
    }
    return;
  }
}

}  // namespace elidex::internal
