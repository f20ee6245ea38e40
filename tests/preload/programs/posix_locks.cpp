// What POSIX says about mutexes, reader-writer locks and conditions, function by function and error
// by error: prints one line for each answer, "ok" or "WRONG", and exits with the number of wrong
// ones. Run with and without the library, it must print the same.
//
// Written after the text of POSIX.1-2017 (and clocklock and clockwait of POSIX.1-2024). Where the
// standard leaves an answer open and programs rely on glibc's, glibc's is asked for and the line
// says so.
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>

namespace {

int wrong = 0;

void check(const char* what, bool right) {
  std::printf("%s: %s\n", what, right ? "ok" : "WRONG");
  if (!right) ++wrong;
}

void answers(const char* what, int got, int expected) {
  if (got == expected) {
    std::printf("%s: %s\n", what, expected == 0 ? "0" : std::strerror(expected));
  } else {
    std::printf("%s: WRONG: %s, not %s\n", what, std::strerror(got), std::strerror(expected));
    ++wrong;
  }
}

// A body in a thread of its own, joined.
void in_thread(const std::function<void()>& body) {
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* what) -> void* {
        (*static_cast<const std::function<void()>*>(what))();
        return nullptr;
      },
      const_cast<void*>(static_cast<const void*>(&body)));
  pthread_join(thread, nullptr);
}

timespec in_ms(clockid_t clock, long ms) {
  timespec t{};
  clock_gettime(clock, &t);
  const long ns = t.tv_nsec + ms * 1'000'000;
  t.tv_sec += ns / 1'000'000'000;
  t.tv_nsec = ns % 1'000'000'000;
  return t;
}

constexpr timespec long_ago{1, 0};
constexpr timespec not_a_time{1, 1'000'000'000};

struct mutex_kind {
  int type = PTHREAD_MUTEX_DEFAULT;
  bool set_type = false;
  int robust = PTHREAD_MUTEX_STALLED;
  int protocol = PTHREAD_PRIO_NONE;
  int shared = PTHREAD_PROCESS_PRIVATE;
};

void make(pthread_mutex_t& m, const mutex_kind& kind) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (kind.set_type) pthread_mutexattr_settype(&attributes, kind.type);
  pthread_mutexattr_setrobust(&attributes, kind.robust);
  pthread_mutexattr_setprotocol(&attributes, kind.protocol);
  pthread_mutexattr_setpshared(&attributes, kind.shared);
  answers("pthread_mutex_init", pthread_mutex_init(&m, &attributes), 0);
  pthread_mutexattr_destroy(&attributes);
}

// What holds for every kind.
void any_mutex(const char* name, const mutex_kind& kind) {
  std::printf("-- mutex: %s\n", name);
  pthread_mutex_t m;
  make(m, kind);
  answers("lock", pthread_mutex_lock(&m), 0);
  in_thread([&] {
    answers("trylock of another's", pthread_mutex_trylock(&m), EBUSY);
    answers("timedlock of another's, too late", pthread_mutex_timedlock(&m, &long_ago), ETIMEDOUT);
    const timespec soon = in_ms(CLOCK_REALTIME, 10);
    answers("timedlock of another's", pthread_mutex_timedlock(&m, &soon), ETIMEDOUT);
    answers("timedlock of another's, no time", pthread_mutex_timedlock(&m, &not_a_time), EINVAL);
    if (kind.protocol == PTHREAD_PRIO_NONE) {
      const timespec later = in_ms(CLOCK_MONOTONIC, 10);
      answers("clocklock of another's", pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &later),
              ETIMEDOUT);
      answers("clocklock by no clock",
              pthread_mutex_clocklock(&m, CLOCK_PROCESS_CPUTIME_ID, &later), EINVAL);
    }
  });
  answers("unlock", pthread_mutex_unlock(&m), 0);
  answers("trylock of a free one", pthread_mutex_trylock(&m), 0);
  answers("unlock after trylock", pthread_mutex_unlock(&m), 0);
  answers("timedlock of a free one, too late", pthread_mutex_timedlock(&m, &long_ago), 0);
  answers("unlock after timedlock", pthread_mutex_unlock(&m), 0);
  answers("timedlock of a free one, no time (glibc's answer)",
          pthread_mutex_timedlock(&m, &not_a_time), 0);
  answers("unlock", pthread_mutex_unlock(&m), 0);

  std::atomic<bool> waits{false};
  answers("lock before another's", pthread_mutex_lock(&m), 0);
  pthread_t waiter;
  struct context {
    pthread_mutex_t* m;
    std::atomic<bool>* waits;
    int got;
  } shared{&m, &waits, -1};
  pthread_create(
      &waiter, nullptr,
      [](void* raw) -> void* {
        auto& c = *static_cast<context*>(raw);
        c.waits->store(true);
        c.got = pthread_mutex_lock(c.m);
        pthread_mutex_unlock(c.m);
        return nullptr;
      },
      &shared);
  while (!waits.load()) usleep(100);
  usleep(3000);
  answers("unlock while another waits", pthread_mutex_unlock(&m), 0);
  pthread_join(waiter, nullptr);
  answers("the other's lock", shared.got, 0);

  for (int i = 0; i < 1000; ++i) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
  }
  answers("destroy after use", pthread_mutex_destroy(&m), 0);
}

void error_checking_mutex() {
  std::printf("-- what error-checking mutexes say\n");
  pthread_mutex_t m;
  make(m, {.type = PTHREAD_MUTEX_ERRORCHECK, .set_type = true});
  answers("unlock of a free one", pthread_mutex_unlock(&m), EPERM);
  answers("lock", pthread_mutex_lock(&m), 0);
  answers("lock again", pthread_mutex_lock(&m), EDEADLK);
  const timespec soon = in_ms(CLOCK_REALTIME, 10);
  answers("timedlock again", pthread_mutex_timedlock(&m, &soon), EDEADLK);
  answers("trylock again", pthread_mutex_trylock(&m), EBUSY);
  in_thread([&] { answers("unlock of another's", pthread_mutex_unlock(&m), EPERM); });
  answers("unlock", pthread_mutex_unlock(&m), 0);
  answers("unlock again", pthread_mutex_unlock(&m), EPERM);
  pthread_mutex_t fixed = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  pthread_mutex_lock(&fixed);
  answers("lock again, static initialiser", pthread_mutex_lock(&fixed), EDEADLK);
  pthread_mutex_unlock(&fixed);
}

void recursive_mutex() {
  std::printf("-- how recursive mutexes count\n");
  pthread_mutex_t m;
  make(m, {.type = PTHREAD_MUTEX_RECURSIVE, .set_type = true});
  answers("unlock of a free one", pthread_mutex_unlock(&m), EPERM);
  for (int i = 0; i < 3; ++i) answers("lock", pthread_mutex_lock(&m), 0);
  answers("trylock again", pthread_mutex_trylock(&m), 0);
  for (int i = 0; i < 3; ++i) {
    answers("unlock", pthread_mutex_unlock(&m), 0);
    in_thread([&] { answers("still held", pthread_mutex_trylock(&m), EBUSY); });
  }
  in_thread([&] { answers("unlock of another's", pthread_mutex_unlock(&m), EPERM); });
  answers("last unlock", pthread_mutex_unlock(&m), 0);
  in_thread([&] {
    answers("free for others", pthread_mutex_trylock(&m), 0);
    pthread_mutex_unlock(&m);
  });
  pthread_mutex_t fixed = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  answers("lock, static initialiser", pthread_mutex_lock(&fixed), 0);
  answers("lock again, static initialiser", pthread_mutex_lock(&fixed), 0);
  pthread_mutex_unlock(&fixed);
  pthread_mutex_unlock(&fixed);
  answers("unlock once more", pthread_mutex_unlock(&fixed), EPERM);
}

void normal_mutex() {
  std::printf("-- what normal mutexes do\n");
  pthread_mutex_t m;
  make(m, {.type = PTHREAD_MUTEX_NORMAL, .set_type = true});
  pthread_mutex_lock(&m);
  answers("trylock of one's own", pthread_mutex_trylock(&m), EBUSY);
  const timespec soon = in_ms(CLOCK_REALTIME, 20);
  answers("timedlock of one's own deadlocks", pthread_mutex_timedlock(&m, &soon), ETIMEDOUT);
  pthread_mutex_unlock(&m);
  pthread_mutex_t fixed = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&fixed);
  answers("trylock of one's own, static initialiser", pthread_mutex_trylock(&fixed), EBUSY);
  answers("timedlock of one's own, static initialiser", pthread_mutex_timedlock(&fixed, &long_ago),
          ETIMEDOUT);
  pthread_mutex_unlock(&fixed);
  pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
  answers("lock, adaptive", pthread_mutex_lock(&adaptive), 0);
  in_thread(
      [&] { answers("trylock of another's, adaptive", pthread_mutex_trylock(&adaptive), EBUSY); });
  answers("unlock, adaptive", pthread_mutex_unlock(&adaptive), 0);
  answers("destroy a held one (glibc's answer)",
          (pthread_mutex_lock(&fixed), pthread_mutex_destroy(&fixed)), EBUSY);
  answers("unlock it", pthread_mutex_unlock(&fixed), 0);
  answers("destroy it", pthread_mutex_destroy(&fixed), 0);
  // What programs do though they must not, and get away with.
  pthread_mutex_t loose = PTHREAD_MUTEX_INITIALIZER;
  answers("unlock of a free normal one (glibc's answer)", pthread_mutex_unlock(&loose), 0);
  loose = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&loose);
  in_thread([&] {
    answers("unlock of another's normal one (glibc's answer)", pthread_mutex_unlock(&loose), 0);
  });
  answers("which is free then", pthread_mutex_trylock(&loose), 0);
  pthread_mutex_unlock(&loose);
}

void robust_mutex() {
  std::printf("-- robust mutexes whose holder has died\n");
  pthread_mutex_t m;
  make(m, {.robust = PTHREAD_MUTEX_ROBUST});
  in_thread([&] { pthread_mutex_lock(&m); });
  answers("lock", pthread_mutex_lock(&m), EOWNERDEAD);
  answers("consistent", pthread_mutex_consistent(&m), 0);
  answers("unlock", pthread_mutex_unlock(&m), 0);
  in_thread([&] { pthread_mutex_lock(&m); });
  answers("trylock", pthread_mutex_trylock(&m), EOWNERDEAD);
  answers("unlock without consistent", pthread_mutex_unlock(&m), 0);
  answers("lock", pthread_mutex_lock(&m), ENOTRECOVERABLE);
  answers("trylock", pthread_mutex_trylock(&m), ENOTRECOVERABLE);
  answers("destroy", pthread_mutex_destroy(&m), 0);
}

void shared_between_processes() {
  std::printf("-- shared between processes\n");
  struct area {
    pthread_mutex_t m;
    pthread_rwlock_t l;
    int turns;
  };
  auto* const both = static_cast<area*>(
      mmap(nullptr, sizeof(area), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  make(both->m, {.shared = PTHREAD_PROCESS_SHARED});
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_init(&both->l, &attributes);
  std::fflush(stdout);
  constexpr int each = 20'000;
  const auto one_lock = [&](bool mutex) {
    for (int i = 0; i < each; ++i) {
      mutex ? pthread_mutex_lock(&both->m) : pthread_rwlock_wrlock(&both->l);
      ++both->turns;
      mutex ? pthread_mutex_unlock(&both->m) : pthread_rwlock_unlock(&both->l);
    }
  };
  for (const bool mutex : {true, false}) {
    both->turns = 0;
    const pid_t child = fork();
    one_lock(mutex);
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    check(mutex ? "mutex excludes the other process" : "rwlock excludes the other process",
          both->turns == 2 * each);
  }
}

void reader_writer_lock(const char* name, int kind) {
  std::printf("-- rwlock: %s\n", name);
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, kind);
  pthread_rwlock_t l;
  answers("init", pthread_rwlock_init(&l, &attributes), 0);
  answers("rdlock", pthread_rwlock_rdlock(&l), 0);
  in_thread([&] {
    answers("tryrdlock beside a reader", pthread_rwlock_tryrdlock(&l), 0);
    answers("unlock", pthread_rwlock_unlock(&l), 0);
    answers("trywrlock beside a reader", pthread_rwlock_trywrlock(&l), EBUSY);
    answers("timedwrlock beside a reader, too late", pthread_rwlock_timedwrlock(&l, &long_ago),
            ETIMEDOUT);
    answers("timedwrlock, no time", pthread_rwlock_timedwrlock(&l, &not_a_time), EINVAL);
    const timespec soon = in_ms(CLOCK_MONOTONIC, 10);
    answers("clockwrlock beside a reader", pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &soon),
            ETIMEDOUT);
  });
  answers("rdlock again", pthread_rwlock_tryrdlock(&l), 0);
  answers("unlock", pthread_rwlock_unlock(&l), 0);
  answers("unlock", pthread_rwlock_unlock(&l), 0);
  answers("wrlock", pthread_rwlock_wrlock(&l), 0);
  answers("wrlock again", pthread_rwlock_wrlock(&l), EDEADLK);
  answers("rdlock of one's own", pthread_rwlock_rdlock(&l), EDEADLK);
  answers("trywrlock again", pthread_rwlock_trywrlock(&l), EBUSY);
  in_thread([&] {
    answers("tryrdlock beside a writer", pthread_rwlock_tryrdlock(&l), EBUSY);
    answers("trywrlock beside a writer", pthread_rwlock_trywrlock(&l), EBUSY);
    const timespec soon = in_ms(CLOCK_REALTIME, 10);
    answers("timedrdlock beside a writer", pthread_rwlock_timedrdlock(&l, &soon), ETIMEDOUT);
    answers("timedrdlock, no time", pthread_rwlock_timedrdlock(&l, &not_a_time), EINVAL);
    const timespec later = in_ms(CLOCK_MONOTONIC, 10);
    answers("clockrdlock beside a writer", pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &later),
            ETIMEDOUT);
    answers("clockrdlock by no clock",
            pthread_rwlock_clockrdlock(&l, CLOCK_PROCESS_CPUTIME_ID, &later), EINVAL);
  });
  answers("unlock", pthread_rwlock_unlock(&l), 0);
  answers("timedrdlock of a free one, too late", pthread_rwlock_timedrdlock(&l, &long_ago), 0);
  answers("unlock", pthread_rwlock_unlock(&l), 0);
  answers("trywrlock of a free one", pthread_rwlock_trywrlock(&l), 0);
  answers("unlock", pthread_rwlock_unlock(&l), 0);
  answers("timedwrlock of a free one", pthread_rwlock_timedwrlock(&l, &long_ago), 0);
  answers("unlock", pthread_rwlock_unlock(&l), 0);
  answers("destroy", pthread_rwlock_destroy(&l), 0);
  pthread_rwlock_t fixed = PTHREAD_RWLOCK_INITIALIZER;
  answers("rdlock, static initialiser", pthread_rwlock_rdlock(&fixed), 0);
  answers("unlock", pthread_rwlock_unlock(&fixed), 0);
}

void conditions() {
  std::printf("-- conditions\n");
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&m);
  const timespec soon = in_ms(CLOCK_REALTIME, 10);
  answers("timedwait", pthread_cond_timedwait(&c, &m, &soon), ETIMEDOUT);
  answers("timedwait, too late", pthread_cond_timedwait(&c, &m, &long_ago), ETIMEDOUT);
  answers("timedwait, no time", pthread_cond_timedwait(&c, &m, &not_a_time), EINVAL);
  const timespec later = in_ms(CLOCK_MONOTONIC, 10);
  answers("clockwait", pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &later), ETIMEDOUT);
  in_thread([&] { answers("the mutex is held after it", pthread_mutex_trylock(&m), EBUSY); });
  struct context {
    pthread_mutex_t* m;
    pthread_cond_t* c;
    bool said;
  } shared{&m, &c, false};
  pthread_t other;
  pthread_create(
      &other, nullptr,
      [](void* raw) -> void* {
        auto& s = *static_cast<context*>(raw);
        pthread_mutex_lock(s.m);
        s.said = true;
        pthread_cond_signal(s.c);
        pthread_mutex_unlock(s.m);
        return nullptr;
      },
      &shared);
  int got = 0;
  while (!shared.said && got == 0) got = pthread_cond_wait(&c, &m);
  answers("wait", got, 0);
  check("and what the other did is seen", shared.said);
  pthread_join(other, nullptr);
  answers("unlock", pthread_mutex_unlock(&m), 0);

  pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  answers("wait without the error-checking mutex", pthread_cond_wait(&c, &checked), EPERM);

  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_t monotonic;
  pthread_cond_init(&monotonic, &attributes);
  pthread_mutex_lock(&m);
  const timespec then = in_ms(CLOCK_MONOTONIC, 10);
  answers("timedwait by the monotonic clock", pthread_cond_timedwait(&monotonic, &m, &then),
          ETIMEDOUT);
  pthread_mutex_unlock(&m);
  answers("destroy", pthread_cond_destroy(&monotonic), 0);
  answers("destroy the mutex after waiting with it", pthread_mutex_destroy(&m), 0);
}

}  // namespace

int main() {
  any_mutex("default", {});
  any_mutex("normal", {.type = PTHREAD_MUTEX_NORMAL, .set_type = true});
  any_mutex("error-checking", {.type = PTHREAD_MUTEX_ERRORCHECK, .set_type = true});
  any_mutex("recursive", {.type = PTHREAD_MUTEX_RECURSIVE, .set_type = true});
  any_mutex("adaptive", {.type = PTHREAD_MUTEX_ADAPTIVE_NP, .set_type = true});
  any_mutex("robust", {.robust = PTHREAD_MUTEX_ROBUST});
  any_mutex("shared", {.shared = PTHREAD_PROCESS_SHARED});
  any_mutex("inheriting priorities", {.protocol = PTHREAD_PRIO_INHERIT});
  error_checking_mutex();
  recursive_mutex();
  normal_mutex();
  robust_mutex();
  shared_between_processes();
  reader_writer_lock("readers first", PTHREAD_RWLOCK_PREFER_READER_NP);
  reader_writer_lock("writers first", PTHREAD_RWLOCK_PREFER_WRITER_NP);
  reader_writer_lock("writers first, not recursive", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  conditions();
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
