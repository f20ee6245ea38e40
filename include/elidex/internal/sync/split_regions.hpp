// The policy of Eunomia: an operation is two regions, one for the way to a leaf (the upper region)
// and one for the leaf (the lower region), and a sequence number in the leaf tells the second one
// whether the way still leads there.
//
//   place at;
//   sync.upper([&] { at = descend(key); at.seen = at.leaf->sequence.read(); });
//   sync.lower([&] { if (!at.leaf->sequence.validate(at.seen)) return restart; ... the leaf's
//       records ... });
//   sync.both([&] { ... split a leaf: its parent changes too ... at.leaf->sequence.invalidate();
//       });
//
// A conflict over records, which is nearly every conflict (papers/003 section 3.2: 90 % in a
// B+tree), then repeats the leaf's part alone.
//
// Which data belongs to which region: what leads to leaves (inner nodes, the root pointer) to the
// upper one, what is in leaves to the lower one; whoever changes the former runs in both. Sequence
// numbers are read in either and written in both only, or in the lower one by whoever changes how a
// leaf is to be accessed.
//
// Order of locks: upper before lower. Nobody who is in a lower region enters an upper one. Between
// its regions an operation holds an address. It needs no pin for it if leaves are only ever reused
// as leaves and no number comes twice at an address (begin_life): then a lower region in a leaf
// that is gone reads memory that is there, and a number that is not the expected one. Whatever else
// it follows must be reclaimed by epochs.
//
// Any lock will do: an elided one makes hardware regions of them, a plain one serves machines and
// tests without. Thread-safety: all of it. Linearization: that of the lock's regions (elided.hpp).
// From: papers/003 sections 4.2 and 5.1.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "elidex/elided.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/sync/region_sequence.hpp"
#include "elidex/internal/sync/retry.hpp"
#include "elidex/internal/sync/spin_locks.hpp"

namespace elidex::internal {

template <class Lock>
class split_regions {
 public:
  // What a policy tells an index: nodes need no locks, leaves need a sequence number, and no reader
  // sees half a change.
  using node_lock = no_node_lock;
  using sequence = region_sequence;
  static constexpr bool readers_race = false;

  template <class Body>
  auto upper(Body&& body) {
    return run(upper_, body);
  }
  template <class Body>
  auto lower(Body&& body) {
    std::uint32_t ignored = 0;
    return lower(std::forward<Body>(body), ignored);
  }
  // Adds to `aborts` how often a hardware region was tried in vain: nothing where the lock is not
  // elided.
  template <class Body>
  auto lower(Body&& body, std::uint32_t& aborts) {
    if constexpr (requires { lower_.run(body, aborts); }) {
      return lower_.run(body, aborts);
    } else {
      return run(lower_, body);
    }
  }
  template <class Body>
  auto both(Body&& body) {
    return run(upper_, [&] { return run(lower_, body); });
  }

  // Whether the caller is in a hardware region already, which these would be part of.
  static bool in_region() noexcept {
    if constexpr (requires { Lock::in_region(); }) {
      return Lock::in_region();
    } else {
      return false;
    }
  }

  // The locks themselves, for their statistics.
  const Lock& upper_lock() const noexcept { return upper_; }
  const Lock& lower_lock() const noexcept { return lower_; }

 private:
  template <class Body>
  static auto run(Lock& lock, Body&& body) {
    if constexpr (runs_regions<Lock>) {
      return lock.run(body);
    } else {
      const std::lock_guard guard(lock);
      return body();
    }
  }

  Lock upper_;
  Lock lower_;
};

// How often a short region is tried again. Measured on the simulated machine (docs/EUNOMIA.md, "How
// many retries"): some 8 to 16 retries after conflicts are best. With fewer, so many requests take
// the lock that it makes the others abort; with more, a core far from a hot line loses to all
// others again and again, and one such request holds up its thread for longer than the lock would.
struct short_region_budgets : retry_budgets {
  constexpr short_region_budgets() noexcept : retry_budgets{.conflict = 12, .lock_busy = 64} {}
};

// With hardware regions.
using htm_split_regions = split_regions<elided<ttas_lock, short_region_budgets>>;

}  // namespace elidex::internal
