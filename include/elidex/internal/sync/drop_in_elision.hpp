// Elision for the drop-in locks: a critical section enters and leaves a region instead of taking
// the lock.
//
//   drop_in_elision<Htm> elision;  // a member of the lock; its address identifies the lock
//   if (Htm::enabled()) {
//     const auto attempt = elision.enter([&] { return !lock.is_locked(); }, while_held::wait);
//     if (attempt.how == entry::elided) return;
//     lock.lock();
//     elision.took(attempt);
//   }
//
// Thread-safety: all members, from any thread. enter() may be called only where Htm::enabled().
//
// Implementation notes
// Invariants: those of elided.hpp numbered 1 and 2.
//
// Differences from `elided` (elided.hpp):
//   * A list names exactly the locks that the running region elides (region_locks.hpp). So unlock()
//     of a lock that is taken or free acts inside a region as it does outside. try_lock() inside a
//     region usually returns an answer.
//   * Elision adapts by time and by abort cause. The record for that is found by the lock's address
//     (elision_pause.hpp), and counts are kept by name (lock_names.hpp). So the lock stays small.
//
// A commit is counted for the lock with which the region began, whichever lock leaves last.
// Attempts and aborts were counted for that lock, and its pause compares them with the commits.
#pragma once

#include <chrono>
#include <cstdint>
#include <type_traits>

#include "elidex/htm.hpp"
#include "elidex/internal/sync/elision.hpp"
#include "elidex/internal/sync/elision_pause.hpp"
#include "elidex/internal/sync/lock_names.hpp"
#include "elidex/internal/sync/region_locks.hpp"
#include "elidex/internal/sync/retry.hpp"

namespace elidex::internal {

// Takes a lock with a name. If the lock is held, counts the wait and its time.
template <class TryLock, class Lock>
void take_and_count(lock_record& record, const TryLock& try_lock, const Lock& lock) {
  if (try_lock()) return;
  const auto began = std::chrono::steady_clock::now();
  lock();
  const auto waited = std::chrono::steady_clock::now() - began;
  record.count_wait(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count()));
}

struct elided_lock {
  const void* lock;
  lock_counters* counters;
};

// The list for htm::native. The library defines it, because all parts of a program that share locks
// must use the same list.
extern constinit thread_local region_locks<elided_lock> native_region;

template <class Htm>
class drop_in_elision {
 public:
  struct attempt {
    entry how;
    htm::status last;
    bool failed;  // elision was on, and the caller has to take the lock
  };

  using region = region_locks<elided_lock>;

  // Returns the calling thread's list.
  static region& here() noexcept {
    if constexpr (std::is_same_v<Htm, htm::native>) {
      return native_region;
    } else {
      return region::template of_this_thread<Htm>();
    }
  }

  constexpr drop_in_elision() noexcept = default;
  explicit drop_in_elision(lock_record& record) noexcept : record_(&record) {}

  // `is_free` returns whether a region may run beside the lock's present holders. Inside a region,
  // control may return to the outermost begin() instead of to the caller.
  template <class IsFree>
  attempt enter(const IsFree& is_free, while_held manner) {
    if (Htm::test()) return {join(is_free, manner), nothing_aborted, false};
    if (elision_pause_of(this).is_on()) return {entry::not_tried, nothing_aborted, false};
    std::uint32_t aborts = 0;
    htm::status last = nothing_aborted;
    const elided_lock mine{this, &counters()};
    here().announce(mine);
    const entry how = try_to_elide<Htm>(retry_budgets(), is_free, manner, counters(), aborts, last);
    if (how == entry::elided) {
      here().make_sure_of(mine);
    } else {
      here().withdraw();
    }
    return {how, last, how != entry::elided && how != entry::held};
  }

  // Call it after taking the lock. `before` is the result of enter().
  void took(const attempt& before) noexcept {
    counters().count_fallback();
    if (before.failed) elision_pause_of(this).gave_up(before.last);
  }

  // Returns true if the section was elided, and has then left its region. Returns false if the lock
  // was taken or is not held.
  bool leave() noexcept {
    if (!Htm::test()) return false;
    const auto left = here().remove(this);
    if (left != region::removal::last) return left == region::removal::others_left;
    Htm::commit();
    // From here on this lock must not be accessed. The thread that held it last may have destroyed
    // it.
    const elided_lock began = here().withdraw();
    // If other code began an enclosing region, nothing has committed yet.
    if (began.lock != nullptr && !Htm::test()) {
      began.counters->count_commit();
      elision_pause_of(began.lock).committed();
    }
    return true;
  }

  // Returns null if the lock has no name.
  lock_record* record() const noexcept { return record_; }

 private:
  lock_counters& counters() const noexcept {
    return record_ != nullptr ? record_->counters : record_of_unnamed_locks().counters;
  }

  template <class IsFree>
  entry join(const IsFree& is_free, while_held manner) {
    // The result of try_lock() on a lock that the caller elides depends on the lock's mode. The
    // list does not record the mode.
    if (manner == while_held::give_up && here().contains(this))
      Htm::template abort<htm::code_nested_trylock>();
    if (!is_free()) {
      // The region has read the lock as held, so the answer is still true when the region commits.
      if (manner == while_held::give_up) return entry::held;
      Htm::template abort<htm::code_lock_busy>();
    }
    if (here().empty()) static_cast<void>(Htm::begin());
    if (!here().add({this, &counters()})) Htm::template abort<htm::code_lock_wanted>();
    return entry::elided;
  }

  lock_record* record_ = nullptr;
};

}  // namespace elidex::internal
