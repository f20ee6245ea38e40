// A leaf of hash buckets for integer keys, so that a request for one key reads and writes two cache
// lines of the leaf.
//
//   | head | bucket 0: lock, keys, values | bucket 1 | ... | bucket 15 |
//
//   fixed_key_btree<std::uint64_t, std::uint64_t, optimistic, bucketed_node_bytes<1024>> tree;
//
// Thread-safety: as separated_leaf.hpp, with other locks (below).
//
// Implementation notes
// A request hashes its key and searches one bucket (hashed_bucket.hpp). Records are in no order. A
// scan or a split sorts them in private memory. It places them by their keys' distances from the
// lowest key, which nearly sorts random keys, and then moves the few that are out of place.
//
// Room: an insert may find no room although slots are free, because frames differ. It finds room if
// the leaf has fewer than certain_capacity keys. A split leaves no half with more than that, so
// that its halves surely fit. keep() only removes records, so it needs no room.
//
// A leaf cannot tell in which order all of its keys came, but the slots of a bucket can.
// continues_a_run() needs no more.
//
// Locks, where readers race
//   * The lock of a bucket protects all of the bucket, and which keys of that home are in the leaf.
//     So an insert or an erase of a key locks the key's home bucket, wherever the key is. If the
//     key is in another bucket, it also tries the lock of that bucket, and begins again if another
//     thread has it. An update locks the key's bucket only.
//   * The leaf's lock protects the set of keys for which the leaf is the right one. Splits,
//     redistributions and merges hold it and all locks of buckets, in order, for both leaves. They
//     change the parent, or the sequence number, before they release any of them.
//   * No cycle: a thread that holds a bucket's lock without the leaf's lock waits for no lock.
//     Others that wait for a bucket hold the leaf's lock.
//
// Why a request for one key need not look at the head
//   * Right leaf: the request reads the home's version and then validates the parent (or the
//     sequence number). A split that comes later locks all buckets, so it changes that version.
//   * A key in its home: the version of the home covers the search and the value.
//   * A key elsewhere: the key stays in the leaf, and in its bucket, while the home's version stays
//     the same. But a change of another key may move it within that bucket. So a reader reads the
//     bucket's version, the key, and the value, validates the bucket, and validates the home last.
//     An update locks the bucket, compares the key, and validates the home.
//   * No key: every change of a key of this home changes the home's version. Each of the other
//     buckets that were searched is validated by itself, so that no moving key was missed.
//   * A request that finds the version changed reads it again and validates the parent again,
//     instead of descending once more (leaf_ref::renew()). As for the first reading, this suffices.
//
// Linearization points: the reading of the home's version for an absent key and for a value in the
// home. The reading of the bucket's version for a value elsewhere. The try_upgrade() of the home
// for inserts, erases and updates in the home. The validation of the home for updates elsewhere.
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
#include "elidex/internal/tree/node_operation.hpp"
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
  static constexpr unsigned place_bits = std::bit_width(Capacity - 1);
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

  // Prefetches what a look-up of the key reads. Only regions read the head.
  [[gnu::always_inline]] static void prefetch_for(const bucketed_leaf* l, Key wanted) noexcept {
    if constexpr (!racing) __builtin_prefetch(l);
    prefetch_bytes<sizeof(typename buckets::bucket)>(&l->buckets_.at(buckets::home_of(wanted)));
  }
  // See controlled_leaf. The slot is unknown if the key is absent or not in its home.
  unsigned approach(Key wanted) const noexcept { return buckets_.approach(wanted); }

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

  // The lock of the key's home bucket.
  node_lock& lock_of(Key k) const noexcept
    requires racing
  {
    return buckets_.at(buckets::home_of(k)).lock;
  }

  unsigned find(Key wanted) const noexcept { return buckets_.find(wanted); }
  template <class Fn>
  void for_each_key(Fn&& fn) const noexcept {
    buckets_.for_each_key([&](unsigned /*slot*/, Key k) { fn(k); });
  }

  // Whether this slot is in use for the key. It may show the key although the key has moved.
  bool has_key_in(unsigned slot, Key k) const noexcept {
    return slot % buckets::slots_each < buckets_.of_slot(slot).count() && key(slot) == k;
  }
  unsigned used() const noexcept { return buckets_.used(); }
  // Whether the leaf may have few keys, as far as the bucket of this slot tells.
  bool seems_sparse(unsigned slot) const noexcept {
    return buckets_.of_slot(slot).count() <= (buckets::slots_each + 2) / 3;
  }
  static unsigned room_between(Key lowest, Key highest) noexcept {
    return buckets::room_between(lowest, highest);
  }
  // Whether the records surely have room, here and, with those of this leaf, in an empty one.
  bool has_room_for(Key lowest, Key highest, unsigned more) const noexcept {
    return buckets_.has_room_for(lowest, highest, more);
  }
  // Whether hold_room_for() would find room.
  bool has_room_for(Key k) const noexcept { return buckets_.has_room_for(k); }

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
    // Mostly the one before is not the last of its bucket.
    unsigned before = no_slot;
    Key nearest{};
    buckets_.for_each_key([&](unsigned slot, Key k) {
      if (k < next && (before == no_slot || nearest < k)) {
        before = slot;
        nearest = k;
      }
    });
    const auto came_last = [&](unsigned slot, unsigned run) {
      return slot % buckets::slots_each + run >= buckets_.at(bucket_of(slot)).count();
    };
    if (before == no_slot || !came_last(before, 1)) return false;
    ordered_view view;
    order(view);
    unsigned rank = 0;
    while (rank < view.count() && view.key(rank) < next) ++rank;
    if (rank < run_length) return false;
    // Each must lie behind all keys of its bucket that are not of the run.
    std::array<std::uint8_t, buckets::count> in_run{};
    for (unsigned i = rank - run_length; i < rank; ++i) ++in_run[bucket_of(view.slots_.slot(i))];
    for (unsigned i = rank - run_length; i < rank; ++i) {
      const unsigned slot = view.slots_.slot(i);
      if (!came_last(slot, in_run[bucket_of(slot)])) return false;
    }
    // If the next key came last, too, the keys may as well descend.
    return rank == view.count() || !came_last(view.slots_.slot(rank), 1);
  }

  // The three functions from here on need the leaf's lock and the locks of all buckets. The records
  // must surely have room (room_between()).
  void fill(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    buckets_.clear();
    append(records, first, last);
  }
  // Adds the records from `first` to `last - 1`.
  void append(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    for (unsigned i = first; i < last; ++i) buckets_.insert(records.key(i), records.value(i));
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
  }

  // The functions from here on need the lock of the key's home bucket. Another bucket that they
  // change they try to lock: restart means that another thread has it.

  // Finds and makes room for an absent key, and locks the bucket that has it. Full: there is none.
  op_status hold_room_for(Key k, unsigned& in) noexcept {
    const unsigned home = buckets::home_of(k);
    op_status s = op_status::full;
    buckets_.any_with_room(k, [&](unsigned b) {
      in = b;
      auto& bucket = buckets_.at(b);
      typename node_lock::token seen{};
      if (b != home && !try_lock(bucket, seen)) {
        s = op_status::restart;
        return true;
      }
      if (bucket.make_room_for(k)) {
        s = op_status::yes;
        return true;
      }
      if (b != home) unlock_unchanged(bucket, seen);
      return false;
    });
    return s;
  }
  void let_go_of_room(Key k, unsigned in) noexcept {
    if (buckets::rules::locks_others && in != buckets::home_of(k)) buckets_.at(in).lock.unlock();
  }
  // In the room that hold_room_for() has found. Lets go of it.
  void insert_in(unsigned in, Key k, const Value& v) noexcept {
    buckets_.insert_in(in, k, v);
    let_go_of_room(k, in);
  }

  // Locks the bucket of a key that is in this slot. Sets `slot` to where the key is then.
  op_status hold(Key k, unsigned& slot) noexcept {
    if (bucket_of(slot) == buckets::home_of(k)) return op_status::yes;
    auto& bucket = buckets_.of_slot(slot);
    typename node_lock::token seen;
    if (!try_lock(bucket, seen)) return op_status::restart;
    const unsigned now = bucket.find(k);
    if (now == no_slot) {
      unlock_unchanged(bucket, seen);
      return op_status::restart;
    }
    slot = bucket_of(slot) * buckets::slots_each + now;
    return op_status::yes;
  }
  void let_go(Key k, unsigned slot) noexcept { let_go_of_room(k, bucket_of(slot)); }
  void erase(unsigned slot) noexcept { buckets_.erase(slot); }

 private:
  // Chosen: of 100 keys in random order, the four before a random one came last in their buckets
  // about once in two thousand times.
  static constexpr unsigned run_length = std::clamp(capacity / 16, 2U, 4U);

  static unsigned bucket_of(unsigned slot) noexcept { return slot / buckets::slots_each; }
  static bool try_lock(typename buckets::bucket& b, typename node_lock::token& seen) noexcept {
    return !buckets::rules::locks_others || b.lock.try_lock(seen);
  }
  static void unlock_unchanged(typename buckets::bucket& b,
                               typename node_lock::token seen) noexcept {
    if constexpr (buckets::rules::locks_others) b.lock.unlock_unchanged(seen);
  }

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
