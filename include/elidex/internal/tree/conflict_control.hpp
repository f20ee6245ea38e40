// Eunomia's conflict control module (CCM): what stands before a hot leaf and lets in as few
// requests as possible, and no two of them for the same key.
//
//   const unsigned slot = control.slot_of(key);
//   control.wait_for_split();
//   // advisory: two requests for one key don't meet in a region
//   const auto entry = control.lock(slot);
//   // the leaf need not be looked at (validate its sequence!)
//   if (!entry.marked) return "not there";
//   ...
//   control.unlock(slot);
//
// Lock bits, mark bits (a Bloom filter with one hash function over the keys of the leaf) and the
// split lock. The bit vectors are Bits long, twice the leaf's slots (papers/003 section 5.1), and
// lie in one word, because its cache line goes from core to core with each request: it is all that
// such a request waits for.
//
// Invariants, for a leaf that has a control and while its sequence number stays as it is:
//   * the mark of every key in the leaf is set: insert sets it before the key can be seen, erase
//     clears it after the key is gone, and only if no other key of the leaf shares it, both while
//     they hold the slot's lock bit, so that for one slot they come one after the other;
//   * so a clear mark proves that at that moment the key was not in the leaf.
// The split lock keeps requests away from the marks until those of the keys that a split has moved
// out are cleared. Otherwise lock bits and split lock are advice.
//
// False positives: of n keys in the leaf, 1 - (1 - 1/Bits)^n of the absent keys find a mark; 29 %
// for 11 random keys and 32 bits. The hash is Fibonacci's (Knuth, "Sorting and Searching", 6.4): up
// to 20 consecutive keys have different marks among 32, so that dense keys, as in the paper's
// workload, have next to none.
//
// Memory order: lock() and mark() acquire and release, each pairing with itself and the other one,
// because "not marked" is an answer by itself: two threads that each mark a key and then ask for
// the other's must not both find no mark.
//
// Thread-safety: all members. Nothing here may be called inside a hardware region: its line is
// written by everybody. Order of locks: none is waited for while another one is held. From:
// papers/003 sections 4.2 and 5.1, algorithm 1. Deviation: a request waits for the split lock
// before it takes its lock bit, not with it in its hand; it must not believe marks that a split is
// about to clear.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>

#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/parking.hpp"

namespace elidex::internal {

// One of so many slots: the upper half of the key's product with 2^64 / golden ratio, scaled to
// their number.
template <unsigned Slots, std::integral Key>
unsigned control_slot(Key key) noexcept {
  const std::uint64_t scattered = static_cast<std::uint64_t>(key) * 0x9E37'79B9'7F4A'7C15u;
  return static_cast<unsigned>(((scattered >> 32U) * Slots) >> 32U);
}

template <unsigned Bits>
class alignas(64) conflict_control {
  static_assert(Bits >= 2 && Bits <= 32);

 public:
  static constexpr unsigned bits = Bits;

  template <std::integral Key>
  static unsigned slot_of(Key key) noexcept {
    return control_slot<Bits>(key);
  }

  // --- lock bits and mark bits ---

  struct entry {
    bool waited;  // somebody else had the slot
    bool marked;  // as it was when the slot's lock bit was set
  };

  // Sets the slot's lock bit. Asks for the line to write at once: a look before would fetch a hot
  // line twice.
  entry lock(unsigned slot) noexcept {
    std::uint64_t before =
        // pairs with itself and mark(): see above
        bits_.fetch_or(lock_bit(slot), std::memory_order_acq_rel);
    if ((before & lock_bit(slot)) == 0) return {false, (before & mark_bit(slot)) != 0};
    // The holder is in a region, about so long.
    backoff wait(region_pauses);
    const auto is_locked = [&] {
      // relaxed: only a hint
      if ((bits_.load(std::memory_order_relaxed) & lock_bit(slot)) != 0) return true;
      // pairs with itself, as above
      before = bits_.fetch_or(lock_bit(slot), std::memory_order_acq_rel);
      return (before & lock_bit(slot)) != 0;
    };
    wait_while<looks::often>(&bits_, is_locked, wait);
    return {true, (before & mark_bit(slot)) != 0};
  }
  void unlock(unsigned slot) noexcept {
    // pairs with the acquires in lock()
    bits_.fetch_and(~lock_bit(slot), std::memory_order_release);
    wake_waiters(&bits_);
  }
  // Clears the slot's mark, too: no key of the leaf may have it any more.
  void unlock_and_clear_mark(unsigned slot) noexcept {
    // pairs with lock()
    bits_.fetch_and(~(lock_bit(slot) | mark_bit(slot)), std::memory_order_release);
    wake_waiters(&bits_);
  }

  // Needs the slot's lock bit.
  void mark(unsigned slot) noexcept {
    // pairs with itself and lock(): see above
    bits_.fetch_or(mark_bit(slot), std::memory_order_acq_rel);
  }
  // Clears all other marks; behind the sequence number's invalidate().
  void keep_marks(std::uint64_t kept) noexcept {
    bits_.fetch_and(kept << Bits | slots_mask, std::memory_order_release);  // pairs with lock()
  }
  // Before anybody else knows this control.
  void set_marks(std::uint64_t marks) noexcept {
    // ordered by the store that publishes the control
    bits_.store(marks << Bits, std::memory_order_relaxed);
  }
  // One mark in the words that keep_marks() and set_marks() take.
  static constexpr std::uint64_t mark_of(unsigned slot) noexcept {
    return std::uint64_t{1} << slot;
  }

  // --- the split lock ---

  // False: somebody is splitting the leaf already.
  bool try_lock_for_split() noexcept {
    // pairs with unlock_after_split()
    return splitting_.exchange(1, std::memory_order_acquire) == 0;
  }
  void unlock_after_split() noexcept {
    splitting_.store(0, std::memory_order_release);  // pairs with the acquires in this section
    wake_waiters(&splitting_);
  }
  bool is_locked_for_split() const noexcept {
    return splitting_.load(std::memory_order_acquire) != 0;  // pairs with unlock_after_split()
  }
  void wait_for_split() const noexcept {
    if (!is_locked_for_split()) return;
    wait_while<looks::often>(&splitting_, [this] { return is_locked_for_split(); });
  }

  // --- the contention detector ---

  // Counts one request in `sampled_requests` and whether it met another one; best right after
  // lock(), when the line is this core's. Says when a period is over, with the number of collisions
  // in it, for as many requests as were counted. Some may be lost to races: it's a guess.
  struct period {
    bool over = false;
    unsigned collisions = 0;
  };
  period count(bool collided, std::uint64_t random, unsigned requests_per_period) noexcept {
    if (random % sampled_requests != 0) return {};
    // relaxed, without a partner: counts order nothing, and a lost one changes little.
    const std::uint64_t before = counts_.load(std::memory_order_relaxed);
    const std::uint64_t now =
        before + sampled_requests + (collided ? sampled_requests * one_collision : 0);
    const bool over = now % one_collision >= requests_per_period;
    counts_.store(over ? 0 : now, std::memory_order_relaxed);  // as above
    return {over, static_cast<unsigned>(now / one_collision)};
  }

 private:
  static constexpr std::uint64_t slots_mask = (std::uint64_t{1} << Bits) - 1;
  static constexpr std::uint64_t one_collision = std::uint64_t{1} << 32U;
  static constexpr unsigned sampled_requests = 16;    // chosen
  static constexpr std::uint32_t region_pauses = 16;  // chosen

  static constexpr std::uint64_t lock_bit(unsigned slot) noexcept {
    return std::uint64_t{1} << slot;
  }
  static constexpr std::uint64_t mark_bit(unsigned slot) noexcept {
    return std::uint64_t{1} << (slot + Bits);
  }

  // Lock bits below, mark bits above: a request learns and changes both with one access.
  std::atomic<std::uint64_t> bits_{0};
  std::atomic<std::uint64_t> counts_{0};
  // On a line of its own, which nobody writes but who splits.
  alignas(64) std::atomic<std::uint32_t> splitting_{0};
};

}  // namespace elidex::internal
