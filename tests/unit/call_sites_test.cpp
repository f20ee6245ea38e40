// What is counted by call site, and the text that reports are made of.
#include "preload/call_sites.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "preload/site_counting.hpp"
#include "preload/text.hpp"

namespace elidex::preload {
namespace {

const void* place(std::uintptr_t address) {
  return reinterpret_cast<const void*>(address);
}

std::uint64_t sum_of(count what, const void* where) {
  struct wanted {
    count what;
    const void* where;
    std::uint64_t sum;
  } all{what, where, 0};
  for_each_site(
      [](const site_counts& one, void* context) {
        auto& into = *static_cast<wanted*>(context);
        if (site_counts::where(one.key()) == into.where) into.sum += one.get(into.what);
      },
      &all);
  return all.sum;
}

// Some place that no other test uses.
const void* fresh_place() {
  static std::uintptr_t last = 0x7fff'0000'0000;
  return place(last += 16);
}

TEST(CallSites, AKeyHoldsTheAddressAndTheOperation) {
  const void* const where = place(0x7fff'ffff'fff1);
  for (const operation what : {operation::mutex_lock, operation::timed_write}) {
    const std::uint64_t key = site_counts::key_of(where, what);
    EXPECT_EQ(site_counts::where(key), where);
    EXPECT_EQ(site_counts::what(key), what);
    EXPECT_NE(key, site_counts::unused);
    EXPECT_NE(key, site_counts::elsewhere);
  }
}

TEST(CallSites, CountsOfThreadsThatHaveEndedStay) {
  prepare_counting();
  const void* const where = fresh_place();
  for (int round = 0; round < 20; ++round) {
    std::thread([&] { site_counting::enter(where, operation::mutex_lock); }).join();
  }
  EXPECT_EQ(sum_of(count::calls, where), 20u);
}

// Also for the sanitizers: readers beside writers.
TEST(CallSites, ManyThreadsCountWhileOthersRead) {
  prepare_counting();
  const void* const where = fresh_place();
  constexpr std::uint64_t each = 20'000;
  std::atomic<bool> done{false};
  std::uint64_t before = 0;
  std::thread reader([&] {
    while (!done) {
      const std::uint64_t now = sum_of(count::calls, where);
      EXPECT_GE(now, before);
      before = now;
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < each; ++n) site_counting::enter(where, operation::mutex_lock);
    });
  }
  for (std::thread& one : threads) one.join();
  done = true;
  reader.join();
  EXPECT_EQ(sum_of(count::calls, where), 4 * each);
}

TEST(CallSites, HoldTimesAreSampled) {
  std::thread([] {
    const void* const where = fresh_place();
    int lock = 0;
    thread_counts& mine = *this_threads_counts();
    site_counts& here = mine.of(where, operation::mutex_lock);
    for (std::uint32_t i = 0; i < 100 * acquisitions_per_hold_sample; ++i) {
      mine.taken(&lock, here);
      mine.released(&lock);
    }
    EXPECT_NEAR(static_cast<double>(here.get(count::holds)), 100, 10);
    EXPECT_GT(here.get(count::held_ns), 0u);
    EXPECT_GE(here.get(count::held_ns), here.get(count::held_ns_max));
  }).join();
}

// Two locks in turn, as where one nests in the other: both are measured.
TEST(CallSites, HoldTimesOfLocksUsedInTurnAreSampledAlike) {
  std::thread([] {
    thread_counts& mine = *this_threads_counts();
    constexpr std::uint32_t locks_count = 4;
    int locks[locks_count] = {};
    site_counts* here[locks_count];
    for (site_counts*& one : here) one = &mine.of(fresh_place(), operation::mutex_lock);
    constexpr std::uint64_t expected = 50;
    for (std::uint64_t i = 0; i < expected * acquisitions_per_hold_sample; ++i) {
      for (std::uint32_t lock = 0; lock < locks_count; ++lock) {
        mine.taken(&locks[lock], *here[lock]);
        mine.released(&locks[lock]);
      }
    }
    for (const site_counts* one : here) {
      EXPECT_GT(one->get(count::holds), expected / 2);
      EXPECT_LT(one->get(count::holds), expected * 2);
    }
  }).join();
}

TEST(CallSites, LocksThatAreNeverUnlockedHereDoNoHarm) {
  std::thread([] {
    const void* const where = fresh_place();
    std::vector<int> locks(100);
    thread_counts& mine = *this_threads_counts();
    for (int& one : locks) mine.begin_sample(&one, mine.of(where, operation::mutex_lock));
    for (int& one : locks) mine.released(&one);
    EXPECT_LE(sum_of(count::holds, where), 8u);
  }).join();
}

TEST(CallSites, AChildCountsFromZero) {
  const void* const where = fresh_place();
  site_counting::enter(where, operation::mutex_lock);
  const pid_t child = ::fork();
  if (child == 0) {
    begin_again_in_child();
    const bool empty = sum_of(count::calls, where) == 0;
    site_counting::enter(where, operation::mutex_lock);
    ::_exit(empty && sum_of(count::calls, where) == 1 ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(sum_of(count::calls, where), 1u);
}

// Last, because later threads go on in the same memory.
TEST(CallSites, MorePlacesThanThereIsRoomForAreCountedTogether) {
  std::thread([] {
    const std::uint64_t before = shared_counts().get(count::calls);
    for (std::uintptr_t i = 1; i <= 5000; ++i)
      site_counting::enter(place(0x1000 * i), operation::mutex_lock);
    EXPECT_GT(shared_counts().get(count::calls), before);
  }).join();
}

TEST(ReportText, DurationsHaveThreeDigits) {
  const auto text = [](std::uint64_t ns) { return std::string(duration(ns).view()); };
  EXPECT_EQ(text(0), "0 ns");
  EXPECT_EQ(text(7), "7 ns");
  EXPECT_EQ(text(999), "999 ns");
  EXPECT_EQ(text(1000), "1.00 us");
  EXPECT_EQ(text(12'340), "12.3 us");
  EXPECT_EQ(text(99'990), "100 us");
  EXPECT_EQ(text(999'400), "999 us");
  EXPECT_EQ(text(999'999), "1.00 ms");
  EXPECT_EQ(text(1'234'567'890), "1.23 s");
  EXPECT_EQ(text(3'600'000'000'000), "3600 s");
}

TEST(ReportText, NumbersAndPercents) {
  EXPECT_EQ(decimal(0).view(), "0");
  EXPECT_EQ(decimal(UINT64_MAX).view(), "18446744073709551615");
  EXPECT_EQ(hexadecimal(0).view(), "0x0");
  EXPECT_EQ(hexadecimal(0x1a2b).view(), "0x1a2b");
  EXPECT_EQ(hexadecimal(UINT64_MAX).view(), "0xffffffffffffffff");
  EXPECT_EQ(percent(1, 3).view(), "33.3 %");
  EXPECT_EQ(percent(0, 0).view(), "0.0 %");
}

}  // namespace
}  // namespace elidex::preload
