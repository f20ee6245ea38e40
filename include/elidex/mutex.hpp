// Drop-in mutexes: std::mutex, std::recursive_mutex and std::shared_mutex, elided where that pays.
//
//   elidex::mutex lock("orders");               // the name is for statistics, and can be left out
//   { std::lock_guard guard(lock); ++table[i]; }
//   for (const auto& one : elidex::named_lock_stats()) std::cout << one << '\n';
//
// On a CPU that commits hardware regions a section runs as a region: threads that don't touch the same data don't wait.
// A lock whose sections mostly abort stops trying, for a time that depends on how long the failures took and on their cause
// (internal/sync/elision_pause.hpp). On any other CPU the lock is taken at once; it spins for a moment and then sleeps
// (internal/sync/sleeping_lock.hpp, internal/sync/sleeping_shared_lock.hpp).
//
// What a section may do is what it may do under a std::mutex. Inside a region it can be rolled back and run again, which it
// does not notice, unless it looks at what memory does not hold: a system call, a page fault or output ends the region, and
// the section runs again with the lock taken. To wait inside a section use elidex::condition_variable.
//
// What a call does (in parentheses: an error of the program, as with the standard's):
//
//                                 caller holds it     somebody else holds it      nobody does
//   lock()         mutex          (deadlock)          waits                       takes or elides
//                  recursive      one level more      waits                       takes or elides
//   try_lock()     mutex          (false)             false                       true
//   unlock()       any            ends the section    (frees it)                  (nothing)
//   lock_shared()  shared_mutex   (may deadlock)      waits for writers           takes or elides
//
// Not here: timed locking, native_handle. A name is copied, and may not be null.
//
// Invariants: no region of a lock commits while another thread holds it; of a shared_mutex, a reader's region commits beside
// readers who hold it, but not beside a writer. A region knows which locks it stands for (internal/sync/region_locks.hpp), so sections nest and overlap in
// any order, elided and taken ones mixed.
//
// Order of locks: the program's, as without elision. Waiting happens outside regions only.
//
// Linearization: an elided section at its commit; any other at the underlying lock's.
//
// Size: one cache line (recursive_mutex: two), because a write beside the lock's word would abort the regions that read it. Without a name
// the constructors are constant, so static mutexes are there before any code runs. Destroying a lock that is held, or
// waited for, is an error, as with std::mutex; whoever was the last to hold it may destroy it as soon as unlock() returns.
//
// fork(), as with std::mutex: locks that the forking thread holds stay held by it in the child. The
// child must not use a lock that another thread held or waited for: nothing unlocks it there.
//
// Errors: lock() and the others throw nothing. A name's constructor throws std::bad_alloc.
//
// From: papers/001 section 3.3 and papers/004 sections 3.1, 3.2.4 (one region for nested sections) and 3.4 (elision for
// programs that know nothing of it). Deviations: as in elided.hpp, and in what is said above.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "elidex/htm.hpp"
#include "elidex/internal/sync/drop_in_elision.hpp"
#include "elidex/internal/sync/lock_names.hpp"
#include "elidex/internal/sync/sleeping_lock.hpp"
#include "elidex/internal/sync/sleeping_shared_lock.hpp"
#include "elidex/internal/memory/thread_slot.hpp"

namespace elidex {

namespace detail {

// Takes a lock and counts the waiting, for locks with a name.
template <class TryLock, class Lock>
void take_and_count(lock_record& record, const TryLock& try_lock, const Lock& lock) {
  if (try_lock()) return;
  const auto began = std::chrono::steady_clock::now();
  lock();
  const auto waited = std::chrono::steady_clock::now() - began;
  record.count_wait(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count()));
}

}  // namespace detail

template <class Htm>
class alignas(64) basic_mutex {
 public:
  constexpr basic_mutex() noexcept = default;
  explicit basic_mutex(const char* name) : elision_(lock_record_named(name)) {}
  basic_mutex(const basic_mutex&) = delete;
  basic_mutex& operator=(const basic_mutex&) = delete;

  void lock() {
    if (!Htm::enabled() && elision_.record() == nullptr) [[likely]] {
      lock_.lock();
    } else {
      lock_the_long_way();
    }
  }

  // False: held by somebody at this moment. Never waits.
  bool try_lock() {
    if (!Htm::enabled()) return take_if(lock_.try_lock(), {detail::entry::not_tried, detail::nothing_aborted, false});
    const auto attempt = elision_.enter(is_free(), detail::while_held::give_up);
    if (attempt.how == detail::entry::elided) return true;
    return attempt.how != detail::entry::held && take_if(lock_.try_lock(), attempt);
  }

  void unlock() {
    if (Htm::enabled() && elision_.leave()) return;
    lock_.unlock();
  }

  // Held by taking it; an elided section holds nothing.
  bool is_locked() const noexcept { return lock_.is_locked(); }

 private:
  auto is_free() const noexcept {
    return [this] { return !lock_.is_locked(); };
  }

  [[gnu::noinline]] void lock_the_long_way() {
    typename detail::drop_in_elision<Htm>::attempt attempt{detail::entry::not_tried, detail::nothing_aborted, false};
    if (Htm::enabled()) {
      attempt = elision_.enter(is_free(), detail::while_held::wait);
      if (attempt.how == detail::entry::elided) return;
    }
    if (lock_record* const record = elision_.record(); record != nullptr) {
      detail::take_and_count(*record, [this] { return lock_.try_lock(); }, [this] { lock_.lock(); });
    } else {
      lock_.lock();
    }
    elision_.took(attempt);
  }

  bool take_if(bool taken, const typename detail::drop_in_elision<Htm>::attempt& before) noexcept {
    if (taken && (Htm::enabled() || elision_.record() != nullptr)) elision_.took(before);
    return taken;
  }

  sleeping_lock lock_;
  detail::drop_in_elision<Htm> elision_;
};

// lock() by the thread that holds it already adds a level; unlock() takes one away.
template <class Htm>
class alignas(64) basic_recursive_mutex {
 public:
  constexpr basic_recursive_mutex() noexcept = default;
  explicit basic_recursive_mutex(const char* name) : mutex_(name) {}
  basic_recursive_mutex(const basic_recursive_mutex&) = delete;
  basic_recursive_mutex& operator=(const basic_recursive_mutex&) = delete;

  void lock() {
    if (!add_level()) {
      mutex_.lock();
      note_owner();
    }
  }

  // False: held by another thread at this moment.
  bool try_lock() {
    if (add_level()) return true;
    if (!mutex_.try_lock()) return false;
    note_owner();
    return true;
  }

  void unlock() {
    if (is_mine()) {
      if (--levels_ != 0) return;
      owner_.store(nullptr, std::memory_order_relaxed);  // no partner, see is_mine()
    }
    mutex_.unlock();
  }

 private:
  // An address that no other live thread has.
  static const void* me() noexcept { return static_cast<const void*>(&detail::current_thread_record); }

  // relaxed, without a partner: only this thread ever writes its own mark here, so nobody else's store can look like it.
  bool is_mine() const noexcept { return owner_.load(std::memory_order_relaxed) == me(); }

  bool add_level() noexcept {
    if (!is_mine()) return false;
    ++levels_;
    return true;
  }

  // An elided section has no owner: a second lock() of its thread joins the region.
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

// Readers elide like writers, and beside readers that hold it.
template <class Htm>
class alignas(64) basic_shared_mutex {
 public:
  constexpr basic_shared_mutex() noexcept = default;
  explicit basic_shared_mutex(const char* name) : elision_(lock_record_named(name)) {}
  basic_shared_mutex(const basic_shared_mutex&) = delete;
  basic_shared_mutex& operator=(const basic_shared_mutex&) = delete;

  void lock() { lock_as<exclusive>(); }
  // False: held by somebody at this moment, or (seldom) a reader that cannot come in has just looked.
  bool try_lock() { return try_lock_as<exclusive>(); }
  void unlock() {
    if (Htm::enabled() && elision_.leave()) return;
    lock_.unlock();
  }

  void lock_shared() { lock_as<shared>(); }
  // False: held by a writer at this moment, or one waits.
  bool try_lock_shared() { return try_lock_as<shared>(); }
  void unlock_shared() {
    if (Htm::enabled() && elision_.leave()) return;
    lock_.unlock_shared();
  }

 private:
  struct exclusive {
    static bool is_free(const sleeping_shared_lock& lock) noexcept { return !lock.is_locked(); }
    static void lock(sleeping_shared_lock& lock) noexcept { lock.lock(); }
    static bool try_lock(sleeping_shared_lock& lock) noexcept { return lock.try_lock(); }
  };
  struct shared {
    static bool is_free(const sleeping_shared_lock& lock) noexcept { return !lock.is_locked_exclusive(); }
    static void lock(sleeping_shared_lock& lock) noexcept { lock.lock_shared(); }
    static bool try_lock(sleeping_shared_lock& lock) noexcept { return lock.try_lock_shared(); }
  };

  using attempt = typename detail::drop_in_elision<Htm>::attempt;

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
    attempt before{detail::entry::not_tried, detail::nothing_aborted, false};
    if (Htm::enabled()) {
      before = elision_.enter([this] { return Mode::is_free(lock_); }, detail::while_held::wait);
      if (before.how == detail::entry::elided) return;
    }
    if (lock_record* const record = elision_.record(); record != nullptr) {
      detail::take_and_count(*record, [this] { return Mode::try_lock(lock_); }, [this] { Mode::lock(lock_); });
    } else {
      Mode::lock(lock_);
    }
    elision_.took(before);
  }

  template <class Mode>
  bool try_lock_as() {
    attempt before{detail::entry::not_tried, detail::nothing_aborted, false};
    if (Htm::enabled()) {
      before = elision_.enter([this] { return Mode::is_free(lock_); }, detail::while_held::give_up);
      if (before.how == detail::entry::elided) return true;
      if (before.how == detail::entry::held) return false;
    }
    if (!Mode::try_lock(lock_)) return false;
    if (Htm::enabled() || elision_.record() != nullptr) elision_.took(before);
    return true;
  }

  sleeping_shared_lock lock_;
  detail::drop_in_elision<Htm> elision_;
};

using mutex = basic_mutex<htm::native>;
using recursive_mutex = basic_recursive_mutex<htm::native>;
using shared_mutex = basic_shared_mutex<htm::native>;

}  // namespace elidex
