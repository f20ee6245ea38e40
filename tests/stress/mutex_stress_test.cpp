// Drop-in mutexes and their condition variable with more threads than cores.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "elidex/condition_variable.hpp"
#include "elidex/mutex.hpp"
#include "elidex/shared_mutex.hpp"
#include "support/random_seed.hpp"

namespace elidex {

using namespace internal;

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr unsigned threads_count = 8;

// `./dev test --long` soaks for a minute.
steady_clock::duration soak_time() {
  return testing::effort() > 1 ? steady_clock::duration(60s) : steady_clock::duration(500ms);
}

TEST(MutexStress, ProducersAndConsumersLoseNothing) {
  mutex lock;
  condition_variable not_full, not_empty;
  std::deque<std::uint64_t> queue;
  bool ended = false;
  std::uint64_t sent = 0, received = 0;
  std::atomic<std::uint64_t> sum_sent{0}, sum_received{0};
  const auto until = steady_clock::now() + soak_time();
  std::vector<std::thread> producers, consumers;
  for (unsigned t = 0; t < threads_count / 2; ++t) {
    producers.emplace_back([&, t] {
      for (std::uint64_t n = t; steady_clock::now() < until; n += threads_count) {
        std::unique_lock guard(lock);
        not_full.wait(guard, [&] { return queue.size() < 4; });
        queue.push_back(n);
        ++sent;
        sum_sent += n;
        if (n % 3 == 0) guard.unlock();
        not_empty.notify_one();
      }
    });
    consumers.emplace_back([&] {
      for (;;) {
        std::unique_lock guard(lock);
        // Every other wait has a deadline that often passes.
        if (received % 2 == 0) {
          not_empty.wait(guard, [&] { return ended || !queue.empty(); });
        } else if (!not_empty.wait_for(guard, 50us, [&] { return ended || !queue.empty(); })) {
          continue;
        }
        if (queue.empty()) return;
        sum_received += queue.front();
        queue.pop_front();
        ++received;
        guard.unlock();
        not_full.notify_one();
      }
    });
  }
  for (std::thread& one : producers) one.join();
  {
    const std::lock_guard guard(lock);
    ended = true;
  }
  not_empty.notify_all();
  for (std::thread& one : consumers) one.join();
  EXPECT_GT(sent, 0u);
  EXPECT_EQ(sent, received);
  EXPECT_EQ(sum_sent.load(), sum_received.load());
}

TEST(MutexStress, ReadersNeverSeeHalfOfAWrite) {
  shared_mutex lock;
  std::array<std::uint64_t, 4> words{};
  std::atomic<std::uint64_t> torn{0}, writes{0}, reads{0};
  const auto until = steady_clock::now() + soak_time();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < threads_count; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      while (steady_clock::now() < until) {
        if (random() % 8 == 0) {
          const std::lock_guard guard(lock);
          for (std::uint64_t& word : words) ++word;
          if (random() % 64 == 0) std::this_thread::yield();
          ++writes;
        } else {
          const std::shared_lock guard(lock);
          if (words.front() != words.back()) ++torn;
          if (random() % 64 == 0) std::this_thread::yield();
          ++reads;
        }
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_EQ(words.front(), writes.load());
  EXPECT_GT(reads.load(), 0u);
}

// Sections that last longer than anybody spins: the others sleep, and each of them is woken.
template <class Lock>
void use_with_sleepers() {
  Lock lock;
  std::uint64_t counter = 0;
  std::atomic<std::uint64_t> sections{0}, torn{0};
  const auto until = steady_clock::now() + soak_time() / 2;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < threads_count; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      while (steady_clock::now() < until) {
        if constexpr (requires { lock.lock_shared(); }) {
          if (random() % 2 == 0) {
            const std::shared_lock guard(lock);
            const std::uint64_t before = counter;
            if (random() % 4 == 0) std::this_thread::sleep_for(100us);
            if (counter != before) ++torn;
            continue;
          }
        }
        const std::lock_guard guard(lock);
        if (random() % 4 == 0) std::this_thread::sleep_for(100us);
        ++counter;
        ++sections;
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(counter, sections.load());
  EXPECT_EQ(torn.load(), 0u);
}

TEST(MutexStress, WhoSleepsIsWoken) {
  use_with_sleepers<sleeping_lock>();
  use_with_sleepers<sleeping_shared_lock>();
  use_with_sleepers<mutex>();
}

// Neither side starves: while readers overlap all the time, writers get in, and the other way
// round.
TEST(MutexStress, NeitherReadersNorWritersStarve) {
  for (const bool readers_crowd : {true, false}) {
    shared_mutex lock;
    std::atomic<bool> stop{false};
    std::atomic<int> sections{0};
    std::vector<std::thread> crowd;
    for (unsigned t = 0; t < 4; ++t) {
      crowd.emplace_back([&] {
        while (!stop.load()) {
          if (readers_crowd) {
            const std::shared_lock guard(lock);
            std::this_thread::yield();
          } else {
            const std::lock_guard guard(lock);
            std::this_thread::yield();
          }
          ++sections;
        }
      });
    }
    while (sections.load() < 100) std::this_thread::yield();
    for (int i = 0; i < 20; ++i) {
      if (readers_crowd) {
        const std::lock_guard guard(lock);
      } else {
        const std::shared_lock guard(lock);
      }
    }
    stop.store(true);
    for (std::thread& one : crowd) one.join();
  }
}

// A thread of real-time priority that waits on the holder's own core must sleep, or the holder
// never runs again. (It could yield for ever: that lets in threads of its own priority only.)
TEST(MutexStress, AWaiterOfHigherPriorityLetsTheHolderRun) {
  cpu_set_t one_core;
  CPU_ZERO(&one_core);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one_core);
  mutex lock;
  std::atomic<bool> held{false}, waits{false}, allowed{true};
  std::thread holder([&] {
    pthread_setaffinity_np(pthread_self(), sizeof one_core, &one_core);
    const std::lock_guard guard(lock);
    held.store(true);
    while (!waits.load()) std::this_thread::sleep_for(1ms);
    const auto until = steady_clock::now() + 20ms;
    while (steady_clock::now() < until) {
    }
  });
  std::thread urgent([&] {
    while (!held.load()) std::this_thread::sleep_for(1ms);
    pthread_setaffinity_np(pthread_self(), sizeof one_core, &one_core);
    const sched_param highest{.sched_priority = sched_get_priority_max(SCHED_FIFO)};
    allowed.store(pthread_setschedparam(pthread_self(), SCHED_FIFO, &highest) == 0);
    waits.store(true);
    const std::lock_guard guard(lock);
  });
  urgent.join();
  holder.join();
  if (!allowed.load()) GTEST_SKIP() << "this user may not use SCHED_FIFO";
}

// The same for whoever destroys a condition variable while a waiter that was notified has not run
// yet.
TEST(MutexStress, ADestroyerOfHigherPriorityLetsTheWaiterRun) {
  cpu_set_t one_core;
  CPU_ZERO(&one_core);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one_core);
  mutex lock;
  auto changed = std::make_unique<condition_variable>();
  std::atomic<bool> waits{false}, allowed{true};
  std::thread waiter([&] {
    pthread_setaffinity_np(pthread_self(), sizeof one_core, &one_core);
    std::unique_lock guard(lock);
    waits.store(true);
    changed->wait(guard);
  });
  steady_clock::duration took{};
  std::thread urgent([&] {
    while (!waits.load()) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    pthread_setaffinity_np(pthread_self(), sizeof one_core, &one_core);
    const sched_param highest{.sched_priority = sched_get_priority_max(SCHED_FIFO)};
    allowed.store(pthread_setschedparam(pthread_self(), SCHED_FIFO, &highest) == 0);
    changed->notify_one();
    const auto began = steady_clock::now();
    changed.reset();
    took = steady_clock::now() - began;
  });
  urgent.join();
  waiter.join();
  if (!allowed.load()) GTEST_SKIP() << "this user may not use SCHED_FIFO";
  // The system stops a thread of real-time priority that runs for 0.95 s, if nothing else does.
  EXPECT_LT(took, 500ms);
}

}  // namespace
}  // namespace elidex
