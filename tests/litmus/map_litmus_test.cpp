// What a map must never show between threads, whatever the processor reorders.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "elidex/ordered_map.hpp"
#include "papers/eunomia/lock_free_skip_list.hpp"
#include "papers/eunomia/locked_skip_list.hpp"
#include "papers/eunomia/masstree.hpp"
#include "support/litmus_rounds.hpp"
#include "support/policies_under_test.hpp"
#include "support/random_seed.hpp"
#include "support/two_cores.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using u64 = std::uint64_t;

template <class Map>
class MapLitmus : public ::testing::Test {};
using maps = ::testing::Types<btree<u64, u64, optimistic, fan_out<2, 3>>, ordered_tree<u64, u64>,
                              btree<u64, u64, coarse_spin>, btree<u64, u64, coarse_elided>,
                              masstree<u64, u64, optimistic>, locked_skip_list<u64, u64>,
                              lock_free_skip_list<u64, u64>>;
TYPED_TEST_SUITE(MapLitmus, maps);

// Message passing: who finds the key sees what was written before it was inserted. The data are
// plain: under ThreadSanitizer a missing edge shows even when the processor is kind.
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

// How often both threads missed the other's write before them, in rounds until more(round, misses)
// is false. Before each, thread t calls clear(1 - t), undoing what the other will write, which so
// has to come from t's cache first and waits in a store buffer meanwhile. Then saw_other(t, round)
// writes, reads, and says whether it saw what the other wrote.
template <class More, class Clear, class SawOther>
unsigned both_missed(More more, Clear clear, SawOther saw_other) {
  unsigned both = 0;
  std::array<bool, 2> saw{};
  run_litmus([&](int t, unsigned) { clear(1 - t); },
             [&](int t, unsigned round, const dawdler&) {
               saw[static_cast<std::size_t>(t)] = saw_other(t, round);
             },
             [&](unsigned round) {
               both += !saw[0] && !saw[1] ? 1u : 0u;
               return more(round, both);
             });
  return both;
}

auto this_many(int rounds) {
  return [rounds](unsigned round, unsigned) {
    return round < static_cast<unsigned>(rounds * effort());
  };
}

// Store buffering: of two threads that each write one key and then read the other's, one sees the
// other's write. The keys lie in different leaves.
TYPED_TEST(MapLitmus, OneOfTwoWritersSeesTheOther) {
  TypeParam map;
  for (u64 n = 0; n < 500; ++n) map.insert(n, 0);
  const auto key = [](int t) { return t == 0 ? u64{1} : u64{498}; };
  EXPECT_EQ(both_missed(
                this_many(10'000), [&](int t) { map.upsert(key(t), 0); },
                [&](int t, unsigned round) {
                  map.upsert(key(t), round);
                  return map.get(key(1 - t)) == round;
                }),
            0u);
}

// Of a writer who then reads a flag, and a reader who has set it before, one sees the other: a
// change that has returned is there for whoever begins behind it. Needs a fence where readers don't
// wait for writers.
TYPED_TEST(MapLitmus, AChangeThatHasReturnedIsSeen) {
  TypeParam map;
  for (u64 n = 0; n < 500; ++n) map.insert(n, 0);
  alignas(128) std::atomic<unsigned> flag{0};
  EXPECT_EQ(both_missed(
                this_many(20'000),
                [&](int t) {
                  if (t == 0) {
                    map.upsert(1, 0);
                  } else {
                    flag.store(0);
                  }
                },
                [&](int t, unsigned round) {
                  if (t == 0) {
                    map.upsert(1, round);
                    return flag.load() == round;
                  }
                  flag.store(round);
                  return map.get(1) == round;
                }),
            0u);
}

// The canary: stores and loads without a fence show it, if the harness lets the threads meet
// closely enough.
TEST(MapLitmusCanary, TheHarnessSeesStoreBuffering) {
  const std::array<std::size_t, 2> cores = two_cores();
  if (cores[0] == cores[1]) GTEST_SKIP() << "needs two cores";
  unordered_variable x;
  unordered_variable y;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  EXPECT_GT(both_missed(
                [&](unsigned, unsigned found) {
                  return found == 0 && std::chrono::steady_clock::now() < deadline;
                },
                [&](int t) { (t == 0 ? x : y).write(0); },
                [&](int t, unsigned round) {
                  unordered_variable& mine = t == 0 ? x : y;
                  unordered_variable& other = t == 0 ? y : x;
                  mine.write(static_cast<int>(round));
                  return other.read() == static_cast<int>(round);
                }),
            0u);
}

}  // namespace
}  // namespace elidex::testing
