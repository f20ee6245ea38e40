// What a map promises beyond the results of single operations; and the model harness's canary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "elidex/ordered_map.hpp"
#include "support/broken_maps.hpp"
#include "support/model.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;

TEST(Model, ChurnDoesNotGrowMemory) {
  ordered_tree<u64, u64> map;
  random_numbers random(seed_or(3));
  std::size_t settled = 0;  // after the rounds in which the pools still grow
  for (int round = 0; round < 30 * effort(); ++round) {
    for (u64 i = 0; i < 5'000; ++i) map.insert(random.below(1u << 30), i);
    auto cursor = map.cursor();
    for (cursor.seek_first(); cursor.valid(); cursor.next()) map.erase(cursor.key());
    ASSERT_TRUE(map.empty());
    if (round == 5) settled = map.memory_bytes();
  }
  EXPECT_LE(map.memory_bytes(), settled + settled / 4);
  EXPECT_LE(map.stats().retired_objects, 8 * retire_list::retirements_per_sweep);
}

// Nodes that nothing is left in are nowhere left behind, in whatever order keys come and go. An
// inner node may stay with one child, but not a chain of them for each key.
template <class Shape>
class NodesInUse : public ::testing::Test {};
using shapes = ::testing::Types<fan_out<2, 3>, fan_out<4, 4>, paper_fan_out>;
TYPED_TEST_SUITE(NodesInUse, shapes);

TYPED_TEST(NodesInUse, NoLeafIsEmptyAfterErasing) {
  btree<u64, u64, unsynchronized, TypeParam> map;
  random_numbers random(seed_or(5));
  std::vector<u64> keys;
  for (int round = 0; round < 600 * effort(); ++round) {
    const u64 base = random.below(100'000);
    const u64 order = random.below(3);
    for (u64 i = 0; i < 300; ++i) {
      const u64 key = base + (order == 0 ? random.below(2'000) : order == 1 ? i : 300 - i);
      if (map.insert(key, key)) keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    const u64 erasing = random.below(3);
    if (erasing == 0) std::reverse(keys.begin(), keys.end());
    if (erasing == 1) std::shuffle(keys.begin(), keys.end(), std::mt19937_64(random()));
    std::rotate(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(random.below(keys.size())),
                keys.end());
    const u64 kept = random.below(4) == 0 ? random.below(400) : random.below(8);
    for (; keys.size() > kept; keys.pop_back()) ASSERT_TRUE(map.erase(keys.back()));
    const btree_stats nodes = map.stats();
    ASSERT_LE(nodes.leaves, std::max<std::size_t>(1, kept)) << "in round " << round;
    ASSERT_LE(nodes.inner_nodes, 2 * kept + 8) << "in round " << round;
  }
}

// Whoever clears up in key order meets each leaf when the next one is still full.
TEST(Model, ThinningLeavesFullLeavesInAnyOrder) {
  constexpr u64 keys = 100'000;
  constexpr u64 kept_one_in = 50;
  for (const bool ascending : {true, false}) {
    ordered_tree<u64, u64> map;
    for (u64 n = 0; n < keys; ++n) map.insert(n, n);
    for (u64 n = 0; n < keys; ++n) {
      const u64 key = ascending ? n : keys - 1 - n;
      if (key % kept_one_in != 0) map.erase(key);
    }
    EXPECT_GE(map.size() / (map.stats().leaves - map.stats().retired_objects), 16u)
        << "keys per leaf";
  }
}

TEST(Model, OneReclaimIsEnough) {
  ordered_tree<u64, u64> map;
  for (u64 n = 0; n < 10'000; ++n) map.insert(n, n);
  for (u64 n = 0; n < 10'000; ++n) map.erase(n);
  map.reclaim();
  EXPECT_EQ(map.stats().retired_objects, 0u);
}

// A leaf may hold the type's least and greatest keys.
template <class Key>
void keeps_keys_of_both_ends(synchronization which) {
  using number = std::make_unsigned_t<Key>;
  constexpr auto least = static_cast<number>(std::numeric_limits<Key>::min());
  for (const unsigned pairs : {94U, 300U, 5000U}) {
    for (const bool in_turn : {true, false}) {
      std::vector<Key> keys;
      for (unsigned i = 0; i < pairs; ++i) {
        keys.push_back(static_cast<Key>(static_cast<number>(least + i)));
        keys.push_back(static_cast<Key>(static_cast<number>(least - 1 - i)));
      }
      if (!in_turn) std::ranges::reverse(keys);
      ordered_tree<Key, u64> map(which);
      for (const Key key : keys) ASSERT_TRUE(map.insert(key, static_cast<u64>(key)));
      for (const Key key : keys) ASSERT_EQ(map.get(key), static_cast<u64>(key));
      ASSERT_EQ(map.scan(std::numeric_limits<Key>::min(), SIZE_MAX, [](Key, u64) {}), keys.size());
    }
  }
}
TEST(Model, KeysOfBothEndsAreKept) {
  for (const synchronization which : {synchronization::optimistic, synchronization::hardware}) {
    keeps_keys_of_both_ends<std::uint64_t>(which);
    keeps_keys_of_both_ends<std::int64_t>(which);
    keeps_keys_of_both_ends<std::uint32_t>(which);
    keeps_keys_of_both_ends<std::int16_t>(which);
  }
}

// Values of any size, under either tree (see ordered_map.hpp).
template <std::size_t Bytes>
void keeps_values_of_this_size() {
  struct record {
    std::array<unsigned char, Bytes> bytes;
    bool operator==(const record&) const = default;
  };
  const auto record_of = [](u64 n) {
    record r;
    r.bytes.fill(static_cast<unsigned char>(n));
    return r;
  };
  ordered_tree<u64, record> map;
  for (u64 n = 0; n < 1000; ++n) EXPECT_TRUE(map.insert(n * 77 % 1009, record_of(n)));
  for (u64 n = 0; n < 1000; ++n) EXPECT_EQ(map.get(n * 77 % 1009), record_of(n));
  for (u64 n = 0; n < 1000; n += 2) EXPECT_TRUE(map.erase(n * 77 % 1009));
  EXPECT_EQ(map.size(), 500u);
}
TEST(Model, ValuesMayBeLarge) {
  keeps_values_of_this_size<56>();
  keeps_values_of_this_size<57>();
  keeps_values_of_this_size<5000>();
}

TEST(Model, AnEmptyViewIsAnEmptyString) {
  ordered_tree<std::string, std::string> map;
  EXPECT_TRUE(map.insert(std::string_view(), std::string_view()));
  EXPECT_EQ(map.get(""), "");
}

TEST(Model, ACursorSurvivesTheErasingOfItsKey) {
  btree<u64, u64, optimistic, fan_out<4, 4>> map;
  for (u64 n = 0; n < 100; ++n) map.insert(n, n);
  auto cursor = map.cursor();
  u64 met = 0;
  for (cursor.seek_first(); cursor.valid(); cursor.next(), ++met) {
    EXPECT_EQ(cursor.key(), met);
    EXPECT_TRUE(map.erase(cursor.key()));
  }
  EXPECT_EQ(met, 100u);
  EXPECT_TRUE(map.empty());
}

template <class Map, class Key>
void refuses_too_few_places_for_what_it_finds() {
  Map map;
  const std::vector<typename Map::key_argument> wanted{Key{}, Key{}};
  std::vector<std::optional<u64>> found(1, u64{7});
  EXPECT_THROW(map.multi_get(wanted, found), std::invalid_argument);
  EXPECT_EQ(found[0], u64{7});
  map.multi_get({}, {});
}
TEST(Model, MultiGetRefusesTooFewPlacesForWhatItFinds) {
  refuses_too_few_places_for_what_it_finds<ordered_tree<u64, u64>, u64>();
  refuses_too_few_places_for_what_it_finds<ordered_tree<std::string, u64>, std::string_view>();
}

TEST(Model, AScanMayUseTheMap) {
  ordered_tree<u64, u64> map;
  for (u64 n = 0; n < 1'000; ++n) map.insert(n, n);
  EXPECT_EQ(map.scan(0, SIZE_MAX, [&](u64 key, u64) { EXPECT_TRUE(map.erase(key)); }), 1'000u);
  EXPECT_TRUE(map.empty());
}

TEST(ModelCanary, BrokenMapsAreFound) {
  insert_lies lying;
  EXPECT_THAT(first_difference(lying, {}), ::testing::HasSubstr("insert"));
  cursor_skips_a_key skipping;
  EXPECT_THAT(first_difference(skipping, {}), ::testing::HasSubstr("cursor"));
  updates_a_fresh_value fresh;
  EXPECT_THAT(first_difference(fresh, {}), ::testing::HasSubstr("update's old value"));
  cursor_skips_backward backward;
  EXPECT_THAT(first_difference(backward, {}), ::testing::HasSubstr("cursor"));
  gets_stale_values stale;
  EXPECT_THAT(first_difference(stale, {}), ::testing::HasSubstr("get"));
}

}  // namespace
}  // namespace elidex::testing
