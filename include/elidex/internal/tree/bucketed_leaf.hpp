// A leaf of hash buckets for integer keys, so that a request for one key reads two cache lines of
// the leaf beside its head.
//
//   | head | bucket 0: lock, keys, values | bucket 1 | ... | bucket 15 |
//
//   fixed_key_btree<std::uint64_t, std::uint64_t, optimistic, bucketed_node_bytes<1024>> tree;
//
// Thread-safety: as separated_leaf.hpp. The lock of a bucket is the lock of its values.
//
// Implementation notes
// The leaf has the interface of separated_leaf, and the same rules for locks. A request hashes its
// key and searches one bucket (hashed_bucket.hpp). Records are in no order. A scan or a split sorts
// them in private memory. It places them by their keys' distances from the lowest key, which nearly
// sorts random keys, and then moves the few that are out of place.
//
// Room: an insert may find no room although slots are free, because frames differ. It finds room if
// the leaf has fewer than certain_capacity keys. A split leaves no half with more than that, so
// that its halves surely fit. keep() only removes records, so it needs no room.
//
// A leaf cannot tell in which order all of its keys came, but the slots of a bucket can.
// continues_a_run() needs no more.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/gathered_records.hpp"
#include "elidex/internal/tree/hashed_bucket.hpp"
#include "elidex/internal/tree/separated_leaf.hpp"

namespace elidex::internal {

// Some of a leaf's keys with their slots, in key order.
template <std::integral Key, unsigned Capacity>
class sorted_slots {
 public:
  struct entry {
    Key key;
    std::uint16_t slot;
  };
  unsigned count() const noexcept { return std::min(count_, Capacity); }
  Key key(unsigned i) const noexcept { return entries_[i].key; }
  unsigned slot(unsigned i) const noexcept { return entries_[i].slot; }

  sorted_slots() noexcept {}  // leaves the entries as they are

  // Sorts the keys for which for_each(fn) calls fn(slot, key): at most Capacity.
  template <class ForEach>
  void sort(ForEach&& for_each) noexcept {
    std::array<entry, Capacity> unsorted;
    unsigned n = 0;
    std::uint64_t lowest = ~std::uint64_t{0};
    std::uint64_t highest = 0;
    for_each([&](unsigned slot, Key key) {
      unsorted[n++] = {key, static_cast<std::uint16_t>(slot)};
      lowest = std::min(lowest, rank_number(key));
      highest = std::max(highest, rank_number(key));
    });
    count_ = n;
    if (n == 0) return;
    const auto width = static_cast<unsigned>(std::bit_width(highest - lowest));
    const unsigned shift = width > place_bits ? width - place_bits : 0;
    const auto place_of = [&](Key key) { return (rank_number(key) - lowest) >> shift; };
    std::array<std::uint16_t, (1U << place_bits) + 1> first_in{};
    for (unsigned i = 0; i < n; ++i) ++first_in[place_of(unsorted[i].key) + 1];
    for (unsigned i = 1; i < first_in.size(); ++i)
      first_in[i] = static_cast<std::uint16_t>(first_in[i] + first_in[i - 1]);
    for (unsigned i = 0; i < n; ++i) entries_[first_in[place_of(unsorted[i].key)]++] = unsorted[i];
    for (unsigned i = 1; i < n; ++i) {
      const entry moved = entries_[i];
      unsigned to = i;
      for (; to > 0 && moved.key < entries_[to - 1].key; --to) entries_[to] = entries_[to - 1];
      entries_[to] = moved;
    }
  }

 private:
  static constexpr unsigned place_bits = 8;
  std::array<entry, Capacity> entries_;
  unsigned count_ = 0;
};

template <class Key, class Value, class Sync, class Shape>
class bucketed_leaf
    : public controlled_leaf<Sync, Shape, Shape::template buckets_of<Key, Value, Sync>::capacity> {
  static constexpr bool racing = Sync::readers_race;
  using node_lock = typename Sync::node_lock;
  using buckets = typename Shape::template buckets_of<Key, Value, Sync>;

 public:
  static constexpr unsigned capacity = buckets::capacity;
  static constexpr unsigned certain_capacity = buckets::certain_capacity;
  static constexpr bool in_order = false;
  static constexpr std::size_t value_locks = std::is_empty_v<node_lock> ? 0 : buckets::count;
  static constexpr std::size_t head_bytes = sizeof(controlled_leaf<Sync, Shape, capacity>);
  using ordered_copy = gathered_records<Key, Value, capacity>;

  // Prefetches what a look-up of the key reads.
  [[gnu::always_inline]] static void prefetch_for(const bucketed_leaf* l, Key wanted) noexcept {
    __builtin_prefetch(l);
    prefetch_bytes<sizeof(typename buckets::bucket)>(&l->buckets_.at(buckets::home_of(wanted)));
  }
  unsigned approach(Key /*wanted*/) const noexcept { return no_slot; }

  // The records in key order. The values stay in the leaf.
  class ordered_view {
   public:
    unsigned count() const noexcept { return slots_.count(); }
    Key key(unsigned i) const noexcept { return slots_.key(i); }
    Value value(unsigned i) const noexcept { return leaf_->value(slots_.slot(i)); }

   private:
    friend bucketed_leaf;
    const bucketed_leaf* leaf_ = nullptr;
    sorted_slots<Key, capacity> slots_;
  };

  Key key(unsigned slot) const noexcept { return buckets_.key(slot); }
  Value value(unsigned slot) const noexcept { return buckets_.value(slot); }
  void set_value(unsigned slot, const Value& v) noexcept { buckets_.set_value(slot, v); }

  node_lock& value_lock(unsigned slot) noexcept {
    if constexpr (value_locks == 0) return this->lock;
    return buckets_.of_slot(slot).lock;
  }
  template <class Fn>
  void for_each_value_lock(Fn&& fn) noexcept {
    if constexpr (value_locks != 0) {
      for (unsigned b = 0; b < buckets::count; ++b) fn(buckets_.at(b).lock);
    }
  }

  unsigned find(Key wanted) const noexcept { return buckets_.find(wanted); }
  template <class Fn>
  void for_each_key(Fn&& fn) const noexcept {
    buckets_.for_each_key([&](unsigned /*slot*/, Key k) { fn(k); });
  }

  unsigned used() const noexcept { return this->count(); }
  static unsigned room_between(Key lowest, Key highest) noexcept {
    return buckets::room_between(lowest, highest);
  }
  // Whether the records surely have room, here and, with those of this leaf, in an empty one.
  bool has_room_for(Key lowest, Key highest, unsigned more) const noexcept {
    return buckets_.has_room_for(lowest, highest, more);
  }
  // Whether insert() will find room.
  bool has_room_for(Key k) const noexcept { return buckets_.bucket_with_room(k) != buckets::count; }
  bool make_room_for(Key k) noexcept { return has_room_for(k); }

  static constexpr bool is_in_order() noexcept { return false; }
  void order(ordered_view& view) const noexcept {
    view.leaf_ = this;
    view.slots_.sort([&](auto&& fn) { buckets_.for_each_key(fn); });
  }
  void copy_in_order(ordered_copy& to) const noexcept {
    ordered_view view;
    order(view);
    to.clear();
    for (unsigned i = 0; i < view.count(); ++i) to.append(view.key(i), view.value(i));
  }

  // Whether the keys before `next` in key order came last, and came in ascending order (a guess, as
  // in separated_leaf).
  bool continues_a_run(Key next) const noexcept {
    ordered_view view;
    order(view);
    unsigned rank = 0;
    while (rank < view.count() && view.key(rank) < next) ++rank;
    if (rank < run_length) return false;
    // Each must lie behind all keys of its bucket that are not of the run.
    std::array<std::uint8_t, buckets::count> in_run{};
    for (unsigned i = rank - run_length; i < rank; ++i) ++in_run[bucket_of(view.slots_.slot(i))];
    const auto came_last = [&](unsigned slot, unsigned run) {
      return slot % buckets::slots_each + run >= buckets_.at(bucket_of(slot)).count();
    };
    for (unsigned i = rank - run_length; i < rank; ++i) {
      const unsigned slot = view.slots_.slot(i);
      if (!came_last(slot, in_run[bucket_of(slot)])) return false;
    }
    // If the next key came last, too, the keys may as well descend.
    return rank == view.count() || !came_last(view.slots_.slot(rank), 1);
  }

  // The functions from here on need the leaf's lock. These three also need the locks of the values.
  // The records must surely have room (room_between()).
  void fill(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    buckets_.clear();
    this->set_count(0);
    append(records, first, last);
  }
  // Keeps the records from `first` to `last - 1` of its own, which `all` holds.
  void keep(const ordered_copy& all, unsigned first, unsigned last) noexcept {
    if (first == last) {
      buckets_.clear();
    } else {
      const Key lowest = all.key(first);
      const Key highest = all.key(last - 1);
      buckets_.keep_if([&](Key k) { return lowest <= k && k <= highest; });
    }
    this->set_count(last - first);
  }
  void erase(unsigned slot) noexcept {
    buckets_.erase(slot);
    this->set_count(this->count() - 1);
  }

  // These need no locks of values.
  bool insert(Key k, const Value& v) noexcept {
    if (!buckets_.insert(k, v)) return false;
    this->set_count(this->count() + 1);
    return true;
  }
  // Adds the records from `first` to `last - 1`, which must have room.
  void append(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    for (unsigned i = first; i < last; ++i) buckets_.insert(records.key(i), records.value(i));
    this->set_count(this->count() + last - first);
  }

 private:
  // Chosen: of 100 keys in random order, the four before a random one came last in their buckets
  // about once in two thousand times.
  static constexpr unsigned run_length = std::clamp(capacity / 16, 2U, 4U);

  static unsigned bucket_of(unsigned slot) noexcept { return slot / buckets::slots_each; }

  buckets buckets_;
};

// Leaves of hash buckets. Values that are too large for buckets lie in separated leaves.
template <std::size_t InnerBytes, unsigned Buckets = 16, std::size_t BucketBytes = 128,
          class Rules = bucket_rules>
struct bucketed_node_bytes : packed_node_bytes<1152, InnerBytes> {
  template <class Value>
  static constexpr bool is_bucketed = sizeof(Value) <= 8;
  template <class Key, class Value, class Sync>
  using buckets_of = hashed_buckets<Key, Value, Sync, Buckets, BucketBytes, Rules>;
  template <class Key, class Value, class Sync>
  using leaf = std::conditional_t<
      is_bucketed<Value>, internal::bucketed_leaf<Key, Value, Sync, bucketed_node_bytes>,
      typename packed_node_bytes<1152, InnerBytes>::template leaf<Key, Value, Sync>>;
};

}  // namespace elidex::internal
