// Version locks and optimistic synchronisation. version_lock is a lock and a version in one word:
// writers lock it, readers validate it. A field holds data that such a lock protects. A
// region_sequence detects that a leaf has changed since it was found. optimistic is the policy of
// structures whose nodes have version locks.
//
//   auto seen = node.lock.read();            // waits while a writer is inside, writes nothing
//   auto key = node.key.load<true>();        // a field: racing, so relaxed atomic loads
//   if (!node.lock.validate(seen)) restart;  // do not use the fields' values before this
//   if (!node.lock.try_upgrade(seen)) restart;
//   node.key.store<true>(key + 1);
//   node.lock.unlock();
//
//   call                  needs                    afterwards
//   read()                nothing                  a version without the locked bit, which may be
//                                                  obsolete
//   validate(seen)        seen from read()         true: nothing has changed since `seen`
//   try_upgrade(seen)     seen from read()         true: the caller holds the lock, and nothing has
//                                                  changed since `seen`
//   try_lock(seen)        nothing                  true: the caller holds the lock, and `seen` is
//                                                  the version before. Never waits
//   lock()                the caller holds no      locked. Returns the version before
//                         lock that a holder of
//                         this one waits for
//   unlock()              the caller holds it      a new version
//   unlock_unchanged(s)   the caller holds it and  the version before, s: readers in flight stay
//                         changed nothing          valid
//   unlock_obsolete()     the caller holds it      a new version, obsolete
//
// Thread-safety: all members of the lock, from any thread. Racing loads of a field may run beside a
// racing store by one writer.
// Errors: nothing throws.
//
// Implementation notes
// The word: bit 0 is locked, bit 1 is obsolete (the node has left the structure for ever), and the
// other bits count changes. 62 bits of changes do not wrap.
//
// Why a validated read is correct (Boehm, "Can seqlocks get along with programming language memory
// models?", 2012): suppose that a reader loaded a field and saw a store made under a lock taken
// after `seen` was read. The writer's release fence in try_upgrade() precedes that store. The
// reader's acquire fence in validate() follows that load. So the fences synchronize, and the
// reader's second load of the word sees the locked word or a later one, not `seen`. The fields are
// relaxed atomics, so a torn read is no data race, and the reader discards its values.
//
// A field that is wider than a word is read and written word by word, so a racing load may be torn.
// A torn load returns some bits, without undefined behaviour. Fields are stored as words and not as
// their own type, because only words have atomic loads.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/parking.hpp"

namespace elidex::internal {

class version_lock {
 public:
  class token {
   public:
    bool is_obsolete() const noexcept { return (word_ & obsolete_bit) != 0; }

   private:
    friend version_lock;
    std::uint64_t word_ = 0;
  };

  [[nodiscard]] token read() const noexcept {
    token seen;
    // acquire: pairs with the release store of unlock(): the fields written under that lock are
    // visible.
    seen.word_ = word_.load(std::memory_order_acquire);
    if ((seen.word_ & locked_bit) != 0) [[unlikely]]
      seen.word_ = wait_until_unlocked();
    return seen;
  }

  [[nodiscard]] bool validate(token seen) const noexcept {
    // acquire fence: pairs with the release fence of try_upgrade() and lock(), see above.
    std::atomic_thread_fence(std::memory_order_acquire);
    return word_.load(std::memory_order_relaxed) == seen.word_;  // relaxed: ordered by the fence
  }

  [[nodiscard]] bool try_upgrade(token seen) noexcept {
    // acquire: pairs with the previous holder's release store in unlock(). The failure is relaxed:
    // the caller then reads nothing.
    if (!word_.compare_exchange_strong(seen.word_, seen.word_ | locked_bit,
                                       std::memory_order_acquire, std::memory_order_relaxed)) {
      return false;
    }
    // pairs with the acquire fence of validate()
    std::atomic_thread_fence(std::memory_order_release);
    return true;
  }

  [[nodiscard]] bool try_lock(token& seen) noexcept {
    // relaxed: try_upgrade() acquires
    seen.word_ = word_.load(std::memory_order_relaxed);
    return (seen.word_ & locked_bit) == 0 && try_upgrade(seen);
  }

  token lock() noexcept {
    for (backoff wait;; wait.once()) {
      const token seen = read();
      if (try_upgrade(seen)) return seen;
    }
  }

  void unlock() noexcept { leave(0); }
  void unlock_obsolete() noexcept { leave(obsolete_bit); }
  void unlock_unchanged(token seen) noexcept {
    word_.store(seen.word_, std::memory_order_release);  // pairs with the acquire load of read()
    wake_waiters(&word_);
  }

 private:
  static constexpr std::uint64_t locked_bit = 1;
  static constexpr std::uint64_t obsolete_bit = 2;
  static constexpr std::uint64_t one_change = 4;

  void leave(std::uint64_t also_set) noexcept {
    // relaxed: only the holder writes it now
    const std::uint64_t held = word_.load(std::memory_order_relaxed);
    // release: pairs with the acquire load of read() and with the next holder's acquire in
    // try_upgrade().
    word_.store(((held & ~locked_bit) + one_change) | also_set, std::memory_order_release);
    wake_waiters(&word_);
  }

  [[gnu::noinline, gnu::cold]] std::uint64_t wait_until_unlocked() const noexcept {
    std::uint64_t word = 0;
    wait_while<looks::seldom>(&word_, [&] {
      word = word_.load(std::memory_order_acquire);  // pairs with unlock(), as in read()
      return (word & locked_bit) != 0;
    });
    return word;
  }

  std::atomic<std::uint64_t> word_{0};
};

// The same calls for structures with an outer lock that already excludes all other threads. They
// compile to nothing.
class no_node_lock {
 public:
  struct token {
    constexpr bool is_obsolete() const noexcept { return false; }
  };
  constexpr token read() const noexcept { return {}; }
  constexpr bool validate(token) const noexcept { return true; }
  constexpr bool try_upgrade(token) noexcept { return true; }
  constexpr bool try_lock(token& /*seen*/) noexcept { return true; }
  constexpr token lock() noexcept { return {}; }
  constexpr void unlock() noexcept {}
  constexpr void unlock_obsolete() noexcept {}
  constexpr void unlock_unchanged(token) noexcept {}
};

struct in_reused_memory {};  // a tag: other threads may still read the memory

// A leaf's sequence number. It changes when an operation that has reached the leaf must restart
// from the root.
//
//   auto seen = leaf.sequence.read();              // during the descent
//   // in the leaf's region: the leaf still covers the same keys if the number is unchanged
//   if (!leaf.sequence.validate(seen)) restart;
//
// Users: operations in two regions (split_regions.hpp), and threads that return to a leaf without a
// descent (leaf_hint in btree_inner.hpp). read() and validate() may be called by any thread.
//
// Call invalidate() before a change of the leaf's contents, and after a change of how the leaf is
// accessed (its conflict control). Inside a hardware region the order is invisible. On a fallback
// path a later release store, such as a cleared mark (conflict_control.hpp), publishes the new
// number to its reader.
class region_sequence {
 public:
  using token = std::uint64_t;

  region_sequence() noexcept : number_(0) {}
  // Keeps the number of the memory's earlier life until begin_life(). A stale operation may read
  // the number, so any write but an atomic store would be a data race.
  explicit region_sequence(in_reused_memory /*tag*/) noexcept {}

  // acquire: pairs with invalidate()'s release. A thread that reads a number sees all changes made
  // before the number was set, such as whether the leaf has a conflict control.
  token read() const noexcept { return number().load(std::memory_order_acquire); }
  // acquire: pairs with invalidate()'s release. Suppose that the caller, outside of a region, has
  // read a value with acquire order earlier. If validate() then returns true, the number had not
  // changed before that value was published.
  bool validate(token seen) const noexcept {
    return number().load(std::memory_order_acquire) == seen;
  }
  // Sets a leaf's first number, before other threads can find the leaf. The number must differ from
  // all numbers that this memory has had, also as an earlier leaf. 2^24 invalidations of one leaf
  // and 2^40 leaves do not wrap.
  void begin_life(std::uint64_t nth_leaf) noexcept {
    // relaxed: ordered by the region that publishes the leaf
    number().store(nth_leaf << 24U, std::memory_order_relaxed);
  }
  // Call it only inside a region that excludes other callers.
  void invalidate() noexcept {
    number().store(read() + 1, std::memory_order_release);  // pairs with the acquire in validate()
  }

 private:
  std::atomic_ref<std::uint64_t> number() const noexcept { return std::atomic_ref(number_); }

  mutable std::uint64_t number_;  // a plain word, because every constructor of std::atomic writes
};

// The same calls for leaves that no operation reaches by a number. They compile to nothing.
class no_sequence {
 public:
  struct token {};
  constexpr no_sequence() noexcept = default;
  constexpr explicit no_sequence(in_reused_memory /*tag*/) noexcept {}
  constexpr token read() const noexcept { return {}; }
  constexpr bool validate(token) const noexcept { return true; }
  constexpr void begin_life(std::uint64_t) noexcept {}
  constexpr void invalidate() noexcept {}
};

// Optimistic lock coupling (Leis et al., "The ART of practical synchronization", 2016). The version
// locks in the nodes do all the work.
struct optimistic {
  using node_lock = version_lock;
  using sequence = no_sequence;
  static constexpr bool readers_race = true;

  template <class Body>
  auto shared(Body&& body) {
    return body();
  }
  template <class Body>
  auto exclusive(Body&& body) {
    return body();
  }

  // The descent to a leaf, the work in the leaf, and both together: policies with regions make
  // these regions (split_regions.hpp).
  template <class Body>
  auto descend(Body&& body) {
    return body();
  }
  template <class Body>
  auto in_leaf(Body&& body, std::uint32_t& /*aborts*/) {
    return body();
  }
  template <class Body>
  auto whole(Body&& body) {
    return body();
  }
};

template <std::size_t Bytes>
using widest_word = std::conditional_t<
    Bytes % 8 == 0, std::uint64_t,
    std::conditional_t<Bytes % 4 == 0, std::uint32_t,
                       std::conditional_t<Bytes % 2 == 0, std::uint16_t, std::uint8_t>>>;

// A field of a node, which readers may read while a writer changes it.
//
//   auto k = key.load<true>();   // racing: valid only after validation
//   auto k = key.load<false>();  // no thread may write meanwhile
template <class T>
class field {
  static_assert(std::is_trivially_copyable_v<T>);
  using word = widest_word<sizeof(T)>;
  using words = std::array<word, sizeof(T) / sizeof(word)>;

 public:
  template <bool Racing>
  T load() const noexcept {
    if constexpr (!Racing) {
      return std::bit_cast<T>(words_);
    } else {
      words copy;
      for (std::size_t i = 0; i < copy.size(); ++i) {
        // relaxed: pairs with the relaxed stores below; ordered by the version lock's fences.
        copy[i] = std::atomic_ref(const_cast<word&>(words_[i])).load(std::memory_order_relaxed);
      }
      return std::bit_cast<T>(copy);
    }
  }

  // Loads one of the words.
  template <bool Racing>
  word load_word(std::size_t i) const noexcept {
    if constexpr (!Racing) {
      return words_[i];
    } else {
      // relaxed: pairs with the relaxed stores below; ordered by the version lock's fences.
      return std::atomic_ref(const_cast<word&>(words_[i])).load(std::memory_order_relaxed);
    }
  }

  template <bool Racing>
  void store(const T& value) noexcept {
    words copy{};  // an empty type has no bytes to copy
    if constexpr (!std::is_empty_v<T>) copy = std::bit_cast<words>(value);
    if constexpr (!Racing) {
      words_ = copy;
    } else {
      for (std::size_t i = 0; i < copy.size(); ++i) {
        // relaxed: pairs with the relaxed loads above; ordered by the version lock's fences.
        std::atomic_ref(words_[i]).store(copy[i], std::memory_order_relaxed);
      }
    }
  }

 private:
  words words_;
};

}  // namespace elidex::internal
