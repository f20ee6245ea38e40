// Eunomia's leaf: records scattered over segments, each on a cache line of its own, so that
// requests for neighbours in key order don't meet on a line.
//
//   slots   | 0 ............ r-1 | r ... | ............. | capacity - 1 | reserved keys, in  | free
//           for the segments, in no order: | the order of keys  | line i of slots is the segment i,
//           what the reserved keys leave of it
//
// A new record goes to a free slot of a segment that the write scheduler draws at random. When
// several draws hit full segments, all records are moved to the reserved keys, which makes what is
// left free again for all segments (paper 003 figure 9). After a split both leaves have nothing
// but reserved keys.
//
// Invariants: reserved keys ascend. A slot behind them is free if it holds the leaf's `free_key`,
// which is never the key of a record in this leaf. So a segment needs no count: all that an insert
// writes is one record.
//
// Thread-safety: reading functions may race with a writer where the policy says so, and are
// believed after validation; changing ones need the leaf's lock or region. All run inside regions:
// no allocation, no library calls that could. From: paper 003 section 5.1, figures 5, 8 and 9.
// Deviations: a free slot is told by its key instead of a count in each segment, so that a leaf
// takes as many lines as a dense one; the four records of a segment are not kept in order, since
// they are compared all at once; erasing a reserved key closes the gap at once.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elidex/internal/sync/random.hpp"
#include "elidex/internal/tree/separated_leaf.hpp"

namespace elidex::papers {

using namespace internal;

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

// Whole segments, as many as it takes for the shape's slots.
template <class Shape, class Slot>
inline constexpr unsigned partitioned_capacity =
    (Shape::leaf_slots(sizeof(Slot)) + Shape::segment_slots(sizeof(Slot)) - 1) /
    Shape::segment_slots(sizeof(Slot)) * Shape::segment_slots(sizeof(Slot));

template <class Key, class Value, class Sync, class Shape>
class partitioned_leaf
    : public controlled_leaf<Sync, Shape, partitioned_capacity<Shape, record_slot<Key, Value>>> {
  static constexpr bool racing = Sync::readers_race;
  using slot = record_slot<Key, Value>;
  static constexpr unsigned per_line = Shape::segment_slots(sizeof(slot));
  // How many segments the scheduler draws before it takes the leaf for near-full. Chosen.
  static constexpr unsigned draws_max = 3;

 public:
  static constexpr unsigned capacity = partitioned_capacity<Shape, slot>;
  static constexpr bool in_order = false;
  static constexpr std::size_t value_locks = 0;
  static constexpr std::size_t head_bytes = 64;
  using ordered_copy = gathered_records<Key, Value, capacity>;
  using ordered_view = ordered_copy;

  partitioned_leaf() noexcept {
    const ordered_copy none{};
    set_free_key(unused_key(none, Key{}));
    fill(none, 0, 0);
  }

  Key key(unsigned i) const noexcept { return at(i).key.template load<racing>(); }
  Value value(unsigned i) const noexcept { return at(i).value.template load<racing>(); }
  void set_value(unsigned i, const Value& v) noexcept { at(i).value.template store<racing>(v); }

  // The lock that protects a value, and all that protect values but not the leaf.
  typename Sync::node_lock& value_lock(unsigned /*slot*/) noexcept { return this->lock; }
  template <class Fn>
  void for_each_value_lock(Fn&& /*fn*/) noexcept {}

  // Its slot, or no_slot.
  unsigned find(Key wanted) const noexcept {
    if (wanted == free_key()) return no_slot;
    const unsigned reserved = this->count();
    const unsigned rank = lower_bound(*this, reserved, wanted);
    if (rank < reserved && key(rank) == wanted) return rank;
    for (unsigned i = reserved; i < capacity; ++i) {
      if (key(i) == wanted) return i;
    }
    return no_slot;
  }

  template <class Fn>
  void for_each_key(Fn&& fn) const noexcept {
    const unsigned reserved = this->count();
    const Key free = free_key();
    for (unsigned i = 0; i < capacity; ++i) {
      if (const Key k = key(i); i < reserved || k != free) fn(k);
    }
  }
  unsigned used() const noexcept {
    unsigned n = 0;
    for_each_key([&n](Key) { ++n; });
    return n;
  }
  // How many keys between these two a leaf holds: for some, fewer if they lie far apart.
  static unsigned room_between(Key /*lowest*/, Key /*highest*/) noexcept { return capacity; }
  // For `more` keys from `lowest` to `highest`, beside those that are there.
  bool has_room_for(Key /*lowest*/, Key /*highest*/, unsigned more) const noexcept {
    return used() + more <= capacity;
  }
  bool has_room_for(Key /*k*/) const noexcept { return used() < capacity; }

  void copy_in_order(ordered_copy& to) const noexcept {
    to.clear();
    const unsigned reserved = this->count();
    for (unsigned i = 0; i < reserved; ++i) to.add(key(i), value(i));
    for (unsigned i = reserved; i < capacity; ++i) {
      if (const Key k = key(i); k != free_key()) to.add(k, value(i));
    }
  }

  bool is_in_order() const noexcept { return false; }
  void order(ordered_view& view) const noexcept { copy_in_order(view); }

  // Makes records [first, last) the reserved keys and frees all other slots.
  void fill(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    if (records.contains(free_key())) set_free_key(unused_key(records, free_key()));
    for (unsigned i = first; i < last; ++i) set(i - first, records.key(i), records.value(i));
    for (unsigned i = last - first; i < capacity; ++i) set_key(i, free_key());
    this->set_count(last - first);
  }

  // Keeps those from `first` to `last` of its own records, which `all` holds.
  void keep(const ordered_copy& all, unsigned first, unsigned last) noexcept {
    fill(all, first, last);
  }

  // Whether insert() will find room.
  bool make_room_for(Key /*k*/) const noexcept { return used() < capacity; }

  // Adds a key that is not there; false: the leaf is full, and as it was.
  bool insert(Key k, const Value& v) noexcept {
    if (k == free_key()) {
      if (used() == capacity) return false;  // with nothing changed: readers stay valid
      choose_another_free_key(k);
    }
    std::uint64_t random = next_random_of_this_thread();  // the write scheduler
    for (unsigned draw = 0; draw < draws_max; ++draw, random >>= 8U) {
      const unsigned segment = static_cast<unsigned>(random & 0xFFU) % segments;
      if (insert_into(segment, k, v)) return true;
    }
    ordered_copy all;
    copy_in_order(all);
    if (all.count() == capacity) return false;
    fill(all, 0, all.count());
    set(all.count(), k, v);
    return true;
  }

  void erase(unsigned i) noexcept {
    const unsigned reserved = this->count();
    if (i < reserved) {
      for (; i + 1 < reserved; ++i) set(i, key(i + 1), value(i + 1));
      this->set_count(reserved - 1);
    }
    set_key(i, free_key());
  }

 private:
  static constexpr unsigned segments = capacity / per_line;
  struct alignas(64) line {
    std::array<slot, per_line> slots;
  };

  const slot& at(unsigned i) const noexcept { return lines_[i / per_line].slots[i % per_line]; }
  slot& at(unsigned i) noexcept { return lines_[i / per_line].slots[i % per_line]; }
  void set_key(unsigned i, Key k) noexcept { at(i).key.template store<racing>(k); }
  void set(unsigned i, Key k, const Value& v) noexcept {
    set_key(i, k);
    set_value(i, v);
  }
  Key free_key() const noexcept { return free_key_.template load<racing>(); }
  void set_free_key(Key k) noexcept { free_key_.template store<racing>(k); }

  bool insert_into(unsigned segment, Key k, const Value& v) noexcept {
    for (unsigned i = std::max(segment * per_line, this->count()); i < (segment + 1) * per_line;
         ++i) {
      if (key(i) == free_key()) {
        set(i, k, v);
        return true;
      }
    }
    return false;
  }

  void choose_another_free_key(Key not_this) noexcept {
    ordered_copy all;
    copy_in_order(all);
    set_free_key(unused_key(all, not_this));
    fill(all, 0, all.count());
  }

  field<Key> free_key_;
  std::array<line, segments> lines_;
};

// The ordinary leaf, in the place of a partitioned one: what splitting regions brings by itself.
template <class Key, class Value, class Sync, class Shape>
class dense_leaf
    : public controlled_leaf<Sync, Shape, Shape::leaf_slots(sizeof(record_slot<Key, Value>))> {
  static constexpr bool racing = Sync::readers_race;
  using slot = record_slot<Key, Value>;

 public:
  static constexpr unsigned capacity = Shape::leaf_slots(sizeof(slot));
  static constexpr bool in_order = true;
  static constexpr std::size_t value_locks = 0;
  static constexpr std::size_t head_bytes = sizeof(controlled_leaf<Sync, Shape, capacity>);
  using ordered_copy = gathered_records<Key, Value, capacity>;
  using ordered_view = ordered_copy;

  Key key(unsigned i) const noexcept { return slots_[i].key.template load<racing>(); }
  Value value(unsigned i) const noexcept { return slots_[i].value.template load<racing>(); }
  void set_value(unsigned i, const Value& v) noexcept { slots_[i].value.template store<racing>(v); }

  typename Sync::node_lock& value_lock(unsigned /*slot*/) noexcept { return this->lock; }
  template <class Fn>
  void for_each_value_lock(Fn&& /*fn*/) noexcept {}

  unsigned find(Key wanted) const noexcept {
    const unsigned n = this->count();
    const unsigned i = lower_bound(*this, n, wanted);
    return i < n && key(i) == wanted ? i : no_slot;
  }
  template <class Fn>
  void for_each_key(Fn&& fn) const noexcept {
    for (unsigned i = 0; i < this->count(); ++i) fn(key(i));
  }
  unsigned used() const noexcept { return this->count(); }
  static unsigned room_between(Key /*lowest*/, Key /*highest*/) noexcept { return capacity; }
  bool has_room_for(Key /*lowest*/, Key /*highest*/, unsigned more) const noexcept {
    return used() + more <= capacity;
  }
  bool has_room_for(Key /*k*/) const noexcept { return used() < capacity; }

  void copy_in_order(ordered_copy& to) const noexcept {
    to.clear();
    const unsigned n = this->count();
    for (unsigned i = 0; i < n; ++i) to.add(key(i), value(i));
  }
  void fill(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    for (unsigned i = first; i < last; ++i) set(i - first, records.key(i), records.value(i));
    this->set_count(last - first);
  }
  void keep(const ordered_copy& all, unsigned first, unsigned last) noexcept {
    if (first == 0) {
      this->set_count(last);
    } else {
      fill(all, first, last);
    }
  }
  // Whether insert() will find room.
  bool make_room_for(Key /*k*/) const noexcept { return this->count() < capacity; }

  bool insert(Key k, const Value& v) noexcept {
    const unsigned n = this->count();
    if (n == capacity) return false;
    unsigned i = n;
    for (; i > 0 && k < key(i - 1); --i) set(i, key(i - 1), value(i - 1));
    set(i, k, v);
    this->set_count(n + 1);
    return true;
  }
  void erase(unsigned i) noexcept {
    const unsigned n = this->count();
    for (; i + 1 < n; ++i) set(i, key(i + 1), value(i + 1));
    this->set_count(n - 1);
  }

 private:
  void set(unsigned i, Key k, const Value& v) noexcept {
    slots_[i].key.template store<racing>(k);
    set_value(i, v);
  }

  std::array<slot, capacity> slots_;
};

// The papers' tree: leaves of LeafSlots records in segments of a cache line (or of SegmentSlots
// records).
template <unsigned LeafSlots = 16, unsigned InnerSlots = 16, unsigned SegmentSlots = 0>
struct partitioned_fan_out : controlled_fan_out<LeafSlots, InnerSlots> {
  static constexpr unsigned segment_slots(std::size_t slot_bytes) {
    return SegmentSlots != 0 ? SegmentSlots
           : slot_bytes < 64 ? static_cast<unsigned>(64 / slot_bytes)
                             : 1;
  }
  template <class Key, class Value, class Sync>
  using leaf = papers::partitioned_leaf<Key, Value, Sync, partitioned_fan_out>;
};

// The same with dense leaves.
template <unsigned LeafSlots = 16, unsigned InnerSlots = 16>
struct dense_fan_out : controlled_fan_out<LeafSlots, InnerSlots> {
  template <class Key, class Value, class Sync>
  using leaf = papers::dense_leaf<Key, Value, Sync, dense_fan_out>;
};

}  // namespace elidex::papers
