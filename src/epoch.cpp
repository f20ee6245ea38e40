#include "elidex/internal/memory/epoch.hpp"

#include <chrono>
#include <thread>

#include "elidex/internal/memory/fork_generation.hpp"
#include "elidex/internal/sync/backoff.hpp"

namespace elidex::internal {
namespace {

// Runs before any thread can be pinned. (Without memory for the handler, a child keeps the pins of
// its parent's threads.)
[[maybe_unused]] const bool forks_are_watched = watch_forks();

// Pins last for microseconds. A thread that stays pinned after the pauses is preempted or runs a
// caller's function. The end of a pin wakes no waiter.
void pause_or_sleep(backoff& wait) {
#if !defined(ELIDEX_SIMULATED)
  if (wait.is_spent()) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return;
  }
#endif
  wait.once();
}

}  // namespace

// Starts above 0, which means "not pinned".
constinit std::atomic<std::uint64_t> global_epoch{2};

std::uint64_t try_advance_epoch() noexcept {
  std::uint64_t epoch = global_epoch.load();
  std::atomic_thread_fence(std::memory_order_seq_cst);  // A in the argument of epoch.hpp
  for (const auto* record = first_thread_record(); record != nullptr; record = record->next) {
    // acquire: pairs with the release store of ~epoch_pin().
    const std::uint64_t pinned = record->pinned_epoch.load(std::memory_order_acquire);
    if (pinned != 0 && pinned != epoch) return epoch;
  }
  if (global_epoch.compare_exchange_strong(epoch, epoch + 1)) return epoch + 1;
  return epoch;  // another thread advanced it; the failed exchange has loaded the newer value
}

void wait_for_pins() noexcept {
  // Two epochs on, by the argument of epoch.hpp; its last sentence is why what was done under the
  // pins is visible.
  const std::uint64_t ended = epoch_after_unlinking() + 2;
  backoff wait;
  for (std::uint64_t before = 0;;) {
    const std::uint64_t epoch = try_advance_epoch();
    if (epoch >= ended) return;
    if (epoch == before) pause_or_sleep(wait);  // a pinned thread holds it back
    before = epoch;
  }
}

}  // namespace elidex::internal
