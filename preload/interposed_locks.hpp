// The functions that replace pthread's. They run critical sections as hardware regions where the
// CPU commits them.
//
//   using locks = interposed_locks<htm::native, real_functions, no_counts>;
//   locks::mutex_lock(mutex, site);   // begins a region, or takes the mutex
//   locks::mutex_unlock(mutex);       // commits the region, or releases the mutex
//
// Real     has pthread's functions as static members, named as in pthread_functions.
// Htm      is the machine.
// Counts   is what is counted: no_counts below, or site_counting.hpp.
// Tests replace each of them.
//
// Thread-safety: any thread may call any function.
// Errors: those of the real functions. Only the 0 of an elided section comes from here.
//
// Implementation notes
// Programs were written for the real functions. Elision is correct for them because:
//
// 1. Exclusion. A region reads glibc's own word, and continues only if the lock is free.
//    glibc_locks.hpp proves that no thread can then take the real lock before the region commits or
//    aborts. The hardware excludes two regions from each other.
//
// 2. unlock() commits only what lock() elided. A thread's region_locks have its elided locks, and
//    roll back with its region. unlock() of such a lock removes it from there, and the region
//    commits when the last one is removed. Any other unlock() goes to the real function, also
//    inside a region. This may be an unlock of a mutex that no thread holds, that was really taken
//    before the region began, or that is of a kind that is not elided. It does what glibc does, and
//    becomes visible if and when the region commits. So no commit happens outside of a region.
//
// 3. A region aborts at a call that it cannot answer as the real lock would. The section then runs
//    again with the real lock. These calls are: trylock (the program may rely on the lock's words,
//    for either result), locking again what the region already holds (glibc deadlocks, or returns
//    EDEADLK), upgrading a shared hold, waiting on a condition, and destroying a held mutex.
//
// 4. Elision never changes the words. So destroy() finds the words of a free lock, and does not
//    return EBUSY after elided use.
//
// 5. The thread itself may change the word inside a region, by a library that calls glibc by its
//    internal names. unlock() then aborts instead of committing.
//
// 6. A lock of a kind that is not elided, or for which region_locks has no room, is really taken
//    inside the region. If it is free, the region writes it like any other memory. If it is held,
//    the real function makes a system call, which aborts.
//
// 7. Times. A call with a time limit does not wait for a free lock to elide. It waits in the real
//    function. A call with an invalid time (nanoseconds out of range, an unknown clock) goes to the
//    real function at once.
//
// Lock order, linearization, and what a section may do: as in elided.hpp. Cancellation, signals,
// fork and exec are system calls or interrupts. They abort a region, and happen before the
// section's second run or in it.
//
// From: paper 001, section 3.3; paper 004, section 3.4 (an elided C library). Points 2 to 4 avoid
// the pitfalls that paper 004 names.
#pragma once

#include <pthread.h>
#include <time.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "elidex/htm.hpp"
#include "elidex/internal/sync/elision.hpp"
#include "elidex/internal/sync/elision_pause.hpp"
#include "elidex/internal/sync/region_locks.hpp"
#include "elidex/internal/sync/retry.hpp"
#include "preload/glibc_locks.hpp"

namespace elidex::preload {

using namespace internal;

// Which function took a lock.
enum class operation : std::uint8_t {
  mutex_lock,
  mutex_trylock,
  mutex_timed,
  read,
  try_read,
  timed_read,
  write,
  try_write,
  timed_write
};

constexpr lock_use use_of(operation what) noexcept {
  return what >= operation::read && what <= operation::timed_read ? lock_use::shared
                                                                  : lock_use::exclusive;
}

// Counts nothing, at no cost.
struct no_counts {
  struct site {
    void prepare_this_thread() const noexcept {}
    void count_abort(htm::abort_cause) const noexcept {}
    void count_commit() const noexcept {}
    void count_joined() const noexcept {}
  };
  static site enter(const void*, operation) noexcept { return {}; }
  template <class Lock, class TryLock, class TakeLock>
  static int take(site, Lock&, const TryLock&, const TakeLock& take_lock) noexcept {
    return take_lock();
  }
  template <class TryLock>
  static int try_to_take(site, const void*, const TryLock& try_lock) noexcept {
    return try_lock();
  }
  static site released(const void*) noexcept { return {}; }
  static void taken_again(const void*, site) noexcept {}
};

// A machine on which no region begins, for counting without elision.
struct no_htm {
  static constexpr bool enabled() noexcept { return false; }
  static htm::status begin() noexcept { return {}; }
  static void commit() noexcept {}
  static bool test() noexcept { return false; }
  template <std::uint8_t Code>
  static htm::status abort() noexcept {
    return htm::status::of_abort(Code);
  }
};

// Set before the first elision, by the environment (ELIDEX_RETRIES).
inline constinit retry_budgets elision_budgets{};

template <class Htm, class Real, class Counts>
class interposed_locks {
  using site = typename Counts::site;

  // A lock that the thread has elided.
  struct elided_section {
    const void* lock;
    lock_use use;
    [[no_unique_address]] site where;
  };

  // Only in tests an abort throws.
  static constexpr bool aborts_quietly = noexcept(Htm::template abort<htm::code_lock_wanted>());

 public:
  static int mutex_lock(pthread_mutex_t* m, const void* where) noexcept(aborts_quietly) {
    return lock(
        m, operation::mutex_lock, where, while_held::wait, [=] { return Real::mutex_trylock(m); },
        [=] { return Real::mutex_lock(m); });
  }
  static int mutex_trylock(pthread_mutex_t* m, const void* where) noexcept(aborts_quietly) {
    return try_lock(m, operation::mutex_trylock, where, [=] { return Real::mutex_trylock(m); });
  }
  static int mutex_timedlock(pthread_mutex_t* m, const timespec* until,
                             const void* where) noexcept(aborts_quietly) {
    if (!is_time(until)) return Real::mutex_timedlock(m, until);
    return lock(
        m, operation::mutex_timed, where, while_held::give_up,
        [=] { return Real::mutex_trylock(m); }, [=] { return Real::mutex_timedlock(m, until); });
  }
  static int mutex_clocklock(pthread_mutex_t* m, clockid_t clock, const timespec* until,
                             const void* where) noexcept(aborts_quietly) {
    if (!is_time(until) || !is_clock(clock)) return Real::mutex_clocklock(m, clock, until);
    return lock(
        m, operation::mutex_timed, where, while_held::give_up,
        [=] { return Real::mutex_trylock(m); },
        [=] { return Real::mutex_clocklock(m, clock, until); });
  }
  static int mutex_unlock(pthread_mutex_t* m) noexcept(aborts_quietly) {
    if (ended_elided(m)) return 0;
    Counts::released(m);
    return Real::mutex_unlock(m);
  }
  static int mutex_destroy(pthread_mutex_t* m) noexcept(aborts_quietly) {
    if (elides(m)) want_real_locks();
    return Real::mutex_destroy(m);
  }

  static int rwlock_rdlock(pthread_rwlock_t* l, const void* where) noexcept(aborts_quietly) {
    return lock(
        l, operation::read, where, while_held::wait, [=] { return Real::rwlock_tryrdlock(l); },
        [=] { return Real::rwlock_rdlock(l); });
  }
  static int rwlock_tryrdlock(pthread_rwlock_t* l, const void* where) noexcept(aborts_quietly) {
    return try_lock(l, operation::try_read, where, [=] { return Real::rwlock_tryrdlock(l); });
  }
  static int rwlock_timedrdlock(pthread_rwlock_t* l, const timespec* until,
                                const void* where) noexcept(aborts_quietly) {
    if (!is_time(until)) return Real::rwlock_timedrdlock(l, until);
    return lock(
        l, operation::timed_read, where, while_held::give_up,
        [=] { return Real::rwlock_tryrdlock(l); },
        [=] { return Real::rwlock_timedrdlock(l, until); });
  }
  static int rwlock_clockrdlock(pthread_rwlock_t* l, clockid_t clock, const timespec* until,
                                const void* where) noexcept(aborts_quietly) {
    if (!is_time(until) || !is_clock(clock)) return Real::rwlock_clockrdlock(l, clock, until);
    return lock(
        l, operation::timed_read, where, while_held::give_up,
        [=] { return Real::rwlock_tryrdlock(l); },
        [=] { return Real::rwlock_clockrdlock(l, clock, until); });
  }
  static int rwlock_wrlock(pthread_rwlock_t* l, const void* where) noexcept(aborts_quietly) {
    return lock(
        l, operation::write, where, while_held::wait, [=] { return Real::rwlock_trywrlock(l); },
        [=] { return Real::rwlock_wrlock(l); });
  }
  static int rwlock_trywrlock(pthread_rwlock_t* l, const void* where) noexcept(aborts_quietly) {
    return try_lock(l, operation::try_write, where, [=] { return Real::rwlock_trywrlock(l); });
  }
  static int rwlock_timedwrlock(pthread_rwlock_t* l, const timespec* until,
                                const void* where) noexcept(aborts_quietly) {
    if (!is_time(until)) return Real::rwlock_timedwrlock(l, until);
    return lock(
        l, operation::timed_write, where, while_held::give_up,
        [=] { return Real::rwlock_trywrlock(l); },
        [=] { return Real::rwlock_timedwrlock(l, until); });
  }
  static int rwlock_clockwrlock(pthread_rwlock_t* l, clockid_t clock, const timespec* until,
                                const void* where) noexcept(aborts_quietly) {
    if (!is_time(until) || !is_clock(clock)) return Real::rwlock_clockwrlock(l, clock, until);
    return lock(
        l, operation::timed_write, where, while_held::give_up,
        [=] { return Real::rwlock_trywrlock(l); },
        [=] { return Real::rwlock_clockwrlock(l, clock, until); });
  }
  static int rwlock_unlock(pthread_rwlock_t* l) noexcept(aborts_quietly) {
    if (ended_elided(l)) return 0;
    Counts::released(l);
    return Real::rwlock_unlock(l);
  }
  static int rwlock_destroy(pthread_rwlock_t* l) noexcept(aborts_quietly) {
    if (elides(l)) want_real_locks();
    return Real::rwlock_destroy(l);
  }

  // Not noexcept: a cancelled thread unwinds through these.
  static int cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
    return wait(m, [=] { return Real::cond_wait(c, m); });
  }
  static int cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const timespec* until) {
    return wait(m, [=] { return Real::cond_timedwait(c, m, until); });
  }
  static int cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t clock,
                            const timespec* until) {
    return wait(m, [=] { return Real::cond_clockwait(c, m, clock, until); });
  }

  // A deeper lock is really taken.
  static constexpr std::size_t nested_max = 1 + region_locks<elided_section>::locks_max;

  // Whether the calling thread is inside a region of ours.
  static bool inside_region() noexcept { return !sections().empty() && Htm::test(); }
  static void forget_regions() noexcept { sections().forget(); }  // for tests, see region_locks

 private:
  using while_held = elidex::internal::while_held;
  using entry = elidex::internal::entry;
  using section_list = region_locks<elided_section>;

  static section_list& sections() noexcept { return section_list::template of_this_thread<Htm>(); }
  static bool elides(const void* lock) noexcept {
    return inside_region() && sections().contains(lock);
  }

  static bool is_time(const timespec* until) noexcept {
    return until != nullptr && until->tv_nsec >= 0 && until->tv_nsec < 1'000'000'000;
  }
  static bool is_clock(clockid_t clock) noexcept {
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
  }

  static void want_real_locks() noexcept(aborts_quietly) {
    Htm::template abort<htm::code_lock_wanted>();
  }

  template <class Lock, class TryLock, class TakeLock>
  static int lock(Lock* l, operation what, const void* where, while_held manner,
                  const TryLock& try_real, const TakeLock& take_real) noexcept(aborts_quietly) {
    const site here = Counts::enter(where, what);
    if (Htm::enabled() && may_elide(*l)) {
      if (inside_region() ? joined(l, use_of(what), here) : elided(l, use_of(what), here, manner))
        return 0;
    }
    return Counts::take(here, *l, try_real, take_real);
  }

  template <class Lock, class TryLock>
  static int try_lock(Lock* l, operation what, const void* where,
                      const TryLock& try_real) noexcept(aborts_quietly) {
    if (inside_region() && may_elide(*l)) Htm::template abort<htm::code_nested_trylock>();
    const site here = Counts::enter(where, what);
    if (Htm::enabled() && may_elide(*l) && elided(l, use_of(what), here, while_held::give_up))
      return 0;
    return Counts::try_to_take(here, l, try_real);
  }

  // Returns true inside a new region. After false the caller takes the lock.
  template <class Lock>
  static bool elided(Lock* l, lock_use use, site here, while_held manner) noexcept {
    elision_pause& pause = elision_pause_of(l);
    if (pause.is_on()) return false;
    std::uint32_t aborts = 0;
    htm::status last = elidex::internal::nothing_aborted;
    const elided_section mine{l, use, here};
    sections().announce(mine);
    const entry result = elidex::internal::try_to_elide<Htm>(
        elision_budgets, [l, use] { return is_free(*l, use); }, manner, here, aborts, last);
    if (result == entry::elided) {
      sections().make_sure_of(mine);
      return true;
    }
    sections().withdraw();
    if (result != entry::held) pause.gave_up(last);
    return false;
  }

  // Adds the lock to the thread's region. Returns false if the caller must really take the lock,
  // inside the region.
  template <class Lock>
  static bool joined(Lock* l, lock_use use, site here) noexcept(aborts_quietly) {
    section_list& mine = sections();
    const elided_section* const held = mine.find(l);
    if (held != nullptr && (use == lock_use::exclusive || held->use == lock_use::exclusive))
      want_real_locks();
    if (!is_free(*l, use)) Htm::template abort<htm::code_lock_busy>();
    return mine.add({l, use, here});
  }

  // Removes the lock from the thread's elided locks. Returns whether it was one of them.
  template <class Lock>
  static bool ended_elided(Lock* l) noexcept(aborts_quietly) {
    if (!inside_region()) return false;
    section_list& mine = sections();
    const elided_section* const found = mine.find(l);
    if (found == nullptr) return false;
    if (!is_free(*l, found->use)) want_real_locks();
    if (!mine.began_with(*found)) found->where.count_joined();
    if (mine.remove(l) == section_list::removal::others_left) return true;
    Htm::commit();
    // The commit counts for the lock with which the region began, not for the lock that is removed
    // last. The attempts and aborts were counted there, and the pause compares these numbers.
    const elided_section began = mine.withdraw();
    began.where.count_commit();
    elision_pause_of(began.lock).committed();
    return true;
  }

  template <class Wait>
  static int wait(pthread_mutex_t* m, const Wait& real_wait) {
    if (inside_region()) want_real_locks();
    const auto measured = Counts::released(m);
    const int result = real_wait();
    Counts::taken_again(m, measured);
    return result;
  }
};

}  // namespace elidex::preload
