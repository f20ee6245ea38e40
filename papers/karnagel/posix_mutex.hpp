// The system's mutex with one question more: is it held? Elision asks, since a region must watch
// the lock.
//
//   posix_mutex mutex;                          // a std::mutex, at std::mutex's price
//   elidex::elided<posix_mutex> elided_mutex;   // see elided.hpp
//
// Where the answer comes from is a probe.
//
// libc_lock_word reads glibc's own lock word. It costs the mutex nothing, and a region that reads
// it conflicts with the very write that takes the mutex. The word's place and its meaning (0 is
// free) are part of glibc's ABI, since static initialisers of old programs contain them.
//
// held_flag is a flag of our own beside the mutex, for other C libraries: one atomic exchange more
// for each acquisition. Its order is seq_cst, so that the flag is visible before the holder's first
// access to what the mutex protects; a region that saw it clear has committed before that, or
// aborts.
//
// Not for processes that switch glibc's own elision on (GLIBC_TUNABLES=glibc.elision.enable=1, up
// to glibc 2.42): there a mutex may be held by a region of glibc's while its word says free.
// Exclusion holds, the statistics don't.
//
// Invariants: not recursive. Between lock() and unlock() is_locked() is true for every thread that
// the holder synchronised with.
//
// Thread-safety: all members, from any thread; unlock() by the holder only. Errors: lock() throws
// std::system_error as std::mutex does (never on glibc for this kind of mutex).
#pragma once

#include <atomic>
#include <mutex>

namespace elidex::papers {

class held_flag {
 public:
  void after_lock() noexcept { held_.exchange(true); }
  void before_unlock() noexcept {
    held_.store(false, std::memory_order_release);  // pairs with the acquire in is_held()
  }
  bool is_held(std::mutex&) const noexcept {
    return held_.load(std::memory_order_acquire);  // pairs with the release in before_unlock()
  }

 private:
  std::atomic<bool> held_{false};
};

#if defined(__GLIBC__)
class libc_lock_word {
 public:
  void after_lock() noexcept {}
  void before_unlock() noexcept {}
  bool is_held(std::mutex& of) const noexcept {
    // acquire: pairs with the release in glibc's unlock.
    return __atomic_load_n(&of.native_handle()->__data.__lock, __ATOMIC_ACQUIRE) != 0;
  }
};
#endif

template <class Probe>
class basic_posix_mutex {
 public:
  basic_posix_mutex() = default;
  basic_posix_mutex(const basic_posix_mutex&) = delete;
  basic_posix_mutex& operator=(const basic_posix_mutex&) = delete;

  void lock() {
    mutex_.lock();
    probe_.after_lock();
  }

  // False: held by somebody at this moment.
  bool try_lock() noexcept {
    if (!mutex_.try_lock()) return false;
    probe_.after_lock();
    return true;
  }

  void unlock() noexcept {
    probe_.before_unlock();
    mutex_.unlock();
  }

  bool is_locked() const noexcept { return probe_.is_held(mutex_); }

 private:
  mutable std::mutex mutex_;  // mutable: std::mutex hands its handle only to non-const callers
  [[no_unique_address]] Probe probe_;
};

#if defined(__GLIBC__)
using posix_mutex = basic_posix_mutex<libc_lock_word>;
#else
using posix_mutex = basic_posix_mutex<held_flag>;
#endif

}  // namespace elidex::papers
