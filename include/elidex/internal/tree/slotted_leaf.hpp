// A leaf of a tree of strings that holds its keys and values itself (slotted_node.hpp), so that a
// request for one key follows no address behind the leaf's.
//
//   slotted_leaf<std::uint64_t, Sync, Layout> l;
//   if (l.has_room(l.count(), key)) l.insert(0, key, nullptr, 70);
//   l.rank<false>(l.count(), search_key, still_valid, rank, exact)
//
// It has the functions of btree_leaf (btree.hpp). Thread-safety and errors: as for slotted_node.
//
// Implementation notes
// The record of a key has the words of its value slot: the value, or an object's address. A key is
// outside, in a blob, if more than inline_rest of its bytes lie behind the prefix when it comes. A
// key inside never needs a blob later: a merge that would make it too long does not take place.
//
// How many records fit depends on their keys. So a leaf is full when the next key lacks room, and a
// split divides its bytes, not its slots. An empty leaf and a full neighbour may not fit together,
// because their common prefix is shorter. The empty leaf then stays until its neighbour has room.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "elidex/internal/tree/btree_node.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/slotted_node.hpp"

namespace elidex::internal {

// For value slots of so many words: as many slots as short keys fill, in so many bytes.
constexpr unsigned slots_of_slotted_leaf(std::size_t bytes, unsigned value_words) noexcept {
  const auto quarters = static_cast<unsigned>((bytes - 8) / 8 * 4);
  return std::max(4U, std::min(quarters / (4 * (1 + value_words) + 1), 64U) / 4 * 4);
}
template <std::size_t Bytes, unsigned ValueWords, unsigned InlineSuffix = 128>
using slotted_leaf_layout =
    slotted_layout<Bytes, slots_of_slotted_leaf(Bytes, ValueWords), 1, ValueWords, InlineSuffix>;

// The shortest key that separates two keys of a leaf: the right one's first bytes, as far as the
// first that differs from the left one's.
class slotted_separator {
 public:
  slotted_separator(const slotted_key& left, const slotted_key& right) noexcept
      : right_(right), size_(key_codec<std::string>::in_common(left.view(), right.view()) + 1) {}
  std::string_view get() const noexcept { return right_.view().substr(0, size_); }

 private:
  slotted_key right_;
  std::size_t size_;
};

template <class Value, class Sync, class Layout>
struct slotted_leaf : btree_node<Sync> {
  using keys = key_codec<std::string>;
  using search_key = keys::search_key;
  using value_slot = typename value_codec<Value>::slot;
  static constexpr bool racing = Sync::readers_race;
  using records_type = slotted_node<Layout, racing>;
  static constexpr bool holds_keys = true;
  static constexpr unsigned capacity = records_type::capacity;
  // How many of the slots are in use after random inserts, measured with words of 9 bytes.
  static constexpr unsigned usual_percent = 63;
  static constexpr std::size_t head_bytes = sizeof(btree_node<Sync>);
  static constexpr bool in_order = true;
  static constexpr std::size_t value_locks = 0;  // the leaf's lock is the values' lock too
  struct ordered_view {};                        // not needed
  static constexpr std::size_t bytes_for_look_up = head_bytes + sizeof(records_type);
  static_assert(sizeof(value_slot) <= sizeof(typename records_type::values));
  // A full leaf can be split: the longest prefix and three records of any length fit.
  static_assert(records_type::heap_words(0) >= records_type::prefix_words(slotted_key::prefix_max) +
                                                   3 * (records_type::record_words_max + 1));

  slotted_leaf() noexcept : btree_node<Sync>(0) {}

  template <class Fn>
  void for_each_value_lock(Fn&& /*fn*/) const noexcept {}
  unsigned approach(const search_key& /*key*/) const noexcept { return no_slot; }

  unsigned used() const noexcept { return this->count(); }
  template <bool OrEqual, class StillValid>
  bool rank(unsigned count, const search_key& key, StillValid&& still_valid, unsigned& rank,
            bool& exact) const noexcept {
    return records.template rank<OrEqual>(count, key, still_valid, rank, exact);
  }
  slotted_key key(unsigned i) const noexcept { return records.key(i); }
  blob* blob_of(unsigned i) const noexcept { return records.blob_of(i); }
  unsigned prefix() const noexcept { return records.prefix(); }
  value_slot value(unsigned i) const noexcept {
    const typename records_type::values words = records.values_at(i);
    if constexpr (std::same_as<value_slot, bool>) {
      return (words[0] & first_byte) != 0;  // what a racing reader reads may be no bool
    } else {
      std::array<std::byte, sizeof(value_slot)> bytes;
      std::memcpy(bytes.data(), words.data(), sizeof(bytes));
      return std::bit_cast<value_slot>(bytes);
    }
  }
  void set_value(unsigned i, const value_slot& v) noexcept { records.set_values(i, words_of(v)); }

  // Whether the key must go outside.
  bool needs_blob(std::string_view key) const noexcept {
    return records_type::needs_blob(key.size(), prefix());
  }
  bool has_room(unsigned count, std::string_view key) const noexcept {
    const unsigned length = prefix();
    const bool outside = records_type::needs_blob(key.size(), length);
    return records.has_room(count, records_type::words_for(key.size(), outside, length));
  }
  void insert(unsigned position, std::string_view key, blob* outside,
              const value_slot& v) noexcept {
    const unsigned n = this->count();
    records.insert(n, position, keys::search_key_of_stored(key), outside, words_of(v));
    this->set_count(n + 1);
  }
  void erase(unsigned i) noexcept { erase(i, i + 1); }
  void move_tail(unsigned first, slotted_leaf& to) noexcept {
    const unsigned n = this->count();
    const unsigned at = to.count();
    to.records.append(at, records, first, n);
    to.set_count(at + n - first);
    erase(first, n);
  }

  // Where a split divides the leaf.
  unsigned middle() const noexcept { return records.middle(this->count()); }
  slotted_separator separator_before(unsigned i) const noexcept { return {key(i - 1), key(i)}; }
  // Worth merging after the erasure of one of so many records.
  bool is_sparse_without_one(unsigned count) const noexcept {
    return count <= 1 || (count <= capacity / 3 + 1 &&
                          records.free_words(count) >= records_type::heap_words(0) * 2 / 3);
  }
  // Whether one leaf can take the records of both, of which at most one will be erased before. One
  // that counts 0 gives none. Room for a few inserts stays, so that the leaf does not split again
  // at once.
  template <class Parent>
  static bool fit_together(const slotted_leaf& left, unsigned left_count, const slotted_leaf& right,
                           unsigned right_count, const Parent& parent) noexcept {
    const unsigned n = left_count + right_count;
    const unsigned length =
        records_type::shared_prefix(left.records, right.records, parent.prefix());
    const auto words_of_all = [&](const slotted_leaf& l, unsigned remaining) {
      return remaining == 0 ? 0 : l.records.words_behind(length, 0, l.count());
    };
    const unsigned words = n + records_type::prefix_words(length) + words_of_all(left, left_count) +
                           words_of_all(right, right_count);
    const bool one_is_empty = left_count == 0 || right_count == 0;
    const unsigned all = records_type::heap_words(0);
    return n <= (one_is_empty ? capacity : capacity * 5 / 6) &&
           words <= (one_is_empty ? all : all * 5 / 6);
  }

  // How many of the right neighbour's first `most` records have room here, behind such a prefix. 0
  // if it is not worth while.
  unsigned has_room_for_front_of(const slotted_leaf& right, unsigned most,
                                 unsigned length) const noexcept {
    constexpr unsigned least = 2;  // chosen
    constexpr unsigned all = records_type::heap_words(0);
    length = std::min<unsigned>(length, slotted_key::prefix_max);
    const unsigned n = this->count();
    unsigned used = n + records_type::prefix_words(length) + records.words_behind(length, 0, n);
    unsigned many = 0;
    while (many < most && n + many < capacity) {
      used += 1 + right.records.words_behind(length, many, many + 1);
      if (used > all) break;
      ++many;
    }
    return many < least ? 0 : many;
  }
  // Moves them here. `begins_alike` begins with the prefix.
  void take_front_of(slotted_leaf& right, unsigned first, unsigned length,
                     std::string_view begins_alike) noexcept {
    length = std::min<unsigned>(length, slotted_key::prefix_max);
    const unsigned n = this->count();
    records.set_prefix(n, keys::search_key_of_stored(begins_alike), length);
    records.append(n, right.records, 0, first);
    this->set_count(n + first);
    right.erase(0, first);
  }

  // Of a new leaf.
  void copy_prefix(const slotted_leaf& from) noexcept { records.copy_prefix(from.records); }
  // Gives the leaf the prefix that it needs for the records of its right neighbour. The parent's
  // key `index` separates them.
  template <class Parent>
  void share_prefix(const slotted_leaf& right, const Parent& parent, unsigned index) noexcept {
    const slotted_key between = parent.key(index);
    records.set_prefix(this->count(), between.search_key(),
                       records_type::shared_prefix(records, right.records, parent.prefix()));
  }
  void lengthen_prefix(unsigned length, std::string_view begins_alike) noexcept {
    records.lengthen_prefix(this->count(), length, begins_alike);
  }

  records_type records;

 private:
  static constexpr std::uint64_t first_byte =
      std::endian::native == std::endian::little ? 0xFF : std::uint64_t{0xFF} << 56U;

  static typename records_type::values words_of(const value_slot& v) noexcept {
    typename records_type::values words{};
    std::memcpy(words.data(), static_cast<const void*>(&v), sizeof(v));
    return words;
  }
  void erase(unsigned first, unsigned last) noexcept {
    const unsigned n = this->count();
    records.erase(n, first, last);
    this->set_count(n - (last - first));
  }
};

}  // namespace elidex::internal
