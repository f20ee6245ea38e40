// libelidex-preload.so: replaces the C library's locks in programs that are not changed.
//
//   LD_PRELOAD=/usr/lib/libelidex-preload.so PROGRAM                 elision, where the CPU commits
//                                                                    transactions
//   ELIDEX_STATS=- LD_PRELOAD=/usr/lib/libelidex-preload.so PROGRAM  and a table of what its locks
//       did, at its end
//
// Every function here is a jump through a pointer in `current`. The library decides once, when it
// is initialised, which functions these are. Without elision and statistics they are the real ones.
// Otherwise they are those of interposed_locks. Before the initialisation, and in a program that
// has such functions of its own, they are the real ones. The pointers are constants of the program
// at first, and each is written with one store. So locks may be taken at any time. A lock may be
// taken by one function and released by another: elision never changes the lock's words, and an
// unlock that does not find its lock among the elided ones is a real one.
//
// Each function must be a jump and not a call, because the statistics take the return address as
// the place that locked. So the library is always compiled with optimisation.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "elidex/htm.hpp"
#include "preload/call_sites.hpp"
#include "preload/interposed_functions.hpp"
#include "preload/pthread_functions.hpp"
#include "preload/real_functions.hpp"
#include "preload/report.hpp"
#include "preload/settings.hpp"
#include "preload/site_counting.hpp"

namespace elidex::preload {
namespace {

// --- before the library is initialised ---

template <auto Member, class... Arguments>
int first_call(Arguments... arguments) noexcept {
  return real_function<Member>()(arguments...);
}
template <auto Member, class... Arguments>
int first_wait(Arguments... arguments) {
  return real_function<Member>()(arguments...);
}

constexpr pthread_functions first_functions() noexcept {
  using p = pthread_functions;
  using m = pthread_mutex_t*;
  using l = pthread_rwlock_t*;
  using c = pthread_cond_t*;
  using t = const timespec*;
  return {
      .mutex_lock = first_call<&p::mutex_lock, m>,
      .mutex_trylock = first_call<&p::mutex_trylock, m>,
      .mutex_timedlock = first_call<&p::mutex_timedlock, m, t>,
      .mutex_clocklock = first_call<&p::mutex_clocklock, m, clockid_t, t>,
      .mutex_unlock = first_call<&p::mutex_unlock, m>,
      .mutex_destroy = first_call<&p::mutex_destroy, m>,
      .rwlock_rdlock = first_call<&p::rwlock_rdlock, l>,
      .rwlock_tryrdlock = first_call<&p::rwlock_tryrdlock, l>,
      .rwlock_timedrdlock = first_call<&p::rwlock_timedrdlock, l, t>,
      .rwlock_clockrdlock = first_call<&p::rwlock_clockrdlock, l, clockid_t, t>,
      .rwlock_wrlock = first_call<&p::rwlock_wrlock, l>,
      .rwlock_trywrlock = first_call<&p::rwlock_trywrlock, l>,
      .rwlock_timedwrlock = first_call<&p::rwlock_timedwrlock, l, t>,
      .rwlock_clockwrlock = first_call<&p::rwlock_clockwrlock, l, clockid_t, t>,
      .rwlock_unlock = first_call<&p::rwlock_unlock, l>,
      .rwlock_destroy = first_call<&p::rwlock_destroy, l>,
      .cond_wait = first_wait<&p::cond_wait, c, m>,
      .cond_timedwait = first_wait<&p::cond_timedwait, c, m, t>,
      .cond_clockwait = first_wait<&p::cond_clockwait, c, m, clockid_t, t>,
  };
}

constinit pthread_functions current = first_functions();

void use(const pthread_functions& functions) noexcept {
  using p = pthread_functions;
  // The unlock functions come first, because other threads may run already. A thread that elides
  // from now on finds an unlock function that knows elided locks.
  store_function<&p::mutex_unlock>(current, functions);
  store_function<&p::rwlock_unlock>(current, functions);
  store_function<&p::cond_wait>(current, functions);
  store_function<&p::cond_timedwait>(current, functions);
  store_function<&p::cond_clockwait>(current, functions);
  store_function<&p::mutex_destroy>(current, functions);
  store_function<&p::rwlock_destroy>(current, functions);
  store_function<&p::mutex_trylock>(current, functions);
  store_function<&p::rwlock_tryrdlock>(current, functions);
  store_function<&p::rwlock_trywrlock>(current, functions);
  store_function<&p::mutex_lock>(current, functions);
  store_function<&p::mutex_timedlock>(current, functions);
  store_function<&p::mutex_clocklock>(current, functions);
  store_function<&p::rwlock_rdlock>(current, functions);
  store_function<&p::rwlock_timedrdlock>(current, functions);
  store_function<&p::rwlock_clockrdlock>(current, functions);
  store_function<&p::rwlock_wrlock>(current, functions);
  store_function<&p::rwlock_timedwrlock>(current, functions);
  store_function<&p::rwlock_clockwrlock>(current, functions);
}

// --- the start ---

constinit settings wanted{};

void on_signal(int) {
  write_report(occasion::signal);
}

void catch_signal(int number) noexcept {
  struct sigaction now{};
  if (::sigaction(number, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
      now.sa_handler != SIG_DFL)
    return;
  struct sigaction ours{};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigaction(number, &ours, nullptr);
}

void in_child() {
  begin_again_in_child();
  report_belongs_to_child();
}

const char* why_not_elided() noexcept {
  return wanted.elision ? htm::capability().reason : "switched off (ELIDEX_ELISION=off)";
}

void count_from_now_on(const char* elision) noexcept {
  prepare_counting();
  prepare_report(wanted, elision);
  ::pthread_atfork(nullptr, nullptr, in_child);
  if (wanted.signal != 0) catch_signal(wanted.signal);
}

// Returns whether the program's calls come to this library. They do not if the program has such
// functions of its own, or was started without the library in LD_PRELOAD.
bool is_in_front() noexcept;

[[gnu::constructor]] void start() noexcept {
  find_real_functions();
  read_settings(wanted);
  if (!is_in_front()) {
    if (wanted.stats || wanted.verbose) {
      say("the library does nothing: another pthread_mutex_lock comes before its own (expected "
          "LD_PRELOAD, and a program without pthread functions of its own)");
    }
    return;
  }
  const bool elides = wanted.elision && htm::enabled();
  elision_budgets.conflict = wanted.conflict_retries;
  const char* const elision = elides ? "on" : why_not_elided();
  if (wanted.verbose)
    say("elision: ", elision, wanted.stats ? ", with statistics" : ", without statistics");
  if (wanted.stats) count_from_now_on(elision);
  if (wanted.stats) {
    use(elides ? interposed<htm::native, site_counting>::functions()
               : interposed<no_htm, site_counting>::functions());
  } else {
    use(elides ? interposed<htm::native, no_counts>::functions() : real);
  }
}

[[gnu::destructor]] void end() noexcept {
  write_report(occasion::end_of_process);
}

}  // namespace
}  // namespace elidex::preload

using namespace elidex::preload;

extern "C" {

[[gnu::visibility("default")]] int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  return load_function<&pthread_functions::mutex_lock>(current)(m);
}
[[gnu::visibility("default")]] int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  return load_function<&pthread_functions::mutex_trylock>(current)(m);
}
[[gnu::visibility("default")]] int pthread_mutex_timedlock(pthread_mutex_t* m,
                                                           const timespec* until) noexcept {
  return load_function<&pthread_functions::mutex_timedlock>(current)(m, until);
}
[[gnu::visibility("default")]] int pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t clock,
                                                           const timespec* until) noexcept {
  return load_function<&pthread_functions::mutex_clocklock>(current)(m, clock, until);
}
[[gnu::visibility("default")]] int pthread_mutex_unlock(pthread_mutex_t* m) noexcept {
  return load_function<&pthread_functions::mutex_unlock>(current)(m);
}
[[gnu::visibility("default")]] int pthread_mutex_destroy(pthread_mutex_t* m) noexcept {
  return load_function<&pthread_functions::mutex_destroy>(current)(m);
}
[[gnu::visibility("default")]] int pthread_rwlock_rdlock(pthread_rwlock_t* l) noexcept {
  return load_function<&pthread_functions::rwlock_rdlock>(current)(l);
}
[[gnu::visibility("default")]] int pthread_rwlock_tryrdlock(pthread_rwlock_t* l) noexcept {
  return load_function<&pthread_functions::rwlock_tryrdlock>(current)(l);
}
[[gnu::visibility("default")]] int pthread_rwlock_timedrdlock(pthread_rwlock_t* l,
                                                              const timespec* until) noexcept {
  return load_function<&pthread_functions::rwlock_timedrdlock>(current)(l, until);
}
[[gnu::visibility("default")]] int pthread_rwlock_clockrdlock(pthread_rwlock_t* l, clockid_t clock,
                                                              const timespec* until) noexcept {
  return load_function<&pthread_functions::rwlock_clockrdlock>(current)(l, clock, until);
}
[[gnu::visibility("default")]] int pthread_rwlock_wrlock(pthread_rwlock_t* l) noexcept {
  return load_function<&pthread_functions::rwlock_wrlock>(current)(l);
}
[[gnu::visibility("default")]] int pthread_rwlock_trywrlock(pthread_rwlock_t* l) noexcept {
  return load_function<&pthread_functions::rwlock_trywrlock>(current)(l);
}
[[gnu::visibility("default")]] int pthread_rwlock_timedwrlock(pthread_rwlock_t* l,
                                                              const timespec* until) noexcept {
  return load_function<&pthread_functions::rwlock_timedwrlock>(current)(l, until);
}
[[gnu::visibility("default")]] int pthread_rwlock_clockwrlock(pthread_rwlock_t* l, clockid_t clock,
                                                              const timespec* until) noexcept {
  return load_function<&pthread_functions::rwlock_clockwrlock>(current)(l, clock, until);
}
[[gnu::visibility("default")]] int pthread_rwlock_unlock(pthread_rwlock_t* l) noexcept {
  return load_function<&pthread_functions::rwlock_unlock>(current)(l);
}
[[gnu::visibility("default")]] int pthread_rwlock_destroy(pthread_rwlock_t* l) noexcept {
  return load_function<&pthread_functions::rwlock_destroy>(current)(l);
}
[[gnu::visibility("default")]] int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
  return load_function<&pthread_functions::cond_wait>(current)(c, m);
}
[[gnu::visibility("default")]] int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m,
                                                          const timespec* until) {
  return load_function<&pthread_functions::cond_timedwait>(current)(c, m, until);
}
[[gnu::visibility("default")]] int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m,
                                                          clockid_t clock, const timespec* until) {
  return load_function<&pthread_functions::cond_clockwait>(current)(c, m, clock, until);
}

}  // extern "C"

namespace elidex::preload {
namespace {

bool is_in_front() noexcept {
  void* const first = ::dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
  Dl_info about_first{};
  Dl_info about_us{};
  return first != nullptr && ::dladdr(first, &about_first) != 0 &&
         ::dladdr(reinterpret_cast<const void*>(&on_signal), &about_us) != 0 &&
         about_first.dli_fbase == about_us.dli_fbase;
}

}  // namespace
}  // namespace elidex::preload
