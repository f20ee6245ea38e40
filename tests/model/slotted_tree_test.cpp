// Trees of strings whose inner nodes are full of bytes before they are full of slots: long
// separators, prefixes that come and go, and blobs. Against std::map.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "elidex/internal/column/keyed_delta_index.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/tree/btree.hpp"
#include "elidex/internal/tree/ordered_tree.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;

// Leaves of two keys. Inner nodes of many slots in a heap as small as may be.
template <class Rules = slotted_rules>
struct crowded : fan_out<2, 16> {
  struct slotted_inner : slotted_inner_layout<16, 4 + 32 + 48> {
    using rules = Rules;
  };
};
// The same for leaves that hold their keys.
template <class Rules = slotted_rules>
struct crowded_leaves : crowded<> {
  template <unsigned ValueWords>
  struct slotted_leaf : slotted_leaf_layout<(48 + 24 * ValueWords) * 8, ValueWords, 32> {
    using rules = Rules;
  };
};
// As if the parent of an empty node were always full.
struct lacks_room : slotted_rules {
  static constexpr bool replaces_at_once = false;
};
struct counts_slots : slotted_rules {
  static constexpr bool full_counts_bytes = false;
};
struct loses_prefix : slotted_rules {
  static constexpr bool keeps_prefix = false;
};

// Keys of 16 families. Each family shares bytes of its own, up to more than a prefix can have.
std::string some_key(std::mt19937_64& random) {
  static constexpr std::size_t shared[] = {0, 3, 7, 8, 9, 20, 40, 100, 127, 128, 129, 200};
  const auto family = random() % 16;
  std::string key(family % 4, static_cast<char>('a' + family));
  key += std::string(shared[random() % std::size(shared)], static_cast<char>('p' + family % 3));
  const auto kind = random() % 8;
  const std::size_t rest = kind == 0 ? 300 : kind < 4 ? 45 : kind;
  for (std::size_t i = 0; i < rest; ++i) key += random() % 4 == 0 ? '\0' : i < 3 ? 'm' : '\xff';
  return key + std::to_string(random() % 8);
}

// Keys whose separators are short or as long as they can be inside a node. A separator is often
// replaced by a longer one.
std::string short_or_long_key(std::mt19937_64& random) {
  std::string key;
  for (int i = 0; i < 2; ++i) key += static_cast<char>('a' + random() % 8);
  if (random() % 8 != 0) key += std::string(44, 'x');
  for (int i = 0; i < 2; ++i) key += static_cast<char>('a' + random() % 8);
  return key;
}

// Keys that fit into a leaf. What a planted bug loses then leaks no blob.
std::string key_inside(std::mt19937_64& random) {
  return short_or_long_key(random).substr(0, 2) + std::string(random() % 30, 'x') +
         std::to_string(random() % 100);
}

// What an emptied tree differs in from a new one, or "".
template <class Tree>
std::string empty_tree_difference(Tree& tree) {
  tree.reclaim();
  if (tree.stats().leaves != 1 || tree.stats().inner_nodes != 0) return "nodes are left behind";
  tree.bulk_fill([](auto& loader) { loader.add("a", 1); });
  return tree.get("a") == std::optional<u64>(1) ? "" : "bulk_fill() differs";
}

// Grows and shrinks a tree several times. Returns the first difference, or "".
template <class Tree, class KeyOf = decltype(&some_key)>
std::string first_difference(u64 seed, int rounds, KeyOf key_of = &some_key) {
  std::mt19937_64 random(seed);
  Tree tree;
  std::map<std::string, u64> expected;
  const auto content = [&] {
    std::map<std::string, u64> found;
    tree.scan(tree_range<std::string_view>{}, SIZE_MAX,
              [&](std::string_view key, u64 value) { found.emplace(key, value); });
    return found;
  };
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 600; ++i) {
      const std::string key = key_of(random);
      if (tree.insert(key, random() % 100) != expected.emplace(key, 0).second)
        return "insert() differs";
      expected[key] = tree.get(key).value_or(1'000);
      if (expected[key] == 1'000) return "a key is lost";
    }
    if (content() != expected) return "the content differs after inserts";
    std::vector<std::string> keys;
    for (const auto& [key, value] : expected) keys.push_back(key);
    if (round % 3 == 0) std::shuffle(keys.begin(), keys.end(), random);
    if (round % 3 == 1) std::reverse(keys.begin(), keys.end());
    // In the last round to the last key.
    const std::size_t stay = round + 1 == rounds ? 0 : keys.size() / 10;
    while (keys.size() > stay) {
      if (!tree.erase(keys.back())) return "erase() differs";
      expected.erase(keys.back());
      keys.pop_back();
      const std::string other = key_of(random);
      const auto found = expected.find(other);
      if (tree.get(other) !=
          (found == expected.end() ? std::nullopt : std::optional(found->second))) {
        return "get() differs";
      }
      if (keys.size() % 100 == 0 && content() != expected)
        return "the content differs after erases";
    }
  }
  return empty_tree_difference(tree);
}

template <class Sync>
using crowded_tree = btree<std::string, u64, Sync, crowded<>>;

TEST(SlottedTree, CrowdedNodesAgree) {
  for (u64 seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(first_difference<crowded_tree<unsynchronized>>(seed, 6), "") << seed;
    EXPECT_EQ(first_difference<crowded_tree<optimistic>>(seed, 6), "") << seed;
  }
}

TEST(SlottedTree, CrowdedLeavesAgree) {
  for (u64 seed = 0; seed < 4; ++seed) {
    using alone = btree<std::string, u64, unsynchronized, crowded_leaves<>>;
    using shared = btree<std::string, u64, optimistic, crowded_leaves<>>;
    EXPECT_EQ(first_difference<alone>(seed, 6), "") << seed;
    EXPECT_EQ(first_difference<shared>(seed, 6), "") << seed;
  }
}

// Neighbours are erased, so that one inner node becomes empty beside a full one.
template <class Tree>
void expect_blocks_agree() {
  std::mt19937_64 random(4);
  Tree tree;
  std::map<std::string, u64> expected;
  for (int round = 0; round < 1'000; ++round) {
    for (int i = 0; i < 30; ++i) {
      const std::string key = short_or_long_key(random);
      ASSERT_EQ(tree.insert(key, 1), expected.emplace(key, 1).second);
    }
    auto at = expected.lower_bound(short_or_long_key(random));
    for (int i = 0; i < 30 && at != expected.end(); ++i) {
      ASSERT_TRUE(tree.erase(at->first));
      at = expected.erase(at);
    }
    const std::string other = short_or_long_key(random);
    ASSERT_EQ(tree.contains(other), expected.contains(other));
  }
  for (const auto& [key, value] : expected) ASSERT_TRUE(tree.erase(key));
  tree.reclaim();
  EXPECT_EQ(tree.stats().leaves, 1u);
}

TEST(SlottedTree, ErasedBlocksAgree) {
  expect_blocks_agree<crowded_tree<optimistic>>();
  expect_blocks_agree<btree<std::string, u64, optimistic, crowded<lacks_room>>>();
  expect_blocks_agree<btree<std::string, u64, optimistic, fan_out<2, 3>>>();
  expect_blocks_agree<btree<std::string, u64, optimistic, crowded_leaves<>>>();
  expect_blocks_agree<ordered_tree<std::string, u64>>();
}
TEST(SlottedTree, ParentsThatLackRoomAgree) {
  using tree = btree<std::string, u64, optimistic, crowded<lacks_room>>;
  for (u64 seed = 0; seed < 4; ++seed) EXPECT_EQ(first_difference<tree>(seed, 6), "") << seed;
}

TEST(SlottedTree, NodesOfTheProductAgree) {
  using tree = btree<std::string, u64, optimistic, node_bytes<64, 1024>>;
  for (u64 seed = 0; seed < 2; ++seed) {
    EXPECT_EQ(first_difference<tree>(seed, 6), "") << seed;
    EXPECT_EQ((first_difference<ordered_tree<std::string, u64>>(seed, 6)), "") << seed;
  }
}

// A tree with these records takes more of them, and gives up all.
template <class Tree>
void expect_takes_more(Tree& tree, std::map<std::string, u64>& expected, std::mt19937_64& random) {
  for (int i = 0; i < 3'000; ++i) {
    const std::string key = some_key(random);
    ASSERT_EQ(tree.insert(key, 1), expected.emplace(key, 1).second);
  }
  for (const auto& [key, value] : expected) {
    ASSERT_EQ(tree.get(key), value);
    ASSERT_TRUE(tree.erase(key));
  }
  EXPECT_TRUE(tree.empty());
  EXPECT_EQ(empty_tree_difference(tree), "");
}

// What bulk_load() builds takes inserts and erases.
template <class Tree>
void expect_loaded_agrees() {
  std::mt19937_64 random(9);
  std::map<std::string, u64> expected;
  for (u64 i = 0; i < 3'000; ++i) expected.emplace(some_key(random), i);
  Tree tree;
  tree.bulk_fill([&](auto& loader) {
    for (const auto& [key, value] : expected) loader.add(key, value);
  });
  for (const auto& [key, value] : expected) ASSERT_EQ(tree.get(key), value);
  expect_takes_more(tree, expected, random);
}
TEST(SlottedTree, LoadedNodesAgree) {
  expect_loaded_agrees<crowded_tree<optimistic>>();
  expect_loaded_agrees<btree<std::string, u64, optimistic, crowded_leaves<>>>();
  expect_loaded_agrees<ordered_tree<std::string, u64>>();
}

// Sorted keys with much in common. Leaves become about as full as after a load.
template <class Tree>
void expect_ascending_agrees(u64 keys_per_leaf) {
  std::mt19937_64 random(12);
  std::map<std::string, u64> expected;
  for (u64 i = 0; i < 4'000; ++i) {
    std::string number = std::to_string(10'000 + i);
    expected.emplace("https://www.gardener.org/" + number.substr(0, 2 + i % 4) + "/" + number, i);
    if (i % 100 == 0) expected.emplace(number + std::string(i % 300, 'x'), i);
  }
  Tree tree;
  for (const auto& [key, value] : expected) {
    ASSERT_TRUE(tree.insert(key, value));
    ASSERT_EQ(tree.get(key), value);
  }
  EXPECT_LE(tree.stats().leaves, expected.size() / keys_per_leaf);
  std::map<std::string, u64> found;
  tree.scan(tree_range<std::string_view>{}, SIZE_MAX,
            [&](std::string_view key, u64 value) { found.emplace(key, value); });
  EXPECT_EQ(found, expected);
  expect_takes_more(tree, expected, random);
}
TEST(SlottedTree, AscendingKeysAgree) {
  expect_ascending_agrees<btree<std::string, u64, unsynchronized, crowded_leaves<>>>(5);
  expect_ascending_agrees<btree<std::string, u64, optimistic, crowded_leaves<>>>(5);
  expect_ascending_agrees<ordered_tree<std::string, u64>>(24);
}

// Leaves that are emptied beside neighbours with a longer prefix stay at first.
template <class Tree>
std::string difference_after_emptying(u64 seed) {
  std::mt19937_64 random(seed);
  const std::string shared(100 + random() % 30, 'm');
  const auto many = 8 + random() % 60;
  const auto length = random() % 120;
  std::vector<std::string> keys;
  for (u64 i = 0; i < many; ++i)
    keys.push_back(shared + std::to_string(1'000 + i) + std::string(length, 'y'));
  Tree tree;
  for (const std::string& key : keys) tree.insert(key, 1);
  // from both ends, in any order, or block by block
  const auto middle = static_cast<std::ptrdiff_t>(random() % many);
  if (seed % 3 == 0) {
    std::sort(keys.begin(), keys.end(), [&](const std::string& a, const std::string& b) {
      const auto distance = [&](const std::string& key) {
        return std::abs(std::stol(key.substr(shared.size(), 4)) - 1'000 - middle);
      };
      return distance(a) > distance(b);
    });
  } else if (seed % 3 == 1) {
    std::shuffle(keys.begin(), keys.end(), random);
  } else {
    std::rotate(keys.begin(), keys.begin() + middle, keys.end());
  }
  for (const std::string& key : keys) {
    if (!tree.erase(key)) return "erase() differs";
  }
  return empty_tree_difference(tree);
}
TEST(SlottedTree, EmptiedTreesAreAsNew) {
  for (u64 seed = 0; seed < 1'500; ++seed) {
    ASSERT_EQ((difference_after_emptying<ordered_tree<std::string, u64>>(seed)), "") << seed;
    ASSERT_EQ(
        (difference_after_emptying<btree<std::string, u64, optimistic, crowded_leaves<>>>(seed)),
        "")
        << seed;
  }
}

TEST(SlottedTree, LoadsValuesOfOneByte) {
  btree<std::string, bool, optimistic, node_bytes<1024, 1024>> tree;
  tree.bulk_fill([](auto& loader) {
    for (int i = 0; i < 300; ++i) loader.add(std::to_string(1'000 + i), i % 3 == 0);
  });
  for (int i = 0; i < 300; ++i) ASSERT_EQ(tree.get(std::to_string(1'000 + i)), i % 3 == 0) << i;
}

// A planted bug: a node is full only when its slots are. A child may then have two separators. An
// arena frees no blob twice.
TEST(SlottedTreeCanary, ANodeThatCountsOnlySlotsIsFound) {
  using tree = btree<arena_string, u64, unsynchronized, crowded<counts_slots>>;
  EXPECT_NE(first_difference<tree>(0, 1), "");
}
TEST(SlottedTreeCanary, ALeafThatCountsOnlySlotsIsFound) {
  using tree = btree<std::string, u64, unsynchronized, crowded_leaves<counts_slots>>;
  EXPECT_NE(first_difference<tree>(0, 1, &key_inside), "");
}
TEST(SlottedTreeCanary, ALeafThatLosesItsPrefixIsFound) {
  using tree = btree<std::string, u64, unsynchronized, crowded_leaves<loses_prefix>>;
  EXPECT_NE(first_difference<tree>(0, 2, &key_inside), "");
}

}  // namespace
}  // namespace elidex::testing
