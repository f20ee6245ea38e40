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
// paper 003 section 5.1 with a single segment). A scan that passes puts the leaf in order, so that
// the next scan finds it in order (as in the paper).
//
// The shape chooses how keys are stored:
//   plain_keys    In one array. A request searches the keys in order and then the others. The
//                 others are sorted in as soon as there are eight of them.
//   packed_keys   In less room, in any order, and found by fingerprints.
//
// Locks of values: a thread needs them to write a value, to move one, and (as a version) to read
// one that another thread may write. A thread that moves values, or makes slots, first takes the
// leaf's lock. A new value in a slot behind `count` needs the leaf's lock only.
//
// From: paper 003 section 4.2, "partitioning data layout", carried further. The idea that reads of
// keys should not conflict with writes of values is ours.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/conflict_control.hpp"
#include "elidex/internal/tree/gathered_records.hpp"
#include "elidex/internal/tree/key_search.hpp"
#include "elidex/internal/tree/vector_unpack.hpp"

namespace elidex::internal {

// Takes the place of the pointer to a conflict control in leaves that never have one.
template <class Control>
struct never_controlled {
  Control* load(std::memory_order /*order*/) const noexcept { return nullptr; }
  void store(Control* /*none*/, std::memory_order /*order*/) noexcept {}
};

// The first part of each leaf of a fixed_key_btree (separated_leaf.hpp).
// From: paper 003 section 5.
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
  // Prefetches what an insertion writes, besides what a look-up reads.
  void approach_free_slot() const noexcept {}
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
  void prefetch_rest_of(unsigned /*slot*/) const noexcept {}

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

// The width of the frames for which a leaf is laid out. For 8-byte keys it is 48 bits, which is
// enough for a full leaf in a map of five million random keys. In a map of fewer such keys, leaves
// hold fewer keys, because each needs more bits.
template <std::integral Key>
inline constexpr unsigned planned_key_bits = 8 + (8 * sizeof(Key) - 8) * 5 / 7;

// The keys of one leaf, each stored as its distance from the leaf's base in a byte and some bits.
//
//   keys           base + 0x3a51f07, base + 0x11e24c8, ...   each less than base + 2^width (the
//                                                            leaf's frame)
//   fingerprints   the low bytes, hashed                     a byte each, all compared at once
//   rests          the other bits                            width - 8 bits each, without gaps
//
// A racing reader may see a base, a width and rests that do not belong together. It then computes
// some number, or a slot below Slots. The result counts only if the leaf's version has not changed.
//
// A leaf's keys are neighbours in key order, so their distances are short (frame of reference:
// Goldstein, Ramakrishnan, Shaft, "Compressing relations and indexes", ICDE 1998). The low byte of
// a distance, xored with a hash of the other bits, serves as fingerprint (key_search.hpp). The
// fingerprint costs no room, because the low byte can be computed from it and the other bits
// (quotienting: Knuth, TAOCP 3, section 6.4, exercise 13). Without the hash, all multiples of 256
// would have the same fingerprint.
//
// The frame decides how many keys fit: at most Slots, and as many as have room for their rests. A
// frame is chosen as wide as possible without the loss of a slot, with its keys in the middle, so
// that few later keys fall outside. A frame lies within the range of the key's type, unless it is
// all of that range. A frame that wrapped around the type's end would hold keys of both ends. No
// frame has room for such keys when they are encoded again.
template <std::integral Key, bool Racing, unsigned Slots, std::size_t RestWords>
class packed_keys {
  using unsigned_key = std::make_unsigned_t<Key>;
  using distance = std::uint64_t;
  using prints_type = fingerprints<Racing, Slots>;
  static constexpr unsigned key_bits = 8 * sizeof(Key);
  static constexpr unsigned rest_room = RestWords * 64;

 public:
  static constexpr unsigned capacity = Slots;
  static constexpr bool are_found_by_order = false;
  // what approach() reads
  static constexpr std::size_t bytes_for_look_up = 2 * sizeof(std::uint64_t) + Slots;
  static_assert(Slots >= 2 && rest_room >= 2 * (key_bits - 8),
                "a leaf must hold two keys however far apart they are: larger leaves or smaller "
                "values, please");

  packed_keys() noexcept { set_frame({Key{}, free_rest_bits}); }

  Key key(unsigned slot) const noexcept {
    const distance rest = rest_at(slot, rest_bits());
    return key_of(rest, prints_.at(slot), base());
  }
  // Calls fn(slot, key) for the slots from `first` to `last - 1`.
  template <class Fn>
  void for_each(unsigned first, unsigned last, Fn&& fn) const noexcept {
    const unsigned bits = rest_bits();
    const Key base = this->base();
    last = std::min(last, slots_of(bits));  // a racing reader's count may belong to another frame
    if (first >= last) return;
    const private_rests rests(*this, first * bits / 64, last * bits / 64);
    if (vectors_of_this_cpu >= vector_instructions::avx512_vbmi) {
      const unpacked_keys keys(*this, rests, first, last, bits);
      for (unsigned slot = first; slot < last; ++slot) fn(slot, keys.at(slot - first));
      return;
    }
    for (unsigned slot = first; slot < last;) {
      std::uint64_t prints = prints_.word(slot / 8) >> slot % 8 * 8;
      for (const unsigned end = std::min(last, slot / 8 * 8 + 8); slot < end;
           ++slot, prints >>= 8U) {
        fn(slot,
           key_of(rests.at(slot * bits) & mask(bits), static_cast<std::uint8_t>(prints), base));
      }
    }
  }

  // The key must lie in the frame.
  void set(unsigned slot, Key key) noexcept {
    const distance d = distance_of(key);
    prints_.set(slot, print_of(d));
    set_rest(slot, rest_bits(), d >> 8U);
  }
  // Replaces all keys by key_at(0) to key_at(count - 1), which lie between `lowest` and `highest`.
  template <class KeyAt>
  void fill(unsigned count, Key lowest, Key highest, KeyAt&& key_at) noexcept {
    fill(count, frame_of(lowest, highest), key_at);
  }

  // Returns the slot of the key among the first `count` slots, or no_slot.
  unsigned find(Key wanted, unsigned count) const noexcept {
    const unsigned bits = rest_bits();
    const distance rest = distance_of(wanted) >> 8U;
    if (rest >> bits != 0) return no_slot;
    return slot_with(wanted, count, [&](unsigned slot) { return rest_at(slot, bits) == rest; });
  }
  // Returns the first slot with the key's fingerprint. Does not look at the rests, but prefetches
  // them.
  unsigned approach(Key wanted, unsigned count) const noexcept {
    const unsigned slot = slot_with(wanted, count, [](unsigned /*slot*/) { return true; });
    if (slot != no_slot) __builtin_prefetch(&rests_[word_of(slot * rest_bits())]);
    return slot;
  }
  void prefetch_rest_of(unsigned slot) const noexcept {
    __builtin_prefetch(&rests_[word_of(slot * rest_bits())], 1);
  }

  // How many keys between these two fit.
  static unsigned room_between(Key lowest, Key highest) noexcept {
    return slots_of(frame_of(lowest, highest).rest_bits);
  }
  // Whether `more` keys from `lowest` to `highest` have room beside the first `count`.
  // make_room_for() also changes the frame for them if necessary. If they have no room, it changes
  // nothing and returns false.
  bool has_room_for(unsigned count, Key lowest, Key highest, unsigned more) const noexcept {
    frame ignored = frame_now();
    return count + more <= room_with(count, lowest, highest, more, ignored);
  }
  bool make_room_for(unsigned count, Key lowest, Key highest, unsigned more) noexcept {
    return has_room_now(frame_now(), count, lowest, highest, more) ||
           encode_for(count, lowest, highest, more);
  }

 private:
  struct frame {
    Key base;
    unsigned rest_bits;
    bool operator==(const frame&) const = default;
  };

  [[gnu::noinline]] bool encode_for(unsigned count, Key lowest, Key highest,
                                    unsigned more) noexcept {
    frame wanted = frame_now();
    if (count + more > room_with(count, lowest, highest, more, wanted)) return false;
    if (wanted == frame_now()) return true;
    std::array<Key, Slots> kept;
    for_each(0, count, [&](unsigned slot, Key key) { kept[slot] = key; });
    fill(count, wanted, [&](unsigned slot) { return kept[slot]; });
    return true;
  }

  // A private copy of some of the rests' words, which can be read from any byte.
  class private_rests {
   public:
    private_rests(const packed_keys& of, unsigned first_word, unsigned last_word) noexcept {
      for (unsigned i = first_word; i <= last_word + 1 && i <= RestWords; ++i) {
        words_[i] = of.rests_[i].template load<Racing>();
      }
    }
    const std::uint64_t* words() const noexcept { return words_.data(); }
    // The bits from this one on: at least 57 of them.
    std::uint64_t at(unsigned bit) const noexcept {
      if constexpr (std::endian::native == std::endian::little) {
        std::uint64_t bytes;
        std::memcpy(&bytes, reinterpret_cast<const char*>(words_.data()) + bit / 8, sizeof(bytes));
        return bytes >> bit % 8;
      } else {
        return words_[bit / 64] >> bit % 64 | words_[bit / 64 + 1] << 1U << (63 - bit % 64);
      }
    }

   private:
    // with room for a window of vectors
    std::array<std::uint64_t, RestWords + 1 + vector_unpack::window_bytes / 8> words_;
  };

  // The keys of the slots from `first` to `last - 1`, decoded by vectors.
  class unpacked_keys {
   public:
    unpacked_keys(const packed_keys& of, const private_rests& rests, unsigned first, unsigned last,
                  unsigned bits) noexcept {
      std::array<std::uint64_t, prints_type::words + 1> prints;
      for (unsigned i = first / 8; i <= (last - 1) / 8; ++i) prints[i] = of.prints_.word(i);
      vector_unpack::unpack(rests.words(), first * bits, bits,
                            reinterpret_cast<const std::uint8_t*>(prints.data()) + first,
                            last - first, static_cast<unsigned_key>(of.base()), hash_multiplier,
                            keys_.data());
    }
    Key at(unsigned i) const noexcept {
      return static_cast<Key>(static_cast<unsigned_key>(keys_[i]));
    }

   private:
    std::array<std::uint64_t, Slots + vector_unpack::lane_count> keys_;
  };

  // The width of the rests up to which no slot is lost.
  static constexpr unsigned free_rest_bits = std::min(key_bits - 8, rest_room / Slots);

  static unsigned slots_of(unsigned rest_bits) noexcept {
    return rest_bits <= free_rest_bits ? Slots : std::min(Slots, rest_room / rest_bits);
  }
  static frame frame_of(Key lowest, Key highest) noexcept {
    const distance range = distance_between(lowest, highest);
    const auto width = std::max(static_cast<unsigned>(std::bit_width(range)), 8 + free_rest_bits);
    const distance before_lowest = distance_between(std::numeric_limits<Key>::min(), lowest);
    const distance behind_highest = distance_between(highest, std::numeric_limits<Key>::max());
    const distance spare = (~distance{0} >> (64 - width)) - range;
    const distance below_at_least = spare - std::min(spare, behind_highest);
    const distance below = std::min(std::max(spare / 2, below_at_least), before_lowest);
    return {static_cast<Key>(static_cast<unsigned_key>(lowest) - static_cast<unsigned_key>(below)),
            width - 8};
  }
  frame frame_now() const noexcept { return {base(), rest_bits()}; }

  // How many keys fit into a frame that also holds `more` keys from `lowest` to `highest`. Sets
  // `now` to that frame if another frame is necessary.
  unsigned room_with(unsigned count, Key lowest, Key highest, unsigned more,
                     frame& now) const noexcept {
    if (has_room_now(now, count, lowest, highest, more)) return slots_of(now.rest_bits);
    if (count + more > Slots) return Slots;
    for_each(0, count, [&](unsigned /*slot*/, Key key) {
      lowest = std::min(lowest, key);
      highest = std::max(highest, key);
    });
    now = frame_of(lowest, highest);
    return slots_of(now.rest_bits);
  }
  static bool has_room_now(const frame& now, unsigned count, Key lowest, Key highest,
                           unsigned more) noexcept {
    const auto lies_inside = [&](Key key) {
      return distance_between(now.base, key) >> 8U >> now.rest_bits == 0;
    };
    return count + more <= slots_of(now.rest_bits) && lies_inside(lowest) && lies_inside(highest);
  }

  distance distance_of(Key key) const noexcept { return distance_between(base(), key); }
  static distance distance_between(Key base, Key key) noexcept {
    return static_cast<unsigned_key>(static_cast<unsigned_key>(key) -
                                     static_cast<unsigned_key>(base));
  }
  static Key key_of(distance rest, std::uint8_t print, Key base) noexcept {
    const distance d = rest << 8U | (print ^ hash(rest));
    return static_cast<Key>(
        static_cast<unsigned_key>(static_cast<unsigned_key>(base) + static_cast<unsigned_key>(d)));
  }
  static constexpr std::uint64_t hash_multiplier = 0x9E37'79B9'7F4A'7C15u;  // the golden ratio's
  static std::uint8_t hash(distance rest) noexcept {
    return static_cast<std::uint8_t>((rest * hash_multiplier) >> 56U);
  }
  static std::uint8_t print_of(distance d) noexcept {
    return static_cast<std::uint8_t>(d) ^ hash(d >> 8U);
  }

  template <class IsWanted>
  unsigned slot_with(Key wanted, unsigned count, IsWanted&& is_wanted) const noexcept {
    const unsigned slot =
        prints_.find(print_of(distance_of(wanted)), std::min(count, Slots), is_wanted);
    return slot == Slots ? no_slot : slot;
  }

  // A rest may lie across two words: its low part in one, its high part in the next. The array has
  // one extra word, so that there is always a next one.
  distance rest_at(unsigned slot, unsigned bits) const noexcept {
    return rest_from(word_of(slot * bits), slot * bits % 64, bits);
  }
  distance rest_from(unsigned word, unsigned shift, unsigned bits) const noexcept {
    const std::uint64_t low = rests_[word].template load<Racing>() >> shift;
    const std::uint64_t high = rests_[word + 1].template load<Racing>() << 1U << (63 - shift);
    return (low | high) & mask(bits);
  }
  static unsigned word_of(unsigned bit) noexcept {
    // a racing reader may compute a bit beyond the end
    return std::min<unsigned>(bit / 64, RestWords - 1);
  }
  void set_rest(unsigned slot, unsigned bits, distance rest) noexcept {
    const unsigned first = slot * bits;
    const unsigned at = first / 64;
    const unsigned shift = first % 64;
    store_bits(at, mask(bits) << shift, rest << shift);
    if (shift + bits > 64) store_bits(at + 1, mask(bits) >> (64 - shift), rest >> (64 - shift));
  }
  void store_bits(unsigned word, std::uint64_t where, std::uint64_t what) noexcept {
    rests_[word].template store<Racing>((rests_[word].template load<Racing>() & ~where) | what);
  }

  // Writes whole words.
  template <class KeyAt>
  void fill(unsigned count, const frame& f, KeyAt&& key_at) noexcept {
    set_frame(f);
    std::uint64_t prints = 0;
    std::uint64_t rests = 0;
    unsigned bit = 0;
    for (unsigned slot = 0; slot < count; ++slot) {
      const distance d = distance_between(f.base, key_at(slot));
      const distance rest = d >> 8U;
      prints |= std::uint64_t{print_of(d)} << slot % 8 * 8;
      if (slot % 8 == 7) prints_.set_word(slot / 8, std::exchange(prints, 0));
      const unsigned shift = bit % 64;
      rests |= rest << shift;
      if (shift + f.rest_bits >= 64) {
        rests_[bit / 64].template store<Racing>(rests);
        rests = rest >> 1U >> (63 - shift);
      }
      bit += f.rest_bits;
    }
    if (count % 8 != 0) prints_.set_word(count / 8, prints);
    if (bit % 64 != 0) rests_[bit / 64].template store<Racing>(rests);
  }

  static std::uint64_t mask(unsigned bits) noexcept { return (std::uint64_t{1} << bits) - 1; }

  Key base() const noexcept { return base_.template load<Racing>(); }
  unsigned rest_bits() const noexcept { return rest_bits_.template load<Racing>(); }
  void set_frame(const frame& f) noexcept {
    base_.template store<Racing>(f.base);
    rest_bits_.template store<Racing>(static_cast<std::uint8_t>(f.rest_bits));
  }

  field<Key> base_;
  field<std::uint8_t> rest_bits_;
  prints_type prints_;
  std::array<field<std::uint64_t>, RestWords + 1> rests_{};
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

  // A new record comes behind the others. A full leaf is read as a whole.
  void approach_free_slot() const noexcept {
    const unsigned free = this->count();
    if (free >= capacity) {
      prefetch_bytes_for_later<sizeof(separated_leaf)>(this);
      return;
    }
    keys_.prefetch_rest_of(free);
    __builtin_prefetch(&lines_[free % lines], 1);
    __builtin_prefetch(&at(free), 1);
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
    unsigned index = first / lines;
    keys_.for_each(first, last, [&](unsigned /*slot*/, Key k) {
      fn(k, lines_[in_line].values[index].template load<racing>());
      if (++in_line == lines) {
        in_line = 0;
        ++index;
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
  bool has_room_for(Key k) const noexcept { return has_room_for(k, k, 1); }

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
  static constexpr bool has_leaf_hints = true;
  template <class Value, class Sync>
  static constexpr unsigned values_per_line = values_on_line<Value, Sync, 64>;
  template <class Key, class Value, class Sync>
  using keys_of = plain_keys<Key, Sync::readers_race, LeafSlots>;
  template <class Key, class Value, class Sync>
  using leaf = internal::separated_leaf<Key, Value, Sync, separated_fan_out>;
};

// The same with packed keys. A full leaf redistributes with its siblings before it splits.
// RestBytes is the room for the rests of the keys (packed_keys).
template <unsigned LeafSlots, unsigned InnerSlots, std::size_t RestBytes = 5 * LeafSlots>
struct packed_fan_out : controlled_fan_out<LeafSlots, InnerSlots> {
  static constexpr bool redistributes_with_siblings = true;
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
  static constexpr bool redistributes_with_siblings = true;
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
