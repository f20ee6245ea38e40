// A table of pointers to the pthread functions that the library replaces. One table has the real
// functions, and one has those that callers get at the moment.
//
// Thread-safety: a table is plain data. Threads that share a table read its pointers through
// atomic_ref.
#pragma once

#include <pthread.h>
#include <time.h>

#include <atomic>

namespace elidex::preload {

struct pthread_functions {
  using mutex_call = int (*)(pthread_mutex_t*) noexcept;
  using mutex_timed_call = int (*)(pthread_mutex_t*, const timespec*) noexcept;
  using mutex_clock_call = int (*)(pthread_mutex_t*, clockid_t, const timespec*) noexcept;
  using rwlock_call = int (*)(pthread_rwlock_t*) noexcept;
  using rwlock_timed_call = int (*)(pthread_rwlock_t*, const timespec*) noexcept;
  using rwlock_clock_call = int (*)(pthread_rwlock_t*, clockid_t, const timespec*) noexcept;
  // Not noexcept: a cancelled thread unwinds out of them.
  using wait_call = int (*)(pthread_cond_t*, pthread_mutex_t*);
  using timed_wait_call = int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  using clock_wait_call = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

  mutex_call mutex_lock;
  mutex_call mutex_trylock;
  mutex_timed_call mutex_timedlock;
  mutex_clock_call mutex_clocklock;
  mutex_call mutex_unlock;
  mutex_call mutex_destroy;

  rwlock_call rwlock_rdlock;
  rwlock_call rwlock_tryrdlock;
  rwlock_timed_call rwlock_timedrdlock;
  rwlock_clock_call rwlock_clockrdlock;
  rwlock_call rwlock_wrlock;
  rwlock_call rwlock_trywrlock;
  rwlock_timed_call rwlock_timedwrlock;
  rwlock_clock_call rwlock_clockwrlock;
  rwlock_call rwlock_unlock;
  rwlock_call rwlock_destroy;

  wait_call cond_wait;
  timed_wait_call cond_timedwait;
  clock_wait_call cond_clockwait;
};

template <auto Member>
auto load_function(pthread_functions& table) noexcept {
  // acquire: pairs with the release in store_function(). Functions that were stored before this one
  // are seen by later loads.
  return std::atomic_ref(table.*Member).load(std::memory_order_acquire);
}

template <auto Member>
void store_function(pthread_functions& table, const pthread_functions& from) noexcept {
  // pairs with the acquire in load_function()
  std::atomic_ref(table.*Member).store(from.*Member, std::memory_order_release);
}

}  // namespace elidex::preload
