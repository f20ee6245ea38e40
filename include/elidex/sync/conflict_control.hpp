// Eunomia's conflict control module (CCM): what stands before a hot leaf and lets in as few requests as possible, and no
// two of them for the same key.
//
//   const unsigned slot = control.slot_of(key);
//   control.lock(slot);                                    // advisory: two requests for one key don't meet in a region
//   if (!control.is_marked(slot)) return "not there";      // the leaf need not be looked at (validate its sequence!)
//   ...
//   control.unlock(slot);
//
// Three words on one cache line: lock bits, mark bits (a Bloom filter with one hash function over the keys of the leaf)
// and the split lock. The bit vectors are Bits long, twice the leaf's slots (papers/003 section 5.1).
//
// Invariants, for a leaf that has a control and while its sequence number stays as it is:
//   * the mark of every key in the leaf is set: insert sets it before the key can be seen, erase clears it after the key
//     is gone, and only if no other key of the leaf shares it, both while they hold the slot's lock bit, so that for one
//     slot they come one after the other;
//   * so a clear mark proves that at that moment the key was not in the leaf.
// Lock bits and the split lock protect nothing else: they are advice.
//
// False positives: of n keys in the leaf, 1 - (1 - 1/Bits)^n of the absent keys find a mark; 29 % for 11 random keys and
// 32 bits. The hash is Fibonacci's (Knuth, "Sorting and Searching", 6.4): up to 20 consecutive keys have different marks
// among 32, so that dense keys, as in the paper's workload, have next to none.
//
// Thread-safety: all members. Nothing here may be called inside a hardware region: its line is written by everybody.
// Order of locks: none is waited for while another one is held: wait_for_split() before lock().
// From: papers/003 sections 4.2 and 5.1, algorithm 1. Deviation: a request waits for the split lock before it takes a
// slot's lock bit, not while it holds it.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>

#include "elidex/sync/backoff.hpp"

namespace elidex {

template <unsigned Bits>
class alignas(64) conflict_control {
  static_assert(Bits >= 2 && Bits <= 64);

 public:
  static constexpr unsigned bits = Bits;

  template <std::integral Key>
  static unsigned slot_of(Key key) noexcept {
    // The upper half of the product with 2^64 / golden ratio, scaled to the number of slots.
    const std::uint64_t scattered = static_cast<std::uint64_t>(key) * 0x9E37'79B9'7F4A'7C15u;
    return static_cast<unsigned>(((scattered >> 32U) * Bits) >> 32U);
  }

  // --- lock bits ---

  // False: somebody has it.
  bool try_lock(unsigned slot) noexcept {
    if ((lock_bits_.load(std::memory_order_relaxed) & bit(slot)) != 0) return false;      // relaxed: a hint
    return (lock_bits_.fetch_or(bit(slot), std::memory_order_acquire) & bit(slot)) == 0;  // pairs with unlock()
  }
  // Says whether it had to wait.
  bool lock(unsigned slot) noexcept {
    if (try_lock(slot)) return false;
    backoff wait;
    do {
      wait.once();
    } while (!try_lock(slot));
    return true;
  }
  void unlock(unsigned slot) noexcept {
    lock_bits_.fetch_and(~bit(slot), std::memory_order_release);  // pairs with the acquire in try_lock()
  }

  // --- mark bits ---

  bool is_marked(unsigned slot) const noexcept {
    return (mark_bits_.load(std::memory_order_acquire) & bit(slot)) != 0;  // pairs with the releases below
  }
  void mark(unsigned slot) noexcept {
    mark_bits_.fetch_or(bit(slot), std::memory_order_release);  // pairs with the acquire in is_marked()
  }
  // Needs the slot's lock bit, and that no key of the leaf has this mark any more.
  void clear_mark(unsigned slot) noexcept {
    mark_bits_.fetch_and(~bit(slot), std::memory_order_release);  // as above
  }
  // Clears all others; behind the sequence number's invalidate().
  void keep_marks(std::uint64_t kept) noexcept {
    mark_bits_.fetch_and(kept, std::memory_order_release);  // as above
  }
  // Before anybody else knows this control.
  void set_marks(std::uint64_t marks) noexcept {
    mark_bits_.store(marks, std::memory_order_relaxed);  // relaxed: published with the control's address
  }
  static constexpr std::uint64_t bit(unsigned slot) noexcept { return std::uint64_t{1} << slot; }

  // --- the split lock ---

  // False: somebody is splitting the leaf already.
  bool try_lock_for_split() noexcept {
    return splitting_.exchange(1, std::memory_order_acquire) == 0;  // pairs with unlock_after_split()
  }
  void unlock_after_split() noexcept {
    splitting_.store(0, std::memory_order_release);  // pairs with the acquires in this section
  }
  // Says whether it had to wait.
  bool wait_for_split() const noexcept {
    if (splitting_.load(std::memory_order_acquire) == 0) return false;  // pairs with unlock_after_split()
    backoff wait;
    do {
      wait.once();
    } while (splitting_.load(std::memory_order_acquire) != 0);  // as above
    return true;
  }

  // --- the contention detector ---

  // Counts one request of the leaf and whether it met another one; needs a lock bit, so that the line is this core's. Ends
  // a period with the number of conflicts in it, and yields nothing within one. Requests may be lost to races: it's a guess.
  struct period {
    bool over = false;
    unsigned conflicts = 0;
  };
  period count(bool conflicted, unsigned requests_per_period) noexcept {
    // relaxed, without a partner: counts order nothing, and a lost one changes little.
    const std::uint64_t before = counts_.load(std::memory_order_relaxed);
    const std::uint64_t now = before + 1 + (conflicted ? one_conflict : 0);
    const bool over = (now & requests_mask) >= requests_per_period;
    counts_.store(over ? 0 : now, std::memory_order_relaxed);  // as above
    return {over, static_cast<unsigned>(now / one_conflict)};
  }

 private:
  static constexpr std::uint64_t one_conflict = std::uint64_t{1} << 32U;
  static constexpr std::uint64_t requests_mask = one_conflict - 1;

  std::atomic<std::uint64_t> lock_bits_{0};
  std::atomic<std::uint64_t> mark_bits_{0};
  std::atomic<std::uint64_t> counts_{0};
  std::atomic<std::uint32_t> splitting_{0};
};

}  // namespace elidex
