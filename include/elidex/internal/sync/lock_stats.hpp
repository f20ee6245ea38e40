// What an elided lock did: how often it tried, committed, aborted and why, and took the lock after
// all.
//
//   elidex::elided<elidex::ttas_lock> lock;
//   ...
//   const elidex::lock_counts counts = lock.stats();
//   std::cout << counts << '\n';
//
// lock_counts is a plain snapshot; sums and differences of snapshots are snapshots. lock_counters
// are the counters behind it, spread over the threads: as long as no more than owned_shards threads
// use the library at a time, the hot path shares no cache line; later threads share shared_shards
// places.
//
// Invariants: counts never go down. acquisitions = commits + fallbacks, and attempts = commits +
// aborts, once the threads are quiet; a snapshot taken while they run may miss what is in flight,
// and its numbers may come from slightly different moments.
//
// Thread-safety: all members, from any thread. Nothing throws. A lock_counters takes 4.5 KiB, so
// give it to the locks of trees and tables, not of nodes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iosfwd>

#include "elidex/htm.hpp"
#include "elidex/internal/memory/thread_slot.hpp"

namespace elidex::internal {

struct lock_counts {
  std::uint64_t commits = 0;      // regions that committed: acquisitions without the lock
  std::uint64_t fallbacks = 0;    // acquisitions that took the lock
  std::uint64_t off_periods = 0;  // how often too many aborts switched elision off for a while
  std::array<std::uint64_t, htm::abort_cause_count> aborts{};  // by htm::abort_cause

  std::uint64_t aborts_by(htm::abort_cause cause) const noexcept {
    return aborts[static_cast<std::size_t>(cause)];
  }
  std::uint64_t aborts_total() const noexcept;
  // Regions begun.
  std::uint64_t attempts() const noexcept { return commits + aborts_total(); }
  std::uint64_t acquisitions() const noexcept { return commits + fallbacks; }
  // Share of the acquisitions that took the lock; 0 if there were none.
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

// One line: "attempts 12, commits 9, aborts 3 (conflict 2, capacity 1), fallbacks 1 (10.0 %), off
// periods 0".
std::ostream& operator<<(std::ostream& out, const lock_counts& counts);

class lock_counters {
 public:
  // Chosen: the threads of the papers' largest machine (2 x 10 cores and siblings) nearly fit.
  static constexpr std::uint32_t owned_shards = 32;
  static constexpr std::uint32_t shared_shards = 4;

  void count_commit() noexcept { count(&shard::commits); }
  void count_fallback() noexcept { count(&shard::fallbacks); }
  void count_off_period() noexcept { count(&shard::off_periods); }
  void count_abort(htm::abort_cause cause) noexcept {
    const place here = this_threads_place();
    add_one(shards_[here.index].aborts[static_cast<std::size_t>(cause)], here.owned);
  }

  // Does now what the first count of a thread would do: a lock calls it before a region, where
  // allocating a thread's record would abort.
  void prepare_this_thread() noexcept { static_cast<void>(this_threads_place()); }

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

  struct place {
    std::uint32_t index;
    bool owned;  // no other live thread counts here
  };

  static place this_threads_place() noexcept {
    try {
      const std::uint32_t slot = this_thread_slot();
      if (slot < owned_shards) return {slot, true};
      return {owned_shards + slot % shared_shards, false};
    } catch (...) {
      // no memory for this thread's record: count where everybody may
      return {owned_shards, false};
    }
  }

  static void add_one(counter& value, bool owned) noexcept {
    // relaxed, without a partner: a count publishes nothing. An owned counter has one writer (who
    // takes a slot over synchronises with its last owner), so load and store do what a much dearer
    // fetch_add would.
    if (owned) {
      // as above
      value.store(value.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      value.fetch_add(1, std::memory_order_relaxed);  // as above
    }
  }

  void count(counter shard::* which) noexcept {
    const place here = this_threads_place();
    add_one(shards_[here.index].*which, here.owned);
  }

  std::array<shard, owned_shards + shared_shards> shards_{};
};

}  // namespace elidex::internal
