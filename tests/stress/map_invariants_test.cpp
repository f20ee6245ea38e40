// Invariants that must hold while threads work on one map; each with a canary where it is not
// obvious that it can fail.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "elidex/ordered_map.hpp"
#include "papers/eunomia/euno_skip_list.hpp"
#include "papers/eunomia/lock_free_skip_list.hpp"
#include "papers/eunomia/locked_skip_list.hpp"
#include "papers/eunomia/masstree.hpp"
#include "papers/eunomia/skip_list.hpp"
#include "support/broken_maps.hpp"
#include "support/fixed_key_trees.hpp"
#include "support/model.hpp"
#include "support/policies_under_test.hpp"
#include "support/random_seed.hpp"
#include "support/samples.hpp"
#include "support/spread_threads.hpp"
#include "support/strings_as_integers.hpp"
#include "support/thread_sanitizer.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

// Runs body(thread, random) on `threads` threads, at the same time as far as there are cores.
template <class Body>
void run_threads(int threads, Body body) {
  spinning_meeting all(threads);
  std::vector<std::jthread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&body, &all, t] {
      stay_on_nth_core(t);
      all.meet(0);
      random_numbers random(seed_or(static_cast<u64>(t) + 1));
      body(t, random);
    });
  }
}

template <class Map>
class MapInvariants : public ::testing::Test {};
using maps = ::testing::Types<
    btree<u64, u64, optimistic, fan_out<2, 3>>, btree<u64, u64, optimistic, fan_out<4, 4>>,
    ordered_tree<u64, u64>, masstree<u64, u64, optimistic, 3>, masstree<u64, u64, optimistic>,
    masstree<u64, u64, coarse_elided, 4>, btree<u64, u64, coarse_spin, fan_out<4, 4>>,
    btree<u64, u64, coarse_elided, fan_out<4, 4>>,
    strings_as_integers<btree<std::string, std::string, optimistic, fan_out<4, 4>>>,
    strings_as_integers<btree<std::string, std::string, coarse_shared, fan_out<4, 4>>>,
    strings_as_integers<ordered_tree<std::string, std::string>>,
    fixed_key_btree<u64, u64, locked_regions, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, elided_regions, tiny_partitioned, always_control>,
    fixed_key_btree<u64, u64, locked_regions, separated_fan_out<3, 3>, restless_control>,
    fixed_key_btree<u64, u64, optimistic, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>,
    fixed_key_btree<u64, u64, optimistic, tiny_bucketed, no_control>,
    fixed_key_btree<u64, u64, elided_regions, tiny_bucketed, no_control>,
    fixed_key_btree<u64, u64, optimistic, separated_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, optimistic, separated_fan_out<12, 4>, no_control>,
    skip_list<u64, u64, coarse_elided_dbx>, locked_skip_list<u64, u64>,
    lock_free_skip_list<u64, u64>, euno_skip_list<u64, u64, htm_split_regions>,
    euno_skip_list<u64, u64, split_by_mutexes, always_controlled>,
    euno_skip_list<u64, u64, split_by_mutexes, always_changing_control, 1>>;
TYPED_TEST_SUITE(MapInvariants, maps);

// What is lost of all the increments.
template <class Map>
u64 lost_increments(u64 per_thread) {
  constexpr u64 keys = 8;
  Map map;
  for (u64 k = 0; k < keys; ++k) map.insert(k, 0);
  run_threads(4, [&](int, random_numbers& random) {
    for (u64 i = 0; i < per_thread; ++i) map.update(random.below(keys), [](u64& v) { ++v; });
  });
  u64 sum = 0;
  map.scan(0, keys, [&](u64, u64 v) { sum += v; });
  return 4 * per_thread - sum;
}

TYPED_TEST(MapInvariants, NoIncrementIsLost) {
  EXPECT_EQ(lost_increments<TypeParam>(static_cast<u64>(repetitions(60'000))), 0u);
}

TEST(MapInvariantsCanary, LostIncrementsAreFound) {
  EXPECT_GT(lost_increments<loses_updates>(1'000), 0u);
  EXPECT_GT(lost_increments<strings_as_integers<loses_string_updates>>(1'000), 0u);
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "the others need two cores";
  EXPECT_TRUE(found_in_time(
      [] { return lost_increments<btree<u64, u64, excludes_nobody, fan_out<4, 4>>>(60'000) > 0; }));
}

// How often cursors miss a key that is always there (a multiple of the step), or show keys in the
// wrong order, at both ends of the range.
template <class Map>
u64 missed_by_cursors(const Map& map, u64 range, u64 permanent_step) {
  u64 missed = 0;
  auto cursor = map.cursor();
  u64 next = 0;
  for (cursor.seek_first(); cursor.valid() && cursor.key() < 512; cursor.next()) {
    if (cursor.key() == next) next += permanent_step;
    if (cursor.key() > next) ++missed;
  }
  cursor.seek_last();
  u64 next_below = range - permanent_step;
  for (u64 previous = range; cursor.valid() && cursor.key() > range - 256; cursor.prev()) {
    if (cursor.key() >= previous) ++missed;
    previous = cursor.key();
    if (cursor.key() < next_below) ++missed;
    if (cursor.key() <= next_below) next_below -= permanent_step;
  }
  return missed;
}

// How often a key that is always there was missed, or keys came in the wrong order, while much was
// inserted and erased between them.
template <class Map>
u64 missed_keys(int operations) {
  constexpr u64 permanent_step = 16;
  constexpr u64 range = 2'048;
  Map map;
  for (u64 k = 0; k < range; k += permanent_step) map.insert(k, k);
  std::atomic<u64> missed{0};
  run_threads(4, [&](int t, random_numbers& random) {
    for (int i = 0; i < operations; ++i) {
      const u64 any = random.below(range);
      if (t < 2) {
        if (any % permanent_step == 0) continue;
        if (random.below(2) == 0) {
          map.insert(any, any);
        } else {
          map.erase(any);
        }
      } else if (i % 64 == 0) {
        u64 next = any / permanent_step * permanent_step;
        bool first = true;
        u64 last = 0;
        map.scan(next, 200, [&](u64 k, u64 v) {
          if (k != v || (!first && k <= last)) ++missed;
          first = false;
          last = k;
          if (k == next) next += permanent_step;
          if (k > next) ++missed;
        });
      } else if (i % 64 == 1) {
        if constexpr (has_cursors<Map>) missed += missed_by_cursors(map, range, permanent_step);
      } else {
        const u64 key = any / permanent_step * permanent_step;
        if (map.get(key) != key) ++missed;
      }
    }
  });
  return missed;
}

TYPED_TEST(MapInvariants, PermanentKeysAreNeverMissed) {
  EXPECT_EQ(missed_keys<TypeParam>(repetitions(15'000)), 0u);
}

TEST(MapInvariantsCanary, MissedKeysAreFound) {
  EXPECT_GT(missed_keys<cursor_skips_a_key>(1'000), 0u);
  EXPECT_GT(missed_keys<cursor_skips_backward>(1'000), 0u);
}

// A writer sets all keys to the same number, one after the other, and again to the next number: a
// snapshot shows n on the keys up to some place in the writer's order and n - 1 on those behind it.
// That order jumps over leaves: would it go the way of the scan, a torn scan would show only if two
// writes fell between two reads. Scans until so many of them have shown something new: those that
// repeat the last one prove nothing.
template <class Map>
u64 torn_scans(int changes_wanted) {
  constexpr u64 keys = 40;
  const auto nth_written = [](u64 n) { return n * 17 % keys; };
  constexpr int scans_per_change_max = 1'000;  // chosen: ends the test where there is one core
  Map map;
  for (u64 k = 0; k < keys; ++k) map.insert(k, 0);
  std::atomic<bool> stop{false};
  u64 torn = 0;
  std::jthread scanner([&] {
    stay_on_nth_core(0);
    std::vector<u64> values;
    std::vector<u64> before;
    int changes = 0;
    for (int i = 0;
         i / scans_per_change_max < changes_wanted && changes < changes_wanted && torn == 0; ++i) {
      values.clear();
      map.scan(0, keys, [&](u64, u64 v) { values.push_back(v); });
      bool whole =
          values.size() == keys && values[nth_written(0)] - values[nth_written(keys - 1)] <= 1;
      for (u64 n = 1; whole && n < keys; ++n)
        whole = values[nth_written(n)] <= values[nth_written(n - 1)];
      torn += whole ? 0u : 1u;
      if (values != before) ++changes;
      std::swap(values, before);
    }
    stop = true;
  });
  std::jthread writer([&] {
    stay_on_nth_core(1);
    for (u64 n = 1; !stop; ++n) {
      for (u64 k = 0; k < keys; ++k) map.upsert(nth_written(k), n);
    }
  });
  scanner.join();
  writer.join();
  return torn;
}

TYPED_TEST(MapInvariants, ScansAreSnapshots) {
  if constexpr (scans_are_snapshots<TypeParam>) {
    EXPECT_EQ(torn_scans<TypeParam>(repetitions(2'000)), 0u);
  } else {
    GTEST_SKIP() << "its scans are weakly consistent";
  }
}

TEST(MapInvariantsCanary, TornScansAreFound) {
  EXPECT_GT(torn_scans<scans_piecemeal>(2'000), 0u);
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "the others need two cores";
  EXPECT_TRUE(found_in_time(
      [] { return torn_scans<btree<u64, u64, validates_nothing, fan_out<4, 4>>>(2'000) > 0; }));
}

// Values wider than a word are seen whole.
template <class Map>
u64 torn_values() {
  Map map;
  std::atomic<u64> torn{0};
  run_threads(4, [&](int t, random_numbers& random) {
    for (int i = 0; i < repetitions(20'000); ++i) {
      const u64 key = random.below(20);
      if (t < 2) {
        map.upsert(key, sample<wide_value>::of(random.below(1'000'000)));
        if (random.below(8) == 0) map.erase(key);
      } else if (const auto value = map.get(key)) {
        if (*value != sample<wide_value>::of(value->words[0])) ++torn;
      }
    }
  });
  return torn;
}

TEST(MapInvariants, WideValuesAreNeverTorn) {
  EXPECT_EQ((torn_values<btree<u64, wide_value, optimistic, fan_out<4, 4>>>()), 0u);
  EXPECT_EQ((torn_values<masstree<u64, wide_value, optimistic, 4>>()), 0u);
  EXPECT_EQ((torn_values<locked_skip_list<u64, wide_value>>()), 0u);
  EXPECT_EQ((torn_values<lock_free_skip_list<u64, wide_value>>()), 0u);
}

// Byte strings: what a reader follows is never freed under it (AddressSanitizer), nor written
// (ThreadSanitizer).
template <class Map>
void churn_strings() {
  Map map;
  std::atomic<u64> wrong{0};
  run_threads(4, [&](int, random_numbers& random) {
    for (int i = 0; i < repetitions(10'000); ++i) {
      const u64 n = random.below(300);
      const std::string key = sample<std::string>::of(n);
      switch (random.below(6)) {
        case 0:
        case 1:
          map.upsert(key, "value of " + key);
          break;
        case 2:
          map.erase(key);
          break;
        case 3:
          map.update(key, [](std::string& v) { v = std::string(v); });
          break;
        case 4: {
          const auto value = map.get(key);
          if (value && *value != "value of " + key) ++wrong;
          break;
        }
        default:
          map.scan(key, 30, [&](std::string_view k, std::string_view v) {
            if (v != "value of " + std::string(k)) ++wrong;
          });
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
}

TEST(MapInvariants, StringsUnderOptimisticPolicy) {
  churn_strings<btree<std::string, std::string, optimistic, fan_out<4, 4>>>();
}
TEST(MapInvariants, StringsInOrderedMap) {
  churn_strings<ordered_tree<std::string, std::string>>();
}
TEST(MapInvariants, StringsUnderSharedMutex) {
  churn_strings<btree<std::string, std::string, coarse_shared, fan_out<4, 4>>>();
}

// Updates that take long, while keys come beside theirs and leaves split and redistribute. How many
// were lost?
template <class Map>
u64 lost_long_updates(u64 seed) {
  constexpr u64 range = 1'000'000;
  random_numbers random(seed);
  Map map;
  std::vector<u64> keys;
  for (int i = 0; i < 400; ++i) {
    if (const u64 key = random.below(range); map.insert(key, 0)) keys.push_back(key);
  }
  const u64 updated = keys[random.below(keys.size())];
  std::atomic<bool> inside{false};
  std::jthread inserting([&] {
    while (!inside) std::this_thread::yield();
    random_numbers others(seed + 1);
    for (int i = 0; i < 400; ++i) map.insert(others.below(range), 0);
  });
  map.update(updated, [&](u64& value) {
    const u64 was = value;
    inside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    value = was + 1;
  });
  inserting.join();
  return map.get(updated) == 1 ? 0 : 1;
}
TEST(MapInvariants, LongUpdatesAreNotLost) {
  for (u64 seed = 0; seed < 50; ++seed) {
    EXPECT_EQ((lost_long_updates<ordered_tree<u64, u64>>(2 * seed)), 0u);
    EXPECT_EQ(
        (lost_long_updates<
            fixed_key_btree<u64, u64, optimistic, packed_fan_out<20, 4>, no_control>>(2 * seed)),
        0u);
    EXPECT_EQ((lost_long_updates<fixed_key_btree<u64, u64, optimistic, small_bucketed, no_control>>(
                  2 * seed)),
              0u);
  }
}
// How many of the keys that two threads insert at once, each others of its own, are missing.
template <class Tree>
u64 lost_inserts(u64 seed) {
  constexpr u64 keys_each = 500;
  const auto key_of = [&](u64 i, u64 t) {
    return (2 * i + t + seed) * 0x9E37'79B9'7F4A'7C15u >> 8U;
  };
  Tree map;
  run_threads(2, [&](int t, random_numbers&) {
    for (u64 i = 0; i < keys_each; ++i) map.insert(key_of(i, static_cast<u64>(t)), i);
  });
  u64 lost = 0;
  for (u64 i = 0; i < keys_each; ++i)
    for (u64 t = 0; t < 2; ++t) lost += map.get(key_of(i, t)) == i ? 0U : 1U;
  return lost;
}
template <class Rules>
using buckets_with =
    fixed_key_btree<u64, u64, optimistic, bucketed_node_bytes<256, 4, 128, Rules>, no_control>;
TEST(MapInvariants, InsertsIntoOtherBucketsAreNotLost) {
  for (u64 seed = 0; seed < 200; ++seed)
    EXPECT_EQ(lost_inserts<buckets_with<bucket_rules>>(seed), 0u);
}
TEST(MapInvariantsCanary, OtherBucketsThatStayUnlockedAreFound) {
#if defined(ELIDEX_THREAD_SANITIZER)
  GTEST_SKIP() << "the canary is a race";
#endif
  u64 lost = 0;
  for (u64 seed = 0; seed < 20'000 && lost == 0; ++seed)
    lost = lost_inserts<buckets_with<leaves_others_unlocked>>(seed);
  EXPECT_NE(lost, 0u);
}
TEST(MapInvariantsCanary, ValuesThatMoveUnlockedAreFound) {
#if defined(ELIDEX_THREAD_SANITIZER)
  GTEST_SKIP() << "the canary is a race";
#endif
  const auto lost_by = [](auto run) {
    u64 lost = 0;
    for (u64 seed = 0; seed < 1000 && lost == 0; ++seed) lost = run(2 * seed);
    return lost;
  };
  EXPECT_NE(lost_by(lost_long_updates<
                    fixed_key_btree<u64, u64, optimistic, moving_unlocked_fan_out, no_control>>),
            0u);
  EXPECT_NE(lost_by(lost_long_updates<
                    fixed_key_btree<u64, u64, optimistic, moving_unlocked_buckets, no_control>>),
            0u);
}

// Ends empty, with its nodes given back but for the root and what waits for an epoch.
TYPED_TEST(MapInvariants, EverythingErasedIsReclaimed) {
  TypeParam map;
  run_threads(4, [&](int t, random_numbers&) {
    for (int round = 0; round < 5; ++round) {
      for (u64 k = 0; k < 2'000; ++k) map.insert(4 * k + static_cast<u64>(t), k);
      for (u64 k = 0; k < 2'000; ++k) EXPECT_TRUE(map.erase(4 * k + static_cast<u64>(t)));
    }
  });
  EXPECT_TRUE(map.empty());
  map.reclaim();
  EXPECT_EQ(map.stats().retired_objects, 0u);
  if constexpr (requires { map.stats().leaves; }) {
    // Erasing merges what it meets on its way; the last threads may leave a few empty leaves that
    // nobody visits again.
    EXPECT_LE(map.stats().leaves, 64u);
  } else {
    EXPECT_EQ(map.stats().nodes, TypeParam().stats().nodes);
  }
  EXPECT_EQ(map.scan(0, SIZE_MAX, [](u64, u64) {}), 0u);
}

// Masstree's erasures leave no node behind, whoever comes first.
TEST(MapInvariants, AnEmptiedMasstreeIsOneLeaf) {
  masstree<u64, u64, optimistic, 3> map;
  for (int repeat = 0; repeat < repetitions(4); ++repeat) {
    run_threads(4, [&](int t, random_numbers& random) {
      for (int round = 0; round < 3; ++round) {
        const bool upward = random.below(2) == 0;
        for (u64 k = 0; k < 500; ++k) map.insert(4 * k + static_cast<u64>(t), k);
        for (u64 k = 0; k < 500; ++k) {
          EXPECT_TRUE(map.erase(4 * (upward ? k : 499 - k) + static_cast<u64>(t)));
        }
      }
    });
    map.reclaim();
    EXPECT_EQ(map.stats().retired_objects, 0u);
    EXPECT_EQ(map.stats().leaves, 1u);
    EXPECT_EQ(map.stats().inner_nodes, 0u);
  }
}

}  // namespace
}  // namespace elidex::testing
