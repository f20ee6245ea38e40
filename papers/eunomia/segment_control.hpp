// Conflict control for a segment of a skip list: what conflict_control.hpp is for a leaf, spread
// over cache lines.
//
//   const unsigned slot = control.slot_of(key);
//   const bool waited = control.lock(slot);
//   ...
//   if (control.unlock(slot, waited)) ...  // the segment has become quiet
//
// The hot keys of a segment are often neighbours, and each change writes a lock bit twice. If all
// lock bits were in one word, all threads would contend for its line, which segments avoid for
// the lines of records. So four slots share a line. The mark bits have a line that only inserts and
// erases write. Requests are counted in the word with the lock bits, by the same instruction that
// clears one, because a thread that waits for the bit takes the line away each time it looks. That
// takes more than 1 KiB, which only hot segments have. (Simulated, 16 cores, workload a, Zipf
// 0.99: all in one line made 8.7 million operations a second, this makes three times as many.)
//
// Invariants and use are those of conflict_control: a clear mark proves that the key is not in the
// segment; lock bits protect the clearing of marks, and are advice otherwise. Thread-safety: all
// members. Nothing here but set_marks() may be called inside a hardware region.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>

#include "elidex/internal/sync/parking.hpp"
#include "elidex/internal/tree/conflict_control.hpp"

namespace elidex::papers {

class segment_control {
  static constexpr unsigned lanes = 16;

 public:
  static constexpr unsigned slots = 64;

  template <std::integral Key>
  static unsigned slot_of(Key key) noexcept {
    return internal::control_slot<slots>(key);
  }
  static constexpr std::uint64_t bit(unsigned slot) noexcept { return std::uint64_t{1} << slot; }

  // --- lock bits ---

  // Says whether it had to wait.
  bool lock(unsigned slot) noexcept {
    std::atomic<std::uint64_t>& word = lane_of(slot).word;
    const std::uint64_t mine = lock_bit(slot);
    const auto is_locked = [&] {
      // relaxed: only a hint for the next line
      const std::uint64_t seen = word.load(std::memory_order_relaxed);
      // acquire: pairs with the release in unlock().
      return (seen & mine) != 0 || (word.fetch_or(mine, std::memory_order_acquire) & mine) != 0;
    };
    if (!is_locked()) return false;
    internal::wait_while<internal::looks::often>(&word, is_locked);
    return true;
  }

  // Counts the request, and says whether the segment has become quiet: its lane is at the end of a
  // period of so many requests, few of which had to wait, and since the last such end no lane has
  // been at the end of a busy one.
  bool unlock(unsigned slot, bool waited, unsigned requests_per_period,
              unsigned conflicts_to_stay) noexcept {
    std::atomic<std::uint64_t>& word = lane_of(slot).word;
    const std::uint64_t counted = one_request + (waited ? one_conflict : 0);
    // release: pairs with the acquire in lock(). The bit is set, so that subtracting clears it and
    // nothing else.
    const std::uint64_t counts =
        (word.fetch_add(counted - lock_bit(slot), std::memory_order_release) + counted) &
        ~lock_bits;
    internal::wake_waiters(&word);
    if ((counts % one_conflict) / one_request < requests_per_period) return false;
    // A new period. Two who end one together subtract both, and the second one sees that it came
    // too late.
    // relaxed: no partner, counts order nothing
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    do {
      if ((seen % one_conflict) / one_request < requests_per_period) return false;
      // no partner, as above
    } while (!word.compare_exchange_weak(seen, seen & lock_bits, std::memory_order_relaxed));
    const bool busy = seen / one_conflict >= conflicts_to_stay;
    // no partner, as above
    return !some_lane_was_busy_.exchange(busy, std::memory_order_relaxed) && !busy;
  }

  // --- mark bits ---

  bool is_marked(unsigned slot) const noexcept {
    // pairs with the releases below
    return (marks_.load(std::memory_order_acquire) & bit(slot)) != 0;
  }
  void mark(unsigned slot) noexcept {
    marks_.fetch_or(bit(slot), std::memory_order_release);  // pairs with the acquire in is_marked()
  }
  // Needs the slot's lock bit, and that no key of the segment has this mark any more.
  void clear_mark(unsigned slot) noexcept {
    marks_.fetch_and(~bit(slot), std::memory_order_release);  // as above
  }
  // Before anybody else knows this control.
  void set_marks(std::uint64_t marks) noexcept {
    // no partner: published with the control's address
    marks_.store(marks, std::memory_order_relaxed);
  }

 private:
  // A word of counts and lock bits: bits 0 to 3, requests from 8 on, conflicts from 32 on.
  static constexpr std::uint64_t lock_bits = 0xf;
  static constexpr std::uint64_t one_request = std::uint64_t{1} << 8U;
  static constexpr std::uint64_t one_conflict = std::uint64_t{1} << 32U;
  static constexpr std::uint64_t lock_bit(unsigned slot) noexcept {
    return std::uint64_t{1} << (slot / lanes);
  }

  struct alignas(64) lane {
    std::atomic<std::uint64_t> word{0};
  };
  lane& lane_of(unsigned slot) noexcept { return lanes_[slot % lanes]; }

  std::array<lane, lanes> lanes_;
  alignas(64) std::atomic<std::uint64_t> marks_{0};
  alignas(64) std::atomic<bool> some_lane_was_busy_{true};
};

}  // namespace elidex::papers
