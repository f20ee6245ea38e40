// The clock of a database. Its value is the number of the current commit group: the transactions
// that commit between two ticks. Groups order commits coarsely, for snapshots and for the log.
//
//   // a committing transaction, before it locks or validates
//   { commit_clock::commit_phase phase(clock);
//     ... lock what it writes ...
//     const std::uint64_t e = clock.now();  // its group; between locking and validating
//     ... validate ...
//     clock.note_commit(e);                 // before the commit becomes visible
//     ... write, unlock ... }
//   // a reader: exactly the commits of groups <= s.group()
//   { commit_clock::snapshot s(clock);
//     ... read the versions of s.group() ... }
//   clock.horizon()  // versions that only an older snapshot could read need not be kept
//
// A snapshot is complete, consistent and fresh, and its versions are kept (proofs below).
//
// Thread-safety: all members, from any thread. A phase or snapshot belongs to the thread that made
// it. A thread has at most one snapshot at a time.
// Errors:
//   std::bad_alloc    on a thread's first use
//   std::logic_error  a snapshot inside a snapshot
// Complexity: completed(), wait_for(), the functions that move the horizon, and a snapshot visit a
// slot of each thread. The others are O(1).
// fork(): in a child (fork_generation.hpp) the parent's other threads have no phases or snapshots.
// Their slots have an older generation, and are not the forking thread's.
//
// Implementation notes
// 1. A snapshot is complete: it has every commit of its groups. completed() reads the group E, then
//    every thread's phase. In the order of the seq_cst fences, a phase that it misses began after
//    that read. Its transaction reads the clock after that, so its group is at least E. So let S <
//    E. If every phase that completed() sees has ended or announces a group > S, no later commit
//    has a group <= S. wait_for(S) does the same: its caller has read or made an E > S.
// 2. A snapshot is consistent. Let T1 be a transaction that must precede T2 in the serial order.
//    - T2 read or overwrote what T1 wrote: T2 saw T1's unlocked word. T1 had read its group by
//      then, and the clock only grows.
//    - T2 overwrote what T1 read: T1's validation came before T2's locking of that record. T1 reads
//      the clock before it validates, and T2 reads it after it locks. So T1 reads the clock first.
// In both cases group(T1) <= group(T2), so a snapshot with T2 has T1.
// 3. A snapshot is fresh: it has every commit that completed before the snapshot began. The
//    constructor reads the group E. If no commit of E has been noted, no commit of E is visible
//    yet, and every visible commit is of an earlier group. Otherwise the constructor raises the
//    clock to E + 1, unless another thread has done so. Then it waits for the running commits of
//    groups before the current one. Commit phases are short and never wait for a snapshot. While no
//    transaction commits and no thread moves the horizon, snapshots do not change the clock.
// 4. No snapshot loses its versions. A thread that wants to keep or free versions first raises
//    floor_ to the current group, then looks at all snapshots. A snapshot announces itself, then
//    looks at floor_, and takes a later group if floor_ is above its own. Both sides have a seq_cst
//    fence between the two steps, so at least one of them sees the other. While no snapshot runs, a
//    commit of the current group therefore keeps no versions: every later snapshot sees the new
//    rows. A snapshot announces its group before it waits for commits, so that they do not raise
//    the floor above it meanwhile.
// Source: Silo, sections 4.1 and 4.9. Silo calls a group an epoch. Deviations: only commit phases
// hold back the clock's readers, not whole transactions. Snapshots are fresh instead of up to a
// second old.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/fork_generation.hpp"
#include "elidex/internal/memory/slot_array.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/parking.hpp"

namespace elidex::internal {

class commit_clock {
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  struct alignas(128) thread_slot {
    std::atomic<std::uint64_t> committing{none};
    std::atomic<std::uint64_t> reading{none};
    // The fork generation in which the thread last used the slot. Written before the two above.
    std::atomic<std::uint64_t> generation{0};

    bool counts(std::size_t number) const noexcept {
      // relaxed: ordered by the load of `committing` or `reading` before it, which pairs with that
      // member's store. The owner stores the generation before either.
      return may_be_here(static_cast<std::uint32_t>(number),
                         generation.load(std::memory_order_relaxed));
    }
  };

 public:
  // The slots of so many threads lie in the clock.
  static constexpr std::size_t first_threads = 512;

  // Provides the memory that phases and snapshots of the calling thread need. They cannot throw
  // std::bad_alloc afterwards.
  void provide_for_this_thread() { slots_.provide(this_thread_slot()); }

  // Whether the calling thread has a snapshot.
  bool has_snapshot_here() const {
    const thread_slot* const mine = slots_.if_provided(this_thread_slot());
    return mine != nullptr && mine->reading.load() != none;
  }

  std::uint64_t now() const noexcept { return now_.load(); }
  // Begins a new group and returns its number.
  std::uint64_t advance() noexcept { return now_.fetch_add(1) + 1; }

  // Announces that a commit of this group is about to become visible. To be called in the commit
  // phase, or in the region that commits. An announcement without a commit does no harm.
  void note_commit(std::uint64_t group) noexcept {
    if (noted_.load() < group) raise(noted_, group);
  }

  // Raises the clock to at least this group, as a recovered log requires. To be called before the
  // first commit.
  void begin_at(std::uint64_t group) noexcept { raise(now_, group); }

  // Returns a group E such that no transaction commits in E or before it any more. E is the latest
  // such group that can be determined. The statement stays true. A later call may return less,
  // because a phase may be delayed as it begins. It then announces the group that it had read,
  // although it commits in a later one.
  std::uint64_t completed() const noexcept {
    std::uint64_t least = now();
    // Note 1 above. Pairs with the fence in commit_phase.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::size_t used = slots_used_.load();
    for (std::size_t i = 0; i < used; ++i) {
      // acquire: pairs with the release in ~commit_phase(). A reader of the snapshot sees what that
      // commit wrote.
      const std::uint64_t committing = slots_[i].committing.load(std::memory_order_acquire);
      if (committing != none && committing < least && slots_[i].counts(i)) least = committing;
    }
    return least - 1;
  }

  // Waits for the commit phases of group `wanted` and of earlier ones. When it returns, no
  // transaction commits in these groups any more. `wanted` must be before now().
  void wait_for(std::uint64_t wanted) const noexcept {
    // Note 1 above. Pairs with the fence in commit_phase. A phase that is not in the way when its
    // turn comes, or that begins later, commits in a group after `wanted`. So one look at each
    // thread is sufficient, which is a cache line of another processor.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::size_t used = slots_used_.load();
    for (std::size_t i = 0; i < used; ++i) {
      const std::atomic<std::uint64_t>& committing = slots_[i].committing;
      const auto is_in_the_way = [&] {
        // acquire: pairs with the release in ~commit_phase(). A reader of the snapshot sees what
        // that commit wrote.
        return committing.load(std::memory_order_acquire) <= wanted && slots_[i].counts(i);
      };
      if (is_in_the_way()) wait_while<looks::often>(&committing, is_in_the_way);
    }
  }

  // There is and will be no snapshot of an earlier group. move_horizon() computes the value, which
  // is the current group if no snapshot runs.
  std::uint64_t horizon() const noexcept { return horizon_.load(); }
  void move_horizon() noexcept {
    const std::uint64_t wish = now();
    raise(floor_, wish);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // note 4: pairs with snapshot's fence
    std::uint64_t least = wish;
    const std::size_t used = slots_used_.load();
    for (std::size_t i = 0; i < used; ++i) {
      const std::uint64_t reading = slots_[i].reading.load();
      if (reading != none && reading < least && slots_[i].counts(i)) least = reading;
    }
    raise(horizon_, least);
  }
  // As move_horizon(), unless another thread has called it in the current group: it visits a cache
  // line of each thread. `again`: in any case.
  void move_horizon_once(bool again) noexcept {
    const std::uint64_t group = now();
    std::uint64_t looked = looked_in_.load();
    if (!again && (looked >= group || !looked_in_.compare_exchange_strong(looked, group))) return;
    move_horizon();
  }
  // Moves the horizon, and returns a group that is neither after the horizon nor after
  // completed(): all later commits are of later groups.
  std::uint64_t settled_horizon() noexcept {
    move_horizon();
    return std::min(horizon(), completed());
  }

  class commit_phase {
   public:
    explicit commit_phase(commit_clock& clock) : slot_(clock.this_threads_slot()) {
      // relaxed: one thread uses it, so it has no partner. A nested phase is part of the outer one.
      around_ = slot_.committing.load(std::memory_order_relaxed);
      if (around_ != none) return;
      // release: pairs with the acquire in completed(). A thread that sees this phase instead of
      // the previous one also sees everything that the previous one did.
      slot_.committing.store(clock.now(), std::memory_order_release);
      // Note 1 above. Pairs with the fence in completed().
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~commit_phase() {
      slot_.committing.store(around_,
                             // pairs with the acquires in completed() and wait_for()
                             std::memory_order_release);
      wake_waiters(&slot_.committing);
    }
    commit_phase(const commit_phase&) = delete;
    commit_phase& operator=(const commit_phase&) = delete;

   private:
    thread_slot& slot_;
    std::uint64_t around_;
  };

  class snapshot {
   public:
    explicit snapshot(commit_clock& clock) : slot_(clock.this_threads_slot()) {
      if (slot_.reading.load() != none)
        throw std::logic_error("elidex::database: a snapshot inside a snapshot");
      const std::uint64_t begun = clock.now();
      group_ = clock.noted_.load() < begun ? begun - 1 : begun;
      for (;;) {
        slot_.reading.store(group_);
        // Note 4 above. Pairs with the fence in move_horizon().
        std::atomic_thread_fence(std::memory_order_seq_cst);
        const std::uint64_t floor = clock.floor_.load();
        if (floor <= group_) break;
        group_ = floor;
      }
      raise(clock.now_, group_ + 1);
      clock.wait_for(group_);
    }
    ~snapshot() {
      slot_.reading.store(none,
                          // pairs with the load in move_horizon(): this thread's reads come before
                          std::memory_order_release);
    }
    snapshot(const snapshot&) = delete;
    snapshot& operator=(const snapshot&) = delete;

    std::uint64_t group() const noexcept { return group_; }

   private:
    thread_slot& slot_;
    std::uint64_t group_ = 0;
  };

 private:
  static void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept {
    std::uint64_t seen = value.load();
    while (seen < to && !value.compare_exchange_weak(seen, to)) {
    }
  }

  thread_slot& this_threads_slot() {
    const std::size_t mine = this_thread_slot();
    thread_slot& slot = slots_.provide(mine);
    std::size_t used = slots_used_.load();
    while (used <= mine && !slots_used_.compare_exchange_weak(used, mine + 1)) {
    }
    const std::uint64_t here = fork_generation();
    // relaxed: only this thread writes it, ordered by the stores after it (see counts()).
    if (slot.generation.load(std::memory_order_relaxed) != here) {
      // relaxed: ordered by the stores after it, as above.
      slot.generation.store(here, std::memory_order_relaxed);
    }
    return slot;
  }

  alignas(128) std::atomic<std::uint64_t> now_{1};
  std::atomic<std::uint64_t> horizon_{0};
  // On other lines than the clock and the horizon, which all regions read.
  alignas(128) std::atomic<std::uint64_t> floor_{0};
  std::atomic<std::uint64_t> looked_in_{0};  // the last group in which move_horizon_once() looked
  alignas(128) std::atomic<std::uint64_t> noted_{0};
  alignas(128) std::atomic<std::size_t> slots_used_{0};
  slot_array<thread_slot, first_threads> slots_;
};

}  // namespace elidex::internal
