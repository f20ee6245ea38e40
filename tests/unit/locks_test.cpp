#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>

#include "elidex/elided.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/sleeping_lock.hpp"
#include "elidex/internal/sync/sleeping_shared_lock.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/mutex.hpp"
#include "elidex/shared_mutex.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/no_retries.hpp"
#include "papers/karnagel/posix_mutex.hpp"

namespace elidex {

using namespace internal;
using namespace papers;

namespace {

template <class Lock>
class AnyLock : public testing::Test {};

using all_locks =
    testing::Types<tas_lock, ttas_lock, posix_mutex, basic_posix_mutex<held_flag>, hle_lock,
                   elided<ttas_lock>, elided<tas_lock, no_retry>, elided<ttas_lock, no_retries>,
                   elided<ttas_lock, dbx_budgets>, elided<posix_mutex>, sleeping_lock,
                   sleeping_shared_lock, mutex, recursive_mutex, shared_mutex>;
TYPED_TEST_SUITE(AnyLock, all_locks);

TYPED_TEST(AnyLock, IsNeitherCopiedNorMoved) {
  EXPECT_FALSE(std::is_copy_constructible_v<TypeParam>);
  EXPECT_FALSE(std::is_move_constructible_v<TypeParam>);
  EXPECT_FALSE(std::is_copy_assignable_v<TypeParam>);
}

TYPED_TEST(AnyLock, LocksAndUnlocksAgainAndAgain) {
  TypeParam lock;
  int value = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::lock_guard guard(lock);
    ++value;
  }
  EXPECT_EQ(value, 1000);
}

TYPED_TEST(AnyLock, TryLockTakesAFreeLock) {
  TypeParam lock;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(lock.try_lock());
    lock.unlock();
  }
}

// The holder must not be elided here: elided sections of two threads may well overlap. Waiting for
// a join aborts a region, so on hardware the holder's section ends up with the lock as well.
TYPED_TEST(AnyLock, TryLockOfAnotherThreadFailsWhileItIsHeld) {
  TypeParam lock;
  std::atomic<int> answer{-1};
  lock.lock();
  std::thread other([&] {
    const bool taken = lock.try_lock();
    if (taken) lock.unlock();
    answer.store(taken ? 1 : 0);
  });
  other.join();
  lock.unlock();
  EXPECT_EQ(answer.load(), 0);
}

TYPED_TEST(AnyLock, AWaiterGetsTheLockAfterUnlock) {
  TypeParam lock;
  int value = 0;
  lock.lock();
  std::thread waiter([&] {
    lock.lock();
    ++value;
    lock.unlock();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ++value;
  lock.unlock();
  waiter.join();
  EXPECT_EQ(value, 2);
}

template <class Lock>
class WatchedLock : public testing::Test {};

using watched_locks = testing::Types<tas_lock, ttas_lock, posix_mutex, basic_posix_mutex<held_flag>,
                                     sleeping_lock, sleeping_shared_lock>;
TYPED_TEST_SUITE(WatchedLock, watched_locks);

TYPED_TEST(WatchedLock, SaysWhetherItIsHeld) {
  TypeParam lock;
  EXPECT_FALSE(lock.is_locked());
  lock.lock();
  EXPECT_TRUE(lock.is_locked());
  lock.unlock();
  EXPECT_FALSE(lock.is_locked());
  ASSERT_TRUE(lock.try_lock());
  EXPECT_TRUE(lock.is_locked());
  lock.unlock();
  EXPECT_FALSE(lock.is_locked());
}

TYPED_TEST(WatchedLock, SaysItToOtherThreadsToo) {
  TypeParam lock;
  bool seen_held = false;
  bool seen_free = true;
  {
    const std::lock_guard guard(lock);
    std::thread([&] { seen_held = lock.is_locked(); }).join();
  }
  std::thread([&] { seen_free = !lock.is_locked(); }).join();
  EXPECT_TRUE(seen_held);
  EXPECT_TRUE(seen_free);
}

TEST(HleLock, CountsEachAcquisition) {
  hle_lock lock;
  for (int i = 0; i < 500; ++i) {
    const std::lock_guard guard(lock);
  }
  EXPECT_EQ(lock.stats().acquisitions(), 500u);
  if (!htm::capability().hle_advertised) {
    EXPECT_EQ(lock.stats().fallbacks, 500u);
  }
}

TEST(HleLock, ElidesOnHardware) {
  if (!htm::capability().hle_advertised || !htm::capability().rtm_commits) {
    GTEST_SKIP() << "no hardware lock elision: " << htm::capability().reason;
  }
  hle_lock lock;
  for (int i = 0; i < 10'000; ++i) {
    const std::lock_guard guard(lock);
  }
  EXPECT_GT(lock.stats().commits, 0u);
}

TEST(Backoff, PausesDoubleUpToTheBound) {
  backoff wait;
  std::uint32_t rounds = 0;
  while (!wait.is_spent()) {
    wait.once();
    ++rounds;
    ASSERT_LT(rounds, 64u);
  }
  EXPECT_EQ(1u << (rounds - 1), backoff_pauses_max);
  wait.once();
  EXPECT_TRUE(wait.is_spent());
}

}  // namespace
}  // namespace elidex
