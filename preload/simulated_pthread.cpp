// pthread's functions for locks in a program on the simulated machine: the machine's own, or those
// whose sections run as hardware regions (ELIDEX_SIM, locks=elided). The program is linked with
// this file, so these stand before the machine's. They are not compiled for the machine: calling
// them costs nothing there.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "preload/simulated_locks.hpp"

namespace elidex::preload {
namespace {

constinit pthread_functions machine{};
constinit pthread_functions current{};

template <class Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

pthread_functions find_machine_functions() {
  pthread_functions f{};
  find(f.mutex_lock, "pthread_mutex_lock");
  find(f.mutex_trylock, "pthread_mutex_trylock");
  find(f.mutex_timedlock, "pthread_mutex_timedlock");
  find(f.mutex_clocklock, "pthread_mutex_clocklock");
  find(f.mutex_unlock, "pthread_mutex_unlock");
  find(f.mutex_destroy, "pthread_mutex_destroy");
  find(f.rwlock_rdlock, "pthread_rwlock_rdlock");
  find(f.rwlock_tryrdlock, "pthread_rwlock_tryrdlock");
  find(f.rwlock_timedrdlock, "pthread_rwlock_timedrdlock");
  find(f.rwlock_clockrdlock, "pthread_rwlock_clockrdlock");
  find(f.rwlock_wrlock, "pthread_rwlock_wrlock");
  find(f.rwlock_trywrlock, "pthread_rwlock_trywrlock");
  find(f.rwlock_timedwrlock, "pthread_rwlock_timedwrlock");
  find(f.rwlock_clockwrlock, "pthread_rwlock_clockwrlock");
  find(f.rwlock_unlock, "pthread_rwlock_unlock");
  find(f.rwlock_destroy, "pthread_rwlock_destroy");
  find(f.cond_wait, "pthread_cond_wait");
  find(f.cond_timedwait, "pthread_cond_timedwait");
  find(f.cond_clockwait, "pthread_cond_clockwait");
  return f;
}

// Locks are taken before this file is initialised too.
const pthread_functions& functions() {
  if (current.mutex_lock == nullptr) current = machine = find_machine_functions();
  return current;
}

}  // namespace
}  // namespace elidex::preload

using namespace elidex::preload;

extern "C" {

int elidex_sim_cpu_count() noexcept;  // 0 outside of main()

// The machine's, but not before main() or after it, where a thread would be a real one.
int pthread_create(pthread_t* handle, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) noexcept {
  if (elidex_sim_cpu_count() == 0) {
    std::fputs("elidex: a thread cannot start before main() or after it\n", stderr);
    std::_Exit(1);
  }
  using function = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const machine_create =
      reinterpret_cast<function*>(::dlsym(RTLD_NEXT, "pthread_create"));
  return machine_create(handle, attributes, body, argument);
}

void elidex_program_elide_locks() {
  functions();
  current = elided_functions(machine);
}

int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  return functions().mutex_lock(m);
}
int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  return functions().mutex_trylock(m);
}
int pthread_mutex_timedlock(pthread_mutex_t* m, const timespec* until) noexcept {
  return functions().mutex_timedlock(m, until);
}
int pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t clock, const timespec* until) noexcept {
  return functions().mutex_clocklock(m, clock, until);
}
int pthread_mutex_unlock(pthread_mutex_t* m) noexcept {
  return functions().mutex_unlock(m);
}
int pthread_mutex_destroy(pthread_mutex_t* m) noexcept {
  return functions().mutex_destroy(m);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* l) noexcept {
  return functions().rwlock_rdlock(l);
}
int pthread_rwlock_tryrdlock(pthread_rwlock_t* l) noexcept {
  return functions().rwlock_tryrdlock(l);
}
int pthread_rwlock_timedrdlock(pthread_rwlock_t* l, const timespec* until) noexcept {
  return functions().rwlock_timedrdlock(l, until);
}
int pthread_rwlock_clockrdlock(pthread_rwlock_t* l, clockid_t clock,
                               const timespec* until) noexcept {
  return functions().rwlock_clockrdlock(l, clock, until);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* l) noexcept {
  return functions().rwlock_wrlock(l);
}
int pthread_rwlock_trywrlock(pthread_rwlock_t* l) noexcept {
  return functions().rwlock_trywrlock(l);
}
int pthread_rwlock_timedwrlock(pthread_rwlock_t* l, const timespec* until) noexcept {
  return functions().rwlock_timedwrlock(l, until);
}
int pthread_rwlock_clockwrlock(pthread_rwlock_t* l, clockid_t clock,
                               const timespec* until) noexcept {
  return functions().rwlock_clockwrlock(l, clock, until);
}
int pthread_rwlock_unlock(pthread_rwlock_t* l) noexcept {
  return functions().rwlock_unlock(l);
}
int pthread_rwlock_destroy(pthread_rwlock_t* l) noexcept {
  return functions().rwlock_destroy(l);
}
int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
  return functions().cond_wait(c, m);
}
int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const timespec* until) {
  return functions().cond_timedwait(c, m, until);
}
int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t clock,
                           const timespec* until) {
  return functions().cond_clockwait(c, m, clock, until);
}

}  // extern "C"
