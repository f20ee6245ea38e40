// Synchronisation policies: how the operations of an index are kept apart. An index is written
// once, against the strictest of them, and takes its policy as a template parameter.
//
//   btree<Key, Value, unsynchronized>              one thread, no locking: the papers' "no
//                                                  concurrency control"
//   btree<Key, Value, coarse<posix_mutex>>         one lock around every operation
//   btree<Key, Value, coarse<elided<ttas_lock>>>   the same lock, elided by hardware transactions
//   btree<Key, Value, optimistic>                  a version and a lock in every node, readers
//                                                  write nothing
//   fixed_key_btree<Key, Value, split_regions<L>>  Eunomia's two regions (split_regions.hpp)
//
// A policy P gives
//   P::node_lock               what each node carries: version_lock, or no_node_lock, whose calls
//                              vanish
//   P::readers_race            true: readers look at fields while a writer changes them, so every
//                              field access is a relaxed atomic and is believed only after
//                              validation
//   p.shared(body)             runs body, a region that only reads; returns what body returns
//   p.exclusive(body)          runs body, a region that may write
// A region's body may run several times (an aborted transaction) and may be cut off anywhere, so it
// allocates and frees nothing and lets no exception out: DESIGN.md's rule 3. It calls nothing
// outside the index but the functions that the user gave to update() and get_or_insert().
#pragma once

#include <concepts>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "elidex/internal/sync/region_sequence.hpp"
#include "elidex/internal/sync/version_lock.hpp"

namespace elidex::internal {

// No synchronisation: for one thread, and as the yardstick for what synchronisation costs.
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

// Optimistic lock coupling (Leis et al., "The ART of practical synchronization", 2016): all the
// work is done by the version locks in the nodes.
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

  // The parts of an operation in two regions, as split_regions has them.
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

// One lock around every operation. A lock that can run a region itself (an elided one) is asked to;
// a lock with a shared mode is taken shared by readers.
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
