// The synchronisation policy of Eunomia: an operation runs as two regions. descend() runs its body
// in the upper region, which finds a leaf. in_leaf() runs its body in the lower region, which works
// in the leaf. whole() runs its body in both.
//
//   leaf_ref at;
//   sync.descend([&] {
//     at = descend(key);
//     at.seen = at.leaf->sequence.read();
//   });
//   sync.in_leaf([&] {
//     if (!at.leaf->sequence.validate(at.seen)) return restart;
//     ... the leaf's records ...
//   });
//   sync.whole([&] {
//     ... split a leaf: its parent changes too ...
//     at.leaf->sequence.invalidate();
//   });
//
// A sequence number in the leaf tells the lower region whether the descent still leads to this
// leaf. A conflict over records then repeats only the leaf's part. Nearly every conflict is one
// over records (paper 003 section 3.2: 90 % in a B+tree).
//
// Lock is any lock. An elided lock makes hardware regions. A plain lock serves machines and tests
// without hardware transactions.
//
// Thread-safety: all members, from any thread.
//
// Implementation notes
// Which region may access which data:
//
//   data                              read in    changed in
//   inner nodes, the root pointer     upper      both
//   contents of leaves                lower      lower
//   sequence numbers                  either     both, or lower with a change of how a leaf is
//                                                accessed
//
// Order of locks: upper before lower. A lower region never enters an upper one.
//
// Between its regions an operation holds a leaf's address. It needs no pin for the leaf under two
// conditions: leaves are reused only as leaves, and no number occurs twice at an address
// (begin_life). A lower region in a leaf that is gone then reads memory that exists, and a number
// that differs from the expected one. Any other memory that the operation follows must be reclaimed
// by epochs.
//
// Linearization: that of the lock's regions (elided.hpp).
// From: paper 003 sections 4.2 and 5.1.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "elidex/elided.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/sync/retry.hpp"
#include "elidex/internal/sync/spin_locks.hpp"

namespace elidex::internal {

template <class Lock>
class split_regions {
 public:
  // Members of a policy: nodes need no locks, leaves need a sequence number, and no reader sees
  // half a change.
  using node_lock = no_node_lock;
  using sequence = region_sequence;
  static constexpr bool readers_race = false;

  template <class Body>
  auto descend(Body&& body) {
    return run(upper_, body);
  }
  template <class Body>
  auto in_leaf(Body&& body) {
    std::uint32_t ignored = 0;
    return in_leaf(std::forward<Body>(body), ignored);
  }
  // Adds the number of aborted hardware regions to `aborts`. Adds nothing if the lock is not
  // elided.
  template <class Body>
  auto in_leaf(Body&& body, std::uint32_t& aborts) {
    if constexpr (requires { lower_.run(body, aborts); }) {
      return lower_.run(body, aborts);
    } else {
      return run(lower_, body);
    }
  }
  // After a conflict the caller holds `auxiliary`, the leaf's lock, until the body has ended
  // (elided.hpp).
  template <class Body, class Auxiliary>
  auto in_leaf(Body&& body, std::uint32_t& aborts, Auxiliary& auxiliary) {
    if constexpr (requires { lower_.run(body, aborts, auxiliary); }) {
      return lower_.run(body, aborts, auxiliary);
    } else {
      return run(lower_, body);
    }
  }
  // In a hardware region both parts are one level. After whole_attempts aborts, or earlier if the
  // retry policy gives up, whole() takes the upper lock. The lower part is then its own region.
  template <class Body>
  auto whole(Body&& body) {
    const auto both = [&] { return run_joined(body); };
    if constexpr (requires { upper_.run_at_most(whole_attempts, both); }) {
      return upper_.run_at_most(whole_attempts, both);
    } else {
      return run(upper_, both);
    }
  }
  // The same with as many attempts as the lock's retry policy allows.
  template <class Body>
  auto whole_as_policy(Body&& body) {
    const auto both = [&] { return run_joined(body); };
    return run(upper_, both);
  }

  // Returns whether the caller is in a hardware region already. Regions begun there join it.
  static bool in_region() noexcept {
    if constexpr (requires { Lock::in_transaction(); }) {
      return Lock::in_transaction();
    } else {
      return false;
    }
  }

  // The locks themselves, for their statistics.
  const Lock& upper_lock() const noexcept { return upper_; }
  const Lock& lower_lock() const noexcept { return lower_; }

 private:
  // Measured on the simulated machine: 16 threads that load 100,000 random keys into an ordered_map
  // make 3.8 million inserts a second with two attempts and 5.2 with six.
  static constexpr std::uint32_t whole_attempts = 6;

  // The lower part of whole().
  template <class Body>
  auto run_joined(Body&& body) {
    if (in_region()) {
      if constexpr (requires { lower_.subscribe(); }) lower_.subscribe();
      return body();
    }
    return run(lower_, body);
  }
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

// The retries of a short region, measured on the simulated machine without turns of leaves: some 8
// to 16 retries after conflicts were best. With fewer retries, so many operations take the lock
// that the lock makes the others abort. With more retries, a core far from a hot line loses to all
// others again and again. One such operation delays its thread for longer than the lock would.
struct short_region_budgets : retry_budgets {
  static constexpr bool leaves_convoys = true;
  constexpr short_region_budgets() noexcept : retry_budgets{.conflict = 12, .lock_busy = 64} {}
};

// split_regions with hardware regions.
using htm_split_regions = split_regions<elided<ttas_lock, short_region_budgets>>;

}  // namespace elidex::internal
