// Attempts to run a critical section as a hardware region. elided.hpp, mutex.hpp and the interposed
// pthread locks (preload/) use it.
//
//   htm::status last = nothing_aborted;
//   std::uint32_t aborts = 0;
//   const auto is_free = [&] { return word == 0; };
//   if (try_to_elide<Htm>(policy, is_free, while_held::wait, counters, aborts, last) ==
//       entry::elided) {
//     return;  // inside a region that has read the word
//   }
//   take_the_lock();
//
// `is_free` returns whether the underlying lock is free. Inside the region, the call adds the lock
// to the read set. So a thread that takes the lock aborts the region (paper 001 section 3.3.2,
// paper 004 section 3.1).
// Counters has prepare_this_thread() and count_abort(abort_cause). prepare_this_thread() is called
// before the first region, because allocating a thread's record inside a region would abort it.
//
// Thread-safety: any thread, outside of regions. Only join_region() is for use inside a region.
// Errors: nothing throws.
//
// Implementation notes
// Invariants: no attempt begins while the lock is held (the lemming effect). The caller waits for a
// free lock, at most free_waits_max rounds. Between two attempts it asks the retry policy. The
// policy's budgets are finite, so the loop ends.
#pragma once

#include <cstdint>

#include "elidex/htm.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/retry.hpp"

namespace elidex::internal {

// The number of backoff rounds for which an attempt waits for a free lock. Chosen: some hundred
// microseconds. For a longer wait the caller uses the underlying lock, which sleeps.
inline constexpr std::uint32_t free_waits_max = 256;

enum class while_held : std::uint8_t { wait, give_up };

enum class entry : std::uint8_t {
  elided,     // inside a region
  held,       // the lock is held and the caller does not wait
  not_tried,  // no HTM, or elision is off
  waited_too_long,
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

// The value of `last` before the first abort: a cause that does not recur on every attempt.
inline constexpr htm::status nothing_aborted{htm::status::conflict_bit};

// on_abort(status) runs after each abort, outside of any region. If it returns false, there is no
// retry.
inline constexpr auto always_retry = [](htm::status) noexcept { return true; };

// Begins a region, aborts it if the lock is held, and returns the status.
template <class Htm, class IsFree>
htm::status begin_if_free(const IsFree& is_free) noexcept {
  const htm::status begun = Htm::begin();
  if (!begun.started() || is_free()) return begun;
  return Htm::template abort<htm::code_lock_busy>();
}

// Whether elision survives a time in which all threads take the lock. Such a convoy feeds itself: a
// thread that takes the lock aborts all regions by a conflict, and makes others wait until they
// take the lock, too. A policy with RetryPolicy::leaves_convoys counts an abort by a lock that is
// held as a held lock, and after a wait that took too long `elided` tries once more.
template <class RetryPolicy>
concept leaves_convoys = requires { RetryPolicy::leaves_convoys; };

// What an abort counts as.
template <class RetryPolicy, class IsFree>
htm::status cause_of(htm::status aborted, const IsFree& is_free) noexcept {
  if constexpr (leaves_convoys<RetryPolicy>) {
    if (aborted.cause() == htm::abort_cause::conflict && !is_free())
      return htm::status::of_abort(htm::code_lock_busy);
  }
  return aborted;
}

// Adds the number of aborted attempts to `aborts`, and stores the status of the last abort in
// `last`.
template <class Htm, retry_policy RetryPolicy, class IsFree, class Counters,
          class OnAbort = decltype(always_retry)>
entry try_to_elide(const RetryPolicy& policy, const IsFree& is_free, while_held manner,
                   Counters& counters, std::uint32_t& aborts, htm::status& last,
                   OnAbort& on_abort = always_retry) noexcept {
  counters.prepare_this_thread();
  if (!is_free()) {
    if (manner == while_held::give_up) return entry::held;
    if (!wait_until_free(is_free)) return entry::waited_too_long;
  }
  htm::status attempt = begin_if_free<Htm>(is_free);
  if (attempt.started()) return entry::elided;
  // Most sections commit at the first attempt, so the policy's state is made after the first abort.
  for (auto retries = policy.start();;) {
    counters.count_abort(attempt.cause());
    ++aborts;
    last = attempt;
    const htm::status cause = cause_of<RetryPolicy>(attempt, is_free);
    if (!on_abort(cause) || !retries.retry_after(cause)) return entry::out_of_retries;
    if (!is_free()) {
      if (manner == while_held::give_up) return entry::held;
      if (!wait_until_free(is_free)) return entry::waited_too_long;
    }
    attempt = begin_if_free<Htm>(is_free);
    if (attempt.started()) return entry::elided;
  }
}

// Adds the lock to the region in which the caller runs. The lock gets its own nesting level, so
// unlock() need not know whether it is the outermost. An abort returns to the outermost begin(), so
// this function ignores the status.
template <class Htm, class IsFree>
void join_region(const IsFree& is_free) {
  static_cast<void>(Htm::begin());
  if (!is_free()) Htm::template abort<htm::code_lock_busy>();
}

}  // namespace elidex::internal
