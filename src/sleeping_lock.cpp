#include "elidex/internal/sync/sleeping_lock.hpp"

#include "elidex/internal/sync/backoff.hpp"

namespace elidex::internal {

void sleeping_lock::wait_and_lock() noexcept {
  std::uint32_t owned = 0;  // `trying`, if it is ours to clear
  for (;;) {
    backoff pauses;
    for (std::uint32_t look = 0; look < looks_before_sleep; ++look) {
      // no partner: the exchanges decide
      std::uint32_t seen = word_.load(std::memory_order_relaxed);
      if ((seen & held) == 0) {
        // acquire: pairs with the release in unlock(). The failure is relaxed, here and below: we
        // look again.
        if (word_.compare_exchange_weak(seen, (seen & ~owned) | held, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
          return;
        }
      } else if (owned == 0 && seen >= one_sleeper && (seen & trying) == 0) {
        // While this thread spins, unlock() need not wake a thread. relaxed, without a partner: it
        // publishes nothing.
        if (word_.compare_exchange_weak(seen, seen | trying, std::memory_order_relaxed))
          owned = trying;
      }
      pauses.once_or_yield();
    }
    std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
    bool sleeps = false;
    while ((seen & held) != 0 && !sleeps) {
      // relaxed, without a partner: the sleeper publishes nothing but that it is there.
      sleeps = word_.compare_exchange_weak(seen, (seen & ~owned) + one_sleeper,
                                           std::memory_order_relaxed);
    }
    if (!sleeps) continue;
    tokens_.acquire();
    owned = trying;
  }
}

void sleeping_lock::unlock_and_wake() noexcept {
  std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
  while ((seen & held) != 0) {
    const bool appoints = seen >= one_sleeper && (seen & trying) == 0;
    const std::uint32_t freed = appoints ? (seen - held - one_sleeper) | trying : seen - held;
    // release: pairs with the acquires of the next holder. The failure is relaxed: it only loads a
    // value for the next attempt.
    if (!word_.compare_exchange_weak(seen, freed, std::memory_order_release,
                                     std::memory_order_relaxed))
      continue;
    if (appoints) tokens_.release(1);
    return;
  }
}

}  // namespace elidex::internal
