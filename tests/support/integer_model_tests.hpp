#pragma once
// The typed tests of maps with integer keys; included by one file for the locks and by one for the
// optimistic trees.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "elidex/ordered_map.hpp"
#include "support/model.hpp"
#include "support/policies_under_test.hpp"

namespace elidex::testing {

template <class Map>
class ModelOfIntegers : public ::testing::Test {};
TYPED_TEST_SUITE_P(ModelOfIntegers);

TYPED_TEST_P(ModelOfIntegers, FewKeysAgree) {
  TypeParam map;
  EXPECT_EQ(first_difference(map, {.seed = 1, .keys = 30}), "");
}

TYPED_TEST_P(ModelOfIntegers, ManyKeysAgree) {
  TypeParam map;
  EXPECT_EQ(first_difference(map, {.seed = 2, .keys = 3'000, .operations_per_phase = 10'000}), "");
}

TYPED_TEST_P(ModelOfIntegers, GrowsAndShrinksToNothingTwiceInEveryOrder) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  TypeParam map;
  constexpr std::uint64_t keys = 36;  // what an 8-bit key can tell apart in steps of 7
  for (int round = 0; round < 4; ++round) {
    for (std::uint64_t n = 0; n < keys; ++n) {
      ASSERT_TRUE(map.insert(sample<key>::of(round % 2 == 0 ? n : keys - 1 - n), value{}));
    }
    EXPECT_EQ(map.size(), keys);
    for (std::uint64_t n = 0; n < keys; ++n)
      ASSERT_TRUE(map.erase(sample<key>::of(round < 2 ? n : keys - 1 - n)));
    EXPECT_TRUE(map.empty());
    EXPECT_EQ(map.scan(std::numeric_limits<key>::min(), 10, [](auto, auto&&) {}), 0u);
    if constexpr (has_cursors<TypeParam>) {
      auto cursor = map.cursor();
      cursor.seek_first();
      EXPECT_FALSE(cursor.valid());
      cursor.seek_last();
      EXPECT_FALSE(cursor.valid());
    }
  }
}

TYPED_TEST_P(ModelOfIntegers, AnUpdateThatThrowsChangesNothing) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  TypeParam map;
  map.insert(key{5}, sample<value>::of(1));
  EXPECT_THROW(map.update(key{5},
                          [](value& v) {
                            v = sample<value>::of(2);
                            throw std::runtime_error("no");
                          }),
               std::runtime_error);
  EXPECT_EQ(map.get(key{5}), sample<value>::of(1));
  EXPECT_TRUE(map.update(key{5}, [](value& v) { v = sample<value>::of(3); }));
  EXPECT_EQ(map.get(key{5}), sample<value>::of(3));
}

// Ends of the key range are keys like any other.
TYPED_TEST_P(ModelOfIntegers, ExtremeKeys) {
  using key = typename TypeParam::key_type;
  TypeParam map;
  for (const key k : {std::numeric_limits<key>::min(), std::numeric_limits<key>::max(), key{1}}) {
    EXPECT_TRUE(map.insert(k, {}));
    EXPECT_FALSE(map.insert(k, {}));
  }
  EXPECT_EQ(map.scan(std::numeric_limits<key>::min(), SIZE_MAX, [](auto, auto&&) {}), 3u);
  EXPECT_EQ(map.scan(std::numeric_limits<key>::max(), SIZE_MAX, [](auto, auto&&) {}), 1u);
  if constexpr (has_cursors<TypeParam>) {
    auto cursor = map.cursor();
    cursor.seek_last();
    ASSERT_TRUE(cursor.valid());
    EXPECT_EQ(cursor.key(), std::numeric_limits<key>::max());
    cursor.next();
    EXPECT_FALSE(cursor.valid());
    cursor.seek_before(std::numeric_limits<key>::min());
    EXPECT_FALSE(cursor.valid());
  }
}

REGISTER_TYPED_TEST_SUITE_P(ModelOfIntegers, FewKeysAgree, ManyKeysAgree,
                            GrowsAndShrinksToNothingTwiceInEveryOrder,
                            AnUpdateThatThrowsChangesNothing, ExtremeKeys);

}  // namespace elidex::testing
