// Eunomia's trees while a leaf is split or merged: one thread asks a leaf for one key, twice, while
// another one splits that leaf, or merges it, at every step of the way.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>

#include "schedule/explore.hpp"
#include "schedule/histories.hpp"
#include "support/fixed_key_trees.hpp"
#include "support/linearizability.hpp"
#include "support/model.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

// Leaves whose keys share two marks.
template <class Shape, template <class, class, class, class> class Leaf>
struct with_two_marks : Shape {
  template <unsigned Bits>
  using control = conflict_control<2>;
  template <class Key, class Value, class Sync>
  using leaf = Leaf<Key, Value, Sync, with_two_marks>;
};
using partitioned_with_two_marks = with_two_marks<tiny_partitioned, papers::partitioned_leaf>;
using apart_with_two_marks = with_two_marks<separated_fan_out<3, 3>, internal::separated_leaf>;
using dense_with_two_marks = with_two_marks<dense_fan_out<3, 3>, papers::dense_leaf>;

enum class change : std::uint8_t { split, merge, both, redistribute };

template <class Map>
inline constexpr bool has_leaf_hints = false;
template <class Key, class Value, class Sync, class Shape, class Control>
inline constexpr bool has_leaf_hints<fixed_key_btree<Key, Value, Sync, Shape, Control>> =
    Shape::has_leaf_hints;

// Thread 0, to which the leaf may be known by then, does What with a key and looks it up; thread 1
// changes the leaves; thread 2 does What with any key.
template <class Map, call What, change How>
struct leaf_changes_meanwhile {
  Map map;
  map_state before;
  std::array<std::vector<event>, 3> plans;
  std::int64_t splits_before = 0;
  std::int64_t merges_before = 0;
  std::int64_t redistributions_before = 0;

  using made_by_seed = void;
  explicit leaf_changes_meanwhile(u64 seed) {
    random_numbers random(seed);
    std::array<u64, history_keys> keys;
    std::iota(keys.begin(), keys.end(), u64{0});
    for (std::size_t i = keys.size() - 1; i > 0; --i) std::swap(keys[i], keys[random.below(i + 1)]);
    if (How ==
        change::redistribute) {  // leaves {0, 1, 3} and {7}; then 2 or 4 comes to the full one
      for (const u64 key : {1u, 3u, 5u, 7u}) map.insert(key, key);
      map.erase(5);
      keys = {1, 3, 7, 0, 2 + 2 * (seed % 2), 4 - 2 * (seed % 2), 5, 6};
    }
    const std::size_t there = How == change::split   ? 2 + random.below(4)
                              : How == change::merge ? 5 + random.below(4)
                                                     : 4;
    for (std::size_t i = 0; i < there; ++i) {
      map.upsert(keys[i], i);
      before[keys[i]] = i;
    }
    const auto plan = [&](std::size_t thread, call what, u64 key) {
      event e;
      e.what = what;
      e.key = key;
      e.value = random() >> 8U;
      plans[thread].push_back(e);
    };
    const u64 wanted = keys[random.below(history_keys)];
    if (has_leaf_hints<Map>) {
      for (int times = 0; times < 2; ++times) plan(0, call::get, wanted);
    }
    plan(0, What, What == call::scan ? 0 : wanted);
    plan(0, call::get, wanted);
    if (How != change::merge) {
      for (std::size_t i = there; i < std::min(there + 2, history_keys); ++i)
        plan(1, call::insert, keys[i]);
    }
    if (How == change::merge || How == change::both) {
      for (std::size_t i = 0; i < 3; ++i) plan(1, call::erase, keys[i]);
    }
    plan(2, What, What == call::scan ? 0 : keys[random.below(history_keys)]);
    splits_before = map.stats().splits;
    merges_before = map.stats().merges;
    redistributions_before = map.stats().redistributions;
  }

  std::vector<std::function<void()>> bodies() { return performing(map, plans); }

  std::string verdict() {
    splits += map.stats().splits - splits_before;
    merges += map.stats().merges - merges_before;
    redistributions += map.stats().redistributions - redistributions_before;
    return history_difference(map, plans, before);
  }

  static inline std::int64_t splits = 0;  // seen by all schedules
  static inline std::int64_t merges = 0;
  static inline std::int64_t redistributions = 0;
};

template <class Map>
class EunomiaLeafChanges : public ::testing::Test {
 protected:
  template <call What, change How>
  static void explore_one() {
    using program = leaf_changes_meanwhile<Map, What, How>;
    const auto schedules = static_cast<u64>(100 * effort());
    EXPECT_EQ(explore<program>(schedules), "") << "call " << int(What);
    const auto some = static_cast<std::int64_t>(schedules / 10);
    if (How == change::split || How == change::both) {
      EXPECT_GT(program::splits, some);
    }
    if (How == change::merge || How == change::both) {
      EXPECT_GT(program::merges, some);
    }
    if (How == change::redistribute) {
      EXPECT_GT(program::redistributions, some);
    }
  }
  template <change How>
  static void explore_calls() {
    explore_one<call::get, How>();
    explore_one<call::upsert, How>();
    explore_one<call::add, How>();
    explore_one<call::erase, How>();
    explore_one<call::scan, How>();
  }
};
using maps = ::testing::Types<
    fixed_key_btree<u64, u64, elided_regions, partitioned_with_two_marks, always_control>,
    fixed_key_btree<u64, u64, elided_regions_dbx, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, elided_regions, dense_with_two_marks, always_control>,
    fixed_key_btree<u64, u64, elided_regions, apart_with_two_marks, restless_control>,
    fixed_key_btree<u64, u64, spinning_regions, partitioned_with_two_marks, always_control>,
    fixed_key_btree<u64, u64, locked_regions, apart_with_two_marks, restless_control>,
    fixed_key_btree<u64, u64, optimistic, partitioned_with_two_marks, always_control>,
    fixed_key_btree<u64, u64, optimistic, dense_with_two_marks, restless_control>,
    fixed_key_btree<u64, u64, optimistic, apart_with_two_marks, always_control>,
    fixed_key_btree<u64, u64, optimistic, separated_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, optimistic, packed_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, optimistic, packed_fan_out<3, 3>, restless_control>,
    fixed_key_btree<u64, u64, elided_regions, packed_fan_out<3, 3>, no_control>>;
TYPED_TEST_SUITE(EunomiaLeafChanges, maps);

TYPED_TEST(EunomiaLeafChanges, SplitsAtEveryStep) {
  this->template explore_calls<change::split>();
}
TYPED_TEST(EunomiaLeafChanges, MergesAtEveryStep) {
  this->template explore_calls<change::merge>();
}
template <class Map>
class EunomiaLeafRedistributions : public EunomiaLeafChanges<Map> {};
using redistributing_maps =
    ::testing::Types<fixed_key_btree<u64, u64, optimistic, packed_fan_out<3, 3>, no_control>,
                     fixed_key_btree<u64, u64, optimistic, packed_fan_out<3, 3>, adaptive_control>,
                     fixed_key_btree<u64, u64, elided_regions, packed_fan_out<3, 3>, no_control>,
                     fixed_key_btree<u64, u64, spinning_regions, packed_fan_out<3, 3>, no_control>>;
TYPED_TEST_SUITE(EunomiaLeafRedistributions, redistributing_maps);

TYPED_TEST(EunomiaLeafRedistributions, AtEveryStep) {
  this->template explore_calls<change::redistribute>();
}

TYPED_TEST(EunomiaLeafChanges, SplitsAndMergesAtEveryStep) {
  this->template explore_calls<change::both>();
}

// One thread splits {0, 3, 6} into {0} and {3, 6}, which takes the mark of 1, 3 and 6 away from the
// left leaf, where another thread puts 1.
template <class Map>
struct a_key_comes_as_its_mark_goes {
  Map map;

  a_key_comes_as_its_mark_goes() {
    for (const u64 key : {0u, 3u, 6u}) map.insert(key, key);
  }
  std::vector<std::function<void()>> bodies() {
    return {[this] { map.insert(5, 5); }, [this] { map.insert(1, 1); }};
  }
  std::string verdict() const {
    for (const u64 key : {0u, 1u, 3u, 5u, 6u}) {
      if (!map.contains(key)) return "lost " + std::to_string(key);
    }
    return "";
  }
};

template <class Map>
class EunomiaMarks : public ::testing::Test {};
using maps_with_two_marks = ::testing::Types<
    fixed_key_btree<u64, u64, spinning_regions, dense_with_two_marks, always_control>,
    fixed_key_btree<u64, u64, optimistic, dense_with_two_marks, always_control>>;
TYPED_TEST_SUITE(EunomiaMarks, maps_with_two_marks);

TYPED_TEST(EunomiaMarks, StayWithKeysThatComeDuringASplit) {
  // Of the schedules with two preemptions the first ones: a key without a mark was lost by the
  // 6303rd.
  sim::exhaustive all(2);
  for (int schedules = 0; schedules < 10'000; ++schedules) {
    ASSERT_EQ(under<a_key_comes_as_its_mark_goes<TypeParam>>(all), "") << "schedule " << schedules;
    if (!all.next()) break;
  }
}

// One thread looks for keys of a full leaf, where another one wants to put the key by which free
// slots are told.
struct free_key_comes_to_a_full_leaf {
  static constexpr u64 first_free_key = 0xD1B5'4A32'D192'ED03u;  // unused_key()
  using tree = fixed_key_btree<u64, u64, optimistic, tiny_partitioned, no_control>;
  tree map;
  u64 missing = 0;

  using made_by_seed = void;
  explicit free_key_comes_to_a_full_leaf(u64 seed) {
    for (u64 i = 0; i < 4; ++i) map.insert((i * 3 + seed) % 4, i);
  }
  std::vector<std::function<void()>> bodies() {
    return {[this] { map.insert(first_free_key, 1); },
            [this] {
              for (u64 key = 0; key < 4; ++key) missing += map.contains(key) ? 0u : 1u;
            }};
  }
  std::string verdict() const {
    return missing == 0 && map.contains(first_free_key) ? "" : "a key was not found";
  }
};

TEST(EunomiaLeaf, StaysAsItWasWhenItIsFull) {
  EXPECT_EQ(explore<free_key_comes_to_a_full_leaf>(static_cast<u64>(2'000 * effort())), "");
}

}  // namespace
}  // namespace elidex::testing
