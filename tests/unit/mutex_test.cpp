#include "elidex/mutex.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "elidex/condition_variable.hpp"
#include "elidex/shared_mutex.hpp"
#include "unit/scripted_htm.hpp"

namespace elidex {

using namespace internal;

namespace {

using namespace std::chrono_literals;
using test::rolled_back;
using test::scripted_htm;

using scripted_mutex = basic_mutex<scripted_htm>;
using scripted_recursive = basic_recursive_mutex<scripted_htm>;
using scripted_shared = basic_shared_mutex<scripted_htm>;

// Static locks are there before any code runs.
constinit mutex static_mutex;
constinit recursive_mutex static_recursive;
constinit shared_mutex static_shared;
constinit condition_variable static_condition;

using scripted_elision = internal::drop_in_elision<scripted_htm>;

class DropIn : public testing::Test {
 protected:
  void SetUp() override {
    scripted_htm::reset();
    scripted_elision::here() = {};
    forget_elision_pauses();
  }
  void TearDown() override {
    EXPECT_EQ(scripted_htm::faults(), 0u) << "an instruction that faults on real hardware";
    EXPECT_EQ(scripted_htm::depth(), 0) << "a region was left open";
  }
};

named_lock_counts counts_of(const std::string& name) {
  for (named_lock_counts& one : named_lock_stats()) {
    if (one.name == name) return one;
  }
  return {.name = name, .counts = {}};
}

TEST_F(DropIn, ASectionThatCommitsNeverTakesTheLock) {
  scripted_mutex lock;
  lock.lock();
  EXPECT_TRUE(scripted_htm::test());
  EXPECT_FALSE(lock.is_locked());
  lock.unlock();
  EXPECT_EQ(scripted_htm::commits(), 1u);
}

TEST_F(DropIn, WithoutHtmTheLockIsTaken) {
  scripted_htm::switch_off();
  scripted_mutex lock;
  const std::lock_guard guard(lock);
  EXPECT_TRUE(lock.is_locked());
  EXPECT_EQ(scripted_htm::begins(), 0u);
}

TEST_F(DropIn, AfterTheBudgetTheLockIsTaken) {
  scripted_htm::always(scripted_htm::capacity);
  scripted_mutex lock("budget");
  const std::lock_guard guard(lock);
  EXPECT_TRUE(lock.is_locked());
  EXPECT_EQ(scripted_htm::begins(), 1 + retry_budgets().capacity);
  EXPECT_EQ(counts_of("budget").counts.fallbacks, 1u);
}

TEST_F(DropIn, NestedSectionsAreOneRegionOfOneLevelMore) {
  std::vector<std::unique_ptr<scripted_mutex>> locks;
  for (int i = 0; i < 10; ++i) locks.push_back(std::make_unique<scripted_mutex>());
  for (auto& lock : locks) lock->lock();
  EXPECT_EQ(scripted_htm::depth(), 1) << "the hardware has seven levels only";
  for (auto& lock : locks) {
    EXPECT_TRUE(scripted_htm::test());
    lock->unlock();
  }
  EXPECT_EQ(scripted_htm::commits(), 1u);
}

TEST_F(DropIn, MoreLocksThanTheListHoldsGoBackToTheOutermost) {
  std::vector<std::unique_ptr<scripted_mutex>> locks;
  for (std::size_t i = 0; i < 1 + scripted_elision::region::locks_max; ++i) {
    locks.push_back(std::make_unique<scripted_mutex>());
    locks.back()->lock();
  }
  scripted_mutex one_more;
  EXPECT_THROW(one_more.lock(), rolled_back);
  EXPECT_EQ(scripted_htm::abort_codes().back(), htm::code_lock_wanted);
}

TEST_F(DropIn, UnlockOfALockThatWasTakenBeforeTheRegionReleasesIt) {
  scripted_mutex taken, elided_one;
  scripted_htm::always(scripted_htm::capacity);
  taken.lock();
  ASSERT_TRUE(taken.is_locked());
  scripted_htm::always(scripted_htm::started);
  elided_one.lock();
  ASSERT_TRUE(scripted_htm::test());
  taken.unlock();
  EXPECT_FALSE(taken.is_locked());
  EXPECT_TRUE(scripted_htm::test()) << "the other section goes on";
  elided_one.unlock();
}

// The crash that glibc's users met: XEND for an unlock that nothing belongs to.
TEST_F(DropIn, UnlockOfALockThatNobodyHoldsChangesNothing) {
  scripted_mutex lock, other;
  lock.unlock();
  EXPECT_FALSE(lock.is_locked());
  other.lock();
  lock.unlock();
  EXPECT_TRUE(scripted_htm::test()) << "it ended the region of another lock";
  other.unlock();
  lock.lock();
  lock.unlock();
  EXPECT_EQ(scripted_htm::commits(), 2u);
}

TEST_F(DropIn, TryLockInsideARegion) {
  scripted_mutex outer, free, taken;
  scripted_htm::always(scripted_htm::capacity);
  taken.lock();
  scripted_htm::always(scripted_htm::started);
  outer.lock();
  EXPECT_TRUE(free.try_lock());
  EXPECT_FALSE(taken.try_lock());
  free.unlock();
  outer.unlock();
  EXPECT_EQ(scripted_htm::commits(), 1u);
  taken.unlock();
}

TEST_F(DropIn, TryLockOfTheSectionsOwnLockGoesBackToTheOutermost) {
  scripted_mutex lock;
  lock.lock();
  EXPECT_THROW(static_cast<void>(lock.try_lock()), rolled_back);
  EXPECT_EQ(scripted_htm::abort_codes().back(), htm::code_nested_trylock);
}

// What a region began with must not be remembered when it is over.
TEST_F(DropIn, AnEarlierSectionOfALockSaysNothingAboutALaterOne) {
  scripted_mutex lock;
  lock.lock();
  lock.unlock();
  scripted_htm::always(scripted_htm::capacity);
  lock.lock();
  ASSERT_TRUE(lock.is_locked());
  scripted_htm::always(scripted_htm::started);
  ASSERT_TRUE(scripted_htm::begin().started());
  lock.unlock();
  EXPECT_FALSE(lock.is_locked());
  EXPECT_TRUE(scripted_htm::test());
  scripted_htm::commit();
}

TEST_F(DropIn, ARegionThatSomebodyElseBeganStaysTheirs) {
  scripted_mutex lock;
  ASSERT_TRUE(scripted_htm::begin().started());
  lock.lock();
  lock.unlock();
  EXPECT_TRUE(scripted_htm::test());
  scripted_htm::commit();
  EXPECT_EQ(scripted_htm::commits(), 1u);
}

// As soon as a region has committed, another thread may be the last to use the lock, and destroy
// it.
TEST_F(DropIn, NothingLooksAtALockAfterTheCommit) {
  alignas(scripted_mutex) unsigned char memory[sizeof(scripted_mutex)];
  auto* const lock = new (memory) scripted_mutex("destroyed");
  scripted_htm::on_commit([&] {
    lock->~scripted_mutex();
    std::memset(memory, 0xff, sizeof memory);
  });
  lock->lock();
  lock->unlock();
  EXPECT_EQ(counts_of("destroyed").counts.commits, 1u);
}

TEST_F(DropIn, ARegionThatAnotherOneOutlastsLeavesNothingBehind) {
  scripted_mutex lock;
  lock.lock();
  ASSERT_TRUE(scripted_htm::begin().started());
  lock.unlock();
  EXPECT_TRUE(scripted_htm::test());
  scripted_htm::commit();
  EXPECT_TRUE(scripted_elision::here().empty());
  // Now a lock that is taken for real, and somebody else's region: unlock() must not end it.
  lock.lock();
  lock.unlock();
  EXPECT_EQ(scripted_htm::commits(), 2u);
}

// std::scoped_lock unlocks what it locked first before the others.
TEST_F(DropIn, ACommitCountsForTheLockThatTheRegionBeganWith) {
  scripted_mutex first("began"), second("joined");
  first.lock();
  second.lock();
  first.unlock();
  second.unlock();
  EXPECT_EQ(counts_of("began").counts.commits, 1u);
  EXPECT_EQ(counts_of("joined").counts.commits, 0u);
}

TEST_F(DropIn, SectionsThatNeverCommitPauseElision) {
  scripted_mutex lock;
  scripted_htm::always(scripted_htm::capacity);
  for (std::uint32_t i = 0; i < elision_pause::gave_up_window; ++i) {
    const std::size_t begins = scripted_htm::begins();
    const std::lock_guard guard(lock);
    ASSERT_GT(scripted_htm::begins(), begins);
  }
  const std::size_t begins = scripted_htm::begins();
  const std::lock_guard guard(lock);
  EXPECT_EQ(scripted_htm::begins(), begins);
}

TEST_F(DropIn, CommitsOfNestedSectionsKeepElisionOn) {
  scripted_mutex first, second;
  for (std::uint32_t i = 0; i < 2 * elision_pause::gave_up_window; ++i) {
    scripted_htm::always(scripted_htm::capacity);
    first.lock();
    ASSERT_TRUE(first.is_locked());
    first.unlock();
    scripted_htm::always(scripted_htm::started);
    for (int commit = 0; commit < 50; ++commit) {
      const std::size_t begins = scripted_htm::begins();
      first.lock();
      ASSERT_EQ(scripted_htm::begins(), begins + 1) << "elision pauses in window " << i;
      second.lock();
      first.unlock();
      second.unlock();
    }
  }
}

TEST_F(DropIn, ARecursiveMutexHasLevelsElidedOrTaken) {
  scripted_recursive lock;
  lock.lock();
  lock.lock();
  EXPECT_TRUE(scripted_htm::test());
  lock.unlock();
  EXPECT_TRUE(scripted_htm::test());
  lock.unlock();
  EXPECT_EQ(scripted_htm::commits(), 1u);

  scripted_htm::always(scripted_htm::capacity);
  lock.lock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
  const auto taken_by_another = [&] {
    bool taken = true;
    std::thread([&] {
      scripted_htm::reset();
      scripted_htm::switch_off();
      taken = lock.try_lock();
    }).join();
    return taken;
  };
  EXPECT_FALSE(taken_by_another());
  scripted_htm::switch_off();
  lock.unlock();
  EXPECT_TRUE(taken_by_another());
}

TEST_F(DropIn, ALevelMoreInsideTheRegionOfAnotherLock) {
  scripted_recursive taken;
  scripted_mutex other;
  scripted_htm::always(scripted_htm::capacity);
  taken.lock();
  scripted_htm::always(scripted_htm::started);
  other.lock();
  taken.lock();
  taken.unlock();
  EXPECT_TRUE(scripted_htm::test());
  other.unlock();
  taken.unlock();
  scripted_htm::switch_off();
  EXPECT_TRUE(taken.try_lock());
  taken.unlock();
}

TEST_F(DropIn, ReadersElideBesideReadersThatHoldIt) {
  scripted_shared lock;
  scripted_htm::always(scripted_htm::capacity);
  lock.lock_shared();
  scripted_htm::always(scripted_htm::started);
  lock.lock_shared();
  EXPECT_TRUE(scripted_htm::test());
  lock.unlock_shared();  // the elided one, though both are of this thread
  EXPECT_FALSE(scripted_htm::test());
  scripted_htm::switch_off();
  EXPECT_FALSE(lock.try_lock()) << "the other one is still there";
  lock.unlock_shared();
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock_shared());
  lock.unlock();
}

TEST_F(DropIn, NamesCountTogetherAndOutliveTheirLocks) {
  scripted_htm::switch_off();
  {
    scripted_mutex one("orders"), two("orders");
    const std::scoped_lock both(one, two);
    EXPECT_EQ(counts_of("orders").counts.fallbacks, 2u);
  }
  scripted_shared three("orders");
  three.lock_shared();
  three.unlock_shared();
  EXPECT_TRUE(three.try_lock());
  three.unlock();
  const named_lock_counts counts = counts_of("orders");
  EXPECT_EQ(counts.counts.fallbacks, 4u);
  EXPECT_EQ(counts.waits, 0u);
  std::ostringstream line;
  line << counts;
  EXPECT_THAT(line.str(), testing::StartsWith("orders: locks 4, waited 0 (0.0 ms); "));
}

TEST(NamedLocks, WaitingIsCounted) {
  mutex lock("waited for");
  std::atomic<bool> comes{false};
  lock.lock();
  std::thread other([&] {
    comes = true;
    const std::lock_guard guard(lock);
  });
  while (!comes) std::this_thread::yield();
  std::this_thread::sleep_for(50ms);
  lock.unlock();
  other.join();
  const named_lock_counts counts = counts_of("waited for");
  EXPECT_EQ(counts.counts.acquisitions(), 2u);
  if (htm::enabled()) GTEST_SKIP() << "the other thread may have been elided";
  EXPECT_EQ(counts.waits, 1u);
  EXPECT_GE(counts.waited_ns, 1'000'000u);
}

struct listed_lock {
  const void* lock;
};
using lock_list = region_locks<listed_lock>;

TEST(RegionLocks, KeepsTheOthersInOrder) {
  lock_list list;
  const int a = 0, b = 0, c = 0;
  using enum lock_list::removal;
  EXPECT_TRUE(list.add({&a}) && list.add({&b}) && list.add({&a}) && list.add({&c}));
  EXPECT_EQ(list.remove(&a), others_left);
  EXPECT_TRUE(list.contains(&a));
  EXPECT_EQ(list.remove(&a), others_left);
  EXPECT_EQ(list.remove(&a), not_there);
  EXPECT_EQ(list.remove(&c), others_left);
  EXPECT_EQ(list.remove(&b), last);
  EXPECT_TRUE(list.empty());
}

TEST(RegionLocks, TheFirstMayLeaveBeforeTheOthers) {
  lock_list list;
  const int a = 0, b = 0;
  using enum lock_list::removal;
  list.announce({&a});
  EXPECT_TRUE(list.contains(&a));
  EXPECT_TRUE(list.add({&b}));
  EXPECT_EQ(list.remove(&a), others_left);
  EXPECT_FALSE(list.contains(&a));
  EXPECT_EQ(list.remove(&a), not_there);
  EXPECT_EQ(list.remove(&b), last);
  EXPECT_EQ(list.withdraw().lock, &a) << "the one that the region began with, though it has left";
  list.announce({&b});
  EXPECT_EQ(list.remove(&b), last);
  list.withdraw();
  EXPECT_TRUE(list.empty());
}

TEST(RegionLocks, WhatASignalHandlerWithdrewIsAnnouncedAgain) {
  lock_list list;
  const int a = 0, of_the_handler = 0;
  list.announce({&a});
  list.announce({&of_the_handler});
  list.withdraw();
  list.make_sure_of({&a});
  EXPECT_EQ(list.remove(&a), lock_list::removal::last);
}

TEST(SleepingSharedLock, AWriterThatSleepsKeepsNewReadersOut) {
  sleeping_shared_lock lock;
  std::atomic<int> writes{0};
  int writes_before_the_reader = -1;
  lock.lock_shared();
  std::thread writer([&] {
    const std::lock_guard guard(lock);
    ++writes;
  });
  // Also the writer that sleeps is one that waits.
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(lock.try_lock_shared());
  std::thread reader([&] {
    const std::shared_lock guard(lock);
    writes_before_the_reader = writes.load();
  });
  std::this_thread::sleep_for(50ms);
  lock.unlock_shared();
  reader.join();
  writer.join();
  EXPECT_EQ(writes_before_the_reader, 1);
  EXPECT_FALSE(lock.is_locked());
}

TEST(Mutexes, OneCacheLineEach) {
  EXPECT_EQ(sizeof(mutex), 64u);
  EXPECT_EQ(sizeof(shared_mutex), 64u);
  EXPECT_EQ(alignof(recursive_mutex), 64u);
}

// A destructor or signal handler between a call and the look at its error may lock.
TEST(Mutexes, WaitingLeavesErrnoAlone) {
  mutex lock;
  condition_variable never;
  bool ready = false;
  std::unique_lock guard(lock);
  std::thread other([&] {
    errno = EDOM;
    std::unique_lock mine(lock);
    EXPECT_EQ(errno, EDOM);
    EXPECT_FALSE(never.wait_for(mine, 1ms, [] { return false; }));
    EXPECT_EQ(errno, EDOM);
    ready = true;
  });
  std::this_thread::sleep_for(20ms);
  guard.unlock();
  other.join();
  EXPECT_TRUE(ready);
}

TEST(Mutexes, StaticOnesWork) {
  const std::scoped_lock all(static_mutex, static_recursive, static_shared);
  static_condition.notify_all();
}

TEST(ConditionVariable, ATimedWaitEnds) {
  mutex lock;
  condition_variable never;
  std::unique_lock guard(lock);
  EXPECT_EQ(never.wait_until(guard, std::chrono::steady_clock::now() - 1s),
            std::cv_status::timeout);
  EXPECT_FALSE(never.wait_for(guard, 5ms, [] { return false; }));
  EXPECT_FALSE(
      never.wait_until(guard, std::chrono::system_clock::now() + 5ms, [] { return false; }));
  EXPECT_TRUE(never.wait_for(guard, std::chrono::hours::max(), [] { return true; }));
  EXPECT_TRUE(guard.owns_lock());
}

TEST(ConditionVariable, TimesBeyondAllClocks) {
  using hours_of_the_system =
      std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>;
  mutex lock;
  condition_variable changed;
  std::unique_lock guard(lock);
  EXPECT_EQ(changed.wait_for(guard, std::chrono::hours::min()), std::cv_status::timeout);
  EXPECT_EQ(changed.wait_for(guard, std::chrono::nanoseconds::min()), std::cv_status::timeout);
  EXPECT_EQ(changed.wait_until(guard, std::chrono::system_clock::time_point::min()),
            std::cv_status::timeout);
  EXPECT_EQ(changed.wait_until(guard, std::chrono::steady_clock::time_point::min()),
            std::cv_status::timeout);
  EXPECT_EQ(changed.wait_until(guard, hours_of_the_system::min()), std::cv_status::timeout);
  bool ready = false;
  std::thread other([&] {
    std::unique_lock mine(lock);
    EXPECT_TRUE(changed.wait_until(mine, hours_of_the_system::max(), [&] { return ready; }));
    ready = false;
    EXPECT_TRUE(changed.wait_until(mine, std::chrono::system_clock::time_point::max(),
                                   [&] { return !ready; }));
  });
  guard.unlock();
  std::this_thread::sleep_for(5ms);
  guard.lock();
  ready = true;
  changed.notify_one();
  guard.unlock();
  other.join();
}

TEST(ConditionVariable, WaitingWithoutTheLockThrowsAndCountsNobody) {
  mutex lock;
  condition_variable never;
  std::unique_lock guard(lock, std::defer_lock);
  EXPECT_THROW(never.wait_for(guard, 1ms), std::system_error);
  EXPECT_THROW(never.wait(guard), std::system_error);
}  // a counted waiter would keep the destructor here

TEST(ConditionVariable, WakesAWaiterWithoutEnd) {
  mutex lock;
  condition_variable changed;
  bool ready = false;
  std::thread other([&] {
    std::unique_lock guard(lock);
    EXPECT_TRUE(changed.wait_for(guard, std::chrono::hours::max(), [&] { return ready; }));
  });
  {
    const std::lock_guard guard(lock);
    ready = true;
  }
  changed.notify_one();
  other.join();
}

TEST(ConditionVariable, WorksWithTheStandardsOwnAndWithOtherMutexes) {
  shared_mutex lock;
  std::condition_variable_any changed;
  condition_variable also_changed;
  bool ready = false;
  std::thread one([&] {
    std::shared_lock guard(lock);
    changed.wait(guard, [&] { return ready; });
  });
  std::thread two([&] {
    std::unique_lock guard(lock);
    also_changed.wait(guard, [&] { return ready; });
  });
  {
    const std::lock_guard guard(lock);
    ready = true;
  }
  changed.notify_all();
  also_changed.notify_all();
  one.join();
  two.join();
}

// A waiter may still be on its way out when all have been told.
TEST(ConditionVariable, MayBeDestroyedWhenAllAreNotified) {
  for (int round = 0; round < 200; ++round) {
    mutex lock;
    bool ready = false;
    auto changed = std::make_unique<condition_variable>();
    std::thread other([&, waits_on = changed.get()] {
      std::unique_lock guard(lock);
      if (!ready) waits_on->wait(guard);
    });
    {
      const std::lock_guard guard(lock);
      ready = true;
      changed->notify_all();
      changed.reset();
    }
    other.join();
  }
}

}  // namespace
}  // namespace elidex
