// A spin lock whose exchange and store carry the HLE prefixes: the CPU elides it by itself, where
// it has HLE.
//
//   hle_lock lock;
//   { std::lock_guard guard(lock); ++shared; }
//   std::cout << lock.stats() << '\n';
//
// On a CPU with HLE the critical section runs as a region; at the first abort the CPU goes back to
// the exchange and takes the lock, so the retry policy is the hardware's: one attempt. On any other
// CPU this is a ttas_lock.
//
// Statistics: acquisitions are counted as commits (elided) or fallbacks (taken). Aborts are not:
// the hardware tells neither their number nor their cause, so attempts() counts only the commits.
// An acquisition inside another region belongs to that region and isn't counted.
//
// Invariants and linearization: those of ttas_lock. An elided section linearizes at its commit, the
// store in unlock().
//
// Thread-safety: all members, from any thread. Nothing throws.
//
// From: paper 001 sections 3.1 and 3.3.2 (the pause in the wait loop ends an elision that found
// the lock held). Deviation: a long wait ends in a sleep (parking.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "elidex/htm.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/lock_stats.hpp"
#include "elidex/internal/sync/parking.hpp"
#include "elidex/internal/sync/pause.hpp"

namespace elidex::papers {

using namespace internal;

class hle_lock {
 public:
  hle_lock() = default;
  hle_lock(const hle_lock&) = delete;
  hle_lock& operator=(const hle_lock&) = delete;

  void lock() noexcept {
    counters_.prepare_this_thread();
    backoff wait;
    for (;;) {
      if (is_locked())
        internal::wait_while<internal::looks::often>(&word_, [this] { return is_locked(); }, wait);
      if (htm::hle_exchange_acquire(word_, 1) == 0) return;
      // an elided exchange that found 1 is a region watching a held lock: the pause ends it
      wait.once();
    }
  }

  // False: held by somebody at this moment, or by this very thread.
  bool try_lock() noexcept {
    counters_.prepare_this_thread();
    if (is_locked()) return false;
    if (htm::hle_exchange_acquire(word_, 1) == 0) return true;
    // ends an elided exchange that found 1, as in lock(): the answer must not be thrown away later
    cpu_pause();
    return false;
  }

  void unlock() noexcept {
    const bool inside_region = htm::test();
    htm::hle_store_release(word_, 0);
    // Also in a region that is not this lock's: it may release a lock that was really taken.
    if (!inside_region || htm::test()) internal::wake_waiters(&word_);
    if (!inside_region) {
      counters_.count_fallback();
    } else if (!htm::test()) {
      counters_.count_commit();
    }
  }

  // Inside a section that this thread elides the CPU shows the thread its own lock as held.
  bool is_locked() const noexcept {
    // pairs with the release in htm::hle_store_release()
    return word_.load(std::memory_order_acquire) != 0;
  }

  lock_counts stats() const noexcept { return counters_.read(); }

 private:
  // its own line: a write beside it would abort regions
  alignas(64) std::atomic<std::uint32_t> word_{0};
  lock_counters counters_;
};

}  // namespace elidex::papers
