// Drop-in replacements for std::mutex and std::recursive_mutex that elide the lock where that pays.
//
//   elidex::mutex lock("orders");               // the name is for statistics, and can be left out
//   { std::lock_guard guard(lock); ++table[i]; }
//   for (const auto& one : elidex::named_lock_stats()) std::cout << one << '\n';
//
// On a CPU that commits hardware transactions, a critical section runs as a transaction. Threads
// that touch different data do not wait for each other. A lock whose transactions mostly abort
// stops eliding for a time that depends on the cause and on how long the failures took. On any
// other CPU, lock() takes the lock at once. A waiter spins briefly, then sleeps.
//
// A critical section may do everything that it may do under a std::mutex. An abort undoes
// everything that the section wrote to memory. Then the section runs again, and the program does
// not notice. A system call, a page fault or output aborts the transaction, and the section runs
// again with the lock taken. To wait inside a section, use elidex::condition_variable.
//
// What a call does (parentheses mark errors in the program, as with std::mutex):
//
//                                    caller holds it     another thread does   the lock is free
//   lock()          mutex            (deadlock)          waits                 takes or elides
//                   recursive_mutex  adds a level        waits                 takes or elides
//   try_lock()      mutex            (false)             false                 true
//                   recursive_mutex  adds a level, true  false                 true
//   unlock()        any              ends the section    (frees it)            (nothing)
//
// Thread-safety: any thread may call any member, but only the thread that locked may call unlock().
// Sections of several locks may nest and overlap in any order.
// Errors: lock(), try_lock() and unlock() throw nothing. A constructor with a name throws
// std::bad_alloc or std::system_error. The constructor copies the name, which must not be null.
// Size: one cache line (recursive_mutex: two).
// Lifetime: constructors without a name are constexpr, so a static mutex is ready before any code
// runs. Destroying a lock that is held or waited for is an error, as with std::mutex. The last
// holder may destroy the lock as soon as unlock() returns.
// fork(): as with std::mutex. Locks that the forking thread holds stay held by it in the child. The
// child must not use a lock that another thread held or waited for: nothing unlocks it there.
// Not offered: timed locking, native_handle().
//
// Implementation notes
// Invariants: no transaction of a lock commits while another thread holds the lock. A transaction
// knows which locks it elides (internal/sync/region_locks.hpp), so elided and taken sections mix. A
// lock fills its cache line, because a write beside the lock's word would abort the transactions
// that read it. Waiting happens outside transactions only.
// Linearization points: of an elided section, its commit; of any other, that of the underlying
// lock. See also internal/sync/elision_pause.hpp (when a lock stops eliding) and
// internal/sync/sleeping_lock.hpp.
// Sources: paper 001, section 3.3; paper 004, sections 3.1, 3.2.4 (one transaction for nested
// sections) and 3.4 (elision for unmodified programs). Deviations: those of elided.hpp, and the
// invariants above.
#pragma once

#include <atomic>
#include <cstdint>

#include "elidex/htm.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/sync/drop_in_elision.hpp"
#include "elidex/internal/sync/lock_names.hpp"
#include "elidex/internal/sync/sleeping_lock.hpp"

namespace elidex {

// Statistics of locks by name (internal/sync/lock_names.hpp). named_lock_stats() returns one
// named_lock_counts for each name. lock_record_named() and record_of_unnamed_locks() return the
// live counters. forget_elision_pauses() lets every lock elide again at once, for reproducible
// tests.
using internal::forget_elision_pauses;
using internal::lock_counts;
using internal::lock_record;
using internal::lock_record_named;
using internal::named_lock_counts;
using internal::named_lock_stats;
using internal::record_of_unnamed_locks;

// A mutex. Htm is htm::native (elidex::mutex), htm::never, or a scripted machine in tests.
// Guarantees and errors: at the top of this header.
template <class Htm>
class alignas(64) basic_mutex {
 public:
  constexpr basic_mutex() noexcept = default;
  explicit basic_mutex(const char* name) : elision_(lock_record_named(name)) {}
  basic_mutex(const basic_mutex&) = delete;
  basic_mutex& operator=(const basic_mutex&) = delete;

  // Elides or takes the lock. Waits while another thread holds it.
  void lock() {
    if (!Htm::enabled() && elision_.record() == nullptr) [[likely]] {
      lock_.lock();
    } else {
      lock_the_long_way();
    }
  }

  // Returns false if a thread holds the lock. Never waits.
  bool try_lock() {
    if (!Htm::enabled())
      return take_if(lock_.try_lock(),
                     {internal::entry::not_tried, internal::nothing_aborted, false});
    const auto attempt = elision_.enter(is_free(), internal::while_held::give_up);
    if (attempt.how == internal::entry::elided) return true;
    return attempt.how != internal::entry::held && take_if(lock_.try_lock(), attempt);
  }

  // Ends the caller's section: commits its transaction, or releases the lock.
  void unlock() {
    if (Htm::enabled() && elision_.leave()) return;
    lock_.unlock();
  }

  // Returns whether a thread holds the lock. An elided section does not count.
  bool is_locked() const noexcept { return lock_.is_locked(); }

 private:
  auto is_free() const noexcept {
    return [this] { return !lock_.is_locked(); };
  }

  [[gnu::noinline]] void lock_the_long_way() {
    typename internal::drop_in_elision<Htm>::attempt attempt{internal::entry::not_tried,
                                                             internal::nothing_aborted, false};
    if (Htm::enabled()) {
      attempt = elision_.enter(is_free(), internal::while_held::wait);
      if (attempt.how == internal::entry::elided) return;
    }
    if (lock_record* const record = elision_.record(); record != nullptr) {
      internal::take_and_count(
          *record, [this] { return lock_.try_lock(); }, [this] { lock_.lock(); });
    } else {
      lock_.lock();
    }
    elision_.took(attempt);
  }

  bool take_if(bool taken,
               const typename internal::drop_in_elision<Htm>::attempt& before) noexcept {
    if (taken && (Htm::enabled() || elision_.record() != nullptr)) elision_.took(before);
    return taken;
  }

  internal::sleeping_lock lock_;
  internal::drop_in_elision<Htm> elision_;
};

// A recursive mutex. The owner's lock() adds a level, and unlock() removes one.
template <class Htm>
class alignas(64) basic_recursive_mutex {
 public:
  constexpr basic_recursive_mutex() noexcept = default;
  explicit basic_recursive_mutex(const char* name) : mutex_(name) {}
  basic_recursive_mutex(const basic_recursive_mutex&) = delete;
  basic_recursive_mutex& operator=(const basic_recursive_mutex&) = delete;

  // Waits while another thread holds the lock.
  void lock() {
    if (!add_level()) {
      mutex_.lock();
      note_owner();
    }
  }

  // Returns false if another thread holds the lock. Never waits.
  bool try_lock() {
    if (add_level()) return true;
    if (!mutex_.try_lock()) return false;
    note_owner();
    return true;
  }

  // Removes one level. Releases the lock, or commits, when the last level ends.
  void unlock() {
    if (is_mine()) {
      if (--levels_ != 0) return;
      owner_.store(nullptr, std::memory_order_relaxed);  // no partner, see is_mine()
    }
    mutex_.unlock();
  }

 private:
  // An address that no other live thread has.
  static const void* me() noexcept {
    return static_cast<const void*>(&internal::current_thread_record);
  }

  // relaxed, without a partner: only this thread ever writes its own mark here, so no other
  // thread's store can look like it.
  bool is_mine() const noexcept { return owner_.load(std::memory_order_relaxed) == me(); }

  bool add_level() noexcept {
    if (!is_mine()) return false;
    ++levels_;
    return true;
  }

  // An elided section has no owner: a second lock() of its thread joins the transaction.
  void note_owner() noexcept {
    if (!mutex_.is_locked()) return;
    owner_.store(me(), std::memory_order_relaxed);  // no partner, see is_mine()
    levels_ = 1;
  }

  basic_mutex<Htm> mutex_;
  // Apart from the lock's line, though both change only while it is taken.
  std::atomic<const void*> owner_{nullptr};
  std::uint64_t levels_ = 0;
};

using mutex = basic_mutex<htm::native>;
using recursive_mutex = basic_recursive_mutex<htm::native>;

}  // namespace elidex
