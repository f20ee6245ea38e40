// Eunomia's conflict control module (CCM): lock bits and mark bits in front of a hot leaf. It
// admits few requests to the leaf, and no two of them for the same key.
//
//   const unsigned slot = control.slot_of(key);
//   control.wait_for_split();
//   // advisory: two requests for one key do not meet in a region
//   const auto entry = control.lock(slot);
//   // the leaf need not be read (validate its sequence number!)
//   if (!entry.marked) return "not there";
//   ...
//   control.unlock(slot);
//
// Thread-safety: all members, from any thread. No member may be called inside a hardware region,
// because every request writes the control's cache line.
// Errors: none.
//
// Implementation notes
// A control has lock bits, mark bits (a Bloom filter with one hash function over the keys of the
// leaf) and the split lock. The bit vectors have Bits bits each, twice the leaf's slots (paper 003
// section 5.1). They lie in one word, because their cache line moves from core to core with each
// request. A request waits for no other cache line.
//
// Invariants, for a leaf with a control while its sequence number stays the same:
//   * The mark of every key in the leaf is set. An insert sets it before the key can be seen. An
//     erase clears it after the key is gone, and only if no other key of the leaf shares it. Both
//     hold the slot's lock bit, so that changes of one mark come one after the other.
//   * So a clear mark proves that at that moment the key was not in the leaf.
//
// The split lock keeps requests away from the marks until a split has cleared those of the keys
// that it moved out. Otherwise lock bits and the split lock are advisory.
//
// False positives: with n keys in the leaf, 1 - (1 - 1/Bits)^n of the absent keys find a mark. For
// 11 random keys and 32 bits that is 29 %. The hash is Fibonacci hashing (Knuth, "Sorting and
// Searching", 6.4): up to 20 consecutive keys have different marks among 32. So dense keys, as in
// the paper's workload, have nearly none.
//
// Memory order: lock() and mark() acquire and release. Each pairs with itself and with the other
// one, because "not marked" is an answer by itself. Two threads that each mark a key and then ask
// for the other's key must not both find no mark.
//
// Order of locks: a thread that holds one of these locks waits for no other.
//
// From: paper 003 sections 4.2 and 5.1, algorithm 1. Deviation: a request waits for the split lock
// before it takes its lock bit, not while it holds it. It must not believe marks that a split is
// about to clear.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>

#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/parking.hpp"

namespace elidex::internal {

// Hashes a key to one of `Slots` slots: the upper half of the key's product with 2^64 / golden
// ratio, scaled to the number of slots.
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
    bool waited;  // another request held the slot
    bool marked;  // as it was when the slot's lock bit was set
  };

  // Sets the slot's lock bit. The first access is a write, because a read before it would fetch a
  // hot cache line twice.
  entry lock(unsigned slot) noexcept {
    std::uint64_t before =
        // pairs with itself and mark(): see above
        bits_.fetch_or(lock_bit(slot), std::memory_order_acq_rel);
    if ((before & lock_bit(slot)) == 0) return {false, (before & mark_bit(slot)) != 0};
    // The holder is in a region of about this length.
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
  // Also clears the slot's mark. No key of the leaf may have it any more.
  void unlock_and_clear_mark(unsigned slot) noexcept {
    // pairs with lock()
    bits_.fetch_and(~(lock_bit(slot) | mark_bit(slot)), std::memory_order_release);
    wake_waiters(&bits_);
  }

  // The caller must hold the slot's lock bit.
  void mark(unsigned slot) noexcept {
    // pairs with itself and lock(): see above
    bits_.fetch_or(mark_bit(slot), std::memory_order_acq_rel);
  }
  // Clears all other marks. Called after the sequence number's invalidate().
  void keep_marks(std::uint64_t kept) noexcept {
    bits_.fetch_and(kept << Bits | slots_mask, std::memory_order_release);  // pairs with lock()
  }
  // Called before any other thread knows this control.
  void set_marks(std::uint64_t marks) noexcept {
    // ordered by the store that publishes the control
    bits_.store(marks << Bits, std::memory_order_relaxed);
  }
  // One mark, in the form that keep_marks() and set_marks() take.
  static constexpr std::uint64_t mark_of(unsigned slot) noexcept {
    return std::uint64_t{1} << slot;
  }

  // --- the split lock ---

  // False: another thread is splitting the leaf already.
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

  // Counts one request in `sampled_requests`, and whether it met another one. Best called right
  // after lock(), when this core has the cache line. Returns whether a period is over, and the
  // number of its collisions, scaled to all requests. Races may lose some counts: the result is a
  // guess.
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

  // Lock bits below, mark bits above: a request reads and changes both with one access.
  std::atomic<std::uint64_t> bits_{0};
  std::atomic<std::uint64_t> counts_{0};
  // On a cache line of its own, which only splits write.
  alignas(64) std::atomic<std::uint32_t> splitting_{0};
};

}  // namespace elidex::internal
