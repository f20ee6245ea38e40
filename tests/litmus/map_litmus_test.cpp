// What a map must never show between threads, whatever the processor reorders.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "elidex/index/lock_free_skip_list.hpp"
#include "elidex/index/locked_skip_list.hpp"
#include "elidex/index/masstree.hpp"
#include "elidex/ordered_map.hpp"
#include "support/concurrent_rounds.hpp"
#include "support/policies_under_test.hpp"
#include "support/random_seed.hpp"
#include "support/spread_threads.hpp"
#include "support/two_cores.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

template <class Map>
class MapLitmus : public ::testing::Test {};
using maps =
    ::testing::Types<btree<u64, u64, optimistic, fan_out<2, 3>>, ordered_map<u64, u64>, btree<u64, u64, coarse_spin>,
                     btree<u64, u64, coarse_elided>, masstree<u64, u64, optimistic>, locked_skip_list<u64, u64>,
                     lock_free_skip_list<u64, u64>>;
TYPED_TEST_SUITE(MapLitmus, maps);

// Message passing: who finds the key sees what was written before it was inserted. The data are plain: under
// ThreadSanitizer a missing edge shows even when the processor is kind.
TYPED_TEST(MapLitmus, AKeyPublishesWhatWasWrittenBefore) {
  constexpr u64 messages = 5'000;
  TypeParam map;
  std::vector<u64> data(messages, 0);
  u64 stale = 0;
  std::jthread writer([&] {
    for (u64 n = 0; n < messages; ++n) {
      data[n] = n + 1;
      map.insert(n, n);
    }
  });
  for (u64 n = 0; n < messages;) {
    if (!map.contains(n)) {
      std::this_thread::yield();
      continue;
    }
    stale += data[n] == n + 1 ? 0u : 1u;
    ++n;
  }
  EXPECT_EQ(stale, 0u);
}

// How often both threads missed the other's write before them. The barrier wakes the threads microseconds apart, so
// they meet once more, spinning.
template <class Write, class Read>
int both_missed(int rounds, Write write, Read read) {
  const std::array<std::size_t, 2> cores = two_cores();
  std::atomic<int> arrived{0};
  int both = 0;
  std::array<bool, 2> saw{};
  run_rounds(
      2,
      [&](int t, int round) {
        const auto self = static_cast<std::size_t>(t);
        if (round == 0) stay_on(cores[self]);
        ++arrived;
        for (int spins = 0; arrived.load() < 2 * (round + 1) && spins < 20'000; ++spins) {
        }
        write(t, round);
        saw[self] = read(1 - t, round);
      },
      [&](int round) {
        both += !saw[0] && !saw[1] ? 1 : 0;
        return round + 1 < rounds;
      });
  return both;
}

// Store buffering: of two threads that each write one key and then read the other's, one sees the other's write. The
// keys lie in different leaves.
TYPED_TEST(MapLitmus, OneOfTwoWritersSeesTheOther) {
  TypeParam map;
  for (u64 n = 0; n < 500; ++n) map.insert(n, 0);
  const std::array<u64, 2> keys{1, 498};
  EXPECT_EQ(
      both_missed(
          5'000 * effort(),
          [&](int t, int round) { map.upsert(keys[static_cast<std::size_t>(t)], static_cast<u64>(round) + 1); },
          [&](int t, int round) { return map.get(keys[static_cast<std::size_t>(t)]) == static_cast<u64>(round) + 1; }),
      0);
}

// Of a writer who then reads a flag, and a reader who has set it before, one sees the other: a change that has returned is
// there for whoever begins behind it. Needs a fence where readers don't wait for writers.
TYPED_TEST(MapLitmus, AChangeThatHasReturnedIsSeen) {
  TypeParam map;
  for (u64 n = 0; n < 500; ++n) map.insert(n, 0);
  alignas(128) std::atomic<int> flag{-1};
  EXPECT_EQ(
      both_missed(
          20'000 * effort(),
          [&](int t, int round) {
            if (t == 0) {
              map.upsert(1, static_cast<u64>(round) + 1);
            } else {
              flag.store(round);
            }
          },
          [&](int t, int round) { return t == 0 ? map.get(1) == static_cast<u64>(round) + 1 : flag.load() == round; }),
      0);
}

// The canary: stores and loads without a fence show it, if the harness lets the threads meet closely enough. Builtins,
// because at -O0 GCC makes every std::atomic access sequentially consistent.
TEST(MapLitmusCanary, TheHarnessSeesStoreBuffering) {
  const std::array<std::size_t, 2> cores = two_cores();
  if (cores[0] == cores[1]) GTEST_SKIP() << "needs two cores";
  struct alignas(128) cell {
    int value = -1;
  };
  EXPECT_TRUE(found_in_time([] {
    std::array<cell, 2> cells;
    return both_missed(
               2'000,
               [&](int t, int round) {
                 __atomic_store_n(&cells[static_cast<std::size_t>(t)].value, round, __ATOMIC_RELAXED);
               },
               [&](int t, int round) {
                 return __atomic_load_n(&cells[static_cast<std::size_t>(t)].value, __ATOMIC_RELAXED) == round;
               }) > 0;
  }));
}

}  // namespace
}  // namespace elidex::testing
