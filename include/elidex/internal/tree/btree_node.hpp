// The nodes of the B+trees: leaves with keys and values in order, inner nodes with separators and
// children, and the first part of all leaves of a fixed_key_btree.
//
// Functions that only read may race with a writer where the policy's readers_race says so.
// Functions that change a node need its lock. All run inside regions.
//
// Implementation notes
// Child i of an inner node holds the keys k with key(i - 1) <= k < key(i). A node never changes
// between leaf and inner node, not even when its memory is used again, because leaves and inner
// nodes come from separate pools.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/conflict_control.hpp"
#include "elidex/internal/tree/key_prefix.hpp"
#include "elidex/internal/tree/key_search.hpp"

namespace elidex::internal {

// The number of a node's slots is fixed, as in the papers.
template <unsigned LeafSlots, unsigned InnerSlots>
struct fan_out {
  static_assert(LeafSlots >= 2 && InnerSlots >= 3);
  static constexpr bool summarizes_keys = false;  // of inner nodes, see summarized_keys
  static constexpr unsigned leaf_slots(std::size_t /*slot_bytes*/) { return LeafSlots; }
  static constexpr unsigned inner_slots(std::size_t /*key_bytes*/) { return InnerSlots; }
};

// A node has as many slots as fit into so many bytes.
template <std::size_t LeafBytes, std::size_t InnerBytes>
struct node_bytes {
  static constexpr std::size_t header_bytes = 16;
  static constexpr bool summarizes_keys = false;
  static constexpr unsigned leaf_slots(std::size_t slot_bytes) {
    const std::size_t slots = (LeafBytes - header_bytes) / slot_bytes;
    return slots < 4 ? 4 : static_cast<unsigned>(slots);
  }
  static constexpr unsigned inner_slots(std::size_t key_bytes) {
    const std::size_t slots =
        (InnerBytes - header_bytes - sizeof(void*)) / (key_bytes + sizeof(void*));
    return slots < 4 ? 4 : static_cast<unsigned>(slots);
  }
};

// The papers' fan-out (001 section 4.1, 003 section 6.1).
using paper_fan_out = fan_out<16, 16>;

// Always inline: GCC assumes that a function which only prefetches has no effect, and drops its
// calls.
template <int Locality, std::size_t... Line>
[[gnu::always_inline]] inline void prefetch_lines(const char* first,
                                                  std::index_sequence<Line...> /*lines*/) noexcept {
  (__builtin_prefetch(first + 64 * Line, 0, Locality), ...);
}

// At most two KiB: in a larger node a search touches only a few lines.
inline constexpr std::size_t prefetch_max = 2048;
template <std::size_t Bytes, int Locality = 3>
[[gnu::always_inline]] inline void prefetch_bytes(const void* address) noexcept {
  constexpr std::size_t lines = (std::min(Bytes, prefetch_max) + 63) / 64;
  prefetch_lines<Locality>(static_cast<const char*>(address), std::make_index_sequence<lines>());
}
// Prefetches into the second-level cache, for memory that is needed after other work. The first
// level can wait for some twenty lines only. A thread that asks for more has to wait.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void prefetch_bytes_for_later(const void* address) noexcept {
  prefetch_bytes<Bytes, 2>(address);
}

// The largest number that a node's 16-bit count can hold.
inline constexpr unsigned slots_max = 65535;

// The number of a slot that does not exist or is not known.
inline constexpr unsigned no_slot = ~0U;

template <class Sync>
struct btree_node {
  using node_lock = typename Sync::node_lock;
  static constexpr bool racing = Sync::readers_race;

  explicit btree_node(unsigned level_above_leaves) noexcept
      : level(static_cast<std::uint8_t>(level_above_leaves)) {
    set_count(0);
  }

  // Slots in use. Never more than the node has, even when it is read while a writer changes it.
  unsigned count() const noexcept { return count_.template load<racing>(); }
  void set_count(unsigned n) noexcept {
    count_.template store<racing>(static_cast<std::uint16_t>(n));
  }
  bool is_leaf() const noexcept { return level == 0; }

  [[no_unique_address]] mutable node_lock lock;
  field<std::uint16_t> count_;
  const std::uint8_t level;
};

template <class Key, class Value, class Sync, class Shape>
struct btree_leaf : btree_node<Sync> {
  using keys = key_codec<Key>;
  using key_slot = typename key_codec<Key>::slot;
  using value_slot = typename value_codec<Value>::slot;
  struct slot {
    field<key_slot> key;
    field<value_slot> value;
  };
  static constexpr bool racing = Sync::readers_race;
  static constexpr unsigned capacity = Shape::leaf_slots(sizeof(slot));
  static constexpr std::size_t head_bytes = sizeof(btree_node<Sync>);
  static constexpr bool in_order = true;
  static constexpr std::size_t value_locks = 0;  // the leaf's lock is the values' lock too
  struct ordered_view {};                        // not needed
  static constexpr std::size_t bytes_for_look_up =
      sizeof(btree_node<Sync>) + capacity * sizeof(slot);
  static_assert(capacity <= slots_max);

  btree_leaf() noexcept : btree_node<Sync>(0) {}

  template <class Fn>
  void for_each_value_lock(Fn&& /*fn*/) const noexcept {}
  template <class SearchKey>
  unsigned approach(const SearchKey& /*key*/) const noexcept {
    return no_slot;
  }

  key_slot key(unsigned i) const noexcept { return keys::taken_out(stored_key(i), prefix.get()); }
  // The key as the node stores it, with its head behind the prefix.
  key_slot stored_key(unsigned i) const noexcept { return slots[i].key.template load<racing>(); }
  void store_key(unsigned i, const key_slot& k) noexcept { slots[i].key.template store<racing>(k); }
  std::uint64_t head(unsigned i) const noexcept {
    return slots[i].key.template load_word<racing>(0);
  }
  value_slot value(unsigned i) const noexcept { return slots[i].value.template load<racing>(); }
  void set_value(unsigned i, const value_slot& v) noexcept {
    slots[i].value.template store<racing>(v);
  }

  void insert(unsigned position, const key_slot& k, const value_slot& v) noexcept {
    const unsigned n = this->count();
    for (unsigned i = n; i > position; --i) copy_slot(i, *this, i - 1);
    store_key(position, keys::put_in(k, prefix.get()));
    set_value(position, v);
    this->set_count(n + 1);
  }
  void erase(unsigned position) noexcept {
    const unsigned n = this->count();
    for (unsigned i = position + 1; i < n; ++i) copy_slot(i - 1, *this, i);
    this->set_count(n - 1);
  }
  // Moves the slots from `first` on to the end of `to`, which has the same prefix.
  void move_tail(unsigned first, btree_leaf& to) noexcept {
    const unsigned n = this->count();
    const unsigned at = to.count();
    for (unsigned i = first; i < n; ++i) to.copy_slot(at + i - first, *this, i);
    to.set_count(at + n - first);
    this->set_count(first);
  }

  [[no_unique_address]] prefix_length<keys, racing> prefix;
  std::array<slot, capacity> slots;

 private:
  // The reading side is not racing: the caller holds the lock of `from`.
  void copy_slot(unsigned i, const btree_leaf& from, unsigned j) noexcept {
    slots[i].key.template store<racing>(from.slots[j].key.template load<false>());
    slots[i].value.template store<racing>(from.slots[j].value.template load<false>());
  }
};

// An inner node's keys in one array.
template <class KeySlot, bool Racing, unsigned Capacity>
class plain_inner_keys {
 public:
  KeySlot key(unsigned i) const noexcept { return keys_[i].template load<Racing>(); }
  void set_key(unsigned i, const KeySlot& k) noexcept { keys_[i].template store<Racing>(k); }
  // The first word of a string's slot.
  std::uint64_t head(unsigned i) const noexcept { return keys_[i].template load_word<Racing>(0); }

 private:
  std::array<field<KeySlot>, Capacity> keys_;
};

template <class KeySlot, bool Racing, unsigned Capacity, bool Summarized>
struct inner_keys_of {
  using type = plain_inner_keys<KeySlot, Racing, Capacity>;
};
template <std::integral KeySlot, bool Racing, unsigned Capacity>
struct inner_keys_of<KeySlot, Racing, Capacity, true> {
  using type = summarized_keys<KeySlot, Racing, Capacity>;
};

template <class Key, class Sync, class Shape>
struct btree_inner_node : btree_node<Sync> {
  using node = btree_node<Sync>;
  using keys = key_codec<Key>;
  using key_slot = typename key_codec<Key>::slot;
  static constexpr bool racing = Sync::readers_race;
  static constexpr unsigned capacity = Shape::inner_slots(sizeof(key_slot));
  static_assert(capacity <= slots_max);
  using keys_type =
      typename inner_keys_of<key_slot, racing, capacity, Shape::summarizes_keys>::type;
  // Head, keys and children. Prefetched together, they cost a look-up one wait.
  static constexpr std::size_t bytes_for_look_up =
      sizeof(node) + sizeof(keys_type) + (capacity + 1) * sizeof(node*);

  explicit btree_inner_node(unsigned level_above_leaves) noexcept : node(level_above_leaves) {}

  key_slot key(unsigned i) const noexcept { return keys::taken_out(stored_key(i), prefix.get()); }
  void set_key(unsigned i, const key_slot& k) noexcept {
    store_key(i, keys::put_in(k, prefix.get()));
  }
  // The key as the node stores it, with its head behind the prefix.
  key_slot stored_key(unsigned i) const noexcept { return separators.key(i); }
  void store_key(unsigned i, const key_slot& k) noexcept { separators.set_key(i, k); }
  std::uint64_t head(unsigned i) const noexcept { return separators.head(i); }
  template <bool OrEqual>
  unsigned rank(unsigned count, const key_slot& wanted) const noexcept
    requires Shape::summarizes_keys && std::integral<key_slot>
  {
    return separators.template rank<OrEqual>(count, wanted);
  }
  node* child(unsigned i) const noexcept { return children[i].template load<racing>(); }
  void set_child(unsigned i, node* c) noexcept { children[i].template store<racing>(c); }

  // Inserts `right` behind child `position`, with `k` as the separator between them.
  void insert(unsigned position, const key_slot& k, node* right) noexcept {
    const unsigned n = this->count();
    for (unsigned i = n; i > position; --i) {
      copy_key(i, *this, i - 1);
      copy_child(i + 1, *this, i);
    }
    set_key(position, k);
    set_child(position + 1, right);
    this->set_count(n + 1);
  }
  // Removes key `position` and the child behind it.
  void erase(unsigned position) noexcept {
    const unsigned n = this->count();
    for (unsigned i = position + 1; i < n; ++i) {
      copy_key(i - 1, *this, i);
      copy_child(i, *this, i + 1);
    }
    this->set_count(n - 1);
  }
  // Moves the children behind key `middle` to the empty node `right`, which has the same prefix.
  // Key `middle` itself goes to neither node.
  void split(unsigned middle, btree_inner_node& right) noexcept {
    const unsigned n = this->count();
    right.copy_child(0, *this, middle + 1);
    for (unsigned i = middle + 1; i < n; ++i) {
      right.copy_key(i - middle - 1, *this, i);
      right.copy_child(i - middle, *this, i + 1);
    }
    right.set_count(n - middle - 1);
    this->set_count(middle);
  }
  // Appends `k` and the first `taken` children of `right`, which has the same prefix and keeps
  // them. Key `taken - 1` of `right` goes to neither node.
  void append(const key_slot& k, const btree_inner_node& right, unsigned taken) noexcept {
    const unsigned n = this->count();
    set_key(n, k);
    copy_child(n + 1, right, 0);
    for (unsigned i = 1; i < taken; ++i) {
      copy_key(n + i, right, i - 1);
      copy_child(n + 1 + i, right, i);
    }
    this->set_count(n + taken);
  }
  // Removes the first `dropped` children and the keys behind them.
  void drop_front(unsigned dropped) noexcept {
    const unsigned n = this->count();
    copy_child(0, *this, dropped);
    for (unsigned i = dropped; i < n; ++i) {
      copy_key(i - dropped, *this, i);
      copy_child(i - dropped + 1, *this, i + 1);
    }
    this->set_count(n - dropped);
  }

  [[no_unique_address]] prefix_length<keys, racing> prefix;
  keys_type separators;
  std::array<field<node*>, capacity + 1> children;

 private:
  // The caller holds the lock of `from`.
  void copy_key(unsigned i, const btree_inner_node& from, unsigned j) noexcept {
    store_key(i, from.stored_key(j));
  }
  void copy_child(unsigned i, const btree_inner_node& from, unsigned j) noexcept {
    children[i].template store<racing>(from.children[j].template load<false>());
  }
};

// Takes the place of the pointer to a conflict control in leaves that never have one.
template <class Control>
struct never_controlled {
  Control* load(std::memory_order /*order*/) const noexcept { return nullptr; }
  void store(Control* /*none*/, std::memory_order /*order*/) noexcept {}
};

// The first part of each leaf of a fixed_key_btree (separated_leaf.hpp).
// From: papers/003 section 5.
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

// A shape tells how many slots nodes have, the kind of leaf, its conflict control, and whether full
// leaves redistribute.
template <unsigned LeafSlots, unsigned InnerSlots>
struct controlled_fan_out : fan_out<LeafSlots, InnerSlots> {
  // see fixed_key_btree's try_redistribute()
  static constexpr bool redistributes_with_siblings = false;
  static constexpr bool has_leaf_hints = false;  // see leaf_hint
  static constexpr bool has_controls = true;     // whether a leaf can be given one
  template <unsigned Bits>
  using control = conflict_control<Bits>;
};

}  // namespace elidex::internal
