// Byte strings as keys and as values, against std::map.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "elidex/ordered_map.hpp"
#include "support/model.hpp"
#include "support/policies_under_test.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

template <class Map>
class ModelOfStrings : public ::testing::Test {};

using maps = ::testing::Types<btree<std::string, std::uint64_t, unsynchronized, fan_out<4, 4>>,
                              btree<std::string, std::string, coarse_mutex>,
                              btree<std::string, std::uint64_t, coarse_shared, fan_out<4, 4>>,
                              btree<std::string, std::string, coarse_elided, fan_out<2, 3>>,
                              btree<std::string, std::uint64_t, optimistic>,
                              btree<std::string, std::string, optimistic, fan_out<2, 3>>,
                              btree<std::uint64_t, std::string, optimistic, fan_out<4, 4>>,
                              ordered_tree<std::string, std::uint64_t>,
                              ordered_tree<std::string, std::string>>;
TYPED_TEST_SUITE(ModelOfStrings, maps);

TYPED_TEST(ModelOfStrings, FewKeysAgree) {
  TypeParam map;
  EXPECT_EQ(first_difference(map, {.seed = 1, .operations = 10'000, .keys = 30}), "");
}

TYPED_TEST(ModelOfStrings, ManyKeysAgree) {
  TypeParam map;
  EXPECT_EQ(first_difference(map, {.seed = 2, .keys = 2'000, .operations_per_phase = 8'000}), "");
}

// All strings of two letters up to some length, behind `head`: nodes with prefixes of every length,
// between inline keys and blobs, and keys that end where their node's prefix ends.
std::string dense_key(std::string_view head, std::uint64_t n) {
  std::string key(head);
  for (++n; n > 1; n /= 2) key += n % 2 == 0 ? 'a' : 'b';
  return key;
}

template <class Map>
void expect_dense_keys_agree(std::string_view head, std::uint64_t seed) {
  constexpr std::uint64_t keys = 4'000;  // of up to 11 letters
  Map map;
  std::map<std::string, std::uint64_t> expected;
  random_numbers random(seed_or(seed));
  for (int i = 0; i < 40'000 * effort(); ++i) {
    const bool shrinking = i / 10'000 % 2 == 1;
    const std::string key = dense_key(head, random.below(keys));
    const std::uint64_t value = random.below(1'000);
    if (random.below(4) >= (shrinking ? 1U : 3U)) {
      ASSERT_EQ(map.erase(key), expected.erase(key) == 1) << key;
    } else {
      ASSERT_EQ(map.insert(key, value), expected.emplace(key, value).second) << key;
    }
    const std::string other = dense_key(head, random.below(keys));
    const auto found = expected.find(other);
    ASSERT_EQ(map.get(other), found == expected.end() ? std::nullopt : std::optional(found->second))
        << other;
    if (i % 16 == 0) {
      ASSERT_EQ(walk_difference(map, expected, other, random), "") << other;
    }
    if (i % 2'000 == 0) {
      ASSERT_EQ(content_difference(map, expected), "");
    }
  }
  while (!expected.empty()) {
    ASSERT_TRUE(map.erase(expected.begin()->first));
    expected.erase(expected.begin());
    if (expected.size() % 500 == 0) {
      ASSERT_EQ(content_difference(map, expected), "");
    }
  }
}

TEST(StringKeys, DenseKeysAgree) {
  for (const std::string_view head :
       {"", "ab", "seven b", "eight by", "nine byte", "https://www.gardener.org/"}) {
    expect_dense_keys_agree<btree<std::string, std::uint64_t, optimistic, fan_out<4, 4>>>(head, 1);
    expect_dense_keys_agree<ordered_tree<std::string, std::uint64_t>>(head, 2);
  }
}

TEST(StringKeys, OrderIsThatOfUnsignedBytes) {
  ordered_tree<std::string, std::uint64_t> map;
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
  ordered_tree<std::string, std::string> map;
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
  // Long keys that differ only in their last byte: separators are long too, and splits need memory
  // for them.
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
  ordered_tree<std::string, std::string> map;
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
  ordered_tree<std::string, std::string> map;
  std::size_t after_first_round = 0;
  for (int round = 0; round < 30 * effort(); ++round) {
    for (std::uint64_t i = 0; i < 2'000; ++i)
      map.upsert(sample<std::string>::of(i), sample<std::string>::of(i + 7));
    for (std::uint64_t i = 0; i < 2'000; ++i) map.upsert(sample<std::string>::of(i), "");
    for (std::uint64_t i = 0; i < 2'000; ++i) ASSERT_TRUE(map.erase(sample<std::string>::of(i)));
    map.reclaim();
    if (round == 0) after_first_round = map.memory_bytes();
  }
  EXPECT_LE(map.memory_bytes(), 2 * after_first_round);
}

}  // namespace
}  // namespace elidex::testing
