// How full leaves are after insertions in orders that could leave them nearly empty.
#include <gtest/gtest.h>

#include <cstdint>

#include "elidex/ordered_map.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

struct map_with_leaves : internal::ordered_tree<u64, u64> {
  using base = internal::ordered_tree<u64, u64>;
  using base::base;
  double keys_per_leaf() const {
    return static_cast<double>(size()) / static_cast<double>(stats().leaves);
  }
};

class LeafFill : public ::testing::TestWithParam<synchronization> {};
INSTANTIATE_TEST_SUITE_P(Both, LeafFill,
                         ::testing::Values(synchronization::optimistic, synchronization::hardware));

// A leaf that ascending keys filled looks as if a run went on in it when others come above it, in
// whatever order.
TEST_P(LeafFill, DescendingKeysAboveALeafInOrderShareLeaves) {
  for (u64 ascending = 60; ascending < 80; ++ascending) {
    map_with_leaves single(GetParam());
    map_with_leaves pairs(GetParam());
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

TEST_P(LeafFill, AscendingKeysFillLeavesBeforeAKeyThatStays) {
  map_with_leaves map(GetParam());
  map.insert(u64{1} << 40U, 0);
  for (u64 i = 0; i < 20'000; ++i) map.insert(i, i);
  EXPECT_GT(map.keys_per_leaf(), 60);
}

}  // namespace
}  // namespace elidex::testing
