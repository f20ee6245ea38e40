// What the drop-in locks have in common: how a section enters and leaves a region instead of the
// lock.
//
//   drop_in_elision<Htm> elision;  // a member of the lock; its address stands for the lock
//   if (Htm::enabled()) {
//     const auto entry = elision.enter([&] { return !lock.is_locked(); }, while_held::wait);
//     if (entry.how == entry::elided) return;
//     lock.lock();
//     elision.took(entry);
//   }
//
// Unlike elided (elided.hpp) it knows exactly which locks the running region stands for
// (region_locks.hpp), so that unlock() of a lock that was really taken, or of one that nobody
// holds, does inside a region what it does outside, and try_lock() inside a region can mostly be
// answered. It adapts by time and cause in a record that it finds by its address
// (elision_pause.hpp), and counts by name (lock_names.hpp): the lock itself stays small.
//
// A commit is counted for the lock that the region began with, whichever is the last to go:
// attempts and aborts were counted there, and its pause weighs one against the other.
//
// Invariants: those of elided.hpp numbered 1 and 2. enter() is called only where Htm::enabled().
//
// Thread-safety: all members, from any thread.
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

// Takes a lock and counts the waiting, for locks with a name.
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

// Of htm::native. Defined in the library: all parts of a program that share locks must find the
// same list.
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

  // The calling thread's.
  static region& here() noexcept {
    if constexpr (std::is_same_v<Htm, htm::native>) {
      return native_region;
    } else {
      return region::template of_this_thread<Htm>();
    }
  }

  constexpr drop_in_elision() noexcept = default;
  explicit drop_in_elision(lock_record& record) noexcept : record_(&record) {}

  // `is_free`: regions may start beside whoever holds the lock now. Inside a region control may go
  // back to the outermost begin instead of returning.
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

  // After the lock was taken.
  void took(const attempt& before) noexcept {
    counters().count_fallback();
    if (before.failed) elision_pause_of(this).gave_up(before.last);
  }

  // True: the section was elided and has left its region. False: the lock was taken, or is not
  // held.
  bool leave() noexcept {
    if (!Htm::test()) return false;
    const auto left = here().remove(this);
    if (left != region::removal::last) return left == region::removal::others_left;
    Htm::commit();
    // From here on nothing looks at this lock, which whoever held it last may have destroyed by
    // now.
    const elided_lock began = here().withdraw();
    // inside a region that somebody else began nothing has committed yet
    if (began.lock != nullptr && !Htm::test()) {
      began.counters->count_commit();
      elision_pause_of(began.lock).committed();
    }
    return true;
  }

  // Null: no name.
  lock_record* record() const noexcept { return record_; }

 private:
  lock_counters& counters() const noexcept {
    return record_ != nullptr ? record_->counters : record_of_unnamed_locks().counters;
  }

  template <class IsFree>
  entry join(const IsFree& is_free, while_held manner) {
    // Whether a try_lock() of one's own lock fails depends on how it is held, which the list
    // doesn't say.
    if (manner == while_held::give_up && here().contains(this))
      Htm::template abort<htm::code_nested_trylock>();
    if (!is_free()) {
      // Seen inside the region, so it is true when the region commits.
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
