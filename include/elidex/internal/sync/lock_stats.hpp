// Statistics of an elided lock: how often it tried, committed, aborted (by cause) and took the
// lock.
//
//   elidex::elided<elidex::ttas_lock> lock;
//   ...
//   const elidex::lock_counts counts = lock.stats();
//   std::cout << counts << '\n';
//
// lock_counts is a plain snapshot. Sums and differences of snapshots are snapshots.
// lock_counters holds the live counters, sharded by thread. A lock_counters takes 4.5 KiB, so give
// one to the locks of trees and tables, not to the locks of nodes.
//
// Counts never decrease. Once the threads are quiet, acquisitions = commits + fallbacks and
// attempts = commits + aborts. A snapshot taken while threads run may miss acquisitions in flight.
// Its numbers may belong to slightly different moments.
//
// Thread-safety: all members, from any thread.
// Errors: nothing throws.
//
// Implementation notes
// While at most owned_shards threads use the library at a time, the hot path shares no cache line.
// Further threads share shared_shards shards.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iosfwd>

#include "elidex/htm.hpp"
#include "elidex/internal/memory/epoch.hpp"

namespace elidex::internal {

struct lock_counts {
  std::uint64_t commits = 0;      // transactions that committed: acquisitions without the lock
  std::uint64_t fallbacks = 0;    // acquisitions that took the lock
  std::uint64_t off_periods = 0;  // how often too many aborts switched elision off for a while
  std::array<std::uint64_t, htm::abort_cause_count> aborts{};  // by htm::abort_cause

  // Returns the number of aborts with this cause.
  std::uint64_t aborts_by(htm::abort_cause cause) const noexcept {
    return aborts[static_cast<std::size_t>(cause)];
  }
  // The number of all aborts.
  std::uint64_t aborts_total() const noexcept;
  // The number of transactions that began.
  std::uint64_t attempts() const noexcept { return commits + aborts_total(); }
  // The number of sections, elided or under the lock.
  std::uint64_t acquisitions() const noexcept { return commits + fallbacks; }
  // The share of the acquisitions that took the lock, or 0 if there were no acquisitions.
  double fallback_pct() const noexcept;

  lock_counts& operator+=(const lock_counts& other) noexcept;
  // `earlier` must be a snapshot of the same lock, taken before.
  lock_counts& operator-=(const lock_counts& earlier) noexcept;
  friend bool operator==(const lock_counts&, const lock_counts&) noexcept = default;
};

inline lock_counts operator+(lock_counts left, const lock_counts& right) noexcept {
  return left += right;
}
inline lock_counts operator-(lock_counts later, const lock_counts& earlier) noexcept {
  return later -= earlier;
}

// Prints one line:
//   attempts 12, commits 9, aborts 3 (conflict 2, capacity 1), fallbacks 1 (10.0 %), off periods 0
std::ostream& operator<<(std::ostream& out, const lock_counts& counts);

class lock_counters {
 public:
  // Chosen: nearly all threads of the papers' largest machine (2 x 10 cores and siblings) fit.
  static constexpr std::uint32_t owned_shards = 32;
  static constexpr std::uint32_t shared_shards = 4;

  void count_commit() noexcept { count(&shard::commits); }
  void count_fallback() noexcept { count(&shard::fallbacks); }
  void count_off_period() noexcept { count(&shard::off_periods); }
  void count_abort(htm::abort_cause cause) noexcept {
    const shard_ref here = this_threads_shard();
    add_one(shards_[here.index].aborts[static_cast<std::size_t>(cause)], here.owned);
  }

  // Allocates the thread's record now instead of at its first count. A lock calls it before a
  // transaction, because the allocation would abort it.
  void prepare_this_thread() noexcept { static_cast<void>(this_threads_shard()); }

  lock_counts read() const noexcept;

 private:
  using counter = std::atomic<std::uint64_t>;

  // Two cache lines each, because of the adjacent-line prefetcher.
  struct alignas(128) shard {
    counter commits{0};
    counter fallbacks{0};
    counter off_periods{0};
    std::array<counter, htm::abort_cause_count> aborts{};
  };

  struct shard_ref {
    std::uint32_t index;
    bool owned;  // no other live thread counts here
  };

  static shard_ref this_threads_shard() noexcept {
    try {
      const std::uint32_t slot = this_thread_slot();
      if (slot < owned_shards) return {slot, true};
      return {owned_shards + slot % shared_shards, false};
    } catch (...) {
      // There is no memory for this thread's record, so it counts in a shared shard.
      return {owned_shards, false};
    }
  }

  static void add_one(counter& value, bool owned) noexcept {
    // relaxed, without a partner: a count publishes nothing. An owned counter has one writer,
    // because a slot's next owner synchronises with its last owner. So a load and a store replace a
    // much more expensive fetch_add.
    if (owned) {
      // as above
      value.store(value.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      value.fetch_add(1, std::memory_order_relaxed);  // as above
    }
  }

  void count(counter shard::* which) noexcept {
    const shard_ref here = this_threads_shard();
    add_one(shards_[here.index].*which, here.owned);
  }

  std::array<shard, owned_shards + shared_shards> shards_{};
};

}  // namespace elidex::internal
