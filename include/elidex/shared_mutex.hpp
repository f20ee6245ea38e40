// A drop-in replacement for std::shared_mutex that elides the lock where that pays.
//
//   elidex::shared_mutex lock("prices");        // the name is for statistics, and can be left out
//   { std::shared_lock guard(lock); total = sum(table); }
//   { std::lock_guard guard(lock); ++table[i]; }
//
// Everything that mutex.hpp says of critical sections, thread-safety, errors, size and fork()
// applies here. In addition:
//
//                       caller holds it  another thread does                      it is free
//   lock()              (deadlock)       waits                                    takes or elides
//   lock_shared()       (may deadlock)   waits for a writer, or behind a waiting  takes or elides
//                                        one; not for readers
//   try_lock_shared()   (may be false)   false if a writer holds it or waits      true
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

// A reader's elided section runs beside readers that hold the lock. A writer's does not.
template <class Htm>
class alignas(64) basic_shared_mutex {
 public:
  constexpr basic_shared_mutex() noexcept = default;
  explicit basic_shared_mutex(const char* name) : elision_(lock_record_named(name)) {}
  basic_shared_mutex(const basic_shared_mutex&) = delete;
  basic_shared_mutex& operator=(const basic_shared_mutex&) = delete;

  void lock() { lock_as<exclusive>(); }
  // Returns false if a thread holds the lock. Rarely it also fails on a free lock, while a reader
  // that could not enter withdraws. Never waits.
  bool try_lock() { return try_lock_as<exclusive>(); }
  void unlock() {
    if (Htm::enabled() && elision_.leave()) return;
    lock_.unlock();
  }

  void lock_shared() { lock_as<shared>(); }
  // Returns false if a writer holds the lock or waits for it. Never waits.
  bool try_lock_shared() { return try_lock_as<shared>(); }
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
