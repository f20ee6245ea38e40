// What a map promises beyond the results of single operations; and the model harness's canary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elidex/ordered_map.hpp"
#include "support/broken_maps.hpp"
#include "support/model.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

TEST(Model, ChurnDoesNotGrowMemory) {
  ordered_map<u64, u64> map;
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
  EXPECT_LE(map.stats().limbo_objects, 8 * limbo_list::retirements_per_sweep);
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

TEST(Model, AScanMayUseTheMap) {
  ordered_map<u64, u64> map;
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
