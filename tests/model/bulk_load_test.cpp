// bulk_load(): what was loaded is there and can be changed; what cannot be loaded changes nothing.
#include <gtest/gtest.h>

#include <concepts>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elidex/ordered_map.hpp"
#include "support/fixed_key_trees.hpp"
#include "support/model.hpp"
#include "support/samples.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

template <class Map>
class BulkLoad : public ::testing::Test {};
using maps =
    ::testing::Types<fixed_key_btree<u64, u64, locked_regions, tiny_partitioned, always_control>,
                     fixed_key_btree<u64, u64, elided_regions, dense_fan_out<4, 3>, no_control>,
                     fixed_key_btree<u64, u64, optimistic, separated_fan_out<3, 3>, no_control>,
                     fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>,
                     fixed_key_btree<u64, u64, optimistic, tiny_bucketed, no_control>,
                     fixed_key_btree<u64, u64, elided_regions, bucketed_node_bytes<1024>>,
                     fixed_key_btree<u64, u64, optimistic, packed_fan_out<20, 4>, restless_control>,
                     ordered_tree<u64, u64>>;
TYPED_TEST_SUITE(BulkLoad, maps);

// `count` keys so far apart: close together, and from one end of all keys to the other.
std::map<u64, u64> records_of(u64 count, u64 gap) {
  std::map<u64, u64> records;
  for (u64 i = 0; i < count; ++i) records[i * gap + i % 3] = i;
  return records;
}

TYPED_TEST(BulkLoad, EverySizeAndWidth) {
  for (const u64 count :
       {0u, 1u, 2u, 3u, 4u, 5u, 17u, 70u, 71u, 72u, 75u, 76u, 150u, 1'000u, 5'000u}) {
    for (const u64 gap : {u64{3}, u64{256}, u64{1} << 40U, ~u64{0} / (count + 1)}) {
      const auto records = records_of(count, gap);
      TypeParam map;
      map.bulk_load(records);
      ASSERT_EQ(content_difference(map, records), "") << count << " keys, " << gap << " apart";
      ASSERT_EQ(map.size(), records.size());
    }
  }
}

TYPED_TEST(BulkLoad, ItsTreeCanBeChanged) {
  auto records = records_of(2'000, 1'000);
  TypeParam map;
  map.bulk_load(records);
  for (u64 i = 0; i < 2'000; ++i) {
    const u64 key = i * 7919 % 2'000'000;
    ASSERT_EQ(map.insert(key, i), records.try_emplace(key, i).second);
  }
  for (u64 i = 0; i < 3'000; ++i) {
    const u64 key = i * 1'000 + i % 3;
    ASSERT_EQ(map.erase(key), records.erase(key) == 1);
  }
  EXPECT_EQ(content_difference(map, records), "");
}

TYPED_TEST(BulkLoad, RefusesWhatIsNotInOrderOrNotEmpty) {
  TypeParam map;
  const std::vector<std::pair<u64, u64>> twice{{1, 1}, {2, 2}, {2, 3}};
  const std::vector<std::pair<u64, u64>> descending{{5, 1}, {4, 2}};
  EXPECT_THROW(map.bulk_load(twice), std::invalid_argument);
  EXPECT_THROW(map.bulk_load(descending), std::invalid_argument);
  EXPECT_EQ(map.size(), 0u);
  map.insert(9, 9);
  EXPECT_THROW(map.bulk_load(records_of(100, 5)), std::logic_error);
  EXPECT_EQ(content_difference(map, std::map<u64, u64>{{9, 9}}), "");
  map.erase(9);
  map.bulk_load(records_of(100, 5));
  EXPECT_EQ(map.size(), 100u);
}

// Others see all of it or nothing, and whoever inserts first makes it fail.
TYPED_TEST(BulkLoad, AppearsAtOneMoment) {
  const auto records = records_of(3'000, 11);
  for (int round = 0; round < 20; ++round) {
    TypeParam map;
    bool loaded = true;
    std::thread other([&] {
      std::size_t seen = 0;
      while (seen == 0) {
        seen = map.scan(0, 10'000, [](u64, u64) {});
        if (round % 2 == 1 && map.insert(1 + u64(round), 1)) break;
      }
      if (round % 2 == 0) {
        EXPECT_EQ(seen, records.size());
      }
    });
    try {
      map.bulk_load(records);
    } catch (const std::logic_error&) {
      loaded = false;
    }
    other.join();
    EXPECT_TRUE(loaded || round % 2 == 1);
    auto expected = loaded ? records : std::map<u64, u64>{};
    if (round % 2 == 1) expected.try_emplace(1 + u64(round), 1);
    EXPECT_EQ(content_difference(map, expected), "");
  }
}

// --- trees of any keys ---

template <class Tree>
class BulkFill : public ::testing::Test {};
using trees = ::testing::Types<btree<std::string, u64, optimistic, fan_out<4, 4>>,
                               btree<std::string, std::string, optimistic, node_bytes<1024, 1024>>,
                               btree<wide_key<2>, u64, coarse<papers::posix_mutex>, fan_out<5, 3>>>;
TYPED_TEST_SUITE(BulkFill, trees);

// Keys with long and short common prefixes, of each length modulo 8.
template <class Key>
Key key_for_load(unsigned shape, u64 n) {
  if constexpr (std::same_as<Key, std::string>) {
    if (shape == 0) return sample<std::string>::of(n);
    if (shape == 1) return "https://www.example.org/" + std::to_string(n * 7'919 % 10'000);
    return std::string(n % 40, 'k') + std::to_string(n);
  } else {
    return Key{{shape == 0 ? n % 7 : 5, shape == 2 ? n * n : n}};
  }
}
template <class Value>
Value value_for_load(u64 n) {
  if constexpr (std::same_as<Value, std::string>) {
    return sample<std::string>::of(n);
  } else {
    return n;
  }
}

template <class Tree>
auto records_for_load(unsigned shape, u64 count) {
  std::map<typename Tree::key_type, typename Tree::mapped_type> records;
  for (u64 n = 0; n < count; ++n)
    records[key_for_load<typename Tree::key_type>(shape, n)] =
        value_for_load<typename Tree::mapped_type>(n);
  return records;
}
template <class Tree, class Records>
void load_into(Tree& tree, const Records& records) {
  tree.bulk_fill([&](auto& loader) {
    for (const auto& [key, value] : records) loader.add(key, value);
  });
}

// What a loaded tree differs in from std::map, before and after random changes. Every key is looked
// up: a node whose prefix is wrong hides some.
template <class Tree>
std::string difference_after_load(unsigned shape, u64 count) {
  auto expected = records_for_load<Tree>(shape, count);
  Tree tree;
  load_into(tree, expected);
  if (auto what = content_difference(tree, expected); !what.empty()) return "loaded " + what;
  for (const auto& [key, value] : expected) {
    if (tree.get(key) != std::optional(value)) return "loaded get";
  }
  random_numbers random(seed_or(shape + 1));
  for (u64 i = 0; i < count; ++i) {
    const auto key = key_for_load<typename Tree::key_type>(shape, random.below(count + count / 4));
    const auto value = value_for_load<typename Tree::mapped_type>(i);
    if (random.below(2) == 0) {
      if (tree.insert(key, value) != expected.emplace(key, value).second) return "insert";
    } else if (tree.erase(key) != (expected.erase(key) == 1)) {
      return "erase";
    }
  }
  return content_difference(tree, expected);
}

TYPED_TEST(BulkFill, EverySizeAndShape) {
  for (unsigned shape = 0; shape < 3; ++shape) {
    for (const u64 count : {0U, 1U, 2U, 3U, 4U, 5U, 15U, 16U, 40U, 300U, 2'500U})
      ASSERT_EQ(difference_after_load<TypeParam>(shape, count), "") << shape << ", " << count;
  }
}

TYPED_TEST(BulkFill, WhatFailsLeavesTheTreeEmptyAndNoMemoryBehind) {
  auto records = records_for_load<TypeParam>(1, 700);
  TypeParam tree;
  std::size_t memory = 0;
  for (int time = 0; time < 3; ++time) {
    EXPECT_THROW(tree.bulk_fill([&](auto& loader) {
      for (const auto& [key, value] : records) loader.add(key, value);
      loader.add(records.begin()->first, records.begin()->second);
    }),
                 std::invalid_argument);
    ASSERT_EQ(content_difference(tree, decltype(records){}), "");
    if (time > 0) {
      EXPECT_EQ(tree.memory_bytes(), memory);
    }
    memory = tree.memory_bytes();
  }
  tree.insert(records.begin()->first, records.begin()->second);
  EXPECT_THROW(load_into(tree, records), std::logic_error);
  EXPECT_EQ(tree.size(), 1U);
  tree.erase(records.begin()->first);
  load_into(tree, records);
  EXPECT_EQ(content_difference(tree, records), "");
}

// Loses every fourth record.
struct loader_loses_records : btree<std::string, u64, optimistic, fan_out<4, 4>> {
  template <class Fill>
  void bulk_fill(Fill&& fill) {
    btree::bulk_fill([&](auto& loader) {
      struct losing {
        decltype(loader) to;
        int number = 0;
        void add(const std::string& key, u64 value) {
          if (++number % 4 != 0) to.add(key, value);
        }
      } some{loader};
      fill(some);
    });
  }
};
TEST(BulkFillCanary, ALoaderThatLosesRecordsIsFound) {
  EXPECT_NE(difference_after_load<loader_loses_records>(1, 300), "");
}

TEST(BulkLoadOfMaps, KeepsToTheMemoryLimit) {
  std::map<std::string, std::string> records;
  for (int n = 0; n < 5'000; ++n) records[std::to_string(n)] = std::string(100, 'v');
  ordered_map<std::string, std::string> map(memory_options{.bytes_max = 300'000});
  EXPECT_THROW(map.bulk_load(records), std::bad_alloc);
  EXPECT_TRUE(map.empty());
  records.erase(std::next(records.begin(), 500), records.end());
  EXPECT_EQ(map.bulk_load(records), 500U);
}

TEST(BulkLoadOfMaps, MovesValuesThatCannotBeCopied) {
  std::vector<std::pair<std::string, std::unique_ptr<int>>> records;
  for (int n = 0; n < 500; ++n)
    records.emplace_back(std::to_string(10'000 + n), std::make_unique<int>(n));
  ordered_map<std::string, std::unique_ptr<int>> map;
  EXPECT_EQ(map.bulk_load(std::ranges::subrange(std::move_iterator(records.begin()),
                                                std::move_iterator(records.end()))),
            500U);
  EXPECT_EQ(records[7].second, nullptr);
  EXPECT_EQ(**map.extract("10007"), 7);
  EXPECT_EQ(map.size(), 499U);
}

}  // namespace
}  // namespace elidex::testing
