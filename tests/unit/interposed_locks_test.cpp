// The interposed locks on a machine that does what the test wrote down, over glibc's real locks.
#include "preload/interposed_locks.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>
#include <ctime>
#include <thread>
#include <vector>

#include "support/thread_sanitizer.hpp"
#include "unit/scripted_htm.hpp"

namespace elidex::preload {

using namespace internal;

namespace {

using test::rolled_back;
using test::scripted_htm;

// Records which real functions are called.
struct recorded_functions {
  inline static std::vector<const char*> calls;

  static int mutex_lock(pthread_mutex_t* m) { return note("lock"), ::pthread_mutex_lock(m); }
  static int mutex_trylock(pthread_mutex_t* m) {
    return note("trylock"), ::pthread_mutex_trylock(m);
  }
  static int mutex_timedlock(pthread_mutex_t* m, const timespec* t) {
    return note("timedlock"), ::pthread_mutex_timedlock(m, t);
  }
  static int mutex_clocklock(pthread_mutex_t* m, clockid_t c, const timespec* t) {
    return note("clocklock"), ::pthread_mutex_clocklock(m, c, t);
  }
  static int mutex_unlock(pthread_mutex_t* m) { return note("unlock"), ::pthread_mutex_unlock(m); }
  static int mutex_destroy(pthread_mutex_t* m) {
    return note("destroy"), ::pthread_mutex_destroy(m);
  }
  static int rwlock_rdlock(pthread_rwlock_t* l) {
    return note("rdlock"), ::pthread_rwlock_rdlock(l);
  }
  static int rwlock_tryrdlock(pthread_rwlock_t* l) {
    return note("tryrdlock"), ::pthread_rwlock_tryrdlock(l);
  }
  static int rwlock_timedrdlock(pthread_rwlock_t* l, const timespec* t) {
    return note("timedrdlock"), ::pthread_rwlock_timedrdlock(l, t);
  }
  static int rwlock_clockrdlock(pthread_rwlock_t* l, clockid_t c, const timespec* t) {
    return note("clockrdlock"), ::pthread_rwlock_clockrdlock(l, c, t);
  }
  static int rwlock_wrlock(pthread_rwlock_t* l) {
    return note("wrlock"), ::pthread_rwlock_wrlock(l);
  }
  static int rwlock_trywrlock(pthread_rwlock_t* l) {
    return note("trywrlock"), ::pthread_rwlock_trywrlock(l);
  }
  static int rwlock_timedwrlock(pthread_rwlock_t* l, const timespec* t) {
    return note("timedwrlock"), ::pthread_rwlock_timedwrlock(l, t);
  }
  static int rwlock_clockwrlock(pthread_rwlock_t* l, clockid_t c, const timespec* t) {
    return note("clockwrlock"), ::pthread_rwlock_clockwrlock(l, c, t);
  }
  static int rwlock_unlock(pthread_rwlock_t* l) {
    return note("rwunlock"), ::pthread_rwlock_unlock(l);
  }
  static int rwlock_destroy(pthread_rwlock_t* l) {
    return note("rwdestroy"), ::pthread_rwlock_destroy(l);
  }
  static int cond_wait(pthread_cond_t*, pthread_mutex_t*) { return note("wait"), 0; }
  static int cond_timedwait(pthread_cond_t*, pthread_mutex_t*, const timespec*) {
    return note("timedwait"), ETIMEDOUT;
  }
  static int cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*) {
    return note("clockwait"), ETIMEDOUT;
  }

 private:
  static void note(const char* name) { calls.push_back(name); }
};

using locks = interposed_locks<scripted_htm, recorded_functions, no_counts>;

pthread_mutex_t mutex_of_type(int type) {
  pthread_mutexattr_t attributes;
  pthread_mutex_t mutex;
  EXPECT_EQ(pthread_mutexattr_init(&attributes), 0);
  EXPECT_EQ(pthread_mutexattr_settype(&attributes, type), 0);
  EXPECT_EQ(pthread_mutex_init(&mutex, &attributes), 0);
  return mutex;
}

#if defined(ELIDEX_THREAD_SANITIZER)
constexpr bool misuse_is_reported = true;
#else
constexpr bool misuse_is_reported = false;
#endif

class InterposedLocks : public testing::Test {
 protected:
  void SetUp() override {
    scripted_htm::reset();
    locks::forget_regions();
    forget_elision_pauses();
    recorded_functions::calls.clear();
  }
  void TearDown() override {
    EXPECT_EQ(scripted_htm::faults(), 0u) << "an instruction that faults on real hardware";
    EXPECT_EQ(scripted_htm::depth(), 0) << "a region was left open";
    EXPECT_FALSE(locks::inside_region());
  }

  // What the hardware would do by itself: the region's writes are gone.
  template <class F>
  static void expect_abort(std::uint8_t code, const F& f) {
    bool aborted = false;
    try {
      f();
    } catch (const rolled_back& back) {
      aborted = true;
      EXPECT_EQ(back.entry.code(), code);
    }
    locks::forget_regions();
    EXPECT_TRUE(aborted);
  }

  static std::vector<std::string> calls() {
    return {recorded_functions::calls.begin(), recorded_functions::calls.end()};
  }
  static int lock(pthread_mutex_t& m) { return locks::mutex_lock(&m, nullptr); }
  static int unlock(pthread_mutex_t& m) { return locks::mutex_unlock(&m); }

  pthread_mutex_t a_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t b_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_rwlock_t rw_ = PTHREAD_RWLOCK_INITIALIZER;
};

TEST_F(InterposedLocks, AnElidedSectionCallsNothingAndLeavesTheMutexAlone) {
  EXPECT_EQ(lock(a_), 0);
  EXPECT_TRUE(locks::inside_region());
  EXPECT_EQ(a_.__data.__lock, 0);
  EXPECT_EQ(unlock(a_), 0);
  EXPECT_EQ(scripted_htm::commits(), 1u);
  EXPECT_EQ(locks::mutex_destroy(&a_), 0) << "paper 004 B.1: EBUSY";
  EXPECT_EQ(calls(), std::vector<std::string>{"destroy"});
}

TEST_F(InterposedLocks, TakesTheMutexWhenTheBudgetIsUsedUp) {
  scripted_htm::always(scripted_htm::conflict);
  EXPECT_EQ(lock(a_), 0);
  EXPECT_EQ(scripted_htm::begins(), elision_budgets.conflict + 1);
  EXPECT_EQ(a_.__data.__lock, 1);
  EXPECT_EQ(unlock(a_), 0);
  EXPECT_EQ(calls(), (std::vector<std::string>{"lock", "unlock"}));
}

TEST_F(InterposedLocks, WithoutHtmEverythingIsReal) {
  scripted_htm::switch_off();
  EXPECT_EQ(lock(a_), 0);
  EXPECT_EQ(locks::mutex_trylock(&a_, nullptr), EBUSY);
  EXPECT_EQ(unlock(a_), 0);
  EXPECT_EQ(locks::rwlock_wrlock(&rw_, nullptr), 0);
  EXPECT_EQ(locks::rwlock_unlock(&rw_), 0);
  EXPECT_EQ(scripted_htm::begins(), 0u);
  EXPECT_EQ(calls(), (std::vector<std::string>{"lock", "trylock", "unlock", "wrlock", "rwunlock"}));
}

TEST_F(InterposedLocks, OnlyKindsThatLeaveTheChoiceAreElided) {
  for (const int type : {PTHREAD_MUTEX_DEFAULT, PTHREAD_MUTEX_ADAPTIVE_NP}) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutex_t mutex;
    if (type != PTHREAD_MUTEX_DEFAULT) pthread_mutexattr_settype(&attributes, type);
    pthread_mutex_init(&mutex, &attributes);
    EXPECT_TRUE(may_elide(mutex)) << type;
  }
  // Asked for as NORMAL, locking twice has to deadlock: glibc forbids elision.
  for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK}) {
    EXPECT_FALSE(may_elide(mutex_of_type(type))) << type;
  }
  pthread_mutexattr_t attributes;
  pthread_mutex_t mutex;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  EXPECT_FALSE(may_elide(mutex));
  EXPECT_FALSE(may_try_first(mutex));
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&mutex, &attributes);
  EXPECT_FALSE(may_elide(mutex));
  for (const int protocol : {PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT}) {
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutex_init(&mutex, &attributes);
    EXPECT_FALSE(may_elide(mutex));
    EXPECT_FALSE(may_try_first(mutex));
  }
  pthread_rwlockattr_t rw_attributes;
  pthread_rwlockattr_init(&rw_attributes);
  pthread_rwlockattr_setpshared(&rw_attributes, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_t rw;
  pthread_rwlock_init(&rw, &rw_attributes);
  EXPECT_FALSE(may_elide(rw));
}

TEST_F(InterposedLocks, OtherKindsAreTakenForRealInsideARegionToo) {
  pthread_mutex_t recursive = mutex_of_type(PTHREAD_MUTEX_RECURSIVE);
  lock(a_);
  EXPECT_EQ(lock(recursive), 0);
  EXPECT_EQ(lock(recursive), 0);
  EXPECT_EQ(recursive.__data.__count, 2u);
  EXPECT_EQ(unlock(recursive), 0);
  EXPECT_EQ(unlock(recursive), 0);
  if (!misuse_is_reported) {
    EXPECT_EQ(unlock(recursive), EPERM);
  }
  EXPECT_TRUE(locks::inside_region());
  unlock(a_);
  EXPECT_EQ(scripted_htm::commits(), 1u);
}

TEST_F(InterposedLocks, UnlockingWhatNobodyHoldsIsGlibcsAffair) {
  if (misuse_is_reported)
    GTEST_SKIP() << "ThreadSanitizer objects to wrong unlocks, which are what is tested";
  EXPECT_EQ(unlock(a_), 0);
  EXPECT_EQ(scripted_htm::commits(), 0u);
  lock(b_);
  a_ = PTHREAD_MUTEX_INITIALIZER;
  EXPECT_EQ(unlock(a_), 0) << "inside a region";
  EXPECT_TRUE(locks::inside_region());
  EXPECT_EQ(scripted_htm::commits(), 0u);
  EXPECT_EQ(unlock(b_), 0);
  EXPECT_EQ(calls(), (std::vector<std::string>{"unlock", "unlock"}));
}

TEST_F(InterposedLocks, AMutexHeldForRealIsUnlockedForRealInsideARegion) {
  scripted_htm::reset({scripted_htm::capacity, scripted_htm::capacity, scripted_htm::capacity});
  lock(a_);
  ASSERT_FALSE(locks::inside_region());
  lock(b_);
  ASSERT_TRUE(locks::inside_region());
  EXPECT_EQ(unlock(a_), 0);  // hand over hand
  EXPECT_EQ(a_.__data.__lock, 0);
  EXPECT_EQ(scripted_htm::commits(), 0u);
  EXPECT_EQ(unlock(b_), 0);
  EXPECT_EQ(scripted_htm::commits(), 1u);
}

TEST_F(InterposedLocks, NestedLocksEndInAnyOrderAndCommitOnce) {
  lock(a_);
  lock(b_);
  EXPECT_EQ(locks::rwlock_rdlock(&rw_, nullptr), 0);
  unlock(a_);
  EXPECT_EQ(locks::rwlock_unlock(&rw_), 0);
  EXPECT_EQ(scripted_htm::commits(), 0u);
  unlock(b_);
  EXPECT_EQ(scripted_htm::commits(), 1u);
  EXPECT_EQ(scripted_htm::begins(), 1u);
  EXPECT_TRUE(calls().empty());
}

// What is counted as committed and as joined, by place.
struct noted_counts {
  inline static std::vector<const void*> committed;
  inline static std::vector<const void*> joined;
  struct site {
    const void* where = nullptr;
    void prepare_this_thread() const noexcept {}
    void count_abort(htm::abort_cause) const noexcept {}
    void count_commit() const { committed.push_back(where); }
    void count_joined() const { joined.push_back(where); }
  };
  static site enter(const void* where, operation) noexcept { return {where}; }
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

// Attempts and aborts are counted there too, and a lock's elision pauses by how many of its own
// attempts commit.
TEST_F(InterposedLocks, ACommitCountsForTheLockThatTheRegionBeganWith) {
  using noted_locks = interposed_locks<scripted_htm, recorded_functions, noted_counts>;
  for (const bool inner_first : {true, false}) {
    noted_counts::committed.clear();
    noted_counts::joined.clear();
    EXPECT_EQ(noted_locks::mutex_lock(&a_, &a_), 0);
    EXPECT_EQ(noted_locks::mutex_lock(&b_, &b_), 0);
    EXPECT_EQ(noted_locks::mutex_unlock(inner_first ? &b_ : &a_), 0);
    EXPECT_EQ(noted_locks::mutex_unlock(inner_first ? &a_ : &b_), 0);
    EXPECT_EQ(noted_counts::committed, std::vector<const void*>{&a_});
    EXPECT_EQ(noted_counts::joined, std::vector<const void*>{&b_});
  }
  EXPECT_EQ(scripted_htm::commits(), 2u);
}

TEST_F(InterposedLocks, SectionsThatNeverCommitPauseElisionAndOthersDoNot) {
  const auto fail_once = [&] {
    scripted_htm::always(scripted_htm::conflict);
    lock(a_);
    unlock(a_);
    scripted_htm::always(scripted_htm::started);
  };
  const auto is_elided = [&] {
    const std::size_t begins = scripted_htm::begins();
    lock(a_);
    unlock(a_);
    return scripted_htm::begins() > begins;
  };
  for (std::uint32_t i = 0; i < 2 * elision_pause::gave_up_window; ++i) {
    fail_once();
    for (int commit = 0; commit < 50; ++commit) {
      ASSERT_TRUE(is_elided()) << "after " << i << " failures";
    }
  }
  for (std::uint32_t i = 0; i < 2 * elision_pause::gave_up_window; ++i) fail_once();
  EXPECT_FALSE(is_elided());
}

TEST_F(InterposedLocks, WhatNestsTooDeepIsTakenForReal) {
  std::vector<pthread_mutex_t> many(locks::nested_max + 3, PTHREAD_MUTEX_INITIALIZER);
  for (pthread_mutex_t& one : many) EXPECT_EQ(lock(one), 0);
  EXPECT_EQ(calls().size(), 3u);
  for (pthread_mutex_t& one : many) EXPECT_EQ(unlock(one), 0);
  EXPECT_EQ(scripted_htm::commits(), 1u);
  for (pthread_mutex_t& one : many) EXPECT_EQ(one.__data.__lock, 0);
}

TEST_F(InterposedLocks, TryingInsideARegionAbortsIt) {
  for (int which = 0; which < 3; ++which) {
    lock(a_);
    expect_abort(htm::code_nested_trylock, [&] {
      if (which == 0) locks::mutex_trylock(&b_, nullptr);
      if (which == 1) locks::rwlock_tryrdlock(&rw_, nullptr);
      if (which == 2) locks::rwlock_trywrlock(&rw_, nullptr);
    });
  }
}

TEST_F(InterposedLocks, TryingAFreeMutexElidesIt) {
  EXPECT_EQ(locks::mutex_trylock(&a_, nullptr), 0);
  EXPECT_TRUE(locks::inside_region());
  unlock(a_);
  EXPECT_TRUE(calls().empty());
}

TEST_F(InterposedLocks, TryingAHeldMutexAsksTheRealOne) {
  pthread_mutex_lock(&a_);
  EXPECT_EQ(locks::mutex_trylock(&a_, nullptr), EBUSY);
  EXPECT_EQ(scripted_htm::begins(), 0u);
  pthread_mutex_unlock(&a_);
}

TEST_F(InterposedLocks, LockingAgainWhatTheRegionHoldsGoesToTheRealLock) {
  lock(a_);
  expect_abort(htm::code_lock_wanted, [&] { lock(a_); });
  EXPECT_EQ(locks::rwlock_wrlock(&rw_, nullptr), 0);
  expect_abort(htm::code_lock_wanted, [&] { locks::rwlock_rdlock(&rw_, nullptr); });
  EXPECT_EQ(locks::rwlock_rdlock(&rw_, nullptr), 0);
  expect_abort(htm::code_lock_wanted, [&] { locks::rwlock_wrlock(&rw_, nullptr); });
}

TEST_F(InterposedLocks, AnAbortThatWantsTheRealLockIsNotTriedAgain) {
  scripted_htm::reset({htm::status::of_abort(htm::code_lock_wanted)});
  lock(a_);
  EXPECT_EQ(scripted_htm::begins(), 1u);
  EXPECT_EQ(a_.__data.__lock, 1);
  unlock(a_);
}

TEST_F(InterposedLocks, ReadersMayReadTwice) {
  locks::rwlock_rdlock(&rw_, nullptr);
  EXPECT_EQ(locks::rwlock_rdlock(&rw_, nullptr), 0);
  locks::rwlock_unlock(&rw_);
  EXPECT_TRUE(locks::inside_region());
  locks::rwlock_unlock(&rw_);
  EXPECT_EQ(scripted_htm::commits(), 1u);
}

TEST_F(InterposedLocks, WaitingAndDestroyingEndTheRegion) {
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  timespec now{};
  lock(a_);
  expect_abort(htm::code_lock_wanted, [&] { locks::cond_wait(&condition, &a_); });
  lock(a_);
  expect_abort(htm::code_lock_wanted, [&] { locks::cond_timedwait(&condition, &a_, &now); });
  lock(a_);
  expect_abort(htm::code_lock_wanted,
               [&] { locks::cond_clockwait(&condition, &a_, CLOCK_MONOTONIC, &now); });
  lock(a_);
  expect_abort(htm::code_lock_wanted, [&] { locks::mutex_destroy(&a_); });
  locks::rwlock_rdlock(&rw_, nullptr);
  expect_abort(htm::code_lock_wanted, [&] { locks::rwlock_destroy(&rw_); });
  EXPECT_TRUE(calls().empty());
}

TEST_F(InterposedLocks, ALockThatIsTakenBetweenTheLookAndTheRegionAborts) {
  if (misuse_is_reported)
    GTEST_SKIP() << "ThreadSanitizer objects to wrong unlocks, which are what is tested";
  // Lets go when the transaction has found the lock held.
  std::thread holder([&, before = scripted_htm::aborts_in_process()] {
    while (scripted_htm::aborts_in_process() == before) std::this_thread::yield();
    pthread_mutex_unlock(&a_);  // glibc's normal kind lets anybody
  });
  // The wait for a free mutex is bounded; it ends in the real one, or in a region after the holder
  // has gone.
  scripted_htm::on_begin([&](std::size_t number) {
    if (number == 0) pthread_mutex_lock(&a_);
  });
  EXPECT_EQ(lock(a_), 0);
  holder.join();
  EXPECT_EQ(unlock(a_), 0);
  ASSERT_EQ(scripted_htm::abort_codes().size(), 1u);
  EXPECT_EQ(scripted_htm::abort_codes()[0], htm::code_lock_busy);
}

TEST_F(InterposedLocks, JoiningAHeldLockAborts) {
  pthread_mutex_lock(&b_);
  lock(a_);
  // scripted_htm takes a lock_busy one level deep for one at the outermost begin().
  static_cast<void>(scripted_htm::begin());
  expect_abort(htm::code_lock_busy, [&] { lock(b_); });
  pthread_mutex_unlock(&b_);
}

TEST_F(InterposedLocks, ReadersGoBesideReadersButNotBesideWriters) {
  pthread_rwlock_rdlock(&rw_);
  EXPECT_EQ(locks::rwlock_rdlock(&rw_, nullptr), 0);
  EXPECT_TRUE(locks::inside_region());
  locks::rwlock_unlock(&rw_);
  EXPECT_EQ(locks::rwlock_trywrlock(&rw_, nullptr), EBUSY);
  pthread_rwlock_unlock(&rw_);
  EXPECT_EQ(calls(), std::vector<std::string>{"trywrlock"});

  pthread_rwlock_wrlock(&rw_);
  std::thread([&] { EXPECT_EQ(locks::rwlock_tryrdlock(&rw_, nullptr), EBUSY); }).join();
  pthread_rwlock_unlock(&rw_);
  // A lock that a writer has left idles in its write phase: free for both.
  EXPECT_EQ(locks::rwlock_wrlock(&rw_, nullptr), 0);
  EXPECT_TRUE(locks::inside_region());
  locks::rwlock_unlock(&rw_);
  EXPECT_EQ(locks::rwlock_rdlock(&rw_, nullptr), 0);
  EXPECT_TRUE(locks::inside_region());
  locks::rwlock_unlock(&rw_);
}

TEST_F(InterposedLocks, AWriterThatWaitsKeepsElidedReadersOut) {
  pthread_rwlock_rdlock(&rw_);
  std::thread writer([&] {
    pthread_rwlock_wrlock(&rw_);
    pthread_rwlock_unlock(&rw_);
  });
  while (is_free(rw_, lock_use::shared)) std::this_thread::yield();
  EXPECT_FALSE(is_free(rw_, lock_use::exclusive));
  pthread_rwlock_unlock(&rw_);
  writer.join();
  EXPECT_TRUE(is_free(rw_, lock_use::exclusive));
}

TEST_F(InterposedLocks, ReadHoldersOfTheRealLockUnlockItInsideARegion) {
  pthread_rwlock_rdlock(&rw_);
  lock(a_);
  EXPECT_EQ(locks::rwlock_unlock(&rw_), 0);
  EXPECT_TRUE(locks::inside_region());
  unlock(a_);
  EXPECT_TRUE(is_free(rw_, lock_use::exclusive));
}

TEST_F(InterposedLocks, TimesThatAreNoneGoToTheRealFunction) {
  timespec bad{0, 1'000'000'000};
  timespec good{};
  clock_gettime(CLOCK_REALTIME, &good);
  good.tv_sec += 10;
  EXPECT_EQ(locks::mutex_timedlock(&a_, &bad, nullptr), 0)
      << "glibc looks at the time only to wait";
  unlock(a_);
  if (!misuse_is_reported) {
    EXPECT_EQ(locks::mutex_clocklock(&a_, CLOCK_PROCESS_CPUTIME_ID, &good, nullptr), EINVAL);
  }
  EXPECT_EQ(locks::rwlock_timedwrlock(&rw_, &bad, nullptr), EINVAL);
  EXPECT_EQ(scripted_htm::begins(), 0u);
  EXPECT_EQ(locks::mutex_timedlock(&a_, &good, nullptr), 0);
  EXPECT_TRUE(locks::inside_region());
  unlock(a_);
  pthread_mutex_lock(&a_);
  const timespec past{1, 0};
  EXPECT_EQ(locks::mutex_timedlock(&a_, &past, nullptr), ETIMEDOUT);
  EXPECT_EQ(scripted_htm::begins(), 1u) << "no region while the mutex is held";
  pthread_mutex_unlock(&a_);
}

TEST_F(InterposedLocks, ARegionWhoseOwnDoingsTookTheMutexDoesNotCommit) {
  lock(a_);
  pthread_mutex_lock(&a_);  // by glibc's inner name, say
  expect_abort(htm::code_lock_wanted, [&] { unlock(a_); });
  pthread_mutex_unlock(&a_);
}

}  // namespace
}  // namespace elidex::preload
