// Retry policies of elided locks: after an abort, the policy decides whether to retry or to take
// the lock.
//
//   lock                                                       policy
//   elided<ttas_lock>                                          default_retry
//   elided<ttas_lock, no_retry>                                one attempt, then the lock
//   elided<ttas_lock, dbx_budgets>                             the retries of DBX and Eunomia
//   elided<ttas_lock, nesting_dbx_budgets>                     the same around other elided locks
//   elided<ttas_lock, retry_budgets> lock({.conflict = 32});   the caller's budgets
//   elided<ttas_lock, adaptive<dbx_budgets>>                   with adaptation in addition
//
// A policy is a small value. A lock calls its start() after the first abort of an acquisition, and
// retry_after(htm::status) of the result after each abort. True means: retry. False means: take the
// lock. `adaptive` adds the bounds by which a lock switches elision off for a while (paper 001
// section 3.3.3).
// A policy may also define `leaves_convoys` (elision.hpp).
// A policy does not decide about waiting for a free lock (3.3.2), because `elided` always waits.
//
// Thread-safety: policies are values, and `elided` only reads its policy.
// Errors: nothing throws.
//
// Implementation notes
// Invariants: every budget is finite, so an acquisition takes the lock in the end. The policies
// ignore the hardware's retry hint. Paper 001 section 4.3 retries without the hint too, since even
// capacity aborts pass.
//
// From: paper 001 section 3.3, with budgets by cause as in DBX, oneTBB and tsx-tools. The paper
// gives no numbers for TSX-R, so the numbers of retry_budgets are chosen.
#pragma once

#include <concepts>
#include <cstdint>

#include "elidex/htm.hpp"

namespace elidex::internal {

template <class Policy>
concept retry_policy = requires(const Policy& policy, htm::status aborted) {
  { policy.start().retry_after(aborted) } -> std::same_as<bool>;
};

// The maximum number of retries for each abort cause within one acquisition.
struct retry_budgets {
  // Chosen: most conflicts are gone when the other region has ended. The number lies between
  // oneTBB's 10 attempts and tsx-tools' 3.
  std::uint32_t conflict = 8;
  // Chosen: a region at the edge of the cache may fit the second time, above all beside a busy
  // hyperthread sibling (paper 001 section 4.3). A region that is too large never fits.
  std::uint32_t capacity = 2;
  // The body aborted explicitly because it needs the lock, so the lock is taken at once.
  std::uint32_t explicit_abort = 0;
  // Chosen: an interrupt is over when the section runs again. A page fault or a system call recurs
  // each time.
  std::uint32_t interrupt = 3;
  std::uint32_t other = 3;  // Chosen, as DBX has it.
  // Chosen: the inner lock may be held for long. Waiting for the outer lock does not shorten that.
  std::uint32_t nested = 1;
  // Chosen: another thread took the lock between the check and the region. Each retry first waits
  // for the lock, so it costs little. Giving up early causes the lemming effect.
  std::uint32_t lock_busy = 16;

  // The rest of the budgets in one acquisition.
  class remaining;
  constexpr remaining start() const noexcept;
};

class retry_budgets::remaining {
 public:
  constexpr explicit remaining(const retry_budgets& budgets) noexcept : left_(budgets) {}

  // Takes one retry from the budget for this abort. Returns false if that budget is empty.
  constexpr bool retry_after(htm::status aborted) noexcept {
    std::uint32_t& left = budget_for(aborted);
    if (left == 0) return false;
    --left;
    return true;
  }

 private:
  constexpr std::uint32_t& budget_for(htm::status aborted) noexcept {
    if (aborted.is_nested()) return left_.nested;
    if (aborted.is_lock_busy()) return left_.lock_busy;
    switch (aborted.cause()) {
      case htm::abort_cause::conflict:
        return left_.conflict;
      case htm::abort_cause::capacity:
        return left_.capacity;
      case htm::abort_cause::explicit_:
        return left_.explicit_abort;
      case htm::abort_cause::interrupt:
        return left_.interrupt;
      case htm::abort_cause::other:
        break;
    }
    return left_.other;
  }

  retry_budgets left_;
};

constexpr retry_budgets::remaining retry_budgets::start() const noexcept {
  return remaining(*this);
}

// Takes the lock after the first abort: MariaDB's policy, and "TSX-R-no-retries" of paper 001
// figure 6.
struct no_retry {
  struct remaining {
    constexpr bool retry_after(htm::status) const noexcept { return false; }
  };
  constexpr remaining start() const noexcept { return {}; }
};

// The budgets of DBX and Eunomia: conflict 128, capacity 16, nested 0, anything else 3.
// Deviations: explicit aborts and interrupts have 3 retries each, not 3 together. A lock that is
// found held counts as a conflict on the lock word.
struct dbx_budgets : retry_budgets {
  constexpr dbx_budgets() noexcept
      : retry_budgets{.conflict = 128,
                      .capacity = 16,
                      .explicit_abort = 3,
                      .interrupt = 3,
                      .other = 3,
                      .nested = 0,
                      .lock_busy = 128} {}
};

// The same for regions that contain other regions, such as a commit that reads elided indexes
// (papers/eunomia/index_sets.hpp). An abort inside a nested region counts by its cause, because
// nesting does not predict whether the abort recurs.
struct nesting_dbx_budgets : dbx_budgets {
  class remaining;
  constexpr remaining start() const noexcept;
};

class nesting_dbx_budgets::remaining {
 public:
  constexpr explicit remaining(const nesting_dbx_budgets& budgets) noexcept
      : left_(budgets.dbx_budgets::start()) {}
  constexpr bool retry_after(htm::status aborted) noexcept {
    return left_.retry_after({aborted.word & ~htm::status::nested_bit});
  }

 private:
  retry_budgets::remaining left_;
};

constexpr nesting_dbx_budgets::remaining nesting_dbx_budgets::start() const noexcept {
  return remaining(*this);
}

// The bounds by which a lock switches elision off for a while. All are chosen: paper 001 gives no
// numbers, and reports that adaptation never started in its experiments.
struct adaptation_bounds {
  // The period of evaluation: the number of fallbacks caused by aborts before the lock reads its
  // counters. Reading them sums some forty cache lines, less than one line for each fallback.
  std::uint32_t window_fallbacks = 64;
  // Elision is switched off when a larger share of the window's acquisitions fell back. The bound
  // is high, because paper 001 section 4.3 still gains where 75 % take the lock in the end.
  std::uint32_t fallback_pct_max = 90;
  // The number of acquisitions for which elision stays off. Then a new window begins. A failing
  // window wastes some 600 regions at the default budgets (64 fallbacks after 9 conflicts each), so
  // the loss is below 4 %.
  std::uint32_t off_acquisitions = 16384;
};

template <retry_policy Base>
struct adaptive : Base {
  adaptation_bounds adaptation{};
};

using default_retry = adaptive<retry_budgets>;

}  // namespace elidex::internal
