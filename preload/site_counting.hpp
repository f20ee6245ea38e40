// Counting by call site, as a parameter of interposed_locks.hpp.
//
// A lock is tried first, which shows whether it is held. Only a thread that waits reads the clock.
// Kinds of locks for which a try has effects of its own are locked at once. Their waits are not
// counted.
//
// Inside a region, counts roll back with the region. The clock is not read there, because it lies
// in memory that the kernel writes.
//
// Thread-safety: as call_sites.hpp.
#pragma once

#include <cerrno>
#include <cstdint>

#include "preload/call_sites.hpp"
#include "preload/interposed_locks.hpp"

namespace elidex::preload {

struct site_counting {
  // A place's counts; the thread's memory is there as soon as one of these is.
  struct site {
    site_counts* counts = nullptr;

    void prepare_this_thread() const noexcept {}
    void count_abort(htm::abort_cause cause) const noexcept { counts->add(aborts_by(cause), 1); }
    void count_commit() const noexcept { counts->add(count::commits, 1); }
    void count_joined() const noexcept { counts->add(count::joined, 1); }
  };

  static site enter(const void* where, operation what) noexcept {
    thread_counts* const mine = this_threads_counts();
    site_counts& here = mine != nullptr ? mine->of(where, what) : shared_counts();
    here.add(count::calls, 1);
    return {&here};
  }

  template <class Lock, class TryLock, class TakeLock>
  static int take(site here, Lock& lock, const TryLock& try_lock,
                  const TakeLock& take_lock) noexcept {
    int result = may_try_first(lock) ? try_lock() : take_lock();
    if (result == EBUSY && may_try_first(lock)) {
      const std::uint64_t began = now_ns();
      result = take_lock();
      // Otherwise the caller itself may hold the lock.
      if (got_it(result) || result == ETIMEDOUT) waited(*here.counts, now_ns() - began);
    }
    after(here, &lock, result);
    return result;
  }

  template <class TryLock>
  static int try_to_take(site here, const void* lock, const TryLock& try_lock) noexcept {
    const int result = try_lock();
    if (result == EBUSY) here.counts->add(count::contended, 1);
    after(here, lock, result);
    return result;
  }

  // Null if the hold of the lock is not measured.
  static site_counts* released(const void* lock) noexcept {
    return counts_of_this_thread == nullptr ? nullptr : counts_of_this_thread->released(lock);
  }
  // After waiting on a condition the section continues, as another hold at the same place.
  static void taken_again(const void* lock, site_counts* measured) noexcept {
    if (measured != nullptr) counts_of_this_thread->begin_sample(lock, *measured);
  }

 private:
  static bool got_it(int result) noexcept { return result == 0 || result == EOWNERDEAD; }

  static void waited(site_counts& here, std::uint64_t ns) noexcept {
    here.add(count::contended, 1);
    here.add(count::waited_ns, ns);
    here.raise(count::waited_ns_max, ns);
  }

  static void after(site here, const void* lock, int result) noexcept {
    if (!got_it(result)) {
      here.counts->add(count::failed, 1);
    } else if (counts_of_this_thread != nullptr) {
      counts_of_this_thread->taken(lock, *here.counts);
    }
  }
};

}  // namespace elidex::preload
