// A leaf that keeps its keys apart from its values, so that looking for a key never meets a write
// to a value.
//
//   | head | keys 0 ............ count - 1 |  values 0, L, 2L, ... (lock) |  values 1, L + 1, ...
//                                             (lock) |  ...
//            in order up to `sorted`, then    line 0                         line 1, of L lines
//            as they came
//
// A request for a key that is there reads the head and the keys, which only inserts and erases
// write, and one line of values. Values of neighbours in key order lie on different lines: a hot
// stretch of keys is spread over all of them. Under `optimistic` each line begins with a lock of
// its own, which an update takes instead of the leaf's: so updates on different lines don't wait
// for each other, and the lock comes with the line that is written anyway.
//
// A new key goes behind the others without moving them (the reserved keys and the append area of
// papers/003 section 5.1 with a single segment). A scan puts the leaf in order when it passes by,
// so that the next one finds it in order (as there).
//
// How keys are kept is the shape's choice:
//   plain_keys    one behind the other. A request searches the keys in order and then the others,
//                 of which there are few: when eight have come they are sorted in
//   packed_keys   packed_keys.hpp: in less room, and found by fingerprints, in any order
//
// Locks of values: needed to write a value, to move one, and to read one that may be written (as a
// version). Who moves values, or makes slots, has the leaf's lock first. A new value in a slot
// behind `count` needs the leaf's lock only.
//
// Thread-safety: reading functions may race with a writer where the policy says so, and are
// believed after validation; changing ones need the leaf's lock or region. All run inside regions:
// no allocation, no library calls that could. From: papers/003 section 4.2, "partitioning data
// layout", carried further; the idea that reads of keys should not conflict with writes of values
// is ours.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elidex/internal/tree/controlled_leaf.hpp"
#include "elidex/internal/tree/packed_keys.hpp"

namespace elidex::internal {

// A leaf's keys as they are. Those of the first `sorted` slots ascend.
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

  // As packed_keys has them: any key fits anywhere.
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

  // The records in the order of their keys, without moving them: the order of the slots.
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
      // A racing reader may see one count of before and one of after a change.
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
  // Whether the few keys that came last and `next` lie side by side in the order of keys: then they
  // may be some of many that come in ascending order, if perhaps by several threads, at the end of
  // the leaf or before keys that were there. A guess: a leaf that has been put in order looks like
  // it, too, when a key comes near its end.
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
    if (key(before) == highest) return false;  // it descends
    // From behind, a few at a time: of keys in random order these are enough.
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

  // Needs the locks of the values, and that the records have room.
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

  // Keeps those from `first` to `last` of its own records, which `all` holds. Needs the locks of
  // the values.
  void keep(const ordered_copy& all, unsigned first, unsigned last) noexcept {
    if (first != 0 || !is_in_order()) {
      fill(all, first, last);
    } else {
      set_sorted(last);
      this->set_count(last);
    }
  }

  // Whether insert() will find room; encodes the keys anew where that makes some.
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

  // Puts those from `first` to `last` behind its own, where they have room. Needs no locks of
  // values.
  void append(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    const unsigned n = this->count();
    const unsigned more = last - first;
    keys_.make_room_for(n, records.key(first), records.key(last - 1), more);
    if (is_in_order() && (n == 0 || key(n - 1) < records.key(first))) set_sorted(n + more);
    for (unsigned i = 0; i < more; ++i)
      set(n + i, records.key(first + i), records.value(first + i));
    this->set_count(n + more);
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
  // Of keys out of order, when a request looks at one after the other: as many as a line of
  // eight-byte keys holds.
  static constexpr unsigned tail_max = 8;
  // Chosen: the four that came last and the next one are side by side three times in a million, of
  // 75 keys in random order.
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

// How many values lie on a line of so many bytes, beside the line's lock.
template <class Value, class Sync, std::size_t LineBytes>
inline constexpr unsigned values_on_line = static_cast<unsigned>(std::max<std::size_t>(
    1, (LineBytes -
        (std::is_empty_v<typename Sync::node_lock> ? 0 : sizeof(typename Sync::node_lock))) /
           sizeof(field<Value>)));

// Leaves whose keys lie apart from their values, as they are.
template <unsigned LeafSlots = 16, unsigned InnerSlots = 16>
struct separated_fan_out : controlled_fan_out<LeafSlots, InnerSlots> {
  template <class Value, class Sync>
  static constexpr unsigned values_per_line = values_on_line<Value, Sync, 64>;
  template <class Key, class Value, class Sync>
  using keys_of = plain_keys<Key, Sync::readers_race, LeafSlots>;
  template <class Key, class Value, class Sync>
  using leaf = internal::separated_leaf<Key, Value, Sync, separated_fan_out>;
};

// The same with packed keys, and leaves that share with their siblings before they split. RestBytes
// is the room for what the fingerprints leave of the keys.
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
// fetch together: a lock takes half as much room then.
template <std::size_t LeafBytes, std::size_t InnerBytes>
struct packed_node_bytes : node_bytes<LeafBytes, InnerBytes> {
  static constexpr bool shares_with_siblings = true;
  static constexpr bool has_leaf_hints = true;
  static constexpr bool has_controls = false;
  static constexpr bool summarizes_keys = true;
  // As many blocks of keys as fit with their entries in the summary.
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

  // As many lines of values as fit beside the head and the keys that they have room for; what is
  // left goes to the keys.
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
