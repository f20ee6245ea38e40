// The hash map under explored interleavings: short histories on a table that grows with every other
// key, each checked for linearizability; and a look-up beside one split, in all schedules.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "elidex/hash_map.hpp"
#include "schedule/explore.hpp"
#include "schedule/histories.hpp"
#include "support/broken_maps.hpp"
#include "support/hash_maps.hpp"
#include "support/linearizability.hpp"
#include "support/map_faces.hpp"
#include "support/model.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

template <class Rules = tiny_buckets, class Hash = default_hash<u64>, class Value = u64>
using tiny = in_order<hash_index<u64, Value, Hash, Rules>>;

constexpr std::size_t threads = 3;
constexpr std::size_t events_per_thread = 4;

// Begins with some of the keys, and often with buckets that are still to be split.
template <class Map>
struct history {
  static constexpr u64 steps = 600;
  Map map;
  map_state before;
  std::array<std::vector<event>, threads> plans;

  using made_by_seed = void;
  explicit history(u64 seed) {
    random_numbers random(seed);
    for (u64 i = 0, many = random.below(6); i < many; ++i) {
      const u64 key = random.below(history_keys);
      map.upsert(key, i);
      before[key] = i;
    }
    const std::vector<call> calls = calls_of<Map>(false);
    for (auto& plan : plans) {
      for (std::size_t i = 0; i < events_per_thread; ++i) {
        event e;
        e.what = calls[random.below(calls.size())];
        if (e.what == call::add) e.what = random.below(2) == 0 ? call::add : call::insert;  // grows
        e.key = random.below(history_keys);
        e.value = random() >> 8;
        plan.push_back(e);
      }
    }
  }
  std::vector<std::function<void()>> bodies() { return performing(map, plans); }
  std::string verdict() {
    try {
      return history_difference(map, plans, before);
    } catch (const std::logic_error& e) {
      return e.what();
    }
  }
};

template <class Map>
class HashMapSchedules : public ::testing::Test {};
using maps = ::testing::Types<tiny<>, tiny<long_chains>, tiny<tiny_buckets, no_hash>,
                              tiny<tiny_buckets, same_for_all>, in_order<hash_index<u64, u64>>,
                              face_as_integers<hash_map<u64, u64>>,
                              face_as_integers<hash_map<std::string, std::string>>,
                              face_as_integers<hash_map<u64, std::unique_ptr<u64>>>>;
TYPED_TEST_SUITE(HashMapSchedules, maps);

TYPED_TEST(HashMapSchedules, AreLinearizable) {
  EXPECT_EQ(explore<history<TypeParam>>(static_cast<u64>(1'000 * effort())), "");
}

// What the histories are about happens in them.
TEST(HashMapSchedules, TablesGrowMeanwhile) {
  std::int64_t splits = 0;
  for (u64 seed = 1; seed <= 50; ++seed) {
    history<tiny<>> program(seed);
    const std::int64_t before = program.map.stats().splits;
    const auto schedule = schedule_of(seed);
    sim::run(sim::small_machine(), {.schedule = schedule.get()}, program.bodies());
    splits += program.map.stats().splits - before;
  }
  EXPECT_GT(splits, 50);
}

TEST(HashMapSchedulesCanary, AMapThatIgnoresLevelsIsFound) {
  EXPECT_NE((explore<history<tiny<ignores_levels>>>(5'000)), "");
}
TEST(HashMapSchedulesCanary, AMapThatIgnoresVersionsIsFound) {
  EXPECT_NE((explore<history<tiny<ignores_versions>>>(5'000)), "");
}

TEST(HashMapSchedulesCanary, FunctionsInTwoStepsAreFound) {
  using map = face_as_integers<hash_map<u64, u64>>;
  EXPECT_NE((explore<history<computes_in_two_steps<map>>>(5'000)), "");
  EXPECT_NE((explore<history<extracts_in_two_steps<map>>>(5'000)), "");
}

// Keys 0 to 3 with the last bits of their hashes for themselves: bucket 0 has all the even ones,
// until the third one makes the table grow and is split off with half of them. The reader looks for
// each twice.
template <class Rules>
struct a_look_beside_a_split {
  tiny<Rules, no_hash> map;
  std::array<u64, 2> missed{};

  a_look_beside_a_split() {
    map.insert(0, 10);
    map.insert(2, 12);
  }
  std::vector<std::function<void()>> bodies() {
    return {[this] {
              map.insert(4, 14);
              map.insert(6, 16);
            },
            [this] {
              for (const u64 key : std::array<u64, 3>{2, 0, 2})
                missed[0] += map.get(key) == 10 + key ? 0u : 1u;
            }};
  }
  std::string verdict() const {
    if (missed[0] != 0) return "a key was not found while its bucket was split";
    for (const u64 key : std::array<u64, 4>{0, 2, 4, 6}) {
      if (map.get(key) != 10 + key) return "a key is lost";
    }
    return map.stats().splits > 0 ? "" : "nothing was split";
  }
};

TEST(HashMapSchedules, ALookBesideASplitFindsItsKey) {
  u64 schedules = 0;
  EXPECT_EQ(explore_all<a_look_beside_a_split<tiny_buckets>>(1, schedules), "");
  EXPECT_GT(schedules, 100u);
  EXPECT_EQ(explore<a_look_beside_a_split<tiny_buckets>>(static_cast<u64>(2'000 * effort())), "");
}
TEST(HashMapSchedulesCanary, ALookThatIgnoresTheSplitIsFound) {
  EXPECT_NE(explore<a_look_beside_a_split<ignores_levels>>(20'000), "");
  EXPECT_NE(explore<a_look_beside_a_split<ignores_versions>>(20'000), "");
}

// Erasures make the table shrink while others look for the keys that stay, and add keys that make
// it grow again.
template <class Rules>
struct looks_beside_a_shrink {
  static constexpr u64 steps = 3'000;
  static constexpr std::array<u64, 2> staying{1, 6};
  tiny<Rules, no_hash> map;
  u64 missed = 0;

  looks_beside_a_shrink() {
    for (u64 key = 0; key < 16; ++key) map.insert(key, 10 + key);
    for (u64 key = 0; key < 16; ++key) {
      if (key != 1 && key != 6 && key != 7 && key != 15) map.erase(key);
    }
  }
  std::vector<std::function<void()>> bodies() {
    return {[this] {
              for (const u64 key : std::array<u64, 2>{7, 15}) map.erase(key);
              for (u64 i = 0; i < 6; ++i) map.erase(i * 16);  // absent
              for (u64 i = 0; i < 4; ++i) map.upsert(6, 16);  // helps
            },
            [this] {
              for (u64 i = 0; i < 6; ++i)
                missed += map.get(staying[i % 2]) == 10 + staying[i % 2] ? 0u : 1u;
            },
            [this] {
              for (u64 i = 0; i < 8; ++i) missed += map.get(6) == 16u ? 0u : 1u;
              for (const u64 key : std::array<u64, 6>{8, 24, 40, 56, 72, 88}) {
                map.insert(key, 10 + key);
                missed += map.get(key) == 10 + key ? 0u : 1u;
              }
            }};
  }
  std::string verdict() const {
    if (missed != 0) return "a key was not found";
    for (const u64 key : std::array<u64, 8>{1, 6, 8, 24, 40, 56, 72, 88}) {
      if (map.get(key) != 10 + key) return "a key is lost";
    }
    return map.size() == 8 ? "" : "the number of keys is wrong";
  }
};

TEST(HashMapSchedules, LooksBesideAShrinkFindTheirKeys) {
  EXPECT_EQ(explore<looks_beside_a_shrink<tiny_buckets>>(static_cast<u64>(3'000 * effort())), "");
}
TEST(HashMapSchedules, TablesShrinkMeanwhile) {
  std::int64_t merges = 0;
  for (u64 seed = 1; seed <= 100; ++seed) {
    looks_beside_a_shrink<tiny_buckets> program;
    const auto schedule = schedule_of(seed);
    sim::run(sim::small_machine(), {.schedule = schedule.get()}, program.bodies());
    merges += program.map.stats().merges;
  }
  EXPECT_GT(merges, 50);
}
TEST(HashMapSchedulesCanary, AShrinkThatDiscardsEarlyIsFound) {
  EXPECT_NE(explore<looks_beside_a_shrink<discards_early>>(20'000), "");
}
TEST(HashMapSchedulesCanary, AShrinkBesideLooksThatIgnoreLevelsIsFound) {
  EXPECT_NE(explore<looks_beside_a_shrink<ignores_levels>>(20'000), "");
}

// An erase and an upsert of two keys beside the split of their bucket: neither comes back, nor is
// lost.
struct changes_beside_a_split {
  tiny<tiny_buckets, no_hash> map;
  changes_beside_a_split() {
    map.insert(0, 10);
    map.insert(2, 12);
  }
  std::vector<std::function<void()>> bodies() {
    return {[this] { map.insert(4, 14); },
            [this] {
              map.erase(2);
              map.upsert(0, 20);
            }};
  }
  std::string verdict() const {
    if (map.get(2)) return "an erased key is there";
    if (map.get(0) != 20u) return "a change is lost";
    return map.get(4) == 14u && map.size() == 2 ? "" : "a key is lost";
  }
};
TEST(HashMapSchedules, ChangesBesideASplitAreKept) {
  u64 schedules = 0;
  EXPECT_EQ(explore_all<changes_beside_a_split>(1, schedules), "");
  EXPECT_EQ(explore<changes_beside_a_split>(static_cast<u64>(2'000 * effort())), "");
}

}  // namespace
}  // namespace elidex::testing
