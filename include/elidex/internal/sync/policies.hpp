// Synchronisation policies: how an index isolates its operations from each other. An index is
// written once, against the strictest policy, and takes its policy as a template parameter.
//
//   index and policy                               synchronisation
//   btree<Key, Value, unsynchronized>              one thread, no locking: the papers' "no
//                                                  concurrency control"
//   btree<Key, Value, coarse<posix_mutex>>         one lock around every operation
//   btree<Key, Value, coarse<elided<ttas_lock>>>   the same lock, elided by hardware transactions
//   btree<Key, Value, optimistic>                  a version and a lock in every node; readers
//                                                  write nothing that threads share
//                                                  (version_lock.hpp)
//   fixed_key_btree<Key, Value, split_regions<L>>  Eunomia's two regions (split_regions.hpp)
//
// A policy P has these members:
//
//   P::node_lock         the lock in each node: version_lock, or no_node_lock with empty calls
//   P::sequence          the sequence number in each leaf: region_sequence, or no_sequence with
//                        empty calls. Only policies of fixed_key_btree have it. They also have
//                        descend(body), in_leaf(body, aborts) and whole(body)
//   P::readers_race      true if a reader may read fields while a writer changes them. Then every
//                        field access is a relaxed atomic, and the reader must validate the values.
//   p.shared(body)       runs body as a region that only reads, and returns its result
//   p.exclusive(body)    runs body as a region that may write, and returns its result
//
// A region's body may run several times, because a transaction may abort, and an abort may end it
// anywhere. So a body must not allocate or free, and no exception may leave it. It must not call
// code outside the index, except the functions that the user gave to update() and get_or_insert().
#pragma once

#include <concepts>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "elidex/internal/sync/version_lock.hpp"

namespace elidex::internal {

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
