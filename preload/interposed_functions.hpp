// interposed_locks as a table of functions, with the place that called: the function with pthread's
// name has jumped here, so it is our own return address.
//
// Thread-safety: as interposed_locks.
#pragma once

#include "preload/interposed_locks.hpp"
#include "preload/pthread_functions.hpp"
#include "preload/real_functions.hpp"

namespace elidex::preload {

template <class Htm, class Counts>
struct interposed {
  using locks = interposed_locks<Htm, real_functions, Counts>;

  template <class... Arguments>
  struct placed {
    template <auto Function>
    static int call(Arguments... arguments) noexcept {
      return Function(arguments..., __builtin_return_address(0));
    }
  };

  static constexpr pthread_functions functions() noexcept {
    using t = const timespec*;
    using m = pthread_mutex_t*;
    using l = pthread_rwlock_t*;
    return {
        .mutex_lock = placed<m>::template call<&locks::mutex_lock>,
        .mutex_trylock = placed<m>::template call<&locks::mutex_trylock>,
        .mutex_timedlock = placed<m, t>::template call<&locks::mutex_timedlock>,
        .mutex_clocklock = placed<m, clockid_t, t>::template call<&locks::mutex_clocklock>,
        .mutex_unlock = &locks::mutex_unlock,
        .mutex_destroy = &locks::mutex_destroy,
        .rwlock_rdlock = placed<l>::template call<&locks::rwlock_rdlock>,
        .rwlock_tryrdlock = placed<l>::template call<&locks::rwlock_tryrdlock>,
        .rwlock_timedrdlock = placed<l, t>::template call<&locks::rwlock_timedrdlock>,
        .rwlock_clockrdlock = placed<l, clockid_t, t>::template call<&locks::rwlock_clockrdlock>,
        .rwlock_wrlock = placed<l>::template call<&locks::rwlock_wrlock>,
        .rwlock_trywrlock = placed<l>::template call<&locks::rwlock_trywrlock>,
        .rwlock_timedwrlock = placed<l, t>::template call<&locks::rwlock_timedwrlock>,
        .rwlock_clockwrlock = placed<l, clockid_t, t>::template call<&locks::rwlock_clockwrlock>,
        .rwlock_unlock = &locks::rwlock_unlock,
        .rwlock_destroy = &locks::rwlock_destroy,
        .cond_wait = &locks::cond_wait,
        .cond_timedwait = &locks::cond_timedwait,
        .cond_clockwait = &locks::cond_clockwait,
    };
  }
};

}  // namespace elidex::preload
