// Drop-in mutexes, their condition variable and elision together under explored interleavings: no
// wake-up is lost, readers never see half of a write, and a lock may be destroyed by its last
// holder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <thread>

#include "elidex/condition_variable.hpp"
#include "elidex/internal/sync/futex_semaphore.hpp"
#include "elidex/mutex.hpp"
#include "elidex/shared_mutex.hpp"
#include "schedule/explore.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using bodies_type = std::vector<std::function<void()>>;
using ::testing::HasSubstr;

std::uint64_t schedules(double count) {
  return static_cast<std::uint64_t>(count * effort());
}

// A condition variable whose end does not wait for waiters: in a run that got stuck they would
// never leave.
template <class Condition>
class abandoned {
 public:
  abandoned() { new (memory_) Condition; }
  Condition* operator->() { return std::launder(reinterpret_cast<Condition*>(memory_)); }

 private:
  alignas(Condition) unsigned char memory_[sizeof(Condition)];
};

// Two producers and two consumers with a queue of one place.
template <class Mutex, class Condition>
struct one_place {
  static constexpr int each = 2;
  Mutex lock;
  abandoned<Condition> changed;
  alignas(64) std::atomic<int> in_queue{0};
  std::atomic<int> taken{0};

  bodies_type bodies() {
    const auto produce = [this] {
      for (int i = 0; i < each; ++i) {
        std::unique_lock guard(lock);
        changed->wait(guard, [this] { return in_queue == 0; });
        ++in_queue;
        changed->notify_all();
      }
    };
    const auto consume = [this] {
      for (int i = 0; i < each; ++i) {
        std::unique_lock guard(lock);
        changed->wait(guard, [this] { return in_queue != 0; });
        --in_queue;
        ++taken;
        guard.unlock();
        changed->notify_all();
      }
    };
    return {produce, consume, produce, consume};
  }
  std::string verdict() const {
    return in_queue == 0 && taken == 2 * each ? "" : "an element is lost or doubled";
  }
};

TEST(MutexSchedules, NoNotificationIsLost) {
  EXPECT_EQ((explore<one_place<mutex, condition_variable>>(schedules(400))), "");
}
TEST(MutexSchedules, NorWithARecursiveMutex) {
  EXPECT_EQ((explore<one_place<recursive_mutex, condition_variable>>(schedules(200))), "");
}
TEST(MutexSchedules, NorWithTheStandardsConditionVariable) {
  EXPECT_EQ((explore<one_place<mutex, std::condition_variable_any>>(schedules(100))), "");
}

// One waits for the other, once: all schedules with so many preemptions.
struct one_waits {
  mutex lock;
  abandoned<condition_variable> changed;
  alignas(64) std::atomic<bool> ready{false};

  bodies_type bodies() {
    return {[this] {
              std::unique_lock guard(lock);
              changed->wait(guard, [this] { return ready.load(); });
            },
            [this] {
              {
                const std::lock_guard guard(lock);
                ready = true;
              }
              changed->notify_one();
            }};
  }
  std::string verdict() const { return ""; }
};

TEST(MutexSchedules, AllSchedulesOfOneWaiterWithTwoPreemptions) {
  std::uint64_t count = 0;
  EXPECT_EQ(explore_all<one_waits>(2, count), "");
  EXPECT_GT(count, 100u);
}

// Canary: ready is set without the lock, so it may come between the waiter's look and its sleep. (A
// waiter in a region would see it: the store aborts the region.)
struct sets_without_the_lock : one_waits {
  bodies_type bodies() {
    return {[this] {
              std::unique_lock guard(lock);
              std::this_thread::yield();  // a system call: the lock is taken
              changed->wait(guard, [this] { return ready.load(); });
            },
            [this] {
              ready = true;
              changed->notify_one();
            }};
  }
};

// One schedule of a thousand shows it.
TEST(MutexSchedulesCanary, ALostNotificationIsFound) {
  EXPECT_THAT(explore<sets_without_the_lock>(20'000), HasSubstr("waits for futex"));
}

// How many yields a section takes: up to more than anybody spins, so that some go to sleep, others
// just not.
inline int long_time(std::uint64_t seed) {
  return static_cast<int>(seed * 0x9e3779b97f4a7c15 >> 33) % 300;
}

void spend(int yields) {
  for (int i = 0; i < yields; ++i) std::this_thread::yield();
}

// Sleepers of the plain locks: each thread's first section is a long one.
template <class Lock>
struct long_sections {
  using made_by_seed = void;
  static constexpr std::uint64_t steps = 3000;
  static constexpr int each = 2;
  const std::uint64_t seed;
  const int threads = 2 + static_cast<int>(seed / 2 % 3);
  Lock lock{};
  alignas(64) std::atomic<int> inside{0};
  std::atomic<int> done{0};
  std::atomic<bool> broken{false};

  explicit long_sections(std::uint64_t schedule) : seed(schedule) {}

  void section(int yields) {
    if (++inside != 1) broken = true;
    spend(yields);
    --inside;
    ++done;
  }
  bodies_type bodies() {
    bodies_type all;
    for (int t = 0; t < threads; ++t) {
      all.push_back([this, t] {
        for (int i = 0; i < each; ++i) {
          const std::lock_guard guard(lock);
          section(i == 0 ? long_time(seed + static_cast<std::uint64_t>(t)) : 1);
        }
      });
    }
    return all;
  }
  std::string verdict() const {
    return broken ? "two were inside" : done == threads * each ? "" : "a section is missing";
  }
};

TEST(MutexSchedules, NobodySleepsForEver) {
  EXPECT_EQ(explore<long_sections<sleeping_lock>>(schedules(600)), "");
  EXPECT_EQ(explore<long_sections<sleeping_shared_lock>>(schedules(600)), "");
  EXPECT_EQ(explore<long_sections<shared_mutex>>(schedules(200)), "");
}

// Canary: the classic lost wake-up. Who unlocks looks for sleepers first, who comes looks at the
// lock and then counts itself.
class forgetful_lock {
 public:
  void lock() {
    while (held_.exchange(true)) {
      ++sleepers_;
      tokens_.acquire();
    }
  }
  void unlock() {
    const bool wakes = sleepers_.exchange(0) != 0;
    held_ = false;
    if (wakes) tokens_.release(1);
  }

 private:
  std::atomic<bool> held_{false};
  std::atomic<int> sleepers_{0};
  futex_semaphore tokens_;
};

TEST(MutexSchedulesCanary, ALostWakeUpIsFound) {
  EXPECT_THAT(explore<long_sections<forgetful_lock>>(2'000), HasSubstr("waits for futex"));
}

// Readers and writers, elided and not.
template <class Lock>
struct readers_and_writers {
  Lock lock;
  alignas(64) std::atomic<int> a{0};
  alignas(64) std::atomic<int> b{0};
  std::atomic<bool> torn{false};

  bodies_type bodies() {
    const auto write = [this] {
      for (int i = 0; i < 2; ++i) {
        const std::lock_guard guard(lock);
        a = a + 1;
        if (i == 1) std::this_thread::yield();  // ends a region
        b = b + 1;
      }
    };
    const auto read = [this] {
      for (int i = 0; i < 2; ++i) {
        const std::shared_lock guard(lock);
        const int seen = a;
        if (i == 1) std::this_thread::yield();
        if (b != seen) torn = true;
      }
    };
    return {write, read, read, write};
  }
  std::string verdict() const {
    return torn ? "a reader saw half of a write" : a == 4 && b == 4 ? "" : "a write is lost";
  }
};

TEST(MutexSchedules, ReadersSeeWholeWrites) {
  EXPECT_EQ(explore<readers_and_writers<shared_mutex>>(schedules(400)), "");
  EXPECT_EQ(explore<readers_and_writers<sleeping_shared_lock>>(schedules(600)), "");
}

// Writers and readers that stay until others sleep. Whoever sleeps behind the last writer would do
// so for ever.
template <class Lock>
struct sleeping_readers_and_writers {
  using made_by_seed = void;
  static constexpr std::uint64_t steps = 3000;
  const std::uint64_t seed;
  Lock lock{};
  alignas(64) std::atomic<int> a{0};
  alignas(64) std::atomic<int> b{0};
  std::atomic<int> read{0};
  std::atomic<bool> torn{false};

  explicit sleeping_readers_and_writers(std::uint64_t schedule) : seed(schedule) {}

  void write(int yields) {
    const std::lock_guard guard(lock);
    a = a + 1;
    spend(yields);
    b = b + 1;
  }
  void look(int yields) {
    const std::shared_lock guard(lock);
    const int seen = a;
    spend(yields);
    if (b != seen) torn = true;
    ++read;
  }
  bodies_type bodies() {
    const auto writer = [this] {
      write(long_time(seed));
      if (seed / 2 % 2 == 0) write(1);
    };
    const auto reader = [this] {
      look(1);
      look(long_time(seed + 1));
    };
    return {writer, reader, reader, reader};
  }
  std::string verdict() const {
    if constexpr (requires { lock.is_locked(); }) {
      if (lock.is_locked()) return "somebody has not left";
    }
    return torn                  ? "a reader saw half of a write"
           : a == b && read == 6 ? ""
                                 : "a section is missing";
  }
};

TEST(MutexSchedules, NeitherReadersNorWritersSleepForEver) {
  EXPECT_EQ(explore<sleeping_readers_and_writers<sleeping_shared_lock>>(schedules(4'000)), "");
  EXPECT_EQ(explore<sleeping_readers_and_writers<shared_mutex>>(schedules(200)), "");
}

// A lock that lets everybody in: the same program must find it.
struct open_door {
  void lock() {}
  void unlock() {}
  void lock_shared() {}
  void unlock_shared() {}
};
TEST(MutexSchedulesCanary, AnOpenDoorIsFound) {
  EXPECT_NE(explore<readers_and_writers<open_door>>(200), "");
}

// Whoever is last destroys the lock at once, with the memory under it overwritten by what no
// pointer is.
template <class Lock>
struct last_one_destroys {
  struct object {
    Lock lock;
    std::atomic<int> users{3};
  };
  alignas(64) unsigned char memory[sizeof(object)];
  object* const shared = new (memory) object;
  std::atomic<bool> destroyed{false};

  bodies_type bodies() {
    return bodies_type(3, [this] {
      shared->lock.lock();
      const bool last = --shared->users == 0;
      shared->lock.unlock();
      if (!last) return;
      shared->~object();
      for (unsigned char& byte : memory) __atomic_store_n(&byte, 0xff, __ATOMIC_SEQ_CST);
      destroyed = true;
    });
  }
  std::string verdict() const {
    for (const unsigned char byte : memory) {
      if (byte != 0xff) return "the lock wrote to itself after its end";
    }
    return destroyed ? "" : "nobody was last";
  }
};

TEST(MutexSchedules, TheLastHolderMayDestroyTheLock) {
  EXPECT_EQ(explore<last_one_destroys<mutex>>(schedules(300)), "");
  EXPECT_EQ(explore<last_one_destroys<shared_mutex>>(schedules(300)), "");
  EXPECT_EQ(explore<last_one_destroys<sleeping_lock>>(schedules(600)), "");
}

// Canary: frees the lock and then looks for sleepers.
class looks_back_lock {
 public:
  void lock() {
    while (held_.exchange(true)) std::this_thread::yield();
  }
  void unlock() {
    held_ = false;
    ++unlocked_;
  }

 private:
  std::atomic<bool> held_{false};
  std::atomic<int> unlocked_{0};
};
TEST(MutexSchedulesCanary, AnAccessAfterTheEndIsFound) {
  EXPECT_THAT(explore<last_one_destroys<looks_back_lock>>(500), HasSubstr("after its end"));
}

// Sections of several locks, in any order of leaving, nested and overlapping.
struct overlapping {
  mutex first, second;
  alignas(64) std::atomic<int> x{0};
  alignas(64) std::atomic<int> y{0};
  std::atomic<bool> broken{false};

  bodies_type bodies() {
    const auto hand_over_hand = [this](bool with_system_call) {
      for (int i = 0; i < 2; ++i) {
        first.lock();
        x = x + 1;
        second.lock();
        if (with_system_call) std::this_thread::yield();
        first.unlock();
        y = y + 1;
        second.unlock();
      }
    };
    return {[=] { hand_over_hand(false); }, [=] { hand_over_hand(true); },
            [this] {
              for (int i = 0; i < 2; ++i) {
                const std::scoped_lock both(first, second);
                if (y > x) broken = true;
              }
            }};
  }
  std::string verdict() const {
    return broken ? "y came before x" : x == 4 && y == 4 ? "" : "an increment is lost";
  }
};

TEST(MutexSchedules, OverlappingSectionsKeepTheirPromises) {
  EXPECT_EQ(explore<overlapping>(schedules(400)), "");
}

}  // namespace
}  // namespace elidex::testing
