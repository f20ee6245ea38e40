// A drop-in replacement for std::shared_mutex that elides the lock where that pays.
//
//   elidex::shared_mutex lock("prices");        // the name is for statistics, and can be left out
//   { std::shared_lock guard(lock); total = sum(table); }
//   { std::lock_guard guard(lock); ++table[i]; }
//
// The rules of mutex.hpp for critical sections, thread-safety, errors, size, lifetime and fork()
// apply here, too. In addition (parentheses mark errors in the program):
//
//                       caller holds it  another thread does                 the lock is free
//   lock()              (deadlock)       waits                               takes or elides
//   lock_shared()       (may deadlock)   waits if a writer holds the lock    takes or elides
//                                        or waits; does not wait for readers
//   try_lock_shared()   (may be false)   false if a writer holds the lock    true
//                                        or waits
//
// Implementation notes
// Invariants: a reader's transaction commits beside readers that hold the lock, but not beside a
// writer. A writer's transaction commits only if no thread holds the lock. The rest is as in
// mutex.hpp. The lock that is taken is internal/sync/sleeping_shared_lock.hpp.
#pragma once

#include "elidex/htm.hpp"
#include "elidex/internal/sync/drop_in_elision.hpp"
#include "elidex/internal/sync/lock_names.hpp"
#include "elidex/internal/sync/sleeping_shared_lock.hpp"

namespace elidex {

using internal::lock_counts;
using internal::lock_record;
using internal::lock_record_named;
using internal::named_lock_counts;
using internal::named_lock_stats;
using internal::record_of_unnamed_locks;

// A reader-writer lock. A reader's elided section may run while other readers hold the lock; a
// writer's may not. Htm as in basic_mutex. Guarantees and errors: at the top of this header.
template <class Htm>
class alignas(64) basic_shared_mutex {
 public:
  constexpr basic_shared_mutex() noexcept = default;
  explicit basic_shared_mutex(const char* name) : elision_(lock_record_named(name)) {}
  basic_shared_mutex(const basic_shared_mutex&) = delete;
  basic_shared_mutex& operator=(const basic_shared_mutex&) = delete;

  // Locks for writing: elides or takes the lock. Waits while another thread holds it.
  void lock() { lock_as<exclusive>(); }
  // Returns false if a thread holds the lock. May also fail on a free lock, in the rare case that a
  // reader that could not enter is withdrawing. Never waits.
  bool try_lock() { return try_lock_as<exclusive>(); }
  // Ends the caller's writing section: commits its transaction, or releases the lock.
  void unlock() {
    if (Htm::enabled() && elision_.leave()) return;
    lock_.unlock();
  }

  // Locks for reading: elides or takes the lock. Waits while a writer holds it or waits for it.
  void lock_shared() { lock_as<shared>(); }
  // Returns false if a writer holds the lock or waits for it. Never waits.
  bool try_lock_shared() { return try_lock_as<shared>(); }
  // Ends the caller's reading section: commits its transaction, or releases the lock.
  void unlock_shared() {
    if (Htm::enabled() && elision_.leave()) return;
    lock_.unlock_shared();
  }

 private:
  struct exclusive {
    static bool is_free(const internal::sleeping_shared_lock& lock) noexcept {
      return !lock.is_locked();
    }
    static void lock(internal::sleeping_shared_lock& lock) noexcept { lock.lock(); }
    static bool try_lock(internal::sleeping_shared_lock& lock) noexcept { return lock.try_lock(); }
  };
  struct shared {
    static bool is_free(const internal::sleeping_shared_lock& lock) noexcept {
      return !lock.is_locked_exclusive();
    }
    static void lock(internal::sleeping_shared_lock& lock) noexcept { lock.lock_shared(); }
    static bool try_lock(internal::sleeping_shared_lock& lock) noexcept {
      return lock.try_lock_shared();
    }
  };

  using attempt = typename internal::drop_in_elision<Htm>::attempt;

  template <class Mode>
  void lock_as() {
    if (!Htm::enabled() && elision_.record() == nullptr) [[likely]] {
      Mode::lock(lock_);
    } else {
      lock_the_long_way<Mode>();
    }
  }

  template <class Mode>
  [[gnu::noinline]] void lock_the_long_way() {
    attempt before{internal::entry::not_tried, internal::nothing_aborted, false};
    if (Htm::enabled()) {
      before = elision_.enter([this] { return Mode::is_free(lock_); }, internal::while_held::wait);
      if (before.how == internal::entry::elided) return;
    }
    if (lock_record* const record = elision_.record(); record != nullptr) {
      internal::take_and_count(
          *record, [this] { return Mode::try_lock(lock_); }, [this] { Mode::lock(lock_); });
    } else {
      Mode::lock(lock_);
    }
    elision_.took(before);
  }

  template <class Mode>
  bool try_lock_as() {
    attempt before{internal::entry::not_tried, internal::nothing_aborted, false};
    if (Htm::enabled()) {
      before =
          elision_.enter([this] { return Mode::is_free(lock_); }, internal::while_held::give_up);
      if (before.how == internal::entry::elided) return true;
      if (before.how == internal::entry::held) return false;
    }
    if (!Mode::try_lock(lock_)) return false;
    if (Htm::enabled() || elision_.record() != nullptr) elision_.took(before);
    return true;
  }

  internal::sleeping_shared_lock lock_;
  internal::drop_in_elision<Htm> elision_;
};

using shared_mutex = basic_shared_mutex<htm::native>;

}  // namespace elidex
