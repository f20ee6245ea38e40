// The attempt to run a critical section as a hardware region: what elided.hpp, mutex.hpp and the
// interposed pthread locks (preload/) have in common.
//
//   htm::status last = nothing_aborted;
//   std::uint32_t aborts = 0;
//   if (try_to_elide<Htm>(policy, [&] { return word == 0; }, while_held::wait, counters,
//   aborts, last) ==
//       entry::elided) return;   // inside a region that has read the word
//   take_the_lock();
//
// `is_free` says whether the underlying lock is free. Inside the region it puts the lock into the
// read set, so that whoever takes the lock aborts the region (papers/001 section 3.3.2, papers/004
// section 3.1).
//
// Invariants: no attempt begins while the lock is held (the lemming effect): it is waited for, but
// no longer than free_waits_max rounds. Between two attempts the retry policy is asked, whose
// budgets are finite; so this ends.
//
// Counters has prepare_this_thread() and count_abort(abort_cause); the former is called before the
// first region, where allocating a thread's record would abort.
//
// Thread-safety: any thread, outside of regions. Nothing throws.
#pragma once

#include <cstdint>

#include "elidex/htm.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/retry.hpp"

namespace elidex::internal {

// How many rounds of backoff an attempt waits for the lock to be free. Chosen: some hundred
// microseconds. A longer wait is left to the underlying lock, which sleeps.
inline constexpr std::uint32_t free_waits_max = 256;

enum class while_held : std::uint8_t { wait, give_up };

enum class entry : std::uint8_t {
  elided,     // inside a region
  held,       // the lock is held and the caller doesn't wait
  not_tried,  // no HTM, elision off, or waited too long
  out_of_retries
};

template <class IsFree>
bool wait_until_free(const IsFree& is_free) noexcept {
  backoff wait;
  for (std::uint32_t round = 0; round < free_waits_max; ++round) {
    wait.once();
    if (is_free()) return true;
  }
  return false;
}

// What `last` is before the first abort: nothing that comes again each time.
inline constexpr htm::status nothing_aborted{htm::status::conflict_bit};

// Adds to `aborts` how many attempts aborted; `last` becomes the last one's status.
template <class Htm, retry_policy RetryPolicy, class IsFree, class Counters>
entry try_to_elide(const RetryPolicy& policy, const IsFree& is_free, while_held manner,
                   Counters& counters, std::uint32_t& aborts, htm::status& last) noexcept {
  counters.prepare_this_thread();
  auto retries = policy.start();
  for (;;) {
    if (!is_free()) {
      if (manner == while_held::give_up) return entry::held;
      if (!wait_until_free(is_free)) return entry::not_tried;
    }
    htm::status attempt = Htm::begin();
    if (attempt.started()) {
      if (is_free()) return entry::elided;
      attempt = Htm::template abort<htm::code_lock_busy>();
    }
    counters.count_abort(attempt.cause());
    ++aborts;
    last = attempt;
    if (!retries.retry_after(attempt)) return entry::out_of_retries;
  }
}

// Inside a region: makes the lock part of it, as a level of its own, so that unlock() needn't know
// whether it is the outermost. An abort goes back to the outermost begin(), so there is no status
// to look at here.
template <class Htm, class IsFree>
void join_region(const IsFree& is_free) {
  static_cast<void>(Htm::begin());
  if (!is_free()) Htm::template abort<htm::code_lock_busy>();
}

}  // namespace elidex::internal
