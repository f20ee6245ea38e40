#pragma once
// Eunomia's trees as tests want them: so small that every operation splits, merges or reorganises
// something.

#include <cstdint>

#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/internal/tree/bucketed_leaf.hpp"
#include "elidex/internal/tree/fixed_key_btree.hpp"
#include "elidex/internal/tree/separated_leaf.hpp"
#include "papers/eunomia/euno_btree.hpp"
#include "papers/karnagel/posix_mutex.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

using u64 = std::uint64_t;

using locked_regions = split_regions<posix_mutex>;
using spinning_regions = split_regions<ttas_lock>;
using elided_regions = htm_split_regions;
using elided_regions_dbx = split_regions<elided<ttas_lock, dbx_budgets>>;

// Two segments of two.
using tiny_partitioned = partitioned_fan_out<4, 3, 2>;

// Leaves of two buckets with room for three records each, or two if the keys lie far apart. The
// smallest inner nodes.
using tiny_bucketed = bucketed_node_bytes<256, 2, 64>;
// Leaves of four buckets with eight records each.
using small_bucketed = bucketed_node_bytes<256, 4>;

// Gives each leaf a control and takes it away all the time.
struct restless_control : adaptive_control {
  static constexpr std::uint32_t collisions_to_switch_on = 0;
  static constexpr unsigned requests_per_period = 1;
  static constexpr unsigned collisions_to_stay_on = 1000;
};

// --- broken ones, for canaries ---

// Values move without their locks when the leaf splits, redistributes or merges.
template <class Key, class Value, class Sync>
struct leaf_that_moves_unlocked
    : internal::separated_leaf<Key, Value, Sync, packed_fan_out<20, 4>> {
  template <class Fn>
  void for_each_value_lock(Fn&& /*fn*/) noexcept {}
};
struct moving_unlocked_fan_out : packed_fan_out<20, 4> {
  template <class Key, class Value, class Sync>
  using leaf = leaf_that_moves_unlocked<Key, Value, Sync>;
};

// The same for leaves of buckets.
template <class Key, class Value, class Sync, class Shape>
struct buckets_that_move_unlocked : internal::bucketed_leaf<Key, Value, Sync, Shape> {
  template <class Fn>
  void for_each_value_lock(Fn&& /*fn*/) noexcept {}
};
struct moving_unlocked_buckets : small_bucketed {
  template <class Key, class Value, class Sync>
  using leaf = buckets_that_move_unlocked<Key, Value, Sync, moving_unlocked_buckets>;
};

// A key outside of its home is believed in a slot that is not in use any more.
template <class Key, class Value, class Sync, class Shape>
struct buckets_with_ghosts : internal::bucketed_leaf<Key, Value, Sync, Shape> {
  bool has_key_in(unsigned slot, Key k) const noexcept { return this->key(slot) == k; }
};
struct ghostly_buckets : tiny_bucketed {
  template <class Key, class Value, class Sync>
  using leaf = buckets_with_ghosts<Key, Value, Sync, ghostly_buckets>;
};

// A key that finds no room in its bucket is lost at once, or when its leaf is split.
struct forgets_away_keys : bucket_rules {
  static constexpr bool notes_away_keys = false;
};
// Two inserts meet in a bucket that is home to neither key.
struct leaves_others_unlocked : bucket_rules {
  static constexpr bool locks_others = false;
};
struct forgets_away_keys_when_kept : bucket_rules {
  static constexpr bool keeps_away_keys = false;
};

// A request that has come to a leaf never asks whether it is still the right one.
struct blind_regions : spinning_regions {
  struct sequence : region_sequence {
    using region_sequence::region_sequence;
    bool validate(token /*seen*/) const noexcept { return true; }
  };
};

// A key is inserted without its mark.
struct forgets_marks : tiny_partitioned {
  template <unsigned Bits>
  struct control : conflict_control<Bits> {
    void mark(unsigned /*slot*/) noexcept {}
  };
  template <class Key, class Value, class Sync>
  using leaf = papers::partitioned_leaf<Key, Value, Sync, forgets_marks>;
};

}  // namespace elidex::testing
