// The interposed locks under threads. Natively they show that nothing is lost on the way to the
// real locks; inside the simulated machine regions commit, and sections elided and taken for real
// meet.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "preload/interposed_locks.hpp"

namespace elidex::preload {
namespace {

struct libc_functions {
  static int mutex_lock(pthread_mutex_t* m) noexcept { return ::pthread_mutex_lock(m); }
  static int mutex_trylock(pthread_mutex_t* m) noexcept { return ::pthread_mutex_trylock(m); }
  static int mutex_unlock(pthread_mutex_t* m) noexcept { return ::pthread_mutex_unlock(m); }
  static int rwlock_rdlock(pthread_rwlock_t* l) noexcept { return ::pthread_rwlock_rdlock(l); }
  static int rwlock_tryrdlock(pthread_rwlock_t* l) noexcept {
    return ::pthread_rwlock_tryrdlock(l);
  }
  static int rwlock_wrlock(pthread_rwlock_t* l) noexcept { return ::pthread_rwlock_wrlock(l); }
  static int rwlock_trywrlock(pthread_rwlock_t* l) noexcept {
    return ::pthread_rwlock_trywrlock(l);
  }
  static int rwlock_unlock(pthread_rwlock_t* l) noexcept { return ::pthread_rwlock_unlock(l); }
  static int cond_wait(pthread_cond_t* c, pthread_mutex_t* m) { return ::pthread_cond_wait(c, m); }
};

// Counts over all threads, so that a test can tell whether anything was elided at all.
struct commit_counts {
  inline static std::atomic<std::uint64_t> commits{0};
  struct site {
    void prepare_this_thread() const noexcept {}
    void count_abort(htm::abort_cause) const noexcept {}
    void count_commit() const noexcept { ++commits; }
    void count_joined() const noexcept {}
  };
  static site enter(const void*, operation) noexcept { return {}; }
  template <class Lock, class TryLock, class TakeLock>
  static int take(site, Lock&, const TryLock&, const TakeLock& take_lock) noexcept {
    return take_lock();
  }
  template <class TryLock>
  static int try_to_take(site, const void*, const TryLock& try_lock) noexcept {
    return try_lock();
  }
  static site released(const void*) noexcept { return {}; }
  static void taken_again(const void*, site) noexcept {}
};

using locks = interposed_locks<htm::native, libc_functions, commit_counts>;

constexpr unsigned threads = 4;
constexpr int turns = 4000;

template <class Body>
void in_threads(const Body& body) {
  commit_counts::commits = 0;
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i) all.emplace_back([&body, i] { body(i); });
  for (std::thread& one : all) one.join();
}

void expect_elision() {
  if (!htm::enabled()) return;
  EXPECT_GT(commit_counts::commits, 0u) << "nothing was elided";
}

// Two cells that must agree at each section's begin. What is wrong is counted in memory: a failure
// that is reported inside a region would only abort it. Between reading and writing lies time, more
// of it for those who hold their lock for real, so that a region that nothing keeps out falls into
// it as a whole.
struct alignas(256) pair_of_cells {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::uint64_t torn = 0;

  void look(unsigned time) noexcept {
    const std::uint64_t one = first;
    spend(time);
    if (one != second) ++torn;
  }
  void change(unsigned time) noexcept {
    const std::uint64_t one = first;
    const std::uint64_t other = second;
    if (one != other) ++torn;
    spend(time);
    first = one + 1;
    spend(time);
    second = other + 1;
  }
  static void spend(unsigned time) noexcept {
    static thread_local volatile unsigned steps =
        0;  // the simulated machine charges no time for what lies on the stack
    for (unsigned i = 0; i < time; ++i) steps = steps + i;
  }
};

constexpr unsigned short_time = 4;
constexpr unsigned long_time = 400;

// Every eighth section takes its lock for real, as after a fallback: regions have to see it.
inline bool for_real(std::mt19937& random) {
  return random() % 8 == 0;
}

// The harness can fail: without a lock it does. On the simulated machine that is certain, elsewhere
// only likely.
TEST(InterposedLocksStress, SectionsWithoutALockAreFound) {
  if (!htm::enabled()) GTEST_SKIP() << "threads meet for certain on the simulated machine only";
  pair_of_cells cells;
  in_threads([&](unsigned) {
    for (int turn = 0; turn < turns; ++turn) cells.change(short_time);
  });
  EXPECT_NE(cells.first, std::uint64_t{threads} * turns);
}

TEST(InterposedLocksStress, MutexesExclude) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pair_of_cells cells[2];
  in_threads([&](unsigned me) {
    std::mt19937 random(me);
    for (int turn = 0; turn < turns; ++turn) {
      const bool real = for_real(random);
      real ? ::pthread_mutex_lock(&mutex) : locks::mutex_lock(&mutex, nullptr);
      cells[random() % 2].change(real ? long_time : short_time);
      locks::mutex_unlock(&mutex);
    }
  });
  std::uint64_t sum = 0;
  for (const pair_of_cells& one : cells) {
    sum += one.first;
    EXPECT_EQ(one.first, one.second);
    EXPECT_EQ(one.torn, 0u);
  }
  EXPECT_EQ(sum, std::uint64_t{threads} * turns);
  expect_elision();
  EXPECT_EQ(::pthread_mutex_destroy(&mutex), 0);
}

TEST(InterposedLocksStress, NestedAndTriedMutexesExclude) {
  pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
  pair_of_cells of_outer;
  pair_of_cells of_inner;
  std::atomic<std::uint64_t> sections{0};
  in_threads([&](unsigned me) {
    std::mt19937 random(me);
    for (int turn = 0; turn < turns; ++turn) {
      const auto what = random() % 4;
      if (what == 0) {
        if (locks::mutex_trylock(&inner, nullptr) != 0) continue;
        of_inner.change(short_time);
        locks::mutex_unlock(&inner);
        ++sections;
        continue;
      }
      const bool real = for_real(random);
      real ? ::pthread_mutex_lock(&outer) : locks::mutex_lock(&outer, nullptr);
      of_outer.change(real ? long_time : short_time);
      if (what == 1) {
        locks::mutex_unlock(&outer);
        ++sections;
        continue;
      }
      locks::mutex_lock(&inner, nullptr);
      of_inner.change(short_time);
      // Hand over hand, or from the inside.
      locks::mutex_unlock(what == 2 ? &outer : &inner);
      locks::mutex_unlock(what == 2 ? &inner : &outer);
      sections += 2;
    }
  });
  EXPECT_EQ(of_outer.first + of_inner.first, sections);
  EXPECT_EQ(of_outer.torn + of_inner.torn, 0u);
  expect_elision();
}

TEST(InterposedLocksStress, ReadersSeeNoWriter) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  pair_of_cells cells;
  std::atomic<std::uint64_t> changes{0};
  in_threads([&](unsigned me) {
    std::mt19937 random(me);
    for (int turn = 0; turn < turns; ++turn) {
      if (random() % 4 != 0) {
        const bool real = for_real(random);
        real ? ::pthread_rwlock_rdlock(&lock) : locks::rwlock_rdlock(&lock, nullptr);
        cells.look(real ? long_time : short_time);
        locks::rwlock_unlock(&lock);
      } else if (random() % 2 == 0) {
        const bool real = for_real(random);
        real ? ::pthread_rwlock_wrlock(&lock) : locks::rwlock_wrlock(&lock, nullptr);
        cells.change(real ? long_time : short_time);
        locks::rwlock_unlock(&lock);
        ++changes;
      } else if (locks::rwlock_trywrlock(&lock, nullptr) == 0) {
        cells.change(short_time);
        locks::rwlock_unlock(&lock);
        ++changes;
      }
    }
  });
  EXPECT_EQ(cells.first, changes);
  EXPECT_EQ(cells.torn, 0u);
  expect_elision();
}

// Paper 004 figure 3.1: what a region reads may exceed the L1, what it writes may not, and the
// list of its locks is of the former kind. More than twice the L1 of any machine here.
TEST(InterposedLocksStress, ASectionThatReadsMoreThanTheL1IsElided) {
  if (!htm::enabled()) GTEST_SKIP() << "no region commits here";
  constexpr std::size_t words_per_line = 8;
  const std::vector<std::uint64_t> much(std::size_t{128 << 10} / sizeof(std::uint64_t), 1);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  commit_counts::commits = 0;
  std::uint64_t sum = 0;
  constexpr int sections = 20;
  for (int i = 0; i < sections; ++i) {
    std::uint64_t of_this_one = 0;
    locks::mutex_lock(&mutex, nullptr);
    for (std::size_t at = 0; at < much.size(); at += words_per_line) of_this_one += much[at];
    locks::mutex_unlock(&mutex);
    sum += of_this_one;
  }
  EXPECT_EQ(sum, sections * much.size() / words_per_line);
  EXPECT_GT(commit_counts::commits, sections / 2u);
}

TEST(InterposedLocksStress, NoWakeUpIsLost) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
  pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
  std::uint64_t queued = 0;
  std::uint64_t put = 0;
  std::uint64_t taken = 0;
  in_threads([&](unsigned me) {
    for (int turn = 0; turn < turns / 4; ++turn) {
      locks::mutex_lock(&mutex, nullptr);
      if (me % 2 == 0) {
        while (queued == 2) locks::cond_wait(&not_full, &mutex);
        ++queued;
        ++put;
        ::pthread_cond_signal(&not_empty);
      } else {
        while (queued == 0) locks::cond_wait(&not_empty, &mutex);
        --queued;
        ++taken;
        ::pthread_cond_signal(&not_full);
      }
      locks::mutex_unlock(&mutex);
    }
  });
  EXPECT_EQ(put, taken);
  EXPECT_EQ(queued, 0u);
}

}  // namespace
}  // namespace elidex::preload
