#pragma once
// The shape of a tree of strings whose leaves hold their keys (slotted_leaf.hpp), and have room for
// few. So a handful of keys makes it split leaves, merge them, and hand keys to a neighbour.
//
//   btree<std::string, std::uint64_t, optimistic, small_slotted> tree;  // up to 3 keys in a leaf

#include "elidex/internal/tree/btree.hpp"
#include "elidex/internal/tree/slotted_leaf.hpp"

namespace elidex::testing {

using namespace internal;

struct small_slotted : fan_out<2, 3> {
  template <unsigned ValueWords>
  using slotted_leaf =
      slotted_layout<std::size_t{8} * (48 + 24 * ValueWords), 3, 1, ValueWords, 32>;
};

}  // namespace elidex::testing
