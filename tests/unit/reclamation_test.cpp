// Threads' slots, node pools and retire lists, as far as maps do not show what they do.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/lasting_memory.hpp"
#include "elidex/ordered_map.hpp"

namespace elidex {

using namespace internal;

namespace {

std::size_t records() {
  std::size_t n = 0;
  for (const auto* r = internal::first_thread_record(); r != nullptr; r = r->next) ++n;
  return n;
}

TEST(ThreadSlot, LiveThreadsDifferAndTheNextOneGetsTheLowestFree) {
  constexpr int threads = 40;
  std::barrier all(threads);
  std::vector<std::uint32_t> slots(threads);
  {
    std::vector<std::jthread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        slots[static_cast<std::size_t>(t)] = this_thread_slot();
        all.arrive_and_wait();
      });
    }
  }
  EXPECT_EQ(std::set<std::uint32_t>(slots.begin(), slots.end()).size(), slots.size());
  const std::uint32_t lowest = *std::min_element(slots.begin(), slots.end());
  std::jthread([&] { EXPECT_EQ(this_thread_slot(), lowest); });
}

ordered_map<int, int>& late_map() {
  static ordered_map<int, int> map;
  return map;
}
struct writes_at_thread_exit {
  int n = 0;
  ~writes_at_thread_exit() { late_map().upsert(n, n); }
};
thread_local writes_at_thread_exit late_writer;

TEST(ThreadSlot, IsGivenBackBehindThreadLocalsThatUseTheLibraryLate) {
  for (int n = 0; n < 3; ++n) {  // registers late_writer's destructor before the library's
    std::jthread([n] { late_writer.n = n; });
  }
  const std::size_t before = records();
  for (int n = 0; n < 50; ++n) std::jthread([n] { late_writer.n = n; });
  EXPECT_EQ(records(), before);
  EXPECT_EQ(late_map().size(), 50u);
}

TEST(LastingMemory, IsAlignedAndGoesOnBehindItsFirstPart) {
  constexpr std::size_t bytes = 1000;
  // never destroyed, so that leak detectors find the blocks
  static auto& blocks = *new std::set<std::byte*>;
  for (std::size_t taken = 0; taken < 3 * (std::size_t{1} << 20) / 2; taken += bytes) {
    auto* const block = static_cast<std::byte*>(internal::lasting_memory(bytes, 128));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 128, 0u);
    std::memset(block, 1, bytes);
    blocks.insert(block);
  }
  EXPECT_LT(internal::lasting_bytes_left(), bytes + 128);
  for (auto at = blocks.begin(); std::next(at) != blocks.end(); ++at)
    EXPECT_GE(*std::next(at) - *at, 1000);
}

TEST(BlockPool, BlocksOfAnySize) {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{1} << 20, (std::size_t{2} << 20) + 64}) {
    block_pool pool(bytes);
    std::vector<void*> blocks;
    for (int i = 0; i < 5; ++i) {
      blocks.push_back(pool.allocate());
      std::memset(blocks.back(), i, bytes);
    }
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
    for (void* const b : blocks) pool.deallocate(b);
    EXPECT_EQ(pool.blocks_in_use(), 0u);
  }
}

// A thread that frees more than it keeps hands whole batches to threads of other shards.
TEST(BlockPool, BlocksThatAnotherThreadHasFreedAreUsedAgain) {
  block_pool pool(64);
  std::vector<void*> blocks(200);
  for (void*& b : blocks) b = pool.allocate();
  std::jthread([&] {
    for (void* const b : blocks) pool.deallocate(b);
  }).join();
  EXPECT_EQ(pool.blocks_in_use(), 0u);

  const std::set<void*> freed(blocks.begin(), blocks.end());
  std::set<void*> again;
  std::size_t reused = 0;
  for (int i = 0; i < 128; ++i) {
    void* const b = pool.allocate();
    EXPECT_TRUE(again.insert(b).second);
    if (freed.contains(b)) ++reused;
  }
  EXPECT_GE(reused, 112u);  // this thread's shard had up to 16 unused ones left
  EXPECT_EQ(pool.blocks_in_use(), 128u);
  for (void* const b : again) pool.deallocate(b);
  EXPECT_EQ(pool.blocks_in_use(), 0u);
}

// Threads that have retired much while a reader was pinned, and then nothing more.
TEST(Limbo, OthersSweepWhatAnIdleThreadHasLeft) {
  ordered_map<int, std::string> map;
  const auto churn = [&](int times) {
    for (int n = 0; n < times; ++n) map.upsert(n % 10, "some value");
  };
  {
    const epoch_pin reader;
    std::jthread([&] { churn(5'000); });
  }
  EXPECT_GE(map.stats().retired_objects, 4'900u);
  churn(2'000);
  EXPECT_LE(map.stats().retired_objects, 1'000u);
}

TEST(Epoch, WaitForPinsWaitsForThoseOfOtherThreads) {
  wait_for_pins();  // nobody is pinned
  std::barrier both(2);
  std::atomic<bool> unpinned{false};
  std::jthread reader([&] {
    {
      const epoch_pin pin;
      both.arrive_and_wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      unpinned = true;
    }
  });
  both.arrive_and_wait();
  wait_for_pins();
  EXPECT_TRUE(unpinned);
}

}  // namespace
}  // namespace elidex
