// Waiters whose holder does not run: they sleep, whatever they wait for, and no wake-up is lost.
#include "elidex/internal/sync/parking.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "elidex/column.hpp"
#include "elidex/internal/hash/hash_bucket.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/sync/sleeping_lock.hpp"
#include "elidex/internal/sync/sleeping_shared_lock.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/conflict_control.hpp"
#include "elidex/internal/txn/commit_clock.hpp"
#include "elidex/internal/txn/record.hpp"
#include "papers/eunomia/masstree_version.hpp"
#include "papers/eunomia/segment_control.hpp"
#include "papers/karnagel/hle_lock.hpp"

namespace elidex {

using namespace internal;
using namespace papers;

namespace {

using namespace std::chrono_literals;

// The processor time of the calling thread.
std::chrono::nanoseconds processor_time() {
  timespec now{};
  EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

constexpr auto held_for = 300ms;

// The processor time that wait() takes in another thread, when release() comes `held_for` later.
template <class Wait, class Release>
std::chrono::nanoseconds time_of_waiting(Wait&& wait, Release&& release) {
  std::chrono::nanoseconds took{};
  std::atomic<bool> waits{false};
  std::thread waiter([&] {
    const auto before = processor_time();
    waits = true;
    wait();
    took = processor_time() - before;
  });
  while (!waits) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(held_for);
  release();
  waiter.join();
  return took;
}

// A waiter that spins or yields takes all of `held_for`. A third leaves room for sanitizers.
#define EXPECT_SLEEPS(wait, release) \
  EXPECT_LT(time_of_waiting([&] { wait; }, [&] { release; }), held_for / 3)

TEST(WaitersCanary, AWaiterThatSpinsIsFound) {
  const auto spins = [] {
    const auto before = processor_time();
    while (processor_time() - before < held_for / 3) cpu_pause();
  };
  EXPECT_GE(time_of_waiting(spins, [] {}), held_for / 3);
}

TEST(Waiters, SleepUntilARecordIsUnlocked) {
  std::vector<std::uint64_t> memory(internal::record::bytes_for(2) / sizeof(std::uint64_t));
  internal::record& row = *internal::record::make(memory.data(), 2, 1);
  std::vector<std::uint64_t> into(2);
  const internal::commit_stamp stamp(1, 1);

  static_cast<void>(row.lock());
  EXPECT_SLEEPS(static_cast<void>(row.read(into)), row.unlock(stamp));
  static_cast<void>(row.lock());
  EXPECT_SLEEPS(static_cast<void>(row.read_as_of(1, into)), row.unlock(stamp));
  static_cast<void>(row.lock());
  EXPECT_SLEEPS(row.unlock(row.lock()), row.unlock(stamp));
}

TEST(Waiters, SleepUntilACommitPhaseEnds) {
  internal::commit_clock clock;
  std::optional<internal::commit_clock::commit_phase> phase(std::in_place, clock);
  const std::uint64_t wanted = clock.advance() - 1;
  EXPECT_SLEEPS(clock.wait_for(wanted), phase.reset());
}

TEST(Waiters, SleepUntilANodeIsUnlocked) {
  version_lock node;
  static_cast<void>(node.lock());
  EXPECT_SLEEPS(static_cast<void>(node.read()), node.unlock());
  const auto seen = node.lock();
  EXPECT_SLEEPS(static_cast<void>(node.lock()), node.unlock_unchanged(seen));

  internal::bucket_lock bucket;
  bucket.be_born(0, {});
  auto held = bucket.lock();
  EXPECT_SLEEPS(static_cast<void>(bucket.read()), bucket.unlock(held));
  held = bucket.lock();
  EXPECT_SLEEPS(static_cast<void>(bucket.read()), bucket.unlock_unchanged(held));
  held = bucket.lock();
  EXPECT_SLEEPS(static_cast<void>(bucket.read()), bucket.unlock_at(held, 1));
}

TEST(Waiters, SleepUntilANodeOfMasstreeIsUnlocked) {
  using version = papers::masstree_version<true>;
  version node(version::kind::leaf, version::state::unlocked_root);
  node.lock();
  EXPECT_SLEEPS(node.lock(), node.unlock());
  EXPECT_SLEEPS(static_cast<void>(node.unlocked()), node.unlock());
  node.lock();
  node.mark_inserting();
  EXPECT_SLEEPS(static_cast<void>(node.stable()), node.unlock());
}

TEST(Waiters, SleepUntilASlotOfALeafIsUnlocked) {
  conflict_control<16> control;
  static_cast<void>(control.lock(0));
  EXPECT_SLEEPS(static_cast<void>(control.lock(0)), control.unlock(0));
  EXPECT_SLEEPS(static_cast<void>(control.lock(0)), control.unlock_and_clear_mark(0));
  ASSERT_TRUE(control.try_lock_for_split());
  EXPECT_SLEEPS(control.wait_for_split(), control.unlock_after_split());

  segment_control segment;
  static_cast<void>(segment.lock(0));
  EXPECT_SLEEPS(static_cast<void>(segment.lock(0)), segment.unlock(0, false, 1000, 0));
}

template <class Lock>
class LocksThatWait : public testing::Test {};
using locks = testing::Types<ttas_lock, tas_lock, hle_lock, sleeping_lock, sleeping_shared_lock>;
TYPED_TEST_SUITE(LocksThatWait, locks);

TYPED_TEST(LocksThatWait, SleepUntilTheLockIsFree) {
  TypeParam lock;
  lock.lock();
  EXPECT_SLEEPS(lock.lock(), lock.unlock());
}

TEST(Waiters, SleepUntilPinsEnd) {
  auto pin = std::make_unique<epoch_pin>();
  EXPECT_SLEEPS(wait_for_pins(), pin.reset());
}

// --- no wake-up is lost ---

// Two threads pass a word to and fro, each sleeping until it has it. A lost wake-up without an end
// of the sleep would hang the test.
std::chrono::nanoseconds pass_to_and_fro(std::uint32_t rounds) {
  std::atomic<std::uint32_t> turn{0};
  const auto player = [&](std::uint32_t mine) {
    // acquire: pairs with the store below.
    const auto is_blocked = [&] { return turn.load(std::memory_order_acquire) % 2 != mine; };
    const auto ask = [](const void* context) {
      return (*static_cast<const decltype(is_blocked)*>(context))();
    };
    for (std::uint32_t i = 0; i < rounds; ++i) {
      // Without the pauses of wait_while(), so that each hand-over is a race with a thread that
      // goes to sleep.
      using kind = internal::parking::sleep_kind;
      for (kind which = kind::first; internal::parking::sleep(&turn, which, ask, &is_blocked);)
        which = kind::later;
      turn.store(turn.load() + 1, std::memory_order_release);  // pairs with is_blocked()
      internal::wake_waiters(&turn);
    }
  };
  const auto began = std::chrono::steady_clock::now();
  std::thread other(player, 1);
  player(0);
  other.join();
  EXPECT_EQ(turn.load(), 2 * rounds);
  EXPECT_EQ(internal::threads_parked.load(), 0u);
  return std::chrono::steady_clock::now() - began;
}

TEST(Parking, NoWakeUpIsLost) {
  static_cast<void>(pass_to_and_fro(20'000));
}

// An attempt to lock is not repeated when it has succeeded, be it while pausing, while going to
// sleep or after a sleep.
TEST(Parking, TheQuestionIsNotAskedAgainOnceItIsAnswered) {
  // Seven pauses, the yields, a question before and one after the first sleep: the next sleep would
  // have no end.
  constexpr int questions = 7 + static_cast<int>(internal::yields_before_sleep) + 2;
  for (int blocked_times = 0; blocked_times <= questions; ++blocked_times) {
    int word = 0;
    int asked = 0;
    internal::wait_while<internal::looks::often>(&word, [&] { return ++asked <= blocked_times; });
    EXPECT_EQ(asked, blocked_times + 1);
  }
}

TEST(Parking, TheFirstSleepEndsWithoutAWakeUp) {
  int word = 0;
  const auto is_blocked = [](const void*) { return true; };
  EXPECT_TRUE(
      internal::parking::sleep(&word, internal::parking::sleep_kind::first, is_blocked, nullptr));
  EXPECT_EQ(internal::threads_parked.load(), 0u);
}

TEST(Parking, AWakeUpOfAnAddressThatNobodyWaitsForDoesNothing) {
  int word = 0;
  internal::parking::wake(&word);
  internal::wake_waiters(&word);
  EXPECT_EQ(internal::threads_parked.load(), 0u);
}

TEST(Parking, AllWaitersOfAnAddressAreWoken) {
  ttas_lock lock;
  std::uint64_t sum = 0;
  lock.lock();
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([&] {
      lock.lock();
      ++sum;
      lock.unlock();
    });
  }
  while (internal::threads_parked.load() < 8) std::this_thread::sleep_for(1ms);
  lock.unlock();
  for (std::thread& each : waiters) each.join();
  EXPECT_EQ(sum, 8u);
  EXPECT_EQ(internal::threads_parked.load(), 0u);
}

}  // namespace
}  // namespace elidex
