// How full leaves are after insertions in orders that could leave them nearly empty.
#include <gtest/gtest.h>

#include <cstdint>

#include "elidex/internal/tree/bucketed_leaf.hpp"
#include "elidex/ordered_map.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

template <class Tree>
struct map_with_leaves : Tree {
  using Tree::Tree;
  double keys_per_leaf() const {
    return static_cast<double>(this->size()) / static_cast<double>(this->stats().leaves);
  }
};
struct on_hardware : map_with_leaves<internal::ordered_tree<u64, u64>> {
  on_hardware() : map_with_leaves(synchronization::hardware) {}
};
struct optimistic_map : map_with_leaves<internal::ordered_tree<u64, u64>> {
  optimistic_map() : map_with_leaves(synchronization::optimistic) {}
};
template <class Sync>
using bucketed =
    map_with_leaves<internal::fixed_key_btree<u64, u64, Sync, internal::bucketed_node_bytes<1024>>>;

template <class Map>
class LeafFill : public ::testing::Test {};
using maps = ::testing::Types<on_hardware, optimistic_map, bucketed<internal::optimistic>,
                              bucketed<internal::htm_split_regions>>;
TYPED_TEST_SUITE(LeafFill, maps);

// A leaf that ascending keys filled looks as if a run went on in it when others come above it, in
// whatever order.
TYPED_TEST(LeafFill, DescendingKeysAboveALeafInOrderShareLeaves) {
  for (u64 ascending = 60; ascending < 80; ++ascending) {
    TypeParam single;
    TypeParam pairs;
    for (u64 i = 0; i < ascending; ++i) {
      single.insert(i, i);
      pairs.insert(i, i);
    }
    for (u64 i = 0; i < 3000; ++i) {
      single.insert(1'000'000 - i, i);
      pairs.insert(1'000'000 - 4 * i, i);
      pairs.insert(1'000'001 - 4 * i, i);
    }
    EXPECT_GT(single.keys_per_leaf(), 30) << "above " << ascending << " keys";
    EXPECT_GT(pairs.keys_per_leaf(), 30) << "above " << ascending << " keys";
  }
}

TYPED_TEST(LeafFill, AscendingKeysFillLeavesBeforeAKeyThatStays) {
  TypeParam map;
  map.insert(u64{1} << 40U, 0);
  for (u64 i = 0; i < 20'000; ++i) map.insert(i, i);
  EXPECT_GT(map.keys_per_leaf(), 60);
}

TYPED_TEST(LeafFill, RandomKeysFillThreeQuarters) {
  TypeParam map;
  u64 x = 1;
  for (u64 i = 0; i < 100'000; ++i) map.insert((x = x * 0x5851'F42D'4C95'7F2Du + 1) >> 5U, i);
  EXPECT_GT(map.keys_per_leaf(), 58);
}

}  // namespace
}  // namespace elidex::testing
