// The head that all leaves of a fixed_key_btree share, and a container for a leaf's records in key
// order.
//
// Thread-safety: as separated_leaf.hpp.
// From: papers/003 section 5.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/tree/btree_node.hpp"
#include "elidex/internal/tree/conflict_control.hpp"

namespace elidex::internal {

// Takes the place of the pointer to a conflict control in leaves that never have one.
template <class Control>
struct never_controlled {
  Control* load(std::memory_order /*order*/) const noexcept { return nullptr; }
  void store(Control* /*none*/, std::memory_order /*order*/) noexcept {}
};

// The first part of each leaf of a fixed_key_btree.
template <class Sync, class Shape, unsigned Capacity>
struct controlled_leaf : btree_node<Sync> {
  using control_type = typename Shape::template control<std::min(2 * Capacity, 32u)>;
  using control_pointer = std::conditional_t<Shape::has_controls, std::atomic<control_type*>,
                                             never_controlled<control_type>>;
  // Where readers race, requests need only the leaf's version. The number is then for leaf hints.
  using sequence_type = std::conditional_t<Sync::readers_race && Shape::has_leaf_hints,
                                           region_sequence, typename Sync::sequence>;

  controlled_leaf() noexcept : btree_node<Sync>(0) {}

  [[no_unique_address]] sequence_type sequence{in_reused_memory{}};
  // Null unless the leaf is hot. Stored with release order and loaded with acquire order, so that
  // the control's words are set before the pointer is seen.
  [[no_unique_address]] control_pointer control{};

  // The bytes that a look-up reads first. approach() is called after they have been prefetched. It
  // may prefetch more, and returns the slot in which the key very likely is, if it can.
  static constexpr std::size_t bytes_for_look_up = 1024;
  template <class Key>
  unsigned approach(Key /*key*/) const noexcept {
    return no_slot;
  }
};

// Records gathered from a leaf, in the order of their keys.
template <class Key, class Value, unsigned Capacity>
class gathered_records {
 public:
  static constexpr unsigned capacity = Capacity;
  struct record {
    Key key;
    Value value;
  };

  // std::min() tells the compiler a bound that add() keeps.
  unsigned count() const noexcept { return std::min(count_, Capacity); }
  const Key& key(unsigned i) const noexcept { return records_[i].key; }
  const Value& value(unsigned i) const noexcept { return records_[i].value; }

  gathered_records() noexcept {}  // leaves the records as they are
  void clear() noexcept { count_ = 0; }
  // Keeps the order by moving larger keys. This is cheap for keys that come nearly in order.
  void add(const Key& key, const Value& value) noexcept {
    unsigned i = count_++;
    for (; i > 0 && key < records_[i - 1].key; --i) records_[i] = records_[i - 1];
    records_[i] = {key, value};
  }
  // append() does not keep the order. sort_behind() restores it: the first `sorted` records are in
  // order, and the others are few.
  void append(const Key& key, const Value& value) noexcept { records_[count_++] = {key, value}; }
  void sort_behind(unsigned sorted) noexcept {
    if (sorted == count_) return;
    gathered_records others;
    for (unsigned i = sorted; i < count_; ++i) others.add(records_[i].key, records_[i].value);
    unsigned to = count_;
    for (unsigned left = sorted, right = others.count(); right > 0;) {
      const bool left_is_next = left > 0 && others.key(right - 1) < records_[left - 1].key;
      records_[--to] = left_is_next ? records_[--left] : others.records_[--right];
    }
  }
  // How many keys are less than `key`.
  unsigned rank(const Key& key) const noexcept {
    return branchless_lower_bound<false>([&](unsigned i) { return this->key(i); }, count(), key);
  }
  bool contains(const Key& key) const noexcept {
    for (unsigned i = 0; i < count_; ++i) {
      if (records_[i].key == key) return true;
    }
    return false;
  }

 private:
  std::array<record, Capacity> records_;
  unsigned count_ = 0;
};

// How many of the leaf's first `count` keys, which ascend, are less than `wanted`.
template <class Leaf, class Key>
unsigned lower_bound(const Leaf& leaf, unsigned count, Key wanted) noexcept {
  unsigned base = 0;
  for (unsigned length = count; length > 0;) {
    const unsigned half = (length + 1) / 2;
    if (leaf.key(base + half - 1) < wanted) base += half;
    length -= half;
  }
  return base;
}

// A key that is neither in the records nor `also_not`. At least one of Capacity + 2 candidates is
// such a key. The candidates are scattered, so that keys that come in order rarely equal one.
template <class Records, class Key>
Key unused_key(const Records& records, Key also_not) noexcept {
  static_assert(sizeof(Key) > 1 || Records::capacity + 2 < 255,
                "a leaf needs a key that is not in it");
  static_assert(!std::is_same_v<Key, bool>, "for two keys no tree is needed");
  for (std::uint64_t i = 1;; ++i) {
    // The factor is odd, so candidates are distinct for all i below the number of keys.
    const auto candidate = static_cast<Key>(i * 0xD1B5'4A32'D192'ED03u);
    if (candidate != also_not && !records.contains(candidate)) return candidate;
  }
}

template <class Key, class Value>
struct record_slot {
  field<Key> key;
  field<Value> value;
};

// A shape tells how many slots nodes have, the kind of leaf, its conflict control, and whether full
// leaves redistribute.
template <unsigned LeafSlots, unsigned InnerSlots>
struct controlled_fan_out : fan_out<LeafSlots, InnerSlots> {
  static constexpr bool shares_with_siblings = false;  // see fixed_key_btree's try_share()
  static constexpr bool has_leaf_hints = false;        // see leaf_hint.hpp
  static constexpr bool has_controls = true;           // whether a leaf can be given one
  template <unsigned Bits>
  using control = conflict_control<Bits>;
};

}  // namespace elidex::internal
