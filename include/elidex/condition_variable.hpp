// A condition variable for elidex::mutex, as std::condition_variable is for std::mutex.
//
//   elidex::mutex lock;
//   elidex::condition_variable not_empty;
//   { std::unique_lock guard(lock); not_empty.wait(guard, [&] { return !queue.empty(); }); ... }
//   { std::lock_guard guard(lock); queue.push(x); }
//   not_empty.notify_one();
//
// The unique_lock may hold a mutex of any type. A recursive mutex must be held at one level only,
// because waiting releases one level. Threads that wait at the same time must use the same mutex.
// Spurious wake-ups are possible.
//
// Thread-safety: any thread may call any member, except the destructor (see Lifetime).
// Errors: waiting throws std::system_error (operation_not_permitted) if the unique_lock does not
// hold its mutex. It also throws what the predicate throws.
// Lifetime: the object may be destroyed when all waiters have been notified, even if some have not
// returned yet. The destructor sleeps until they no longer access the object. They need no lock for
// that.
// fork(): a child may use and destroy the object if no thread was waiting when the process forked.
// Not offered: stop tokens, notify_all_at_thread_exit, native_handle().
//
// Performance: an elided section that waits commits first. It continues with the lock newly taken
// or elided. A notification makes no system call if no thread waits. If a thread waits, the system
// call aborts the caller's transaction. So notify after unlock() where the program allows it.
// std::condition_variable_any works with the mutexes, too, but aborts each transaction that waits
// or notifies.
//
// Implementation notes
// State: a sequence number and the number of waiters. Each notification changes the sequence
// number, and waiters sleep on it.
// No notification is lost. A waiter counts itself and reads the sequence number while it holds the
// lock. A notification for a change that the waiter has not seen comes from a thread that took the
// lock later. So that thread finds the waiter counted. It changes the sequence number after the
// waiter has read it. The futex call returns at once if the sequence number has changed. In an
// elided section, counting and reading belong to the transaction and take effect when it commits.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "elidex/internal/sync/futex.hpp"
#include "elidex/mutex.hpp"

namespace elidex {

// A condition variable. Guarantees and errors: at the top of this header.
class condition_variable {
 public:
  constexpr condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;
  ~condition_variable() {
    std::uint32_t there = waiters_.fetch_or(ending) | ending;
    for (; there != ending; there = waiters_.load()) internal::futex_wait(waiters_, there);
  }

  // Wakes at least one waiting thread, if there is one.
  void notify_one() noexcept { notify(1); }
  // Wakes all waiting threads.
  void notify_all() noexcept { notify(internal::futex_wake_all); }

  // Releases the mutex, sleeps until a notification or a spurious wake-up, and locks the mutex
  // again. With a predicate, repeats that until done() returns true. The forms with a time also
  // return when it has passed, with the standard's result.
  template <class Mutex>
  void wait(std::unique_lock<Mutex>& lock) {
    sleep(lock, [&](std::uint32_t seen) {
      internal::futex_wait(sequence_, seen);
      return true;
    });
  }
  template <class Mutex, class Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate done) {
    while (!done()) wait(lock);
  }

  template <class Mutex>
  std::cv_status wait_until(
      std::unique_lock<Mutex>& lock,
      std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds> deadline) {
    const bool in_time = sleep(lock, [&](std::uint32_t seen) {
      return internal::futex_wait_until(sequence_, seen, deadline);
    });
    return in_time ? std::cv_status::no_timeout : std::cv_status::timeout;
  }
  // After the sleep, compares the deadline with Clock::now() again: Clock may have been set.
  template <class Mutex, class Clock, class Duration>
  std::cv_status wait_until(std::unique_lock<Mutex>& lock,
                            const std::chrono::time_point<Clock, Duration>& deadline) {
    wait_until(lock, from_now(left_until(deadline)));
    return left_until(deadline) > std::chrono::nanoseconds::zero() ? std::cv_status::no_timeout
                                                                   : std::cv_status::timeout;
  }
  template <class Mutex, class Clock, class Duration, class Predicate>
  bool wait_until(std::unique_lock<Mutex>& lock,
                  const std::chrono::time_point<Clock, Duration>& deadline, Predicate done) {
    while (!done()) {
      if (wait_until(lock, deadline) == std::cv_status::timeout) return done();
    }
    return true;
  }

  // As wait_until(), with a time from now.
  template <class Mutex, class Rep, class Period>
  std::cv_status wait_for(std::unique_lock<Mutex>& lock,
                          const std::chrono::duration<Rep, Period>& how_long) {
    return wait_until(lock, from_now(how_long));
  }
  template <class Mutex, class Rep, class Period, class Predicate>
  bool wait_for(std::unique_lock<Mutex>& lock, const std::chrono::duration<Rep, Period>& how_long,
                Predicate done) {
    return wait_until(lock, from_now(how_long), std::move(done));
  }

 private:
  // Longer than any wait, and less than the overflow of any clock's arithmetic.
  static constexpr std::chrono::nanoseconds for_ever = std::chrono::hours(24 * 365 * 100);

  // Compares a rough value first, because a duration may be max() or min() of its type. Exact
  // arithmetic might overflow then.
  static std::chrono::nanoseconds in_bounds(std::chrono::duration<double> roughly,
                                            const auto& exactly) {
    if (!(roughly < std::chrono::duration<double>(for_ever))) return for_ever;
    if (roughly <= -std::chrono::duration<double>(1)) return std::chrono::nanoseconds(-1);
    return exactly();
  }

  template <class Rep, class Period>
  static internal::futex_deadline from_now(const std::chrono::duration<Rep, Period>& how_long) {
    return internal::futex_deadline::clock::now() + in_bounds(how_long, [&] {
             return std::chrono::ceil<std::chrono::nanoseconds>(how_long);
           });
  }

  // Returns 0 or a negative duration if the deadline has passed.
  template <class Clock, class Duration>
  static std::chrono::nanoseconds left_until(
      const std::chrono::time_point<Clock, Duration>& deadline) {
    using roughly = std::chrono::duration<double>;
    const typename Clock::time_point now = Clock::now();
    return in_bounds(roughly(deadline.time_since_epoch()) - roughly(now.time_since_epoch()),
                     [&] { return std::chrono::ceil<std::chrono::nanoseconds>(deadline - now); });
  }

  template <class Mutex, class Sleep>
  bool sleep(std::unique_lock<Mutex>& lock, const Sleep& until_woken) {
    if (!lock.owns_lock()) lock.unlock();  // throws, before anything is counted
    waiters_.fetch_add(1);
    const std::uint32_t seen = sequence_.load();
    lock.unlock();
    const bool in_time = until_woken(seen);
    // The last access to this object: waking only names an address.
    if (waiters_.fetch_sub(1) == (ending | 1)) internal::futex_wake(waiters_, 1);
    lock.lock();
    return in_time;
  }

  void notify(std::uint32_t count) noexcept {
    if (waiters_.load() == 0) return;
    sequence_.fetch_add(1);
    internal::futex_wake(sequence_, count);
  }

  // in waiters_: the destructor sleeps there
  static constexpr std::uint32_t ending = std::uint32_t{1} << 31;

  internal::futex_word sequence_{0};
  internal::futex_word waiters_{0};
};

}  // namespace elidex
