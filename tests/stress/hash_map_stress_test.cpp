// The hash map under threads, growing all the time: recorded histories are linearizable, and what
// must hold holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "elidex/hash_map.hpp"
#include "support/broken_maps.hpp"
#include "support/concurrent_rounds.hpp"
#include "support/hash_maps.hpp"
#include "support/linearizability.hpp"
#include "support/map_faces.hpp"
#include "support/random_seed.hpp"
#include "support/samples.hpp"
#include "support/spread_threads.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;

template <class Value, class Rules = tiny_buckets, class Hash = default_hash<u64>>
using tiny = in_order<hash_index<u64, Value, Hash, Rules>>;

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

// --- shrinking ---

// Each thread fills the table with keys of its own and erases them again, so the table grows and
// shrinks all the time. A few keys of each thread stay. Returns the first fault.
template <class Map>
std::string waves(int threads, u64 keys_each, int rounds) {
  Map map;
  std::array<std::string, 8> faults;
  std::atomic<std::size_t> kept{0};
  run_threads(threads, [&](int t, random_numbers& random) {
    std::string& fault = faults[static_cast<std::size_t>(t)];
    const auto key_of = [&](u64 i) { return i * 64 + static_cast<u64>(t); };
    for (int round = 0; round < rounds && fault.empty(); ++round) {
      const u64 version = static_cast<u64>(round) + 1;
      for (u64 i = 0; i < keys_each; ++i) map.upsert(key_of(i), version);
      for (u64 n = 0; n < keys_each; ++n) {
        const u64 i = random.below(keys_each);
        if (map.get(key_of(i)) != version) fault = "a key is not found before it is erased";
      }
      for (u64 i = 0; i < keys_each; ++i) {
        if (i % 64 == 0) continue;
        if (!map.erase(key_of(i))) fault = "a key is lost";
        if (map.contains(key_of(i))) fault = "an erased key is there";
        if (map.get(key_of(i / 64 * 64)) != version) fault = "a key that stays is not found";
      }
      // Whole visits while others change the table.
      u64 mine = 0;
      map.for_each([&](u64 key, u64) { mine += key % 64 == static_cast<u64>(t) ? 1u : 0u; });
      if (mine != (keys_each + 63) / 64) fault = "a visit misses keys or has them twice";
    }
    kept += (keys_each + 63) / 64;
  });
  for (const std::string& fault : faults) {
    if (!fault.empty()) return fault;
  }
  if (map.size() != kept.load()) return "the number of keys is wrong";
  return map.stats().merges > 0 ? "" : "nothing was merged";
}

TEST(HashMapStress, WavesMakeTheTableShrink) {
  EXPECT_EQ((waves<hash_index<u64, u64, default_hash<u64>, tiny_buckets>>(4, 600, 12)), "");
  EXPECT_EQ((waves<hash_index<u64, u64, default_hash<u64>, long_chains>>(4, 600, 12)), "");
}
TEST(HashMapStress, WavesMakeALargeTableGiveItsMemoryBack) {
  EXPECT_EQ((waves<hash_index<u64, u64>>(4, 40'000, 3)), "");
}
// A table gives memory back only to a system that takes pages.
#if defined(__linux__) && !defined(ELIDEX_SIMULATED)
// More threads than cores erase all keys. Many are preempted in their turns.
TEST(HashMapStress, AStormOfErasuresGivesTheMemoryBack) {
  constexpr u64 threads = 16;
  constexpr u64 keys_each = 20'000;
  hash_index<u64, u64> map;
  for (u64 key = 0; key < threads * keys_each; ++key) map.insert(key, key);
  const std::size_t large = map.memory_bytes();
  const std::size_t many_buckets = map.stats().buckets;
  run_threads(static_cast<int>(threads), [&](int t, random_numbers& random) {
    for (u64 i = 0; i < keys_each; ++i) {
      map.erase(i * threads + static_cast<u64>(t));
      if (random.below(64) == 0) std::this_thread::yield();
    }
  });
  EXPECT_EQ(map.size(), 0u);
  for (u64 i = 0; i < 50'000; ++i) {
    map.insert(i, i);
    map.erase(i);
  }
  EXPECT_EQ(map.stats().buckets, many_buckets / 4);  // smaller parts cannot be given back
  EXPECT_LT(map.memory_bytes(), large / 2);
}
#endif
TEST(HashMapStressCanary, WavesFindATableThatIgnoresLevels) {
  EXPECT_NE((waves<hash_index<u64, u64, default_hash<u64>, ignores_levels>>(4, 600, 200)), "");
}

// --- histories ---

constexpr int history_threads = 4;
constexpr std::size_t events_per_thread = 16;

// The first round whose history is not linearizable, in words. Each begins with an empty map, which
// then grows.
template <class Map>
std::string find_violation(int rounds) {
  std::unique_ptr<Map> map = std::make_unique<Map>();
  std::array<std::vector<event>, history_threads> plans;
  std::string violation;
  spinning_meeting all(history_threads);
  const auto plan_all = [&](int round) {
    random_numbers random(seed_or(1) + static_cast<u64>(round));
    const std::vector<call> calls = calls_of<Map>(false);
    for (auto& plan : plans) {
      plan.assign(events_per_thread, {});
      for (event& e : plan) {
        e.what = calls[random.below(calls.size())];
        e.key = random.below(history_keys);
        e.value = random() >> 8;
      }
    }
  };
  plan_all(0);
  run_rounds(
      history_threads,
      [&](int t, int round) {
        if (round == 0) stay_on_nth_core(t);
        all.meet(round);
        for (event& e : plans[static_cast<std::size_t>(t)]) perform(*map, e);
      },
      [&](int round) {
        std::vector<event> history;
        for (auto& plan : plans) history.insert(history.end(), plan.begin(), plan.end());
        if (!linearizability(history).holds({})) violation = "round " + std::to_string(round);
        map = std::make_unique<Map>();
        plan_all(round + 1);
        return violation.empty() && round + 1 < rounds;
      });
  return violation;
}

template <class Map>
class HashMapHistories : public ::testing::Test {};
using maps =
    ::testing::Types<tiny<u64>, tiny<u64, long_chains>, tiny<u64, tiny_buckets, same_for_all>,
                     tiny<u64, tiny_buckets, no_hash>, in_order<hash_index<u64, u64>>,
                     face_as_integers<hash_map<u64, u64>>,
                     face_as_integers<hash_map<std::string, std::string>>,
                     face_as_integers<hash_map<std::string, std::vector<u64>>>,
                     face_as_integers<hash_map<u64, std::unique_ptr<u64>>>>;
TYPED_TEST_SUITE(HashMapHistories, maps);

TYPED_TEST(HashMapHistories, AreLinearizable) {
  EXPECT_EQ(find_violation<TypeParam>(repetitions(6'000)), "");
}

TEST(HashMapHistoriesCanary, FunctionsInTwoStepsAreFound) {
  using numbers = face_as_integers<hash_map<u64, u64>>;
  using strings = face_as_integers<hash_map<std::string, std::string>>;
  EXPECT_NE(find_violation<computes_in_two_steps<numbers>>(20'000), "");
  EXPECT_NE(find_violation<computes_in_two_steps<strings>>(20'000), "");
  EXPECT_NE(find_violation<extracts_in_two_steps<numbers>>(20'000), "");
}

// --- growth ---

// Each thread inserts keys of its own while the table grows from nothing, and now and then looks
// for one that it has inserted before. How many were missed, doubled or had a wrong value?
template <class Map>
u64 wrong_while_growing(int threads, u64 per_thread) {
  Map map;
  std::atomic<u64> wrong{0};
  run_threads(threads, [&](int t, random_numbers& random) {
    const auto key = [&](u64 i) { return i * static_cast<u64>(threads) + static_cast<u64>(t); };
    for (u64 i = 0; i < per_thread; ++i) {
      if (!map.insert(key(i), ~key(i))) ++wrong;
      const u64 before = key(random.below(i + 1));
      if (map.get(before) != ~before) ++wrong;
      if (map.insert(before, 0)) ++wrong;
      if (i % 16 == 0 && map.contains(key(per_thread + i))) ++wrong;
    }
  });
  if (map.size() != static_cast<u64>(threads) * per_thread) ++wrong;
  if (map.scan(0, SIZE_MAX, [&](u64 k, u64 v) { wrong += v == ~k ? 0u : 1u; }) != map.size())
    ++wrong;
  return wrong;
}

TEST(HashMapStress, NothingIsLostWhileItGrows) {
  for (const int threads : {2, 4, 8}) {
    const auto keys = static_cast<u64>(repetitions(200'000) / threads);
    EXPECT_EQ((wrong_while_growing<tiny<u64>>(threads, keys)), 0u);
    EXPECT_EQ((wrong_while_growing<in_order<hash_index<u64, u64>>>(threads, keys)), 0u);
    EXPECT_EQ((wrong_while_growing<tiny<u64, long_chains>>(threads, keys)), 0u);
  }
  EXPECT_EQ((wrong_while_growing<tiny<u64, tiny_buckets, same_for_all>>(
                4, static_cast<u64>(repetitions(1'500)))),
            0u);
}

TEST(HashMapStressCanary, AMapThatIgnoresLevelsIsFound) {
#if defined(ELIDEX_SIMULATED)
  GTEST_SKIP() << "found by schedules";
#endif
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two cores";
  EXPECT_TRUE(found_in_time([] {
    try {
      return wrong_while_growing<tiny<u64, ignores_levels>>(4, 20'000) > 0;
    } catch (const std::logic_error&) {
      return true;
    }
  }));
}

// Keys that stay are found whatever happens around them, by look-ups and by for_each(), which gives
// each of them once.
TEST(HashMapStress, KeysThatStayAreAlwaysFound) {
  constexpr u64 step = 16;
  const u64 range = static_cast<u64>(repetitions(200'000));
  tiny<u64> map;
  for (u64 k = 0; k < range; k += step) map.insert(k, k);
  std::atomic<u64> wrong{0};
  std::atomic<int> writing{2};
  run_threads(4, [&](int t, random_numbers& random) {
    if (t < 2) {
      // Twice up and down again, so that the table grows to many times its size.
      for (int round = 0; round < 2; ++round) {
        for (u64 k = static_cast<u64>(t); k < range; k += 2) {
          if (k % step != 0) map.upsert(k, k);
        }
        for (u64 k = static_cast<u64>(t); k < range; k += 2) {
          if (k % step != 0 && !map.erase(k)) ++wrong;
        }
      }
      --writing;
      return;
    }
    while (writing > 0) {
      for (int i = 0; i < 1'000; ++i) {
        const u64 key = random.below(range) / step * step;
        if (map.get(key) != key) ++wrong;
      }
      u64 permanent = 0;
      try {
        map.scan(0, SIZE_MAX, [&](u64 k, u64 v) {
          if (k != v) ++wrong;
          if (k % step == 0) ++permanent;
        });
      } catch (const std::logic_error&) {
        ++wrong;
      }
      if (permanent != (range + step - 1) / step) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(map.size(), (range + step - 1) / step);
}

// --- values ---

template <class Map>
u64 torn_values(int operations) {
  Map map;
  std::atomic<u64> torn{0};
  run_threads(4, [&](int t, random_numbers& random) {
    for (int i = 0; i < operations; ++i) {
      const u64 key = random.below(60);
      if (t < 2) {
        map.upsert(key, sample<wide_value>::of(random.below(1'000)));
        if (random.below(8) == 0) map.erase(key);
      } else if (const auto value = map.get(key)) {
        if (*value != sample<wide_value>::of(value->words[0])) ++torn;
      }
    }
  });
  return torn;
}

TEST(HashMapStress, WideValuesAreNeverTorn) {
  EXPECT_EQ((torn_values<tiny<wide_value>>(repetitions(200'000))), 0u);
  EXPECT_EQ((torn_values<tiny<wide_value, tiny_buckets, same_for_all>>(repetitions(100'000))), 0u);
  EXPECT_EQ((torn_values<hash_index<u64, wide_value>>(repetitions(200'000))), 0u);
}
TEST(HashMapStressCanary, TornValuesAreFound) {
#if defined(ELIDEX_SIMULATED)
  GTEST_SKIP() << "found by schedules";
#endif
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two cores";
  EXPECT_TRUE(
      found_in_time([] { return torn_values<tiny<wide_value, ignores_versions>>(40'000) > 0; }));
  EXPECT_TRUE(
      found_in_time([] { return torn_values<tiny<wide_value, overwrites_unlocked>>(40'000) > 0; }));
}

TEST(HashMapStress, NoIncrementIsLostAndNoneMadeTwice) {
  constexpr u64 keys = 40;
  const auto per_thread = static_cast<u64>(repetitions(100'000));
  for (const int threads : {2, 8}) {
    tiny<u64> map;
    std::atomic<u64> made{0};
    run_threads(threads, [&](int, random_numbers& random) {
      for (u64 i = 0; i < per_thread; ++i) {
        const u64 key = random.below(keys);
        if (map.get_or_insert(key, [] { return u64{0}; }).second) ++made;
        map.update(key, [](u64& v) { ++v; });
      }
    });
    u64 sum = 0;
    EXPECT_EQ(map.for_each([&](u64, u64 v) { sum += v; }), keys);
    EXPECT_EQ(sum, static_cast<u64>(threads) * per_thread);
    EXPECT_EQ(made, keys);
  }
}

// Keys come and go: those that said they did are those that are there.
TEST(HashMapStress, WhatCameLessWhatWentIsThere) {
  tiny<u64> map;
  std::atomic<std::int64_t> there{0};
  run_threads(8, [&](int, random_numbers& random) {
    for (int i = 0; i < repetitions(100'000); ++i) {
      const u64 key = random.below(200);
      if (random.below(2) == 0) {
        if (map.insert(key, key)) ++there;
      } else if (map.erase(key)) {
        --there;
      }
    }
  });
  EXPECT_EQ(map.size(), static_cast<std::size_t>(there.load()));
  EXPECT_EQ(map.for_each([](u64, u64) {}), map.size());
}

// The value that a key has all the time.
template <class Value, class Key>
Value value_of(const Key& key) {
  if constexpr (std::same_as<Value, std::string>) {
    std::ostringstream text;
    text << "value of " << key;
    return text.str();
  } else {
    return default_hash<Key>()(key);
  }
}

template <class Map>
class HashMapOfStrings : public ::testing::Test {};
using maps_of_strings =
    ::testing::Types<hash_index<std::string, std::string, default_hash<std::string>, tiny_buckets>,
                     hash_index<std::string, u64, default_hash<std::string>, tiny_buckets>,
                     hash_index<u64, std::string, default_hash<u64>, tiny_buckets>,
                     hash_index<u64, std::string>>;
TYPED_TEST_SUITE(HashMapOfStrings, maps_of_strings);

// Byte strings: no reader finds one that is freed (AddressSanitizer, ThreadSanitizer) or written
// (ThreadSanitizer) while it reads.
TYPED_TEST(HashMapOfStrings, AreNeverFreedUnderAReader) {
  using key_type = typename TypeParam::key_type;
  using mapped_type = typename TypeParam::mapped_type;
  TypeParam map;
  std::atomic<u64> wrong{0};
  run_threads(4, [&](int, random_numbers& random) {
    for (int i = 0; i < repetitions(40'000); ++i) {
      const key_type key = sample<key_type>::of(random.below(300));
      switch (random.below(6)) {
        case 0:
        case 1:
          map.upsert(key, value_of<mapped_type>(key));
          break;
        case 2:
          map.erase(key);
          break;
        case 3:
          map.update(key, [](mapped_type& v) { v = mapped_type(v); });
          break;
        case 4:
          if (i % 64 == 0) {
            map.for_each([&](const auto& k, const auto& v) {
              if (v != value_of<mapped_type>(key_type(k))) ++wrong;
            });
          }
          break;
        default:
          if (const auto value = map.get(key); value && *value != value_of<mapped_type>(key))
            ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  const std::size_t left = map.size();
  EXPECT_EQ(map.for_each([&](const auto& k, const auto&) { EXPECT_TRUE(map.erase(k)); }), left);
  map.reclaim();
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.stats().retired_objects, 0u);
}

// Everybody reserves, everybody inserts.
TEST(HashMapStress, ReservingBesideInserting) {
  in_order<hash_index<u64, u64>> map;
  const auto keys = static_cast<u64>(repetitions(200'000));
  run_threads(4, [&](int t, random_numbers&) {
    for (u64 i = 0; i < keys; ++i) {
      if (i % 1'000 == 0) map.reserve(i * 8);
      map.insert(4 * i + static_cast<u64>(t), i);
    }
  });
  EXPECT_EQ(map.scan(0, SIZE_MAX, [](u64, u64) {}), 4 * keys);
}

}  // namespace
}  // namespace elidex::testing
