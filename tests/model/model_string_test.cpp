// Byte strings as keys and as values, against std::map.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "elidex/ordered_map.hpp"
#include "support/model.hpp"
#include "support/policies_under_test.hpp"

namespace elidex::testing {
namespace {

template <class Map>
class ModelOfStrings : public ::testing::Test {};

using maps = ::testing::Types<
    btree<std::string, std::uint64_t, unsynchronized, fan_out<4, 4>>, btree<std::string, std::string, coarse_mutex>,
    btree<std::string, std::uint64_t, coarse_shared, fan_out<4, 4>>,
    btree<std::string, std::string, coarse_elided, fan_out<2, 3>>, btree<std::string, std::uint64_t, optimistic>,
    btree<std::string, std::string, optimistic, fan_out<2, 3>>,
    btree<std::uint64_t, std::string, optimistic, fan_out<4, 4>>, ordered_map<std::string, std::uint64_t>,
    ordered_map<std::string, std::string>>;
TYPED_TEST_SUITE(ModelOfStrings, maps);

TYPED_TEST(ModelOfStrings, FewKeysAgree) {
  TypeParam map;
  EXPECT_EQ(first_difference(map, {.seed = 1, .operations = 10'000, .keys = 30}), "");
}

TYPED_TEST(ModelOfStrings, ManyKeysAgree) {
  TypeParam map;
  EXPECT_EQ(first_difference(map, {.seed = 2, .keys = 2'000, .operations_per_phase = 8'000}), "");
}

TEST(StringKeys, OrderIsThatOfUnsignedBytes) {
  ordered_map<std::string, std::uint64_t> map;
  const std::vector<std::string> ascending = {"",
                                              std::string(1, '\0'),
                                              std::string(8, '\0'),
                                              std::string(9, '\0'),
                                              "a",
                                              std::string("a\0", 2),
                                              std::string("a\0b", 3),
                                              "aaaaaaaa",
                                              std::string("aaaaaaaa\0", 9),
                                              "aaaaaaaab",
                                              "aaaaaaab",
                                              "b",
                                              "\x7f",
                                              "\x80",
                                              "\xff\xff\xff\xff\xff\xff\xff\xff",
                                              "\xff\xff\xff\xff\xff\xff\xff\xff\xff"};
  for (std::size_t i = ascending.size(); i-- > 0;) EXPECT_TRUE(map.insert(ascending[i], i));
  std::vector<std::string> scanned;
  map.scan("", SIZE_MAX, [&](std::string_view key, std::uint64_t) { scanned.emplace_back(key); });
  EXPECT_EQ(scanned, ascending);
}

TEST(StringKeys, LengthsUpTo64KiB) {
  ordered_map<std::string, std::string> map;
  const std::string longest(65'536, 'k');
  const std::string too_long(65'537, 'k');
  EXPECT_TRUE(map.insert(longest, longest));
  EXPECT_EQ(map.get(longest), longest);
  EXPECT_THROW(map.insert(too_long, ""), std::invalid_argument);
  EXPECT_THROW(map.upsert(too_long, ""), std::invalid_argument);
  EXPECT_THROW(map.get(too_long), std::invalid_argument);
  EXPECT_THROW(map.contains(too_long), std::invalid_argument);
  EXPECT_THROW(map.erase(too_long), std::invalid_argument);
  EXPECT_THROW(map.update(too_long, [](std::string&) {}), std::invalid_argument);
  EXPECT_THROW(map.scan(too_long, 1, [](auto, auto) {}), std::invalid_argument);
  auto cursor = map.cursor();
  EXPECT_THROW(cursor.seek(too_long), std::invalid_argument);
  EXPECT_THROW(cursor.seek_before(too_long), std::invalid_argument);
  EXPECT_EQ(map.size(), 1u);
  // Long keys that differ only in their last byte: separators are long too, and splits need memory for them.
  for (int i = 0; i < 200; ++i) {
    std::string key = longest.substr(0, 60'000);
    key += static_cast<char>(i);
    EXPECT_TRUE(map.insert(key, "v"));
  }
  for (int i = 0; i < 200; ++i) {
    std::string key = longest.substr(0, 60'000);
    key += static_cast<char>(i);
    EXPECT_TRUE(map.erase(key));
  }
  EXPECT_EQ(map.size(), 1u);
}

TEST(StringKeys, AnUpdateOfAStringThatThrowsChangesNothing) {
  ordered_map<std::string, std::string> map;
  map.insert("key", "value");
  EXPECT_THROW(map.update("key",
                          [](std::string& v) {
                            v = "other";
                            throw std::runtime_error("no");
                          }),
               std::runtime_error);
  EXPECT_EQ(map.get("key"), "value");
}

TEST(StringKeys, ChurnDoesNotGrowMemory) {
  ordered_map<std::string, std::string> map;
  std::size_t after_first_round = 0;
  for (int round = 0; round < 30 * effort(); ++round) {
    for (std::uint64_t i = 0; i < 2'000; ++i) map.upsert(sample<std::string>::of(i), sample<std::string>::of(i + 7));
    for (std::uint64_t i = 0; i < 2'000; ++i) map.upsert(sample<std::string>::of(i), "");
    for (std::uint64_t i = 0; i < 2'000; ++i) ASSERT_TRUE(map.erase(sample<std::string>::of(i)));
    map.reclaim();
    if (round == 0) after_first_round = map.memory_bytes();
  }
  EXPECT_LE(map.memory_bytes(), 2 * after_first_round);
}

}  // namespace
}  // namespace elidex::testing
