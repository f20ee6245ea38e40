// A leaf that keeps its keys apart from its values, so that a search for a key never meets a write
// to a value.
//
//   | head | keys 0 ... count - 1       | values 0, L, 2L, ... | values 1, L + 1, ... | ...
//          | in order up to `sorted`,   | line 0, with a lock  | line 1, with a lock  | L lines
//          | then as they came          |                      |                      |
//
// Thread-safety: functions that only read may race with a writer where the policy says so. Their
// results count only after validation. Functions that change the leaf need its lock or region. All
// run inside regions: they allocate nothing and call no library function that might.
//
// Implementation notes
// A request for a key that is present reads the head, the keys and one line of values. Only inserts
// and erases write the head and the keys. Values of neighbours in key order lie on different lines,
// so a hot key range is spread over all lines. Under `optimistic` each line begins with a lock of
// its own. An update takes that lock instead of the leaf's. So updates on different lines do not
// wait for each other, and the lock comes with the line that is written anyway.
//
// A new key goes behind the others without moving them (the reserved keys and the append area of
// papers/003 section 5.1 with a single segment). A scan that passes puts the leaf in order, so that
// the next scan finds it in order (as in the paper).
//
// The shape chooses how keys are stored:
//   plain_keys    In one array. A request searches the keys in order and then the others. The
//                 others are sorted in as soon as there are eight of them.
//   packed_keys   packed_keys.hpp: in less room, in any order, and found by fingerprints.
//
// Locks of values: a thread needs them to write a value, to move one, and (as a version) to read
// one that another thread may write. A thread that moves values, or makes slots, first takes the
// leaf's lock. A new value in a slot behind `count` needs the leaf's lock only.
//
// From: papers/003 section 4.2, "partitioning data layout", carried further. The idea that reads of
// keys should not conflict with writes of values is ours.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elidex/internal/tree/controlled_leaf.hpp"
#include "elidex/internal/tree/packed_keys.hpp"

namespace elidex::internal {

// A leaf's keys, unencoded. The keys of the first `sorted` slots ascend.
template <class Key, bool Racing, unsigned Slots>
class plain_keys {
 public:
  static constexpr unsigned capacity = Slots;
  static constexpr bool are_found_by_order = true;
  static constexpr std::size_t bytes_for_look_up = Slots * sizeof(Key);

  Key key(unsigned slot) const noexcept { return keys_[slot].template load<Racing>(); }
  void set(unsigned slot, Key key) noexcept { keys_[slot].template store<Racing>(key); }
  template <class Fn>
  void for_each(unsigned first, unsigned last, Fn&& fn) const noexcept {
    for (unsigned slot = first; slot < last; ++slot) fn(slot, key(slot));
  }

  unsigned find(Key wanted, unsigned sorted, unsigned count) const noexcept {
    const unsigned rank = lower_bound(*this, sorted, wanted);
    if (rank < sorted && key(rank) == wanted) return rank;
    for (unsigned slot = sorted; slot < count; ++slot) {
      if (key(slot) == wanted) return slot;
    }
    return no_slot;
  }
  unsigned approach(Key /*wanted*/, unsigned /*count*/) const noexcept { return no_slot; }

  // The interface of packed_keys. Here any key fits anywhere.
  static unsigned room_between(Key /*lowest*/, Key /*highest*/) noexcept { return Slots; }
  template <class KeyAt>
  void fill(unsigned count, Key /*lowest*/, Key /*highest*/, KeyAt&& key_at) noexcept {
    for (unsigned slot = 0; slot < count; ++slot) set(slot, key_at(slot));
  }
  bool has_room_for(unsigned count, Key /*lowest*/, Key /*highest*/, unsigned more) const noexcept {
    return count + more <= Slots;
  }
  bool make_room_for(unsigned count, Key lowest, Key highest, unsigned more) noexcept {
    return has_room_for(count, lowest, highest, more);
  }

 private:
  std::array<field<Key>, Slots> keys_;
};

template <class Value, class Sync, unsigned Values>
struct alignas(64) value_line {
  [[no_unique_address]] mutable typename Sync::node_lock lock;
  std::array<field<Value>, Values> values;
};

template <class Key, class Value, class Sync, class Shape>
class separated_leaf
    : public controlled_leaf<Sync, Shape, Shape::template keys_of<Key, Value, Sync>::capacity> {
  static constexpr bool racing = Sync::readers_race;
  using node_lock = typename Sync::node_lock;
  using leaf_keys = typename Shape::template keys_of<Key, Value, Sync>;

 public:
  static constexpr unsigned capacity = leaf_keys::capacity;
  static constexpr bool in_order = false;
  static constexpr unsigned values_per_line = Shape::template values_per_line<Value, Sync>;
  static constexpr unsigned lines = (capacity + values_per_line - 1) / values_per_line;
  static constexpr std::size_t value_locks = std::is_empty_v<node_lock> ? 0 : lines;
  static constexpr std::size_t head_bytes = sizeof(controlled_leaf<Sync, Shape, capacity>);
  using ordered_copy = gathered_records<Key, Value, capacity>;

  // See controlled_leaf.
  static constexpr std::size_t bytes_for_look_up =
      head_bytes + sizeof(std::uint64_t) + leaf_keys::bytes_for_look_up;
  unsigned approach(Key wanted) const noexcept {
    const unsigned slot = keys_.approach(wanted, this->count());
    if (slot != no_slot) {
      __builtin_prefetch(&lines_[slot % lines]);
      __builtin_prefetch(&at(slot));
    }
    return slot;
  }

  using slot_number = std::conditional_t<capacity <= 256, std::uint8_t, std::uint16_t>;

  // The order of the slots by key: a view of the records in order that moves none of them.
  class ordered_view {
   public:
    unsigned count() const noexcept { return std::min(count_, capacity); }
    Key key(unsigned i) const noexcept { return leaf_->key(slots_[i]); }
    Value value(unsigned i) const noexcept { return leaf_->value(slots_[i]); }

   private:
    friend separated_leaf;
    const separated_leaf* leaf_ = nullptr;
    unsigned count_ = 0;
    std::array<slot_number, capacity> slots_;
  };

  separated_leaf() noexcept { set_sorted(0); }

  Key key(unsigned i) const noexcept { return keys_.key(i); }
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
    const unsigned n = this->count();
    if constexpr (leaf_keys::are_found_by_order) {
      // A racing reader may see one count from before a change and one from after it.
      return keys_.find(wanted, std::min(sorted(), n), n);
    } else {
      return keys_.find(wanted, n);
    }
  }

  template <class Fn>
  void for_each_key(Fn&& fn) const noexcept {
    keys_.for_each(0, this->count(), [&](unsigned /*slot*/, Key k) { fn(k); });
  }
  // Calls fn(key, value) for the slots from `first` to `last - 1`.
  template <class Fn>
  void for_each_record(unsigned first, unsigned last, Fn&& fn) const noexcept {
    unsigned in_line = first % lines;
    unsigned place = first / lines;
    keys_.for_each(first, last, [&](unsigned /*slot*/, Key k) {
      fn(k, lines_[in_line].values[place].template load<racing>());
      if (++in_line == lines) {
        in_line = 0;
        ++place;
      }
    });
  }
  unsigned used() const noexcept { return this->count(); }
  static unsigned room_between(Key lowest, Key highest) noexcept {
    return leaf_keys::room_between(lowest, highest);
  }
  bool has_room_for(Key lowest, Key highest, unsigned more) const noexcept {
    return keys_.has_room_for(this->count(), lowest, highest, more);
  }

  void copy_in_order(ordered_copy& to) const noexcept {
    to.clear();
    for_each_record(0, this->count(), [&](Key k, const Value& v) { to.append(k, v); });
    to.sort_behind(sorted());
  }

  bool is_in_order() const noexcept { return sorted() == this->count(); }
  // Whether the few keys that came last and `next` are neighbours in key order. They may then be
  // some of many keys that come in ascending order, perhaps from several threads, at the end of the
  // leaf or before keys that were there. A guess: a leaf that has been put in order looks the same
  // when a key comes near its end.
  bool continues_a_run(Key next) const noexcept {
    const unsigned n = this->count();
    if (n < run_length) return false;
    const unsigned before = n - run_length;
    Key lowest = next;
    Key highest = next;
    keys_.for_each(before, n, [&](unsigned /*slot*/, Key k) {
      lowest = std::min(lowest, k);
      highest = std::max(highest, k);
    });
    if (key(before) == highest) return false;  // the keys descend
    // Backward, a few at a time. For keys in random order a few are enough.
    bool another_between = false;
    for (unsigned last = before; last > 0 && !another_between;) {
      const unsigned first = last - std::min(last, 8U);
      keys_.for_each(first, last, [&](unsigned /*slot*/, Key k) {
        another_between |= lowest < k && k < highest;
      });
      last = first;
    }
    return !another_between;
  }
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

  // Needs the locks of the values. The records must have room.
  void fill(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    const unsigned n = last - first;
    if (n != 0) {
      keys_.fill(n, records.key(first), records.key(last - 1),
                 [&](unsigned i) { return records.key(first + i); });
    }
    for (unsigned i = 0; i < n; ++i) set_value(i, records.value(first + i));
    this->set_count(n);
    set_sorted(n);
  }

  // Keeps the records from `first` to `last - 1` of its own, which `all` holds. Needs the locks of
  // the values.
  void keep(const ordered_copy& all, unsigned first, unsigned last) noexcept {
    if (first != 0 || !is_in_order()) {
      fill(all, first, last);
    } else {
      set_sorted(last);
      this->set_count(last);
    }
  }

  // Returns whether insert() will find room. Encodes the keys again where that makes room.
  bool make_room_for(Key k) noexcept { return keys_.make_room_for(this->count(), k, k, 1); }

  bool insert(Key k, const Value& v) noexcept {
    const unsigned n = this->count();
    if (!make_room_for(k)) return false;
    set(n, k, v);
    this->set_count(n + 1);
    if (sorted() == n && (n == 0 || key(n - 1) < k)) {
      set_sorted(n + 1);
    } else if (leaf_keys::are_found_by_order && n + 1 - sorted() >= tail_max) {
      sort_in();
    }
    return true;
  }

  // Appends the records from `first` to `last - 1`, which must have room. Needs no locks of values.
  void append(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    const unsigned n = this->count();
    const unsigned more = last - first;
    keys_.make_room_for(n, records.key(first), records.key(last - 1), more);
    if (is_in_order() && (n == 0 || key(n - 1) < records.key(first))) set_sorted(n + more);
    for (unsigned i = 0; i < more; ++i)
      set(n + i, records.key(first + i), records.value(first + i));
    this->set_count(n + more);
  }

  // Sorts all records by key. Takes the locks of the values.
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
    if constexpr (leaf_keys::are_found_by_order) {
      if (i < sorted()) set_sorted(sorted() - 1);
      for (; i + 1 < n; ++i) set(i, key(i + 1), value(i + 1));
    } else {
      if (i + 1 < n) set(i, key(n - 1), value(n - 1));
      if (i < sorted()) set_sorted(i + 1 < n ? i : n - 1);
    }
    this->set_count(n - 1);
  }

 private:
  // The number of keys out of order at which they are sorted in, where a request compares them one
  // by one. A cache line of eight-byte keys holds as many.
  static constexpr unsigned tail_max = 8;
  // Chosen: of 75 keys in random order, the last four and the next one are neighbours three times
  // in a million.
  static constexpr unsigned run_length = std::clamp(capacity / 16, 2U, 4U);

  using line = value_line<Value, Sync, values_per_line>;
  const field<Value>& at(unsigned i) const noexcept { return lines_[i % lines].values[i / lines]; }
  field<Value>& at(unsigned i) noexcept { return lines_[i % lines].values[i / lines]; }
  unsigned sorted() const noexcept { return sorted_.template load<racing>(); }
  void set_sorted(unsigned n) noexcept {
    sorted_.template store<racing>(static_cast<std::uint16_t>(n));
  }
  void set(unsigned i, Key k, const Value& v) noexcept {
    keys_.set(i, k);
    set_value(i, v);
  }

  field<std::uint16_t> sorted_;
  leaf_keys keys_;
  std::array<line, lines> lines_;
};

// The number of values on a line of so many bytes, beside the line's lock.
template <class Value, class Sync, std::size_t LineBytes>
inline constexpr unsigned values_on_line = static_cast<unsigned>(std::max<std::size_t>(
    1, (LineBytes -
        (std::is_empty_v<typename Sync::node_lock> ? 0 : sizeof(typename Sync::node_lock))) /
           sizeof(field<Value>)));

// Separated leaves with plain keys.
template <unsigned LeafSlots = 16, unsigned InnerSlots = 16>
struct separated_fan_out : controlled_fan_out<LeafSlots, InnerSlots> {
  template <class Value, class Sync>
  static constexpr unsigned values_per_line = values_on_line<Value, Sync, 64>;
  template <class Key, class Value, class Sync>
  using keys_of = plain_keys<Key, Sync::readers_race, LeafSlots>;
  template <class Key, class Value, class Sync>
  using leaf = internal::separated_leaf<Key, Value, Sync, separated_fan_out>;
};

// The same with packed keys. A full leaf redistributes with its siblings before it splits.
// RestBytes is the room for the rests of the keys (packed_keys.hpp).
template <unsigned LeafSlots, unsigned InnerSlots, std::size_t RestBytes = 5 * LeafSlots>
struct packed_fan_out : controlled_fan_out<LeafSlots, InnerSlots> {
  static constexpr bool shares_with_siblings = true;
  static constexpr bool has_leaf_hints = true;
  static constexpr bool summarizes_keys = true;
  template <class Value, class Sync>
  static constexpr unsigned values_per_line = values_on_line<Value, Sync, 64>;
  template <class Key, class Value, class Sync>
  using keys_of = internal::packed_keys<Key, Sync::readers_race, LeafSlots, (RestBytes + 7) / 8>;
  template <class Key, class Value, class Sync>
  using leaf = internal::separated_leaf<Key, Value, Sync, packed_fan_out>;
};

// The same with nodes of so many bytes. Values lie on pairs of cache lines, which CPUs like to
// fetch together. A lock then takes half as much of the room.
template <std::size_t LeafBytes, std::size_t InnerBytes>
struct packed_node_bytes : node_bytes<LeafBytes, InnerBytes> {
  static constexpr bool shares_with_siblings = true;
  static constexpr bool has_leaf_hints = true;
  static constexpr bool has_controls = false;
  static constexpr bool summarizes_keys = true;
  // As many blocks of keys as fit together with their entries in the summary.
  static constexpr unsigned inner_slots(std::size_t key_bytes) {
    const std::size_t block = 64 / key_bytes;
    const std::size_t bytes_per_block = 64 + key_bytes + block * sizeof(void*);
    const std::size_t blocks =
        (InnerBytes - node_bytes<LeafBytes, InnerBytes>::header_bytes - sizeof(void*) + key_bytes) /
        bytes_per_block;
    return static_cast<unsigned>(std::max<std::size_t>(1, blocks) * block);
  }
  template <unsigned Bits>
  using control = conflict_control<Bits>;
  template <class Value, class Sync>
  static constexpr unsigned values_per_line = values_on_line < Value,
                            Sync, std::is_empty_v<typename Sync::node_lock> ? 64 : 128 > ;

  // As many lines of values as fit beside the head and the keys that these lines need. The keys get
  // the remaining bytes.
  template <class Key, class Value, class Sync>
  struct layout {
    static constexpr std::size_t head_bytes = 48;  // of leaf and keys
    static constexpr std::size_t line_bytes =
        sizeof(value_line<Value, Sync, values_per_line<Value, Sync>>);
    static constexpr unsigned slots_on(std::size_t value_lines) {
      return static_cast<unsigned>(value_lines) * values_per_line<Value, Sync>;
    }
    static constexpr std::size_t prints_bytes(std::size_t keys) { return (keys + 7) / 8 * 8; }
    static constexpr std::size_t rest_bytes(unsigned keys) {
      return std::max<std::size_t>(16, (keys * (planned_key_bits<Key> - 8) / 8 + 15) / 8 * 8);
    }
    static constexpr std::size_t bytes_with(std::size_t value_lines) {
      const unsigned keys = slots_on(value_lines);
      return (head_bytes + prints_bytes(keys) + rest_bytes(keys) + 63) / 64 * 64 +
             value_lines * line_bytes;
    }
    static constexpr std::size_t lines = [] {
      std::size_t n = 1;
      while (bytes_with(n + 1) <= LeafBytes) ++n;
      return n;
    }();
    static constexpr unsigned slots = slots_on(lines);
    static constexpr std::size_t rest_words =
        (std::max(LeafBytes, bytes_with(lines)) - lines * line_bytes - head_bytes -
         prints_bytes(slots)) /
            8 -
        1;
  };
  template <class Key, class Value, class Sync>
  using keys_of = internal::packed_keys<Key, Sync::readers_race, layout<Key, Value, Sync>::slots,
                                        layout<Key, Value, Sync>::rest_words>;
  template <class Key, class Value, class Sync>
  using leaf = internal::separated_leaf<Key, Value, Sync, packed_node_bytes>;
};

}  // namespace elidex::internal
