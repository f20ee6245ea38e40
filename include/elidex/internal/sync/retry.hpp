// Retry policies of elided locks: after an abort, try again or take the lock?
//
//   elided<ttas_lock>                                             default_retry
//   elided<ttas_lock, no_retry>                                   one attempt, then the lock
//   elided<ttas_lock, dbx_budgets>                                as DBX and Eunomia retry
//   elided<ttas_lock, nesting_dbx_budgets>                        the same around other elided
//                                                                 locks
//   elided<ttas_lock, retry_budgets> lock({.conflict = 32});      own budgets
//   elided<ttas_lock, adaptive<dbx_budgets>>                      with adaptation on top
//
// A policy is a small value with start(), called once for each acquisition, whose result answers
// retry_after(htm::status) until it says false. `adaptive` adds the bounds by which a lock switches
// elision off for a while (papers/001 section 3.3.3). Waiting for the lock to be free (3.3.2) isn't
// a policy: elided does it always.
//
// Invariants: every budget is finite, so an acquisition ends in the lock at last. The hardware's
// retry hint isn't asked: papers/001 section 4.3 retries without it too, since even capacity aborts
// pass.
//
// Thread-safety: policies are values; elided only reads the one it holds.
//
// From: papers/001 section 3.3; budgets by cause as DBX, oneTBB and tsx-tools have them. The paper
// gives no numbers for TSX-R, so those of retry_budgets are chosen.
#pragma once

#include <concepts>
#include <cstdint>

#include "elidex/htm.hpp"

namespace elidex::internal {

template <class Policy>
concept retry_policy = requires(const Policy& policy, htm::status aborted) {
  { policy.start().retry_after(aborted) } -> std::same_as<bool>;
};

// How many retries each abort cause may bring about within one acquisition.
struct retry_budgets {
  // Chosen: conflicts are mostly gone when the other region has ended; between oneTBB's 10 attempts
  // and tsx-tools' 3.
  std::uint32_t conflict = 8;
  // Chosen: a region at the edge of the cache may fit the second time, above all beside a busy
  // hyperthread sibling (papers/001 section 4.3); one that is really too large never does.
  std::uint32_t capacity = 2;
  // The body aborted by itself because it wants the lock: obeyed at once.
  std::uint32_t explicit_abort = 0;
  // Chosen: an interrupt is over when we're back, but a page fault or system call comes again each
  // time.
  std::uint32_t interrupt = 3;
  std::uint32_t other = 3;  // Chosen, as DBX has it.
  // Chosen: the inner lock may be held for long, and waiting for the outer one to be free doesn't
  // help with that.
  std::uint32_t nested = 1;
  // Chosen: somebody took the lock between our look and the region. We wait for it before each
  // retry, so this costs little, and giving up early is what makes lemmings.
  std::uint32_t lock_busy = 16;

  // What is left of the budgets in one acquisition.
  class remaining;
  constexpr remaining start() const noexcept;
};

class retry_budgets::remaining {
 public:
  constexpr explicit remaining(const retry_budgets& budgets) noexcept : left_(budgets) {}

  // Takes one retry from the budget that the abort falls under; false if that is used up.
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

// The first abort takes the lock: MariaDB's policy, and "TSX-R-no-retries" of papers/001 figure 6.
struct no_retry {
  struct remaining {
    constexpr bool retry_after(htm::status) const noexcept { return false; }
  };
  constexpr remaining start() const noexcept { return {}; }
};

// The budgets of DBX and Eunomia: conflict 128, capacity 16, nested 0, anything else 3. Deviations:
// explicit aborts and interrupts have 3 each here, not 3 together; finding the lock held counts as
// a conflict on the lock word.
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

// The same for regions that have others inside, as a commit that looks into elided indexes does
// (papers/eunomia/index_sets.hpp): an abort in there counts by its cause, since the place says
// nothing of whether it will come again.
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

// When a lock gives elision up for a while. All chosen: papers/001 names no numbers, and says that
// adaptation never set in during its experiments.
struct adaptation_bounds {
  // Fallbacks caused by aborts until the lock looks at its counters: the period of evaluation.
  // Looking sums some forty cache lines, so it costs less than one line for each fallback.
  std::uint32_t window_fallbacks = 64;
  // Elision goes off when a larger share of the window's acquisitions fell back. It is high because
  // papers/001 section 4.3 still gains where 75 % take the lock at last.
  std::uint32_t fallback_pct_max = 90;
  // For how many acquisitions it stays off; then a new window begins. A failing window wastes some
  // 600 regions at the default budgets (64 fallbacks after 9 conflicts each), so the loss stays
  // below 4 %.
  std::uint32_t off_acquisitions = 16384;
};

template <retry_policy Base>
struct adaptive : Base {
  adaptation_bounds adaptation{};
};

using default_retry = adaptive<retry_budgets>;

}  // namespace elidex::internal
