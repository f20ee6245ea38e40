// The clock of a database: epochs that order commits coarsely, for snapshots and for the log.
//
//   // a committing transaction, before it locks or validates
//   { commit_clock::commit_phase phase(epochs);
//     ... lock what it writes ...
//     const std::uint64_t e = epochs.now();  // its epoch; between locking and validating
//     ... validate ...
//     epochs.note_commit(e);                                // before anybody can see it
//     ... write, unlock ... }
//   // a reader: all commits of epochs <= s.epoch() and no other
//   { commit_clock::snapshot s(epochs);
//     ... read the versions of s.epoch() ... }
//   epochs.horizon()  // versions that only snapshots before this could want may go
//
// 1. A snapshot is whole. completed() reads the epoch E, then every thread's phase. A phase that it
//    does not see began, in the order
// of the seq_cst fences, after that look; its transaction reads its epoch later still and gets at
// least E. So once all phases seen are of epochs > S (or over), nobody will commit in an epoch <= S
// any more, for every S < E.
//
// 2. A snapshot is consistent. Say T1 must come before T2. If T2 read or overwrote what T1 wrote,
//    T2 saw T1's unlocked word: T1 had
// read its epoch by then and the clock only grows. If T2 overwrote what T1 read, T1's validation
// came before T2's locking of that record, so T1 read the clock (before it validated) before T2 did
// (after it locked). Either way epoch(T1) <= epoch(T2): a snapshot with T2 has T1.
//
// 3. A snapshot is fresh: it has all that committed before it began. It reads the epoch E. If no
//    commit of E has been noted yet, none can be
// seen yet, and all that can is of earlier epochs; otherwise it moves the clock on. Then it waits
// for the commits that are under way in epochs before the present one. Commit phases are short and
// never wait for a snapshot. (So the clock moves once for each snapshot at most, and not at all
// while nobody commits.)
//
// 4. No snapshot loses its versions. Whoever wants to free some first raises floor_, then looks at
//    all snapshots; a snapshot announces
// itself, then looks at floor_ and takes a later epoch if it is above its own. With a seq_cst fence
// between the two on both sides, one of them sees the other.
//
// In a child of fork() (fork_generation.hpp) phases and snapshots of the parent's other threads
// don't count: their slots have an older generation, and are not the forking thread's.
//
// Thread-safety: all members, from any thread; a phase or snapshot belongs to the thread that made
// it, which has one snapshot at a time at most. Errors: what this_thread_slot() throws
// (std::bad_alloc on a thread's first use), std::length_error with more than threads_max threads,
// std::logic_error for a snapshot inside a snapshot. From: Silo, sections 4.1 and 4.9. Deviations:
// only commit phases hold the clock's readers back, not whole transactions; snapshots are fresh
// instead of up to a second old.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "elidex/internal/memory/fork_generation.hpp"
#include "elidex/internal/memory/thread_slot.hpp"
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
      // relaxed: behind a load of the other two, which pair with the stores behind that of the
      // generation.
      return may_be_here(static_cast<std::uint32_t>(number),
                         generation.load(std::memory_order_relaxed));
    }
  };

 public:
  static constexpr std::size_t threads_max = 512;

  // The calling thread's, below threads_max; throws std::length_error if there are more.
  static std::size_t thread_number() {
    const std::size_t mine = this_thread_slot();
    if (mine >= threads_max) throw std::length_error("elidex::database: more than 512 threads");
    return mine;
  }

  // Whether the calling thread has a snapshot.
  bool has_snapshot_here() const {
    const std::size_t mine = this_thread_slot();
    return mine < threads_max && slots_[mine].reading.load() != none;
  }

  std::uint64_t now() const noexcept { return now_.load(); }
  // A new epoch, for the log's group commits.
  std::uint64_t advance() noexcept { return now_.fetch_add(1) + 1; }

  // A commit of this epoch is about to be seen. In its commit phase, or in the region that commits;
  // for nothing, if it is not committed, does no harm.
  void note_commit(std::uint64_t epoch) noexcept {
    if (noted_.load() < epoch) raise(noted_, epoch);
  }

  // At least that, as a recovered log asks. Before anybody commits.
  void begin_at(std::uint64_t epoch) noexcept { raise(now_, epoch); }

  // An epoch in which, as in those before, nobody commits any more: the last one, as far as can be
  // told. It stays true; a later call may say less, because a phase that was delayed as it began
  // announces the epoch it had read, though it commits in a later one.
  std::uint64_t completed() const noexcept {
    std::uint64_t least = now();
    // 1 above; pairs with the one in commit_phase
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::size_t used = slots_used_.load();
    for (std::size_t i = 0; i < used; ++i) {
      // acquire: pairs with the release in ~commit_phase(): what that commit wrote is there for who
      // reads the snapshot.
      const std::uint64_t committing = slots_[i].committing.load(std::memory_order_acquire);
      if (committing != none && committing < least && slots_[i].counts(i)) least = committing;
    }
    return least - 1;
  }

  // Returns what completed() returns, once that is at least `wanted`, which must be before now():
  // waits for the commit phases of that epoch and of earlier ones.
  std::uint64_t wait_for(std::uint64_t wanted) const noexcept {
    for (;;) {
      const std::uint64_t whole = completed();
      if (whole >= wanted) return whole;
      const std::size_t used = slots_used_.load();
      for (std::size_t i = 0; i < used; ++i) {
        const std::atomic<std::uint64_t>& committing = slots_[i].committing;
        const auto is_in_the_way = [&] {
          // acquire: pairs with the release in ~commit_phase(), as in completed(), which looks
          // again.
          return committing.load(std::memory_order_acquire) <= wanted && slots_[i].counts(i);
        };
        if (is_in_the_way()) wait_while<looks::often>(&committing, is_in_the_way);
      }
    }
  }

  // No snapshot of an earlier epoch is alive or will be. Computed by move_horizon().
  std::uint64_t horizon() const noexcept { return horizon_.load(); }
  void move_horizon() noexcept {
    const std::uint64_t wish = completed();
    raise(floor_, wish);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // 4 above; pairs with the one in snapshot
    std::uint64_t least = wish;
    const std::size_t used = slots_used_.load();
    for (std::size_t i = 0; i < used; ++i) {
      const std::uint64_t reading = slots_[i].reading.load();
      if (reading != none && reading < least && slots_[i].counts(i)) least = reading;
    }
    raise(horizon_, least);
  }

  class commit_phase {
   public:
    explicit commit_phase(commit_clock& epochs) : slot_(epochs.this_threads_slot()) {
      // relaxed: the thread's own, no partner. A phase inside another is part of that.
      around_ = slot_.committing.load(std::memory_order_relaxed);
      if (around_ != none) return;
      // release: who sees this phase and not the one before has all that that one did. Pairs with
      // the acquire in completed().
      slot_.committing.store(epochs.now(), std::memory_order_release);
      // 1 above; pairs with the one in completed()
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
    explicit snapshot(commit_clock& epochs) : slot_(epochs.this_threads_slot()) {
      if (slot_.reading.load() != none)
        throw std::logic_error("elidex::database: a snapshot inside a snapshot");
      const std::uint64_t begun = epochs.now();
      const std::uint64_t wanted = (epochs.noted_.load() < begun ? begun : epochs.advance()) - 1;
      for (backoff wait;; wait.once()) {
        epoch_ = epochs.wait_for(wanted);
        slot_.reading.store(epoch_);
        // 4 above; pairs with the one in move_horizon()
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (epochs.floor_.load() <= epoch_) return;
      }
    }
    ~snapshot() {
      slot_.reading.store(none,
                          // pairs with the load in move_horizon(): our reads come before
                          std::memory_order_release);
    }
    snapshot(const snapshot&) = delete;
    snapshot& operator=(const snapshot&) = delete;

    std::uint64_t epoch() const noexcept { return epoch_; }

   private:
    thread_slot& slot_;
    std::uint64_t epoch_ = 0;
  };

 private:
  static void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept {
    std::uint64_t seen = value.load();
    while (seen < to && !value.compare_exchange_weak(seen, to)) {
    }
  }

  thread_slot& this_threads_slot() {
    const std::size_t mine = thread_number();
    std::size_t used = slots_used_.load();
    while (used <= mine && !slots_used_.compare_exchange_weak(used, mine + 1)) {
    }
    thread_slot& slot = slots_[mine];
    const std::uint64_t here = fork_generation();
    // relaxed: only this thread writes it; ordered by the stores behind it, see counts().
    if (slot.generation.load(std::memory_order_relaxed) != here) {
      // relaxed: as above.
      slot.generation.store(here, std::memory_order_relaxed);
    }
    return slot;
  }

  alignas(128) std::atomic<std::uint64_t> now_{1};
  std::atomic<std::uint64_t> floor_{0};
  std::atomic<std::uint64_t> horizon_{0};
  // Apart from the clock, which all regions read.
  alignas(128) std::atomic<std::uint64_t> noted_{0};
  alignas(128) std::atomic<std::size_t> slots_used_{0};
  std::array<thread_slot, threads_max> slots_;
};

}  // namespace elidex::internal
