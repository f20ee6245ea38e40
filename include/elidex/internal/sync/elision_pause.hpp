// Pauses the elision of a lock whose critical sections do not commit.
//
//   elision_pause& pause = elision_pause_of(&lock);
//   if (!pause.is_on()) { ... try to elide ... }
//   pause.gave_up(last_abort);      // the lock was taken after all
//   pause.committed();              // a section has committed
//
// A window is gave_up_window acquisitions that took the lock although elision was on. Each of them
// followed aborts, or waited too long for a free lock. (The failing sections of other threads cause
// such waits.) If these are more than gave_up_pct_max of all acquisitions that tried, elision
// pauses. The pause is a multiple of the time that the window took. So failing attempts cost a
// small share of the time, whether sections take a hundred nanoseconds or a millisecond.
//
// The last abort's cause determines how the pause grows:
//
//   cause                   pause
//   conflict, explicit      the same each time, because conflicts pass with the load
//   capacity, interrupt,    doubles with each window that fails, up to doublings_max, because
//   other                   sections that are too large or make system calls abort again
//
// Thread-safety: all members, from any thread, outside of regions.
// Errors: nothing throws or allocates.
//
// Implementation notes
// Locks have no room for these fields, least of all the locks of other programs (preload/). So the
// records lie in a table, and a hash of the lock's address selects the record. Two locks that share
// a record are judged together. Sharing costs time at most.
//
// Invariants: correctness never depends on a record. All its fields are relaxed atomics without a
// partner. A stale value costs one attempt or one acquisition.
// A record has two cache lines. An attempt reads the first one, and commits write the second one. A
// thread writes the second one for one commit in commits_per_sample.
//
// From: paper 001 section 3.3.3. There, a lock decides by its own aborts for how long not to
// elide, and the paper does not give the bounds. Deviation: elision pauses for a time instead of a
// number of acquisitions, and the pause depends on the cause.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "elidex/htm.hpp"

namespace elidex::internal {

class elision_pause {
 public:
  // Chosen, together with the next two constants. A window pauses elision if it has no sample.
  //
  //   share of acquisitions    windows that pause elision
  //   that commit
  //   25 %                     0.4 % (28 % with a window of 64). Elision must not pause here: the
  //                            lock of paper 001 section 4.3 gains where 75 % take it. 85 commits
  //                            and 5.3 samples accompany a window.
  //   50 %                     none
  //   1 %                      85 %
  static constexpr std::uint32_t gave_up_window = 256;
  static constexpr std::uint32_t gave_up_pct_max = 95;  // no sample gives 100 %, one gives 94 %
  static constexpr std::uint32_t commits_per_sample = 16;
  // Chosen: failing windows cost less than a twenty-fifth of the time if a window takes at most
  // 40 ms. No pause is longer than pause_ns_max.
  static constexpr std::uint64_t windows_per_pause = 25;
  static constexpr std::uint32_t doublings_max = 5;
  static constexpr std::uint64_t pause_ns_max = 1'000'000'000;
  // During a pause, a thread reads the clock for about one acquisition in this many. Reading the
  // clock costs as much as a lock.
  static constexpr std::uint32_t acquisitions_per_look = 32;

  bool is_on() noexcept {
    // no partner: see the invariants
    const std::uint64_t until = until_ns_.load(std::memory_order_relaxed);
    return until != 0 && !is_over(until);
  }

  // `last` is the last abort, or nothing_aborted (elision.hpp) if there was none.
  void gave_up(htm::status last) noexcept;

  void forget() noexcept;

  void committed() noexcept {
    if (this_commit_is_sampled()) {
      // no partner: see the invariants
      commits_.fetch_add(commits_per_sample, std::memory_order_relaxed);
    }
  }

 private:
  bool is_over(std::uint64_t until) noexcept;
  static bool this_commit_is_sampled() noexcept;
  void begin(htm::status last, std::uint64_t now) noexcept;

  alignas(64) std::atomic<std::uint64_t> until_ns_{0};  // 0: elision is on
  std::atomic<std::uint64_t> window_began_ns_{0};
  std::atomic<std::uint32_t> gave_up_{0};
  std::atomic<std::uint32_t> doublings_{0};
  alignas(64) std::atomic<std::uint32_t> commits_{0};  // in this window, estimated from samples
};

// Returns the record for a lock at this address. The lock may be held, and it may be destroyed.
elision_pause& elision_pause_of(const void* lock) noexcept;

// Resets all records, as if no lock had ever failed. Code that must run identically each time in
// one process calls it first.
void forget_elision_pauses() noexcept;

}  // namespace elidex::internal
