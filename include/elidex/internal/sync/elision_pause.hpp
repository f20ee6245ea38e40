// When a lock's sections don't commit, eliding it pauses: the memory behind that decision, beside
// the lock.
//
//   elision_pause& pause = elision_pause_of(&lock);
//   if (!pause.is_on()) { ... try to elide ... }
//   pause.gave_up(last_abort);      // the lock was taken after all
//   pause.committed();              // a section has committed
//
// Judged are windows of gave_up_window acquisitions that took the lock although elision was on:
// after aborts, or because it was held so long that waiting for it to be free had no end (which is
// what it looks like when the others fail). If they were more than gave_up_pct_max of all that were
// tried, elision pauses for a multiple of the time that the window took: so what failing attempts
// cost stays a small share of the time, whether sections take a hundred nanoseconds or a
// millisecond. Causes differ: conflicts pass with the load, so the pause is the same each time;
// sections that are too large or make system calls stay so, and the pause doubles each time a
// window fails, up to doublings_max.
//
// Locks have no room for this, least of all those of other programs (preload/). So there is a table
// of records, and a lock's address says which is its own. Two locks that share one are judged
// together; that costs time at most.
//
// Invariants: nobody depends on a record for correctness. All its fields are relaxed atomics
// without a partner: a stale answer costs an attempt or an acquisition. Two lines: what is read
// before each attempt, and what commits write; a thread writes the latter for one commit in
// commits_per_sample.
//
// Thread-safety: all members, from any thread, outside of regions. Nothing throws or allocates.
//
// From: papers/001 section 3.3.3 (a lock decides by its own aborts for how long not to elide),
// whose bounds the paper does not give. Deviation: by time instead of by acquisitions, and by
// cause.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "elidex/htm.hpp"

namespace elidex::internal {

class elision_pause {
 public:
  // Chosen, with the next two: papers/001 section 4.3 gains where 75 % take the lock, so that must
  // not pause. Then 85 commits come with a window, 5.3 samples of them, and none in 0.4 % of the
  // windows (with 64 it would be 28 %); where half commit, never. Where one in a hundred commits,
  // 85 % of the windows pause.
  static constexpr std::uint32_t gave_up_window = 256;
  static constexpr std::uint32_t gave_up_pct_max = 95;  // without any sample it is 100, with one 94
  static constexpr std::uint32_t commits_per_sample = 16;
  // Chosen: what failing windows cost stays below a twenty-fifth of the time, if a window takes 40
  // ms at most: no pause is longer than pause_ns_max.
  static constexpr std::uint64_t windows_per_pause = 25;
  static constexpr std::uint32_t doublings_max = 5;
  static constexpr std::uint64_t pause_ns_max = 1'000'000'000;
  // While a pause lasts, a thread looks at the clock for one acquisition in about so many; the
  // clock costs as much as a lock.
  static constexpr std::uint32_t acquisitions_per_look = 32;

  bool is_on() noexcept {
    // no partner: see the invariants
    const std::uint64_t until = until_ns_.load(std::memory_order_relaxed);
    return until != 0 && !is_over(until);
  }

  // `last` is the last abort; without any, nothing_aborted (elision.hpp).
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
  alignas(64) std::atomic<std::uint32_t> commits_{0};  // of this window, as far as sampled
};

// The record of the lock that lies there, held or not, destroyed or not.
elision_pause& elision_pause_of(const void* lock) noexcept;

// As if no lock had ever failed: for what must run the same each time it is run in one process.
void forget_elision_pauses() noexcept;

}  // namespace elidex::internal
