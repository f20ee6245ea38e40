// The version word of a Masstree node: a lock, what its holder is about to do, and what has been
// done.
//
//   auto seen = node.version.stable();  // waits while the node is being inserted into or split
//   ... read the node's fields ...
//   if (node.version.changed_since(seen)) again;     // what was read belongs to no one moment
//
//   node.version.lock();
//   node.version.mark_inserting();  // before the first store that readers must not see half of
//   ... change the node ...
//   node.version.unlock();                           // counts what was marked
//
// The word, from bit 0: locked, inserting, splitting, deleted, root, leaf (the paper's isborder);
// 18 bits vinsert, which count unlocks after mark_inserting(), 18 bits vsplit, which count those
// after mark_splitting(), and 22 bits that count unlock_changed(). A reader is deceived if exactly
// 2^18 insertions into used slots of one leaf pass between its two looks, a scan if exactly 2^22
// changes of one leaf do: who loses its core for a tenth of a second and has the leaf hammered at
// meanwhile is hit once in so many times. (The original has 6 bits for vinsert.)
//
// To be locked and to be changed are nothing to a reader: what a holder does without a mark is a
// single store that is right at every moment. Only snapshots (masstree_range.hpp) look at these
// bits. They lie in the word, and not beside it, because readers take the line away from the lock's
// holder: simulated with 16 cores and Zipf 0.99, a second store per change cost nearly half of the
// throughput.
//
// Marks stay until the unlock, so nothing happens unseen between a mark and its count.
//
// Why a look that was not changed since is right: suppose a field load saw a store made under a
// mark which was set after `seen` was read. The marker's release fence comes before that store, the
// reader's acquire fence in changed_since() after that load: so the fences synchronize, and the
// reader's second load of the word sees the mark or its count, not `seen`. lock() has such a fence
// as well, for snapshots.
//
// Racing false: an outer lock or region keeps all others out, so there is nothing to wait for and
// to compare; but the bits are written all the same, as in the HTM-Masstree of paper 003 (section
// 6.2).
//
// From: Mao, Kohler, Morris, "Cache craftiness for fast multicore key-value storage", EuroSys 2012,
// sections 4.5 and 4.6. Deviations: 64 bits instead of 32; the count of changes.
#pragma once

#include <atomic>
#include <cstdint>

#include "elidex/internal/sync/parking.hpp"

namespace elidex::papers {

using namespace internal;

template <bool Racing>
class masstree_version {
  using word_type = std::uint64_t;

 public:
  // The word at one moment.
  class token {
   public:
    bool is_deleted() const noexcept { return (word_ & deleted_bit) != 0; }
    bool is_root() const noexcept { return (word_ & root_bit) != 0; }
    bool is_leaf() const noexcept { return (word_ & leaf_bit) != 0; }

   private:
    friend masstree_version;
    word_type word_ = 0;
  };

  enum class kind : word_type { inner = 0, leaf = 1u << 5 };
  enum class state : word_type { unlocked_root = 1u << 4, locked_and_splitting = 1u | 1u << 2 };

  masstree_version(kind what, state at_first) noexcept
      : word_(static_cast<word_type>(what) | static_cast<word_type>(at_first)) {}

  // --- readers ---

  // Waits until no thread inserts or splits, and returns the word.
  token stable() const noexcept { return wait_for_none_of(inserting_bit | splitting_bit); }
  // Waits until no thread holds the lock, and returns the word.
  token unlocked() const noexcept { return wait_for_none_of(locked_bit); }

  // Whether anything was marked since.
  bool changed_since(token seen) const noexcept { return Racing && changed_between(seen, again()); }
  // Whether anything was, or is about to be.
  bool touched_since(token seen) const noexcept { return Racing && seen.word_ != again().word_; }

  // Whether anything was marked between the two tokens.
  static bool changed_between(token before, token after) noexcept {
    return ((before.word_ ^ after.word_) & ~(locked_bit | changes)) != 0;
  }
  // Whether keys have left the node between the two tokens: to a new right sibling, or because it
  // was deleted.
  static bool split_between(token before, token after) noexcept {
    return ((before.word_ ^ after.word_) & splits) != 0;
  }

  // --- writers ---

  // Waits for the lock; the word without the locked bit.
  token lock() noexcept {
    token seen;
    if (!try_lock(seen)) wait_while<looks::seldom>(&word_, [&] { return !try_lock(seen); });
    return seen;
  }
  bool try_lock() noexcept {
    token seen;
    return try_lock(seen);
  }

  // Only the holder of the lock may call the functions below.
  void mark_inserting() noexcept { mark(inserting_bit); }
  void mark_splitting() noexcept { mark(splitting_bit); }
  bool is_root() const noexcept { return (held() & root_bit) != 0; }
  // What it is from the unlock on; together with a mark, or else readers may see it before.
  void set_root(bool root) noexcept {
    // relaxed: pairs with the loads of readers, whom unlock() tells.
    word_.store(root ? held() | root_bit : held() & ~root_bit, std::memory_order_relaxed);
  }

  void unlock() noexcept { leave(held()); }
  // When something was changed that snapshots must know of.
  void unlock_changed() noexcept { leave(held() + one_change); }
  void unlock_deleted() noexcept { leave((held() & ~root_bit) | deleted_bit | splitting_bit); }

 private:
  static constexpr word_type locked_bit = 1u << 0;
  static constexpr word_type inserting_bit = 1u << 1;
  static constexpr word_type splitting_bit = 1u << 2;
  static constexpr word_type deleted_bit = 1u << 3;
  static constexpr word_type root_bit = 1u << 4;
  static constexpr word_type leaf_bit = 1u << 5;
  static constexpr word_type one_insert = 1u << 6;
  static constexpr word_type one_split = word_type{1} << 24;
  static constexpr word_type one_change = word_type{1} << 42;
  static constexpr word_type inserts = one_split - one_insert;
  static constexpr word_type splits = one_change - one_split;
  static constexpr word_type changes = ~(one_change - 1);

  // only the holder writes it
  word_type held() const noexcept { return word_.load(std::memory_order_relaxed); }

  // The word behind what was read from the node.
  token again() const noexcept {
    // acquire fence: pairs with the release fences of mark() and try_lock(), see above.
    std::atomic_thread_fence(std::memory_order_acquire);
    token now;
    now.word_ = word_.load(std::memory_order_relaxed);  // relaxed: ordered by the fence
    return now;
  }

  // The bits of `field` counted up by one of them, without a carry into others.
  static word_type counted(word_type word, word_type field, word_type one) noexcept {
    return (word & ~field) | ((word + one) & field);
  }

  token wait_for_none_of(word_type bits) const noexcept {
    token seen;
    // acquire: pairs with the release store of leave(): what was written under the lock is visible.
    seen.word_ = word_.load(std::memory_order_acquire);
    if constexpr (Racing) {
      if ((seen.word_ & bits) != 0) [[unlikely]] {
        wait_while<looks::seldom>(&word_, [&] {
          seen.word_ = word_.load(std::memory_order_acquire);  // pairs with leave(), as above
          return (seen.word_ & bits) != 0;
        });
      }
    }
    return seen;
  }

  bool try_lock(token& seen) noexcept {
    // relaxed: only a hint, which the exchange checks
    seen.word_ = word_.load(std::memory_order_relaxed);
    if constexpr (!Racing) {
      // no partner: no other thread is here
      word_.store(seen.word_ | locked_bit, std::memory_order_relaxed);
      return true;
    }
    // acquire: pairs with the previous holder's release store in leave(). On failure nothing is
    // read: relaxed.
    if ((seen.word_ & locked_bit) != 0 ||
        !word_.compare_exchange_strong(seen.word_, seen.word_ | locked_bit,
                                       std::memory_order_acquire, std::memory_order_relaxed)) {
      return false;
    }
    std::atomic_thread_fence(std::memory_order_release);  // pairs with the acquire fence of again()
    return true;
  }

  void mark(word_type bit) noexcept {
    word_.store(held() | bit, std::memory_order_relaxed);  // relaxed: ordered by the fence
    // pairs with the acquire fence of again()
    std::atomic_thread_fence(std::memory_order_release);
  }

  void leave(word_type word) noexcept {
    if ((word & splitting_bit) != 0) {
      word = counted(word, splits, one_split);
    } else if ((word & inserting_bit) != 0) {
      word = counted(word, inserts, one_insert);
    }
    // release: pairs with the acquire loads of wait_for_none_of() and try_lock().
    word_.store(word & ~(locked_bit | inserting_bit | splitting_bit), std::memory_order_release);
    if constexpr (Racing) wake_waiters(&word_);
  }

  std::atomic<word_type> word_;
};

}  // namespace elidex::papers
