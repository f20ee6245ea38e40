// The interposed locks on the simulated machine: compiled for it, because the machine must see what
// they read and write. simulated_pthread.cpp calls them.
#include "preload/simulated_locks.hpp"

#include "elidex/htm.hpp"
#include "preload/interposed_locks.hpp"

namespace elidex::preload {
namespace {

constinit const pthread_functions* machine_functions = nullptr;

// The machine's own functions, as interposed_locks calls them.
struct machine_locks {
  using m = pthread_mutex_t;
  using l = pthread_rwlock_t;
  using t = timespec;

  static int mutex_lock(m* x) noexcept { return machine_functions->mutex_lock(x); }
  static int mutex_trylock(m* x) noexcept { return machine_functions->mutex_trylock(x); }
  static int mutex_timedlock(m* x, const t* u) noexcept {
    return machine_functions->mutex_timedlock(x, u);
  }
  static int mutex_clocklock(m* x, clockid_t c, const t* u) noexcept {
    return machine_functions->mutex_clocklock(x, c, u);
  }
  static int mutex_unlock(m* x) noexcept { return machine_functions->mutex_unlock(x); }
  static int mutex_destroy(m* x) noexcept { return machine_functions->mutex_destroy(x); }
  static int rwlock_rdlock(l* x) noexcept { return machine_functions->rwlock_rdlock(x); }
  static int rwlock_tryrdlock(l* x) noexcept { return machine_functions->rwlock_tryrdlock(x); }
  static int rwlock_timedrdlock(l* x, const t* u) noexcept {
    return machine_functions->rwlock_timedrdlock(x, u);
  }
  static int rwlock_clockrdlock(l* x, clockid_t c, const t* u) noexcept {
    return machine_functions->rwlock_clockrdlock(x, c, u);
  }
  static int rwlock_wrlock(l* x) noexcept { return machine_functions->rwlock_wrlock(x); }
  static int rwlock_trywrlock(l* x) noexcept { return machine_functions->rwlock_trywrlock(x); }
  static int rwlock_timedwrlock(l* x, const t* u) noexcept {
    return machine_functions->rwlock_timedwrlock(x, u);
  }
  static int rwlock_clockwrlock(l* x, clockid_t c, const t* u) noexcept {
    return machine_functions->rwlock_clockwrlock(x, c, u);
  }
  static int rwlock_unlock(l* x) noexcept { return machine_functions->rwlock_unlock(x); }
  static int rwlock_destroy(l* x) noexcept { return machine_functions->rwlock_destroy(x); }
  static int cond_wait(pthread_cond_t* c, m* x) { return machine_functions->cond_wait(c, x); }
  static int cond_timedwait(pthread_cond_t* c, m* x, const t* u) {
    return machine_functions->cond_timedwait(c, x, u);
  }
  static int cond_clockwait(pthread_cond_t* c, m* x, clockid_t clock, const t* u) {
    return machine_functions->cond_clockwait(c, x, clock, u);
  }
};

using locks = interposed_locks<htm::native, machine_locks, no_counts>;

// interposed_locks wants to know the call's place, which nobody counts here.
template <class... Arguments>
struct placed {
  template <auto Function>
  static int call(Arguments... arguments) noexcept {
    return Function(arguments..., nullptr);
  }
};

}  // namespace

pthread_functions elided_functions(const pthread_functions& machine) noexcept {
  machine_functions = &machine;
  using m = pthread_mutex_t*;
  using l = pthread_rwlock_t*;
  using t = const timespec*;
  return {
      .mutex_lock = placed<m>::call<&locks::mutex_lock>,
      .mutex_trylock = placed<m>::call<&locks::mutex_trylock>,
      .mutex_timedlock = placed<m, t>::call<&locks::mutex_timedlock>,
      .mutex_clocklock = placed<m, clockid_t, t>::call<&locks::mutex_clocklock>,
      .mutex_unlock = &locks::mutex_unlock,
      .mutex_destroy = &locks::mutex_destroy,
      .rwlock_rdlock = placed<l>::call<&locks::rwlock_rdlock>,
      .rwlock_tryrdlock = placed<l>::call<&locks::rwlock_tryrdlock>,
      .rwlock_timedrdlock = placed<l, t>::call<&locks::rwlock_timedrdlock>,
      .rwlock_clockrdlock = placed<l, clockid_t, t>::call<&locks::rwlock_clockrdlock>,
      .rwlock_wrlock = placed<l>::call<&locks::rwlock_wrlock>,
      .rwlock_trywrlock = placed<l>::call<&locks::rwlock_trywrlock>,
      .rwlock_timedwrlock = placed<l, t>::call<&locks::rwlock_timedwrlock>,
      .rwlock_clockwrlock = placed<l, clockid_t, t>::call<&locks::rwlock_clockwrlock>,
      .rwlock_unlock = &locks::rwlock_unlock,
      .rwlock_destroy = &locks::rwlock_destroy,
      .cond_wait = &locks::cond_wait,
      .cond_timedwait = &locks::cond_timedwait,
      .cond_clockwait = &locks::cond_clockwait,
  };
}

}  // namespace elidex::preload
