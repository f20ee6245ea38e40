// More threads than hardware threads: who runs, for how long, and what a wait gives to others.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "elidex/htm.hpp"
#include "machine/regions.hpp"
#include "machine/simulation.hpp"

namespace elidex::sim {
namespace {

constexpr u64 slice = 100'000;

// Timers interrupt ten times in a slice.
machine with_slices() {
  machine m = here();
  set_parameter(m, "timer_period_cycles", slice / 10);
  set_parameter(m, "timer_cycles", 0);
  set_parameter(m, "slice_cycles", slice);
  set_parameter(m, "context_switch_cycles", 1000);
  return m;
}

void compute_for(u64 cycles) {
  for (u64 left = cycles; left > 0; left -= std::min<u64>(left, 100)) spend(100);
}

TEST(Scheduler, ThreadsTakeTurns) {
  std::vector<unsigned> ended;
  bodies all;
  for (unsigned i = 0; i < 3; ++i) {
    all.emplace_back([&ended, i] {
      compute_for((i + 1) * 3 * slice);
      ended.push_back(i);
    });
  }
  const report one = run(with_slices(), {.cpus = 1}, all);
  EXPECT_EQ(ended, (std::vector<unsigned>{0, 1, 2}));
  EXPECT_GE(one.cycles, 18 * slice);
  EXPECT_LE(one.cycles, 18 * slice + 20 * 1000 + slice / 2);
  // The first one has run for a third of the time in which it was there.
  EXPECT_NEAR(static_cast<double>(one.threads[0].ready_cycles),
              2.0 / 3 * static_cast<double>(one.threads[0].cycles), 2.0 * slice);

  const report three = run(with_slices(), {.cpus = 3}, all);
  EXPECT_LE(three.cycles, 10 * slice);
  EXPECT_EQ(three.total().ready_cycles, 0U);
}

// A thread's cycles are those in which it ran, was ready, or slept.
TEST(Scheduler, SleepIsNotCountedAsRunning) {
  constexpr u64 asleep = 5 * slice;
  const machine which = with_slices();
  const double ns = static_cast<double>(asleep) * 1e3 / static_cast<double>(which.megahertz);
  const report r =
      run(which, {.cpus = 1},
          {[&] {
             compute_for(slice / 2);
             std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
             compute_for(slice / 2);
           },
           [] { compute_for(slice / 2); }});
  const thread_report& sleeper = r.threads[0];
  EXPECT_NEAR(static_cast<double>(sleeper.waiting_cycles), asleep, slice / 10.0);
  EXPECT_NEAR(static_cast<double>(sleeper.running_cycles()), slice, slice / 5.0);
  EXPECT_EQ(r.threads[1].waiting_cycles, 0U);
  EXPECT_NEAR(static_cast<double>(r.threads[1].running_cycles()), slice / 2.0, slice / 5.0);

  // Also where another thread ends the wait.
  std::atomic<bool> told{false};
  const report woken = run(which, {.cpus = 2},
                           {[&] { told.wait(false); },
                            [&] {
                              compute_for(asleep);
                              told = true;
                              told.notify_one();
                            }});
  EXPECT_NEAR(static_cast<double>(woken.threads[0].waiting_cycles), asleep, slice);
  EXPECT_LT(woken.threads[0].running_cycles(), slice);
}

TEST(Scheduler, AThreadThatWaitsGivesItsCpuAway) {
  std::mutex mutex;
  std::condition_variable changed;
  bool set = false;
  const report r = run(with_slices(), {.cpus = 1},
                       {[&] {
                          std::unique_lock lock(mutex);
                          changed.wait(lock, [&] { return set; });
                        },
                        [&] {
                          const std::lock_guard lock(mutex);
                          set = true;
                          changed.notify_one();
                        }});
  EXPECT_TRUE(r.stuck.empty()) << r.stuck;
  EXPECT_LT(r.cycles, slice);
}

TEST(Scheduler, AWaitThatEndsByItsDeadlineTakesACpuAgain) {
  std::mutex mutex;
  std::condition_variable never;
  bool came_back = false;
  const report r = run(with_slices(), {.cpus = 1},
                       {[&] {
                          std::unique_lock lock(mutex);
                          never.wait_for(lock, std::chrono::microseconds(10));
                          came_back = true;
                        },
                        [] { compute_for(3 * slice); }});
  EXPECT_TRUE(came_back);
  EXPECT_GE(r.cycles, 3 * slice);
  EXPECT_GT(r.threads[0].ready_cycles, slice / 2);
}

TEST(Scheduler, AWakeUpBeforeTheDeadlineQueuesForACpu) {
  std::mutex mutex;
  std::condition_variable changed;
  bool set = false;
  bool in_time = false;
  run(with_slices(), {.cpus = 1},
      {[&] {
         std::unique_lock lock(mutex);
         in_time = changed.wait_for(lock, std::chrono::seconds(1), [&] { return set; });
       },
       [&] {
         {
           const std::lock_guard lock(mutex);
           set = true;
         }
         changed.notify_one();
         compute_for(3 * slice);
       }});
  EXPECT_TRUE(in_time);
}

TEST(Scheduler, AYieldLetsAnotherRun) {
  std::atomic<bool> set{false};
  const report r = run(with_slices(), {.cpus = 1},
                       {[&] {
                          while (!set.load()) ::sched_yield();
                        },
                        [&] { set.store(true); }});
  EXPECT_LT(r.cycles, slice);
}

TEST(Scheduler, ATransactionEndsBeforeItsThreadGivesWay) {
  static cell counted;
  counted.value = 0;
  constexpr unsigned threads = 5;
  constexpr unsigned increments = 200;
  const report r = run(with_slices(), {.cpus = 2}, bodies(threads, [] {
                         for (unsigned i = 0; i < increments; ++i) {
                           while (!region([] {
                                     const u64 before = counted.value.load();
                                     compute_for(slice / 50);
                                     counted.value.store(before + 1);
                                   }).started()) {
                           }
                         }
                       }));
  EXPECT_TRUE(r.stuck.empty()) << r.stuck;
  EXPECT_EQ(counted.value.load(), threads * increments);
  EXPECT_GT(r.total().ready_cycles, 0U);
  EXPECT_GT(r.total().aborts[static_cast<std::size_t>(abort_reason::interrupt)], 0U);
}

TEST(Scheduler, ThreadsThatThreadsStartQueueToo) {
  std::atomic<unsigned> ran{0};
  run(with_slices(), {.cpus = 2}, {[&] {
        std::vector<std::thread> started;
        for (unsigned i = 0; i < 20; ++i) {
          started.emplace_back([&] {
            compute_for(slice / 4);
            ran.fetch_add(1);
          });
        }
        for (std::thread& t : started) t.join();
      }});
  EXPECT_EQ(ran.load(), 20U);
}

TEST(Scheduler, TheLastThreadStartsTheCounting) {
  const report r = run(with_slices(), {.cpus = 2}, bodies(7, [] {
                         compute_for(slice / 3);
                         start_counting();
                         compute_for(slice);
                       }));
  EXPECT_TRUE(r.stuck.empty()) << r.stuck;
  EXPECT_GE(r.cycles, 3 * slice);
  EXPECT_LE(r.cycles, 5 * slice);
}

TEST(Scheduler, ASleepGivesItsCpuAway) {
  u64 ended = 0;
  run(with_slices(), {.cpus = 1},
      {[] { std::this_thread::sleep_for(std::chrono::milliseconds(10)); },
       [&] {
         compute_for(1000);
         ended = now();
       }});
  EXPECT_LT(ended, slice);
}

// A timer that was due while the thread had no CPU has interrupted others.
TEST(Scheduler, SlicesAsShortAsAnInterruptEnd) {
  machine m = with_slices();
  set_parameter(m, "slice_cycles", 0);
  set_parameter(m, "timer_cycles", 4000);
  const report r =
      run(m, {.cycles_max = 100'000'000, .cpus = 1}, bodies(3, [] { compute_for(slice); }));
  EXPECT_TRUE(r.stuck.empty()) << r.stuck;
}

TEST(Scheduler, InstructionsBeforeTheEndAreTheThreadsOwn) {
  machine m = with_slices();
  set_parameter(m, "instructions_per_100_cycles", 100);
  const report r = run(m, {.cpus = 1},
                       {[] {
                          for (unsigned i = 0; i < 20'000; ++i) asm volatile("" : "+r"(i));
                        },
                        [] {}});
  EXPECT_GE(r.threads[1].cycles, 2 * 20'000U);
}

TEST(Scheduler, TheFirstSliceOfTheCountedPartIsWhole) {
  machine m = with_slices();
  set_parameter(m, "system_call_cycles", 20'000);
  const report r = run(m, {.cpus = 2}, bodies(5, [] {
                         start_counting();
                         compute_for(slice / 2);
                       }));
  EXPECT_LE(r.threads[0].ready_cycles, slice / 2);
}

TEST(Scheduler, EqualRunsAreEqual) {
  static std::array<cell, 4> shared;
  const auto once = [] {
    for (cell& c : shared) c.value = 0;
    return run(with_slices(), {.seed = 7, .cpus = 3}, bodies(9, [] {
                 for (unsigned i = 0; i < 200; ++i) {
                   static_cast<void>(region([&] {
                     cell& c = shared[i % shared.size()];
                     c.value.store(c.value.load() + 1);
                     compute_for(500);
                   }));
                 }
               }));
  };
  const report first = once();
  const report second = once();
  EXPECT_EQ(first.cycles, second.cycles);
  EXPECT_EQ(first.total().ready_cycles, second.total().ready_cycles);
  EXPECT_EQ(first.total().aborted(), second.total().aborted());
}

// What a sleep costs: the sleeper, who wakes it, and the time between.
TEST(Sleeping, CostsWhatTheMachineSays) {
  machine m = here();
  set_parameter(m, "futex_wait_cycles", 2'000);
  set_parameter(m, "futex_wake_cycles", 3'000);
  set_parameter(m, "wake_up_cycles", 7'000);
  static std::atomic<std::uint32_t> word;
  constexpr unsigned sleepers = 3;
  static std::array<u64, sleepers> runs_at;
  static u64 began;
  static u64 ended;
  word = 0;
  std::vector<std::function<void()>> all = bodies(sleepers, [] {});
  for (unsigned i = 0; i < sleepers; ++i) {
    all[i] = [i] {
      word.wait(0);
      runs_at[i] = now();
    };
  }
  all.emplace_back([] {
    spend(1'000'000);
    word.store(1);
    began = now();
    word.notify_all();
    ended = now();
  });
  run(m, {}, all);
  std::sort(runs_at.begin(), runs_at.end());
  constexpr u64 little = 1'000;  // accesses, and the call itself
  for (unsigned i = 0; i < sleepers; ++i) {
    EXPECT_GE(runs_at[i], began + 7'000 + i * 3'000);
    EXPECT_LE(runs_at[i], began + 7'000 + i * 3'000 + little);
  }
  EXPECT_GE(ended, began + sleepers * 3'000);
  EXPECT_LE(ended, began + sleepers * 3'000 + little);
}

TEST(Sleeping, TakesTheTimeOfItsCall) {
  static u64 slept_until;
  const auto sleep_until_woken = [](u64 wait_cycles) {
    machine m = here();
    set_parameter(m, "futex_wait_cycles", wait_cycles);
    set_parameter(m, "wake_up_cycles", 0);
    static std::atomic<std::uint32_t> word;
    word = 0;
    run(m, {},
        {[] {
           word.wait(0);
           slept_until = now();
         },
         [] {
           spend(10'000);  // by then the kernel has read the word
           word.store(1);
           word.notify_all();
         }});
    return slept_until;
  };
  // The call is still on its way to sleep when it is woken: it ends first.
  EXPECT_GE(sleep_until_woken(50'000), 50'000U);
  EXPECT_LT(sleep_until_woken(500), 15'000U);
}

// The kernel reads a mutex's word after the call has reached it. A mutex that is free by then puts
// nobody to sleep.
TEST(Sleeping, AMutexThatIsFreeWhenTheKernelLooksPutsNobodyToSleep) {
  static u64 has_it;
  const auto waiting_cycles = [](u64 held_for) {
    machine m = here();
    set_parameter(m, "system_call_cycles", 2'000);
    set_parameter(m, "futex_wait_cycles", 3'000);
    set_parameter(m, "wake_up_cycles", 40'000);
    std::mutex mutex;
    const report r = run(m, {},
                         {[&] {
                            const std::lock_guard lock(mutex);
                            spend(held_for);
                          },
                          [&] {
                            spend(500);
                            const std::lock_guard lock(mutex);
                            has_it = now();
                          }});
    return r.threads[1].waiting_cycles;
  };
  EXPECT_EQ(waiting_cycles(1'500), 0U);
  EXPECT_GE(has_it, 2'500U);  // the call's time
  EXPECT_LT(has_it, 4'000U);
  EXPECT_GT(waiting_cycles(10'000), 0U);
  EXPECT_GE(has_it, 50'000U);
}

// After such a call the mutex may have more waiters, so its unlock calls the kernel.
TEST(Sleeping, AWakeUpThatFindsNobodyTakesTheTimeOfACall) {
  machine m = here();
  set_parameter(m, "system_call_cycles", 2'000);
  set_parameter(m, "futex_wake_cycles", 90'000);
  static std::mutex mutex;
  static u64 began;
  static u64 ended;
  run(m, {},
      {[] {
         const std::lock_guard lock(mutex);
         spend(1'500);
       },
       [] {
         spend(500);
         mutex.lock();
         began = now();
         mutex.unlock();
         ended = now();
       }});
  EXPECT_GE(ended, began + 2'000);
  EXPECT_LT(ended, began + 3'000);
}

// The kernel's bucket of a word is locked while it wakes a thread. A call for the same word waits.
TEST(Sleeping, ACallWaitsForTheBucketOfItsWord) {
  machine m = here();
  constexpr u64 wake_cycles = 90'000;
  set_parameter(m, "futex_wake_cycles", wake_cycles);
  static std::array<std::uint32_t, 2> words;
  static u64 took;
  const auto call_during_a_wake_up = [&m](std::uint32_t& word) {
    words = {};
    run(m, {},
        {[] { ::syscall(SYS_futex, words.data(), FUTEX_WAIT, 0, nullptr); },
         [] {
           spend(50'000);
           ::syscall(SYS_futex, words.data(), FUTEX_WAKE, 1);
         },
         [&word] {
           spend(60'000);
           const u64 began = now();
           ::syscall(SYS_futex, &word, FUTEX_WAIT, 1, nullptr);  // the word is 0
           took = now() - began;
         }});
    return took;
  };
  EXPECT_GT(call_during_a_wake_up(words[0]), wake_cycles / 2);
  EXPECT_LT(took, wake_cycles);
  EXPECT_LT(call_during_a_wake_up(words[1]), 3'000U);
}

}  // namespace
}  // namespace elidex::sim
