// A leaf that keeps its keys apart from its values, so that looking for a key never meets a write to a value.
//
//   | head | fingerprints | keys 0 ............ count - 1 |  values 0, L, 2L, ... (lock) |  values 1, L + 1, ... (lock) |  ...
//                           in order up to `sorted`, then    line 0                         line 1, of L lines
//                           as they came
//
// A request for a key that is there reads the head and the keys, which only inserts and erases write, and one line of
// values. Values of neighbours in key order lie on different lines: a hot stretch of keys is spread over all of them.
// Under `optimistic` each line begins with a lock of its own, which an update takes instead of the leaf's: so updates on
// different lines don't wait for each other, and the lock comes with the line that is written anyway.
//
// A new key goes behind the others without moving them (the reserved keys and the append area of papers/003 section 5.1
// with a single segment); when `tail_max` have come they are sorted in, or when a scan passes by, so that the next one finds
// them in order (as there).
//
// Where the shape asks for them, fingerprints of the keys (fingerprints.hpp) come first: a request then reads these, one line of
// keys and one of values, and needs no order. It costs a byte for each slot.
//
// Locks of values: needed to write a value, to move one, and to read one that may be written (as a version). Who moves
// values, or makes slots, has the leaf's lock first. A new value in a slot behind `count` needs the leaf's lock only.
//
// Thread-safety, regions: as scattered_leaf.hpp. From: papers/003 section 4.2, "partitioning data layout", carried further;
// the idea that reads of keys should not conflict with writes of values is ours.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elidex/index/fingerprints.hpp"
#include "elidex/index/scattered_leaf.hpp"

namespace elidex {
namespace detail {

template <class Key, class Value, class Sync, class Shape>
class keys_apart_leaf : public controlled_leaf<Sync, Shape, Shape::leaf_slots(sizeof(record_slot<Key, Value>))> {
  static constexpr bool racing = Sync::readers_race;
  using node_lock = typename Sync::node_lock;
  static constexpr std::size_t lock_bytes = std::is_empty_v<node_lock> ? 0 : sizeof(node_lock);

 public:
  static constexpr unsigned capacity = Shape::leaf_slots(sizeof(record_slot<Key, Value>));
  static constexpr bool in_order = false;
  static constexpr unsigned values_per_line =
      static_cast<unsigned>(std::max<std::size_t>(1, (Shape::value_line_bytes - lock_bytes) / sizeof(field<Value>)));
  static constexpr unsigned lines = (capacity + values_per_line - 1) / values_per_line;
  static constexpr std::size_t value_locks = lock_bytes == 0 ? 0 : lines;
  static constexpr std::size_t head_bytes = sizeof(controlled_leaf<Sync, Shape, capacity>);
  using ordered_copy = gathered_records<Key, Value, capacity>;

  static constexpr bool has_fingerprints = Shape::has_fingerprints;
  using prints = fingerprints<racing, capacity>;

  // See controlled_leaf.
  static constexpr std::size_t bytes_before_keys = head_bytes + (has_fingerprints ? 2 + sizeof(prints) : 2);
  static constexpr std::size_t bytes_for_look_up =
      has_fingerprints ? bytes_before_keys : bytes_before_keys + capacity * sizeof(Key);
  unsigned approach(Key wanted) const noexcept {
    if constexpr (has_fingerprints) {
      const unsigned slot = slot_with(wanted, [](unsigned /*slot*/) { return true; });
      if (slot != no_slot) {
        __builtin_prefetch(&keys_[slot]);
        __builtin_prefetch(&lines_[slot % lines]);
        __builtin_prefetch(&at(slot));
      }
      return slot;
    } else {
      return no_slot;
    }
  }

  using slot_number = std::conditional_t<capacity <= 256, std::uint8_t, std::uint16_t>;

  // The records in the order of their keys, without moving them: the order of the slots.
  class ordered_view {
   public:
    unsigned count() const noexcept { return std::min(count_, capacity); }
    Key key(unsigned i) const noexcept { return leaf_->key(slots_[i]); }
    Value value(unsigned i) const noexcept { return leaf_->value(slots_[i]); }

   private:
    friend keys_apart_leaf;
    const keys_apart_leaf* leaf_ = nullptr;
    unsigned count_ = 0;
    std::array<slot_number, capacity> slots_;
  };

  keys_apart_leaf() noexcept { set_sorted(0); }

  Key key(unsigned i) const noexcept { return keys_[i].template load<racing>(); }
  Value value(unsigned i) const noexcept { return at(i).template load<racing>(); }
  void set_value(unsigned i, const Value& v) noexcept { at(i).template store<racing>(v); }

  node_lock& value_lock(unsigned slot) noexcept {
    if constexpr (value_locks == 0) return this->lock;
    return lines_[slot % lines].lock;
  }
  template <class Fn>
  void for_each_value_lock(Fn&& fn) noexcept {
    if constexpr (value_locks != 0) {
      for (line& one : lines_) fn(one.lock);
    }
  }

  unsigned find(Key wanted) const noexcept {
    if constexpr (has_fingerprints) {
      return slot_with(wanted, [&](unsigned slot) { return key(slot) == wanted; });
    } else {
      const unsigned n = this->count();
      // A racing reader may see one count of before and one of after a change.
      const unsigned sorted = std::min(this->sorted(), n);
      const unsigned rank = lower_bound(*this, sorted, wanted);
      if (rank < sorted && key(rank) == wanted) return rank;
      for (unsigned i = sorted; i < n; ++i) {
        if (key(i) == wanted) return i;
      }
      return no_slot;
    }
  }

  template <class Fn>
  void for_each_key(Fn&& fn) const noexcept {
    const unsigned n = this->count();
    for (unsigned i = 0; i < n; ++i) fn(key(i));
  }
  unsigned used() const noexcept { return this->count(); }
  bool is_full() const noexcept { return used() == capacity; }

  void copy_in_order(ordered_copy& to) const noexcept {
    to.clear();
    const unsigned n = this->count();
    for (unsigned i = 0; i < n; ++i) to.add(key(i), value(i));
  }

  bool is_in_order() const noexcept { return sorted() == this->count(); }
  void order(ordered_view& view) const noexcept {
    const unsigned n = this->count();
    const unsigned sorted = std::min(this->sorted(), n);  // as in find()
    view.leaf_ = this;
    view.count_ = n;
    for (unsigned i = 0; i < sorted; ++i) view.slots_[i] = static_cast<slot_number>(i);
    for (unsigned i = sorted; i < n; ++i) {
      const Key k = key(i);
      unsigned at = i;
      for (; at > 0 && k < key(view.slots_[at - 1]); --at) view.slots_[at] = view.slots_[at - 1];
      view.slots_[at] = static_cast<slot_number>(i);
    }
  }

  // Needs the locks of the values.
  void fill(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    for (unsigned i = first; i < last; ++i) set(i - first, records.key(i), records.value(i));
    this->set_count(last - first);
    set_sorted(last - first);
  }

  // Keeps the first `kept` of its own records, which `all` holds. Needs the locks of the values.
  void keep_first(const ordered_copy& all, unsigned kept) noexcept {
    if (sorted() != this->count()) {
      fill(all, 0, kept);
    } else {
      set_sorted(kept);
      this->set_count(kept);
    }
  }

  bool insert(Key k, const Value& v) noexcept {
    const unsigned n = this->count();
    if (n == capacity) return false;
    set(n, k, v);
    this->set_count(n + 1);
    if (sorted() == n && (n == 0 || key(n - 1) < k)) {
      set_sorted(n + 1);
    } else if (n + 1 - sorted() >= tail_max) {
      sort_in();
    }
    return true;
  }

  // Puts all keys in order. Takes the locks of the values.
  void sort_in() noexcept {
    for_each_value_lock([](node_lock& one) { one.lock(); });
    ordered_copy all;
    copy_in_order(all);
    fill(all, 0, all.count());
    for_each_value_lock([](node_lock& one) { one.unlock(); });
  }

  // Needs the locks of the values.
  void erase(unsigned i) noexcept {
    const unsigned n = this->count();
    if (i < sorted()) set_sorted(sorted() - 1);
    if constexpr (has_fingerprints) prints_.erase(i);
    for (; i + 1 < n; ++i) move(i, key(i + 1), value(i + 1));
    this->set_count(n - 1);
  }

 private:
  // Of keys out of order. Without fingerprints a request looks at one after the other: as many as a line of eight-byte keys
  // holds. With them sorting is put off until somebody wants the order; measured (docs/PERFORMANCE.md).
  static constexpr unsigned tail_max = has_fingerprints ? 20 : 8;

  struct alignas(64) line {
    [[no_unique_address]] mutable node_lock lock;
    std::array<field<Value>, values_per_line> values;
  };

  const field<Value>& at(unsigned i) const noexcept { return lines_[i % lines].values[i / lines]; }
  field<Value>& at(unsigned i) noexcept { return lines_[i % lines].values[i / lines]; }
  template <class IsWanted>
  unsigned slot_with(Key wanted, IsWanted&& is_wanted) const noexcept {
    const unsigned slot = prints_.find(prints::of(wanted), std::min(this->count(), capacity), is_wanted);
    return slot == capacity ? no_slot : slot;
  }
  unsigned sorted() const noexcept { return sorted_.template load<racing>(); }
  void set_sorted(unsigned n) noexcept { sorted_.template store<racing>(static_cast<std::uint16_t>(n)); }
  void move(unsigned i, Key k, const Value& v) noexcept {
    keys_[i].template store<racing>(k);
    set_value(i, v);
  }
  void set(unsigned i, Key k, const Value& v) noexcept {
    if constexpr (has_fingerprints) prints_.set(i, prints::of(k));
    move(i, k, v);
  }

  field<std::uint16_t> sorted_;
  [[no_unique_address]] std::conditional_t<has_fingerprints, prints, no_fingerprints> prints_;
  std::array<field<Key>, capacity> keys_;
  std::array<line, lines> lines_;
};

}  // namespace detail

// Leaves whose keys lie apart from their values.
template <unsigned LeafSlots = 16, unsigned InnerSlots = 16>
struct keys_apart_fan_out : controlled_fan_out<LeafSlots, InnerSlots> {
  static constexpr std::size_t value_line_bytes = 64;
  static constexpr bool has_fingerprints = false;
  template <class Key, class Value, class Sync>
  using leaf = detail::keys_apart_leaf<Key, Value, Sync, keys_apart_fan_out>;
};

// The same with nodes of so many bytes. Values lie on pairs of cache lines, which CPUs like to fetch together: a lock takes
// half as much room then.
template <std::size_t LeafBytes, std::size_t InnerBytes>
struct keys_apart_node_bytes : node_bytes<LeafBytes, InnerBytes> {
  static constexpr std::size_t value_line_bytes = 128;
  static constexpr bool has_fingerprints = true;
  // What the head and the locks leave: of 8-byte keys and values in 1024 bytes, 60.
  static constexpr unsigned leaf_slots(std::size_t slot_bytes) {
    const std::size_t slots = (LeafBytes - 64) / slot_bytes;
    return slots < 4 ? 4 : static_cast<unsigned>(slots);
  }
  template <unsigned Bits>
  using control = conflict_control<Bits>;
  template <class Key, class Value, class Sync>
  using leaf = detail::keys_apart_leaf<Key, Value, Sync, keys_apart_node_bytes>;
};

}  // namespace elidex
