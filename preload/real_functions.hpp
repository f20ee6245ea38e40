// The functions that the library's own call: glibc's, or those of another library that also
// replaces them.
//
//   real_function<&pthread_functions::mutex_lock>()(mutex)   // may be called at any time
//   real_functions::mutex_lock(mutex)                        // after find_real_functions()
//
// dlsym(RTLD_NEXT) finds the functions of other such libraries. But it may call malloc, a program's
// own malloc may take a lock, and that call comes here. A thread that comes here while it is inside
// dlsym gets glibc's own function, which is found without dlsym.
//
// Thread-safety: any thread may call these, also before the library is initialised.
#pragma once

#include <atomic>

#include "preload/pthread_functions.hpp"

namespace elidex::preload {

inline constinit pthread_functions real{};
inline constinit std::atomic<bool> real_is_known{false};
inline thread_local constinit bool inside_dlsym = false;

// Several threads may call it at the same time. All find the same functions.
void find_real_functions() noexcept;

void* find_one_in_libc(const void* place_in_real) noexcept;

template <auto Member>
auto real_function() noexcept {
  using function = std::remove_reference_t<decltype(real.*Member)>;
  // acquire: pairs with the release in find_real_functions().
  if (!real_is_known.load(std::memory_order_acquire)) {
    if (inside_dlsym)
      return reinterpret_cast<function>(
          find_one_in_libc(static_cast<const void*>(&(real.*Member))));
    find_real_functions();
  }
  return load_function<Member>(real);
}

// How the real functions are called by interposed_locks.
struct real_functions {
  static int mutex_lock(pthread_mutex_t* m) noexcept { return real.mutex_lock(m); }
  static int mutex_trylock(pthread_mutex_t* m) noexcept { return real.mutex_trylock(m); }
  static int mutex_timedlock(pthread_mutex_t* m, const timespec* t) noexcept {
    return real.mutex_timedlock(m, t);
  }
  static int mutex_clocklock(pthread_mutex_t* m, clockid_t c, const timespec* t) noexcept {
    return real.mutex_clocklock(m, c, t);
  }
  static int mutex_unlock(pthread_mutex_t* m) noexcept { return real.mutex_unlock(m); }
  static int mutex_destroy(pthread_mutex_t* m) noexcept { return real.mutex_destroy(m); }
  static int rwlock_rdlock(pthread_rwlock_t* l) noexcept { return real.rwlock_rdlock(l); }
  static int rwlock_tryrdlock(pthread_rwlock_t* l) noexcept { return real.rwlock_tryrdlock(l); }
  static int rwlock_timedrdlock(pthread_rwlock_t* l, const timespec* t) noexcept {
    return real.rwlock_timedrdlock(l, t);
  }
  static int rwlock_clockrdlock(pthread_rwlock_t* l, clockid_t c, const timespec* t) noexcept {
    return real.rwlock_clockrdlock(l, c, t);
  }
  static int rwlock_wrlock(pthread_rwlock_t* l) noexcept { return real.rwlock_wrlock(l); }
  static int rwlock_trywrlock(pthread_rwlock_t* l) noexcept { return real.rwlock_trywrlock(l); }
  static int rwlock_timedwrlock(pthread_rwlock_t* l, const timespec* t) noexcept {
    return real.rwlock_timedwrlock(l, t);
  }
  static int rwlock_clockwrlock(pthread_rwlock_t* l, clockid_t c, const timespec* t) noexcept {
    return real.rwlock_clockwrlock(l, c, t);
  }
  static int rwlock_unlock(pthread_rwlock_t* l) noexcept { return real.rwlock_unlock(l); }
  static int rwlock_destroy(pthread_rwlock_t* l) noexcept { return real.rwlock_destroy(l); }
  static int cond_wait(pthread_cond_t* c, pthread_mutex_t* m) { return real.cond_wait(c, m); }
  static int cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const timespec* t) {
    return real.cond_timedwait(c, m, t);
  }
  static int cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t clock,
                            const timespec* t) {
    return real.cond_clockwait(c, m, clock, t);
  }
};

}  // namespace elidex::preload
