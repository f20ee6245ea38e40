// The keys of one node of strings in the node's own memory, each with a few words: values in a
// leaf, a child's address in an inner node.
//
//   slotted_node<layout, racing> keys;        // empty, and its prefix has no bytes
//   const auto words = keys.words_for(key.size, false, keys.prefix());
//   if (keys.has_room(count, words)) keys.insert(count, i, key, nullptr, {v});
//   keys.rank<true>(count, key, still_valid, rank, exact)
//   keys.value(i, 0)
//
// The node that holds this object keeps the count, as for the other kinds of keys (key_search.hpp).
//
// Thread-safety: functions under "by readers" may race with a writer if Racing is true. Their
// result counts only after the node's version is validated. All others need the node's lock.
// Complexity: O(log n) for a search, O(n) words for a change.
// Errors: nothing throws, and nothing allocates.
//
// Implementation notes
// Known parts: normalized key heads and prefix truncation (Graefe, "Modern B-Tree Techniques",
// 2011), slotted pages with heads and a heap (Leis et al., "LeanStore", ICDE 2018). Ours: heads are
// the key's own bytes, one or two words of them, and readers race.
//
//   | prefix length, prefix's place, heap's begin, garbage | slots | heads | free | heap |
//
//   slot      2 bytes, four in a word: the record's place, and how many bytes the key has behind
//             the prefix (its rest), or `outside`
//   heads     the first head_words words of the rest. All first words lie together, in key order,
//             and so do all second words. With one word the heap may grow into unused heads.
//   heap      the prefix's bytes, and one record for each key: value words, then the rest's bytes
//             behind the head. It grows downward.
//
// A word holds 8 bytes of a key as a big-endian number, with zeros behind the key's end. Places
// count in words. A key that is `outside` lies in a blob, whole. Its record has the blob's address
// in place of the rest. An owner puts a key outside if it is long, before a reader can find it
// (needs_blob()). It stays outside for as long as it is in a node.
//
// An erased record becomes garbage. If the free words do not suffice for an insertion but garbage
// does, insert() compacts: it rebuilds the heap from a copy on the stack.
//
// A change of the prefix re-encodes all keys, because each key is whole: prefix, head, and record.
// Which prefixes are right: key_prefix.hpp. They are at most prefix_max bytes long here, because
// their bytes lie in the node.
//
// Readers beside a writer. Each word is a field, so a load returns some value that the word had.
// A torn slot may name any place and any length. Places are clamped to the last word, and loops end
// after at most 255 bytes, so no load leaves the node. A blob's address is followed only after the
// version is validated. So a racing reader computes some rank from 0 to the count, or some bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/key_prefix.hpp"
#include "elidex/internal/tree/key_search.hpp"

namespace elidex::internal {

// A whole key that was copied out of a node, or that is to go into one.
class slotted_key {
 public:
  using keys = key_codec<std::string>;
  static constexpr std::size_t prefix_max = 128;
  static constexpr std::size_t rest_max = 254;  // of a key inside a node

  slotted_key() noexcept {}
  // With a blob, the key is the blob's bytes, which may be written later. Without, the key has at
  // most prefix_max + rest_max bytes.
  slotted_key(std::string_view key, blob* outside) noexcept : outside_(outside) {
    if (outside != nullptr) return;
    size_ = key.size();
    if (!key.empty()) std::memcpy(bytes_.data(), key.data(), key.size());
  }

  // These follow the blob's address: the node from which it was read must be validated.
  std::string_view view() const noexcept {
    return outside_ != nullptr ? outside_->view() : std::string_view(bytes_.data(), size_);
  }
  keys::search_key search_key() const noexcept { return keys::search_key_of_stored(view()); }

  // The blob, or null if the key has none.
  blob* outside() const noexcept { return outside_; }
  std::size_t size() const noexcept { return outside_ != nullptr ? outside_->size() : size_; }

 private:
  template <class Layout, bool Racing, class Rules>
  friend class slotted_node;

  void put_word(std::size_t at, std::uint64_t word) noexcept {
    word = std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
    std::memcpy(bytes_.data() + at, &word, sizeof(word));
  }

  std::size_t size_ = 0;
  blob* outside_ = nullptr;
  std::array<char, prefix_max + rest_max + 2> bytes_;  // a multiple of words; not initialized
};

// What tests replace, mostly to plant bugs.
struct slotted_rules {
  static constexpr bool keeps_prefix = true;       // when the heap is rebuilt
  static constexpr bool copies_part_words = true;  // of a prefix
  static constexpr bool full_counts_bytes = true;
  static constexpr bool replaces_at_once = true;  // false: full nodes are split before, always
};

// Bytes: of the whole. InlineSuffix: a key with more bytes behind its head goes outside.
template <std::size_t Bytes, unsigned Capacity, unsigned HeadWords, unsigned ValueWords,
          unsigned InlineSuffix>
struct slotted_layout {
  static constexpr std::size_t bytes = Bytes;
  static constexpr unsigned capacity = Capacity;
  static constexpr unsigned head_words = HeadWords;
  static constexpr unsigned value_words = ValueWords;
  static constexpr unsigned inline_suffix = InlineSuffix;
  using rules = slotted_rules;
};

template <class Layout, bool Racing, class Rules = typename Layout::rules>
class slotted_node {
 public:
  using keys = key_codec<std::string>;
  using search_key = keys::search_key;
  static constexpr unsigned capacity = Layout::capacity;
  static constexpr unsigned head_words = Layout::head_words;
  static constexpr unsigned value_words = Layout::value_words;
  static constexpr unsigned prefix_max = slotted_key::prefix_max;
  static constexpr unsigned inline_rest = 8 * head_words + Layout::inline_suffix;
  using values = std::array<std::uint64_t, value_words>;

  slotted_node() noexcept {
    clear();
    for (unsigned i = 0; i < heads_at; ++i) set_word(i, 0);
  }

  // --- by readers ---

  // Sets `rank` to the number of keys that are less than `key` (OrEqual: or equal to it), and
  // `exact` to whether one is equal. Returns false when torn. `key` begins with the prefix.
  template <bool OrEqual, class StillValid>
  bool rank(unsigned count, const search_key& key, StillValid&& still_valid, unsigned& rank,
            bool& exact) const noexcept;

  // Key i. Its blob, if it has one, must not be followed before validation.
  slotted_key key(unsigned i) const noexcept;
  std::uint64_t value(unsigned i, unsigned which) const noexcept {
    return word(slot_at(i).record + which);
  }
  values values_at(unsigned i) const noexcept {
    const unsigned record = slot_at(i).record;
    values made;
    for (unsigned which = 0; which < value_words; ++which) made[which] = word(record + which);
    return made;
  }
  // The blob of key i, or null if the key lies in the node.
  blob* blob_of(unsigned i) const noexcept {
    const slot s = slot_at(i);
    return s.rest == outside ? blob_at(s) : nullptr;
  }
  // Copies the bytes of key i behind the prefix to memory with room for copied_max bytes. Returns
  // how many. If the key lies in a blob, copies nothing and sets `in`.
  static constexpr std::size_t copied_max = (slotted_key::rest_max + 7) / 8 * 8;
  unsigned copy_rest(unsigned i, char* to, const blob*& in) const noexcept;
  unsigned prefix() const noexcept { return prefix_.template load<Racing>(); }

  // Words of the heap that an insertion can have, garbage included.
  unsigned free_words(unsigned count) const noexcept {
    const unsigned begin = heads_end(count);
    const unsigned heap = heap_begin_.template load<Racing>();
    return (heap > begin ? heap - begin : 0) + garbage_.template load<Racing>();
  }
  // All words that a heap can have.
  static constexpr unsigned heap_words(unsigned count) noexcept { return words - heads_end(count); }
  bool has_room(unsigned count, unsigned words_of_record) const noexcept {
    if (count >= capacity) return false;
    return !Rules::full_counts_bytes || free_words(count) >= words_of_record + shared_head_words;
  }
  // Whether the longest record that owners insert may lack room.
  bool is_full(unsigned count) const noexcept { return !has_room(count, record_words_max); }
  static constexpr unsigned record_words_max =
      value_words + std::max(1U, (Layout::inline_suffix + 7) / 8);

  // Whether a key of so many bytes must go outside, in a node with this prefix.
  static constexpr bool needs_blob(std::size_t key_size, unsigned prefix) noexcept {
    return key_size > prefix + inline_rest;
  }
  // How many words the record of the key takes, in a node with this prefix.
  static constexpr unsigned words_for(std::size_t key_size, bool is_outside,
                                      unsigned prefix) noexcept {
    return record_words(is_outside ? outside : rest_behind(key_size, prefix));
  }
  static constexpr unsigned prefix_words(unsigned length) noexcept { return (length + 7) / 8; }
  // How many words the records of keys `first` to `last` - 1 would take if the prefix had so many
  // bytes. More than any heap has, if a key would be too long for a slot.
  unsigned words_behind(unsigned length, unsigned first, unsigned last) const noexcept;
  // Whether the node's keys would fit with such a prefix.
  bool fits(unsigned count, unsigned length) const noexcept {
    return prefix_words(length) + words_behind(length, 0, count) <= heap_words(count);
  }
  // The prefix as a key.
  slotted_key prefix_key() const noexcept;

  // --- with the node's lock ---

  // Inserts the key as key i. `outside` is its blob, or null. There must be room.
  void insert(unsigned count, unsigned i, const search_key& key, blob* outside,
              const values& with) noexcept;
  // Removes keys `first` to `last` - 1.
  void erase(unsigned count, unsigned first, unsigned last) noexcept;
  void set_value(unsigned i, unsigned which, std::uint64_t v) noexcept {
    set_word(slot_at(i).record + which, v);
  }
  void set_values(unsigned i, const values& v) noexcept {
    for (unsigned which = 0; which < value_words; ++which) set_value(i, which, v[which]);
  }
  // Gives the prefix so many bytes, which are those of `begins_alike`. All keys, and all keys that
  // can ever come, begin with them. The records must fit.
  void set_prefix(unsigned count, const search_key& begins_alike, unsigned length) noexcept;
  // Gives an empty node the prefix of another one.
  void copy_prefix(const slotted_node& from) noexcept {
    const slotted_key bytes = from.prefix_key();
    set_prefix(0, bytes.search_key(), from.prefix());
  }
  // Lengthens the prefix, as far as it can be so long, if the keys then fit.
  void lengthen_prefix(unsigned count, unsigned length, std::string_view begins_alike) noexcept {
    length = std::min<unsigned>(length, prefix_max);
    if (length <= prefix() || !fits(count, length)) return;
    set_prefix(count, keys::search_key_of_stored(begins_alike), length);
  }
  // All keys of two neighbours begin with this many equal bytes (key_prefix.hpp).
  static unsigned shared_prefix(const slotted_node& one, const slotted_node& other,
                                unsigned parent_prefix) noexcept {
    return std::max(std::min(one.prefix(), other.prefix()), std::min(parent_prefix, prefix_max));
  }
  // Appends copies of keys `first` to `last` - 1 of another node. There must be room.
  void append(unsigned count, const slotted_node& from, unsigned first, unsigned last) noexcept;
  // The key at which a split divides the memory in use into halves.
  unsigned middle(unsigned count) const noexcept;

 private:
  static constexpr unsigned outside = 255;
  static constexpr unsigned words = (Layout::bytes - 8) / 8;
  static constexpr unsigned heads_at = (capacity + 3) / 4;
  static constexpr unsigned stride = (capacity + 7) / 8 * 8;
  // With one head word, an insertion takes a word for its head from the heap.
  static constexpr unsigned shared_head_words = head_words == 1 ? 1 : 0;
  static_assert(words <= 256 && stride <= 64 && heads_at + head_words * stride < words);
  static_assert(inline_rest <= slotted_key::rest_max);

  struct slot {
    unsigned record;
    unsigned rest;
  };

  static constexpr unsigned heads_end(unsigned count) noexcept {
    return heads_at + (head_words == 1 ? count : head_words * stride);
  }
  static constexpr unsigned record_words(unsigned rest) noexcept {
    if (rest == outside) return value_words + 1;
    return value_words + (rest > 8 * head_words ? (rest - 8 * head_words + 7) / 8 : 0);
  }
  static constexpr unsigned rest_behind(std::size_t key_size, unsigned prefix) noexcept {
    return key_size > prefix ? static_cast<unsigned>(key_size - prefix) : 0;
  }

  std::uint64_t word(unsigned at) const noexcept {
    return words_[std::min(at, words - 1)].template load<Racing>();
  }
  void set_word(unsigned at, std::uint64_t w) noexcept {
    words_[std::min(at, words - 1)].template store<Racing>(w);
  }
  // The same with the node's lock, where no place can be torn.
  std::uint64_t own_word(unsigned at) const noexcept { return words_[at].template load<false>(); }
  void set_own_word(unsigned at, std::uint64_t w) noexcept { words_[at].template store<Racing>(w); }
  std::uint64_t head(unsigned i, unsigned which) const noexcept {
    return word(heads_at + which * stride + i);
  }
  void set_head(unsigned i, unsigned which, std::uint64_t w) noexcept {
    set_word(heads_at + which * stride + i, w);
  }
  slot slot_at(unsigned i) const noexcept {
    const std::uint64_t bits = word(i / 4) >> i % 4 * 16;
    return {static_cast<unsigned>(bits & 0xFF), static_cast<unsigned>(bits >> 8 & 0xFF)};
  }
  void set_slot(unsigned i, const slot& s) noexcept {
    const unsigned shift = i % 4 * 16;
    const std::uint64_t others = word(i / 4) & ~(std::uint64_t{0xFFFF} << shift);
    set_word(i / 4, others | std::uint64_t{s.record | s.rest << 8} << shift);
  }
  blob* blob_at(const slot& s) const noexcept {
    return reinterpret_cast<blob*>(word(s.record + value_words));
  }
  void copy_prefix(slotted_key& to, unsigned length) const noexcept;

  template <class StillValid>
  comparison compare(unsigned i, const search_key& key, unsigned prefix,
                     StillValid&& still_valid) const noexcept;

  void clear() noexcept {
    prefix_.template store<Racing>(0);
    prefix_at_.template store<Racing>(0);
    heap_begin_.template store<Racing>(words);
    garbage_.template store<Racing>(0);
  }
  // Takes so many words from the free ones.
  unsigned take(unsigned many) noexcept;
  void compact(unsigned count) noexcept {
    const slotted_node old = *this;
    rebuild(old, count, old.prefix_key().search_key(), old.prefix());
  }
  void rebuild(const slotted_node& old, unsigned count, const search_key& begins_alike,
               unsigned length) noexcept;
  void open_slot(unsigned count, unsigned i) noexcept;
  // insert() into free words that are not garbage.
  void put(unsigned count, unsigned i, const search_key& key, blob* outside_at,
           const values& with) noexcept;

  field<std::uint16_t> prefix_;
  field<std::uint16_t> prefix_at_;
  field<std::uint16_t> heap_begin_;
  field<std::uint16_t> garbage_;
  std::array<field<std::uint64_t>, words> words_;
};

// --- bodies: by readers ---

template <class Layout, bool Racing, class Rules>
template <bool OrEqual, class StillValid>
bool slotted_node<Layout, Racing, Rules>::rank(unsigned count, const search_key& key,
                                               StillValid&& still_valid, unsigned& rank,
                                               bool& exact) const noexcept {
  const unsigned length = prefix();
  std::array<std::uint64_t, head_words> wanted;
  for (unsigned i = 0; i < head_words; ++i) wanted[i] = keys::head_behind(key, length + 8 * i);
  const equal_heads same = find_heads<head_words, stride, Racing>(&words_[heads_at], count, wanted);
  const auto compare_at = [&](unsigned i) { return compare(i, key, length, still_valid); };
  // Many equal heads at the end: mostly a node at its parent's right edge, whose prefix is short
  // (key_prefix.hpp). Ascending keys come there, so the last key is compared first.
  if (same.last == count && same.last - same.first > 3) {  // chosen
    const comparison last = compare_at(count - 1);
    if (last == comparison::torn) return false;
    if (last == comparison::less) {
      rank = count;
      exact = false;
      return true;
    }
  }
  return rank_by_comparisons<OrEqual>(same.first, same.last, compare_at, rank, exact);
}

// Compares key i, whose head is equal to that of `key`. Heads are padded with zeros. So if one of
// the keys ends in its head, it is a prefix of the other.
template <class Layout, bool Racing, class Rules>
template <class StillValid>
comparison slotted_node<Layout, Racing, Rules>::compare(unsigned i, const search_key& key,
                                                        unsigned prefix,
                                                        StillValid&& still_valid) const noexcept {
  const slot s = slot_at(i);
  const unsigned behind = prefix + 8 * head_words;
  const auto compare_with = [&](std::size_t size, auto&& word_of) {
    const std::size_t both = std::min(size, key.size);
    for (unsigned at = 0; behind + at < both; at += 8) {
      const std::uint64_t mine = word_of(at);
      const std::uint64_t wanted = keys::head_behind(key, behind + at);
      if (mine != wanted) return mine < wanted ? comparison::less : comparison::greater;
    }
    return keys::order(size, key.size);
  };
  if (s.rest == outside) {
    const blob* const b = blob_at(s);
    if (!still_valid()) return comparison::torn;
    const search_key mine = keys::search_key_of_stored(b->view());
    return compare_with(mine.size,
                        [&](unsigned at) { return keys::head_behind(mine, behind + at); });
  }
  const unsigned suffix = s.record + value_words;
  return compare_with(std::size_t{prefix} + s.rest,
                      [&](unsigned at) { return word(suffix + at / 8); });
}

template <class Layout, bool Racing, class Rules>
void slotted_node<Layout, Racing, Rules>::copy_prefix(slotted_key& to,
                                                      unsigned length) const noexcept {
  const unsigned many = Rules::copies_part_words ? prefix_words(length) : length / 8;
  const unsigned at = prefix_at_.template load<Racing>();
  for (unsigned i = 0; i < many; ++i) to.put_word(std::size_t{8} * i, word(at + i));
}

template <class Layout, bool Racing, class Rules>
slotted_key slotted_node<Layout, Racing, Rules>::prefix_key() const noexcept {
  slotted_key made;
  made.size_ = prefix();
  copy_prefix(made, prefix());
  return made;
}

template <class Layout, bool Racing, class Rules>
slotted_key slotted_node<Layout, Racing, Rules>::key(unsigned i) const noexcept {
  slotted_key made;
  const slot s = slot_at(i);
  if (s.rest == outside) {
    made.outside_ = blob_at(s);
    return made;
  }
  const unsigned length = std::min(prefix(), prefix_max);
  copy_prefix(made, length);
  std::size_t end = length;
  for (unsigned which = 0; which < head_words; ++which, end += 8)
    made.put_word(end, head(i, which));
  const unsigned last = s.record + record_words(s.rest);
  for (unsigned at = s.record + value_words; at < last; ++at, end += 8)
    made.put_word(end, word(at));
  made.size_ = length + s.rest;
  return made;
}

template <class Layout, bool Racing, class Rules>
unsigned slotted_node<Layout, Racing, Rules>::copy_rest(unsigned i, char* to,
                                                        const blob*& in) const noexcept {
  const slot s = slot_at(i);
  if (s.rest == outside) {
    in = blob_at(s);
    return 0;
  }
  const auto put = [&](std::uint64_t w) {
    w = std::endian::native == std::endian::little ? __builtin_bswap64(w) : w;
    std::memcpy(to, &w, sizeof(w));
    to += sizeof(w);
  };
  for (unsigned which = 0; which < head_words; ++which) put(head(i, which));
  // A torn slot may name a record that ends behind the last word. It is then not copied.
  const unsigned last = s.record + record_words(s.rest);
  for (unsigned at = s.record + value_words; at < last && last <= words; ++at)
    put(words_[at].template load<Racing>());
  return s.rest;
}

template <class Layout, bool Racing, class Rules>
unsigned slotted_node<Layout, Racing, Rules>::words_behind(unsigned length, unsigned first,
                                                           unsigned last) const noexcept {
  const unsigned before = prefix();
  unsigned sum = 0;
  for (unsigned i = first; i < last; ++i) {
    const slot s = slot_at(i);
    const unsigned rest = s.rest == outside ? outside : rest_behind(before + s.rest, length);
    if (rest > slotted_key::rest_max && s.rest != outside) return words + 1;
    sum += record_words(rest);
  }
  return sum;
}

// --- bodies: with the node's lock ---

template <class Layout, bool Racing, class Rules>
unsigned slotted_node<Layout, Racing, Rules>::take(unsigned many) noexcept {
  const unsigned begin = heap_begin_.template load<false>() - many;
  heap_begin_.template store<Racing>(static_cast<std::uint16_t>(begin));
  return begin;
}

// Moves the slots from i on up by one, a word at a time.
template <class Layout, bool Racing, class Rules>
void slotted_node<Layout, Racing, Rules>::open_slot(unsigned count, unsigned i) noexcept {
  const unsigned first = i / 4;
  for (unsigned w = count / 4; w > first; --w)
    set_own_word(w, own_word(w) << 16 | own_word(w - 1) >> 48);
  const std::uint64_t stays = (std::uint64_t{1} << i % 4 * 16) - 1;
  const std::uint64_t w = own_word(first);
  set_own_word(first, (w & stays) | (w & ~stays) << 16);
}

template <class Layout, bool Racing, class Rules>
void slotted_node<Layout, Racing, Rules>::insert(unsigned count, unsigned i, const search_key& key,
                                                 blob* outside_at, const values& with) noexcept {
  const unsigned many = words_for(key.size, outside_at != nullptr, prefix()) + shared_head_words;
  if (heap_begin_.template load<false>() < heads_end(count) + many) compact(count);
  put(count, i, key, outside_at, with);
}

template <class Layout, bool Racing, class Rules>
void slotted_node<Layout, Racing, Rules>::put(unsigned count, unsigned i, const search_key& key,
                                              blob* outside_at, const values& with) noexcept {
  const unsigned length = prefix();
  const unsigned rest = outside_at != nullptr ? outside : rest_behind(key.size, length);
  const unsigned many = record_words(rest);
  for (unsigned which = 0; which < head_words; ++which) {
    const unsigned begin = heads_at + which * stride;
    for (unsigned at = begin + count; at > begin + i; --at) set_own_word(at, own_word(at - 1));
    set_head(i, which, keys::head_behind(key, length + 8 * which));
  }
  open_slot(count, i);
  if constexpr (!Rules::full_counts_bytes) {
    if (heap_begin_.template load<false>() < heads_end(count + 1) + many) {
      // The planted bug: a key without room shares the record of another.
      set_slot(i, {slot_at(i == 0 ? 1 : 0).record, 0});
      return;
    }
  }
  const unsigned record = take(many);
  set_slot(i, {record, rest});
  for (unsigned which = 0; which < value_words; ++which) set_word(record + which, with[which]);
  if (outside_at != nullptr) {
    set_word(record + value_words, reinterpret_cast<std::uintptr_t>(outside_at));
    return;
  }
  for (unsigned at = value_words; at < many; ++at) {
    const unsigned behind = 8 * (head_words + at - value_words);
    set_word(record + at, keys::head_behind(key, length + behind));
  }
}

template <class Layout, bool Racing, class Rules>
void slotted_node<Layout, Racing, Rules>::erase(unsigned count, unsigned first,
                                                unsigned last) noexcept {
  unsigned garbage = garbage_.template load<false>();
  for (unsigned i = first; i < last; ++i) garbage += record_words(slot_at(i).rest);
  garbage_.template store<Racing>(static_cast<std::uint16_t>(garbage));
  for (unsigned i = last; i < count; ++i) {
    const unsigned to = first + i - last;
    for (unsigned which = 0; which < head_words; ++which) set_head(to, which, head(i, which));
    set_slot(to, slot_at(i));
  }
}

template <class Layout, bool Racing, class Rules>
void slotted_node<Layout, Racing, Rules>::rebuild(const slotted_node& old, unsigned count,
                                                  const search_key& begins_alike,
                                                  unsigned length) noexcept {
  clear();
  if (Rules::keeps_prefix) {
    const unsigned at = take(prefix_words(length));
    for (unsigned i = 0; i < prefix_words(length); ++i)
      set_word(at + i, keys::head_behind(begins_alike, 8 * i));
    prefix_at_.template store<Racing>(static_cast<std::uint16_t>(at));
  }
  prefix_.template store<Racing>(static_cast<std::uint16_t>(length));
  for (unsigned i = 0; i < count; ++i) {
    const slotted_key key = old.key(i);
    put(i, i, key.search_key(), key.outside(), old.values_at(i));
  }
}

template <class Layout, bool Racing, class Rules>
void slotted_node<Layout, Racing, Rules>::set_prefix(unsigned count, const search_key& begins_alike,
                                                     unsigned length) noexcept {
  if (length == prefix()) return;
  const slotted_node old = *this;
  rebuild(old, count, begins_alike, length);
}

template <class Layout, bool Racing, class Rules>
void slotted_node<Layout, Racing, Rules>::append(unsigned count, const slotted_node& from,
                                                 unsigned first, unsigned last) noexcept {
  for (unsigned i = first; i < last; ++i, ++count) {
    const slotted_key key = from.key(i);
    insert(count, count, key.search_key(), key.outside(), from.values_at(i));
  }
}

template <class Layout, bool Racing, class Rules>
unsigned slotted_node<Layout, Racing, Rules>::middle(unsigned count) const noexcept {
  const auto weight = [&](unsigned i) { return head_words + record_words(slot_at(i).rest); };
  unsigned all = 0;
  for (unsigned i = 0; i < count; ++i) all += weight(i);
  unsigned before = 0;
  unsigned i = 0;
  while (i + 1 < count && 2 * before < all) before += weight(i++);
  // Both halves get a key if there are enough.
  return count < 3 ? count / 2 : std::clamp(i, 1U, count - 2);
}

}  // namespace elidex::internal
