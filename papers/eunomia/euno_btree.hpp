// Paper 003's Euno-B+Tree: the tree for fixed keys with the paper's leaves, two regions and
// adaptive conflict control.
//
//   euno_btree<std::uint64_t, std::uint64_t> tree;
//
// Where the paper's four principles are: internal/tree/fixed_key_btree.hpp. The leaf:
// partitioned_leaf.hpp.
//
// Deviations: its regions try again less often than the paper's, which has dbx_budgets: too often,
// as docs/EUNOMIA.md shows.
#pragma once

#include <concepts>

#include "elidex/internal/sync/split_regions.hpp"
#include "elidex/internal/tree/fixed_key_btree.hpp"
#include "papers/eunomia/partitioned_leaf.hpp"

namespace elidex::papers {

using namespace internal;

// The policy of the authors' released program: requests that may add or erase keys lock the leaf.
struct locking_control : adaptive_control {
  static constexpr auxiliary_lock_use locks_leaf_for = auxiliary_lock_use::changes;
};
// For the steps that lead to the paper's tree. A split takes no lock and has the policy's attempts.
struct no_control_yet : no_control {
  static constexpr auxiliary_lock_use locks_leaf_for = auxiliary_lock_use::none;
};

template <std::integral Key, class Value, class Sync = htm_split_regions,
          class Shape = partitioned_fan_out<>, class Control = adaptive_control>
using euno_btree = fixed_key_btree<Key, Value, Sync, Shape, Control>;

}  // namespace elidex::papers
