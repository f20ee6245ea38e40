// The hash map beside std::map and std::unordered_map, on one thread.
#include "elidex/hash_map.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <memory_resource>
#include <new>
#include <optional>
#include <unordered_map>

#include "support/hash_maps.hpp"
#include "support/integer_model_tests.hpp"
#include "support/model.hpp"

namespace elidex::testing {
namespace {

using std::uint64_t;

template <class Key, class Value, class Rules = tiny_buckets, class Hash = default_hash<Key>>
using tiny = in_order<hash_index<Key, Value, Hash, Rules>>;

using integer_maps = ::testing::Types<
    in_order<hash_index<uint64_t, uint64_t>>, tiny<uint64_t, uint64_t>,
    tiny<uint64_t, uint64_t, long_chains>, tiny<uint64_t, uint64_t, tiny_buckets, same_for_all>,
    in_order<hash_index<uint64_t, uint64_t, same_for_all>>,
    tiny<uint64_t, uint64_t, tiny_buckets, no_hash>,
    in_order<hash_index<std::int32_t, std::uint32_t>>, tiny<std::int32_t, std::uint32_t>,
    in_order<hash_index<std::int64_t, wide_value>>,
    in_order<hash_index<std::uint16_t, std::array<char, 3>>>,
    tiny<std::int64_t, wide_value, long_chains>>;
INSTANTIATE_TYPED_TEST_SUITE_P(HashMap, ModelOfIntegers, integer_maps);

template <class Map>
class HashMapOfStrings : public ::testing::Test {};
using string_maps =
    ::testing::Types<in_order<hash_index<std::string, uint64_t>>,
                     in_order<hash_index<std::string, std::string>>, tiny<std::string, uint64_t>,
                     tiny<std::string, std::string, long_chains>>;
TYPED_TEST_SUITE(HashMapOfStrings, string_maps);

TYPED_TEST(HashMapOfStrings, FewAndManyKeysAgree) {
  TypeParam few;
  EXPECT_EQ(first_difference(few, {.seed = 1, .operations = 10'000, .keys = 30}), "");
  TypeParam many;
  EXPECT_EQ(first_difference(many, {.seed = 2, .operations = 10'000, .keys = 1'000}), "");
}

TYPED_TEST(HashMapOfStrings, KeysHaveALimit) {
  TypeParam map;
  const std::string longest(key_bytes_max, 'x');
  EXPECT_TRUE(map.insert(longest, {}));
  EXPECT_TRUE(map.contains(longest));
  EXPECT_THROW(map.insert(longest + 'x', {}), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(map.get(longest + 'x')), std::invalid_argument);
}

// From nothing to many, and nothing is missed on the way.
TEST(HashMap, GrowsFromTiny) {
  hash_index<uint64_t, uint64_t> map;
  std::unordered_map<uint64_t, uint64_t> expected;
  const std::size_t small = map.memory_bytes();
  random_numbers random(seed_or(1));
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t key = random();
    ASSERT_EQ(map.insert(key, key + 1), expected.emplace(key, key + 1).second);
    if (i % 1'000 == 0) {
      for (const auto& [k, v] : expected) ASSERT_EQ(map.get(k), v);
      if (i > 20'000) i += 10'000;
    }
  }
  EXPECT_LT(small, 16'384u);
  EXPECT_EQ(map.size(), expected.size());
  EXPECT_EQ(map.for_each([&](uint64_t k, uint64_t v) { EXPECT_EQ(expected.at(k), v); }),
            expected.size());
  EXPECT_GT(map.stats().splits, 1'000);
}

// A table gives memory back only to a system that takes pages.
#if defined(__linux__) && !defined(ELIDEX_SIMULATED)

// The table follows the number of keys down and up again, and gives its memory back.
TEST(HashMap, ShrinksAndGrowsAgain) {
  constexpr uint64_t many = 300'000;
  hash_index<uint64_t, uint64_t> map;
  std::size_t large = 0;
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < many; ++i) ASSERT_TRUE(map.insert(i, i + round));
    large = map.memory_bytes();
    for (uint64_t i = 0; i < many; ++i) {
      if (i % 1'000 != 0) {
        ASSERT_TRUE(map.erase(i));
      }
    }
    EXPECT_LT(map.memory_bytes(), large / 3) << round;
    EXPECT_GT(map.stats().merges, 10'000);
    EXPECT_EQ(map.size(), many / 1'000);
    for (uint64_t i = 0; i < many; i += 100)
      ASSERT_EQ(map.get(i), i % 1'000 == 0 ? std::optional(i + round) : std::nullopt) << i;
    std::size_t visited = map.for_each([&](uint64_t k, uint64_t v) { EXPECT_EQ(v, k + round); });
    EXPECT_EQ(visited, many / 1'000);
    for (uint64_t i = 0; i < many; i += 1'000) ASSERT_TRUE(map.erase(i));
  }
  EXPECT_EQ(map.size(), 0u);
}

TEST(HashMap, ShrinksNoFurtherThanReserved) {
  constexpr uint64_t many = 300'000;
  hash_index<uint64_t, uint64_t> map;
  map.reserve(many);
  const std::size_t reserved = map.memory_bytes();
  for (uint64_t i = 0; i < many; ++i) map.insert(i, i);
  for (uint64_t i = 0; i < many; ++i) map.erase(i);
  EXPECT_GE(map.memory_bytes(), reserved);
  map.reserve(0);
  for (uint64_t i = 0; i < many; ++i) {
    map.insert(i, i);
    map.erase(i);
  }
  EXPECT_LT(map.memory_bytes(), reserved / 2);
}

// Keys of the same bucket need another block when their buckets are merged, and there is no memory
// for one. The shrink goes on when they are gone.
TEST(HashMap, AShrinkWithoutMemoryGoesOnLater) {
  constexpr uint64_t level = 15;
  constexpr uint64_t half = uint64_t{1} << (level - 1);
  hash_index<uint64_t, uint64_t, no_hash> map({}, memory_options{.bytes_max = 4'300'000});
  map.reserve(2 * half * 7 * 3 / 4);
  ASSERT_EQ(map.stats().buckets, 2 * half);
  const std::size_t large = map.memory_bytes();
  map.reserve(0);
  for (uint64_t i = 0; i < 7; ++i) {
    map.insert(2 * half * i + 5, i);
    map.insert(2 * half * i + 5 + half, i);
  }
  const auto churn = [&] {
    for (uint64_t i = 0; i < 100'000; ++i) {
      map.insert(i % half * 64 + 1, i);
      map.erase(i % half * 64 + 1);
    }
  };
  churn();
  EXPECT_GT(map.stats().merges, 10'000);
  EXPECT_EQ(map.size(), 14u);
  for (uint64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(map.get(2 * half * i + 5), i);
    EXPECT_EQ(map.get(2 * half * i + 5 + half), i);
    map.erase(2 * half * i + 5);
  }
  churn();
  EXPECT_LT(map.memory_bytes(), large * 2 / 3);
}

TEST(HashMap, ReserveAfterAShrinkNeedsNoMemoryTwice) {
  std::pmr::memory_resource* const resource = std::pmr::new_delete_resource();
  for (const bool is_own : {false, true}) {
    hash_index<uint64_t, uint64_t> map(
        {}, memory_options{.resource = is_own ? resource : nullptr, .bytes_max = 12'000'000});
    for (int round = 0; round < 3; ++round) {
      map.reserve(300'000);
      map.reserve(0);
      for (uint64_t i = 0; i < 200'000; ++i) {
        map.insert(i, i);
        map.erase(i);
      }
    }
    EXPECT_EQ(map.size(), 0u);
    EXPECT_EQ(map.memory_bytes() > 5'000'000, is_own);
  }
}

#endif

// Random waves of insertions and erasures, with chains of every length, in the smallest buckets.
TEST(HashMap, WavesOfTinyBuckets) {
  const auto wave = [](auto&& map) {
    std::map<uint64_t, uint64_t> expected;
    random_numbers random(seed_or(7));
    for (uint64_t i = 0; i < 60'000; ++i) {
      const bool rises = i / 10'000 % 2 == 0;
      const uint64_t key = random() % 2'000;
      if (random() % 64 < (rises ? 60 : 1)) {
        ASSERT_EQ(map.upsert(key, i), expected.insert_or_assign(key, i).second);
      } else {
        ASSERT_EQ(map.erase(key), expected.erase(key) == 1);
      }
      if (i % 1'000 != 0) continue;
      ASSERT_EQ(map.size(), expected.size());
      for (uint64_t k = 0; k < 2'000; ++k) {
        const auto at = expected.find(k);
        ASSERT_EQ(map.get(k), at == expected.end() ? std::nullopt : std::optional(at->second)) << k;
      }
      std::map<uint64_t, uint64_t> all;
      map.for_each([&](uint64_t k, uint64_t v) { ASSERT_TRUE(all.emplace(k, v).second); });
      ASSERT_EQ(all, expected);
    }
    EXPECT_GT(map.stats().merges, 300);
  };
  wave(hash_index<uint64_t, uint64_t, default_hash<uint64_t>, tiny_buckets>());
  wave(hash_index<uint64_t, uint64_t, default_hash<uint64_t>, long_chains>());
  wave(hash_index<uint64_t, uint64_t, no_hash, tiny_buckets>());
}

// What keys often look like, spread as evenly as by lot: so many find no room in their bucket.
TEST(HashMap, UsualKeysDoNotCrowd) {
  constexpr uint64_t many = 200'000;
  const auto crowded = [](auto nth_key) {
    hash_index<uint64_t, uint64_t> map;
    for (uint64_t i = 0; i < many; ++i) map.insert(nth_key(i), i);
    return map.stats().chained_blocks;
  };
  random_numbers random(1);
  const std::size_t by_lot = crowded([&](uint64_t) { return random(); });
  const std::size_t most = by_lot + by_lot / 5 + 50;
  EXPECT_LT(crowded([](uint64_t i) { return i; }), most);
  EXPECT_LT(crowded([](uint64_t i) { return 8 * i + 0x7FFF'0000'0000u; }), most);
  EXPECT_LT(crowded([](uint64_t i) { return i << 12U; }), most);
  EXPECT_LT(crowded([](uint64_t i) { return i << 32U; }), most);
  EXPECT_LT(crowded([](uint64_t i) { return i << 46U; }), most);
  EXPECT_LT(crowded([](uint64_t i) { return ~i; }), most);
  EXPECT_LT(crowded([](uint64_t i) { return (i % 1'000) << 32U | i / 1'000; }), most);
}

TEST(HashMap, UsualStringsDoNotCrowd) {
  const auto crowded = [](auto nth_key) {
    hash_index<std::string, uint64_t> map;
    for (uint64_t i = 0; i < 50'000; ++i) map.insert(nth_key(i), i);
    return map.stats().chained_blocks;
  };
  random_numbers random(1);
  const std::size_t by_lot =
      crowded([&](uint64_t) { return std::to_string(random()) + std::to_string(random()); });
  const std::size_t most = by_lot + by_lot / 5 + 50;
  EXPECT_LT(crowded([](uint64_t i) { return std::to_string(i); }), most);
  EXPECT_LT(
      crowded([](uint64_t i) { return "https://example.org/a/long/prefix/" + std::to_string(i); }),
      most);
  EXPECT_LT(crowded([](uint64_t i) { return std::string(i % 300, 'a') + std::to_string(i / 300); }),
            most);
}

TEST(HashMap, ReserveMakesRoomAtOnce) {
  hash_index<uint64_t, uint64_t> map;
  map.reserve(100'000);
  const hash_index_stats before = map.stats();
  for (uint64_t i = 0; i < 100'000; ++i) map.insert(i, i);
  EXPECT_EQ(map.stats().buckets, before.buckets);
  EXPECT_EQ(map.stats().splits, before.splits);
  for (uint64_t i = 0; i < 100'000; ++i) ASSERT_EQ(map.get(i), i);
  hash_index<uint64_t, uint64_t> filled;
  for (uint64_t i = 0; i < 100; ++i) filled.insert(i, i);
  filled.reserve(10'000);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(filled.get(i), i);
}

TEST(HashMap, ReserveRefusesWhatNoSystemHas) {
  hash_index<uint64_t, uint64_t> map;
  map.insert(1, 2);
  const std::size_t before = map.memory_bytes();
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  EXPECT_THROW(map.reserve(most), std::bad_alloc);
#if defined(__linux__) && !defined(ELIDEX_SIMULATED)
  EXPECT_THROW(map.reserve(std::size_t{1} << 48), std::bad_alloc);  // 4 PiB
#endif
  EXPECT_EQ(map.memory_bytes(), before);
  EXPECT_EQ(map.get(1), 2u);
}

TEST(HashMap, ErasingGivesChainedBlocksBack) {
  hash_index<uint64_t, uint64_t, same_for_all> map;
  for (uint64_t i = 0; i < 1'000; ++i) map.insert(i, i);
  const std::size_t most = map.memory_bytes();
  EXPECT_GT(map.stats().chained_blocks, 100u);
  for (int round = 0; round < 5; ++round) {
    for (uint64_t i = 0; i < 1'000; ++i) EXPECT_TRUE(map.erase(i));
    EXPECT_EQ(map.stats().chained_blocks, 0u);
    EXPECT_TRUE(map.empty());
    for (uint64_t i = 0; i < 1'000; ++i) EXPECT_TRUE(map.insert(i, i));
  }
  EXPECT_LE(map.memory_bytes(), most + most / 4);
}

TEST(HashMap, ForEachMayChangeTheMap) {
  hash_index<uint64_t, uint64_t, default_hash<uint64_t>, tiny_buckets> map;
  for (uint64_t i = 0; i < 100; ++i) map.insert(i, i);
  std::array<int, 100> seen{};
  map.for_each([&](uint64_t k, uint64_t v) {
    EXPECT_EQ(k, v);
    if (k >= 100) return;
    ++seen[k];
    // splits what is to come
    for (uint64_t i = 0; i < 20; ++i) map.insert(1'000 + 20 * k + i, 1'000 + 20 * k + i);
  });
  for (const int times : seen) EXPECT_EQ(times, 1);
}

TEST(HashMap, MultiGetWantsRoom) {
  const hash_index<uint64_t, uint64_t> map;
  const std::array<uint64_t, 2> wanted{1, 2};
  std::array<std::optional<uint64_t>, 1> found;
  EXPECT_THROW(map.multi_get(wanted, found), std::invalid_argument);
}

constexpr auto on_a_copy = [](std::uint64_t v) { return ++v; };
constexpr auto in_place = [](auto& v) { ++v; };
static_assert(!value_change<decltype(on_a_copy), std::uint64_t> &&
              value_change<decltype(in_place), std::uint64_t>);

}  // namespace
}  // namespace elidex::testing
