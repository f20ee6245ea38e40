// Planted bugs that no thread shows alone: exploration finds each within a stated number of
// schedules, and the sound version of the same program has none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "elidex/htm.hpp"
#include "elidex/internal/sync/pause.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "schedule/explore.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using bodies_type = std::vector<std::function<void()>>;
using u64 = std::uint64_t;
using ::testing::HasSubstr;

// A sequence lock around two words. Broken: the reader believes what it has read.
template <bool Rechecks>
struct sequence_lock {
  std::atomic<u64> version{0};
  std::atomic<u64> a{0}, b{0};
  bool torn = false;

  bodies_type bodies() {
    return {[this] {
              for (u64 n = 1; n <= 2; ++n) {
                ++version;
                a = n;
                b = n;
                ++version;
              }
            },
            [this] {
              for (int i = 0; i < 2; ++i) {
                const u64 before = version;
                if (before % 2 != 0) continue;
                const u64 first = a;
                const u64 second = b;
                if (Rechecks && version != before) continue;
                torn = torn || first != second;
              }
            }};
  }
  std::string verdict() const { return torn ? "a reader saw half of a write" : ""; }
};

// Treiber's stack. Broken: the top is compared by address alone, so a node that was popped and
// pushed again passes.
template <bool Counted>
struct treiber_stack {
  struct node {
    std::atomic<u64> next{0};
  };
  // A top is a node's number and, above it, a count of changes; 0 is no node.
  std::array<node, 4> nodes;
  std::atomic<u64> top{0};
  std::array<std::atomic<int>, 4> owners{};
  static constexpr u64 number = 0xff;

  treiber_stack() {
    push(1);
    push(2);
    push(3);
  }
  static u64 with(u64 before, u64 n) { return Counted ? (before | number) + 1 + n : n; }

  void push(u64 n) {
    owners[n] = 0;
    for (u64 seen = top;;) {
      nodes[n].next = seen & number;
      if (top.compare_exchange_strong(seen, with(seen, n))) return;
    }
  }
  u64 pop() {
    for (u64 seen = top;;) {
      const u64 n = seen & number;
      if (n == 0) return 0;
      const u64 next = nodes[n].next;
      if (!top.compare_exchange_strong(seen, with(seen, next))) continue;
      ++owners[n];
      return n;
    }
  }
  bool taken_twice = false;

  bodies_type bodies() {
    return {[this] { pop(); },
            [this] {
              const u64 first = pop();
              pop();
              if (first != 0) push(first);
            }};
  }
  // Every node is owned by one, or on the stack.
  std::string verdict() {
    std::array<int, 4> seen{};
    for (u64 n = 1; n < 4; ++n) seen[n] = owners[n];
    u64 steps = 0;
    for (u64 n = top & number; n != 0 && steps < 8; n = nodes[n].next, ++steps) ++seen[n];
    for (u64 n = 1; n < 4; ++n) {
      if (seen[n] != 1) return "a node is on the stack and with its owner, or nowhere";
    }
    return "";
  }
};

// One thread takes the lock, the other elides it. Broken: the region doesn't read the lock
// (paper 004, section 3.1).
template <bool ReadsLock>
struct elision {
  ttas_lock lock;
  alignas(64) std::atomic<u64> counter{0};

  bodies_type bodies() {
    return {[this] {
              lock.lock();
              const u64 seen = counter;
              counter = seen + 1;
              lock.unlock();
            },
            [this] {
              for (;;) {
                if (!htm::begin().started()) {
                  cpu_pause();  // says that it waits
                  continue;
                }
                if (ReadsLock && lock.is_locked()) htm::abort<htm::code_lock_busy>();
                const u64 seen = counter;
                counter = seen + 1;
                htm::commit();
                return;
              }
            }};
  }
  std::string verdict() const { return counter == 2 ? "" : "an increment is lost"; }
};

// Waiting for an event. Broken: the waiter looks before it takes the mutex, so the wake-up may come
// in between.
template <bool LooksInside>
struct wake_up {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> ready{false};

  bodies_type bodies() {
    return {[this] {
              if (LooksInside) {
                std::unique_lock lock(mutex);
                while (!ready) changed.wait(lock);
              } else if (!ready) {
                std::unique_lock lock(mutex);
                changed.wait(lock);
              }
            },
            [this] {
              {
                const std::lock_guard guard(mutex);
                ready = true;
              }
              changed.notify_one();
            }};
  }
  std::string verdict() const { return ""; }
};

constexpr u64 sound_schedules = 2'000;

TEST(ScheduleCanary, ASequenceLockWithoutRecheckIsFoundWithin100) {
  EXPECT_THAT(explore<sequence_lock<false>>(100), HasSubstr("half of a write"));
  EXPECT_EQ(explore<sequence_lock<true>>(sound_schedules), "");
}
TEST(ScheduleCanary, AbaIsFoundWithin1000) {
  EXPECT_THAT(explore<treiber_stack<false>>(1'000), HasSubstr("a node"));
  EXPECT_EQ(explore<treiber_stack<true>>(sound_schedules), "");
}
TEST(ScheduleCanary, ElisionWithoutTheLockInTheReadSetIsFoundWithin100) {
  EXPECT_THAT(explore<elision<false>>(100), HasSubstr("lost"));
  EXPECT_EQ(explore<elision<true>>(sound_schedules), "");
}
TEST(ScheduleCanary, ALostWakeUpIsFoundWithin100) {
  EXPECT_THAT(explore<wake_up<false>>(100), HasSubstr("waits for condition"));
  EXPECT_EQ(explore<wake_up<true>>(sound_schedules), "");
}

TEST(ScheduleCanary, ExhaustiveSearchFindsThemAndEnds) {
  u64 schedules = 0;
  EXPECT_THAT(explore_all<sequence_lock<false>>(1, schedules), HasSubstr("half of a write"));
  EXPECT_THAT(explore_all<elision<false>>(2, schedules), HasSubstr("lost"));
  EXPECT_EQ(explore_all<sequence_lock<true>>(2, schedules), "");
  EXPECT_GT(schedules, 100u);
}

TEST(ScheduleCanary, ASeedReplaysItsInterleaving) {
  for (u64 seed = 1; seed <= 40; ++seed) {
    const auto once = schedule_of(seed);
    const auto again = schedule_of(seed);
    EXPECT_EQ(under<sequence_lock<false>>(*once), under<sequence_lock<false>>(*again));
  }
}

// Each run makes one access less than the run before it.
struct shorter_each_time {
  static inline int accesses_left = 20;
  alignas(64) std::atomic<int> word{0};

  std::vector<std::function<void()>> bodies() {
    const int accesses = --accesses_left;
    return {[this, accesses] {
              for (int i = 0; i < accesses; ++i) ++word;
            },
            [this] { ++word; }};
  }
  std::string verdict() const { return ""; }
};

TEST(ExploreCanary, RunsThatDifferAreFound) {
  std::uint64_t schedules = 0;
  EXPECT_THAT(explore_all<shorter_each_time>(1, schedules), HasSubstr("runs differ"));
}

}  // namespace
}  // namespace elidex::testing
