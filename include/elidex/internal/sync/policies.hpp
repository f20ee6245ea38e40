// Synchronisation policies: how an index isolates its operations from each other. An index is
// written once, against the strictest policy, and takes its policy as a template parameter.
//
//   index and policy                               synchronisation
//   btree<Key, Value, unsynchronized>              one thread, no locking: the papers' "no
//                                                  concurrency control"
//   btree<Key, Value, coarse<posix_mutex>>         one lock around every operation
//   btree<Key, Value, coarse<elided<ttas_lock>>>   the same lock, elided by hardware transactions
//   btree<Key, Value, optimistic>                  a version and a lock in every node, readers
//                                                  write nothing
//   fixed_key_btree<Key, Value, split_regions<L>>  Eunomia's two regions (split_regions.hpp)
//
// A policy P has these members:
//
//   P::node_lock         the lock in each node: version_lock, or no_node_lock with empty calls
//   P::sequence          the sequence number in each leaf: region_sequence, or no_sequence with
//                        empty calls. Only the policies of fixed_key_btree have it
//   P::readers_race      true if a reader may read fields while a writer changes them. Then every
//                        field access is a relaxed atomic, and the reader must validate the values.
//   p.shared(body)       runs body as a region that only reads, and returns its result
//   p.exclusive(body)    runs body as a region that may write, and returns its result
//
// A region's body may run several times, because a transaction may abort, and an abort may end it
// anywhere. So a body must not allocate or free, and no exception may leave it. It must not call
// code outside the index, except the functions that the user gave to update() and get_or_insert().
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "elidex/internal/sync/version_lock.hpp"

namespace elidex::internal {

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

// No synchronisation: for one thread, and as the baseline for the cost of synchronisation.
struct unsynchronized {
  using node_lock = no_node_lock;
  static constexpr bool readers_race = false;

  template <class Body>
  auto shared(Body&& body) {
    return body();
  }
  template <class Body>
  auto exclusive(Body&& body) {
    return body();
  }
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

  // The two parts of an operation, with the interface of split_regions.
  template <class Body>
  auto upper(Body&& body) {
    return body();
  }
  template <class Body>
  auto lower(Body&& body, std::uint32_t& /*aborts*/) {
    return body();
  }
  template <class Body>
  auto both(Body&& body) {
    return body();
  }
};

template <class Lock>
concept runs_regions = requires(Lock& lock) { lock.run([] { return 0; }); };
template <class Lock>
concept shared_lockable = requires(Lock& lock) {
  lock.lock_shared();
  lock.unlock_shared();
};

// One lock around every operation. An elided lock runs the operation as a region. Readers take a
// lock with a shared mode in that mode.
template <class Lock>
class coarse {
 public:
  using node_lock = no_node_lock;
  static constexpr bool readers_race = false;

  template <class Body>
  auto shared(Body&& body) {
    if constexpr (runs_regions<Lock>) {
      return lock_.run(std::forward<Body>(body));
    } else if constexpr (shared_lockable<Lock>) {
      const std::shared_lock guard(lock_);
      return body();
    } else {
      const std::lock_guard guard(lock_);
      return body();
    }
  }

  template <class Body>
  auto exclusive(Body&& body) {
    if constexpr (runs_regions<Lock>) {
      return lock_.run(std::forward<Body>(body));
    } else {
      const std::lock_guard guard(lock_);
      return body();
    }
  }

  // The lock itself, for its statistics.
  Lock& lock() noexcept { return lock_; }
  const Lock& lock() const noexcept { return lock_; }

 private:
  Lock lock_;
};

}  // namespace elidex::internal
