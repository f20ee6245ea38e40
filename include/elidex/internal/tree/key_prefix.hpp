// What the keys of a node of strings have in common, and how a string finds its place behind that.
//
// Strings that lie in one node mostly begin alike ("https://www."), so that their first 8 bytes
// part none of them. A node of strings therefore has a prefix: so many first bytes that all keys
// have in common that can ever come to it. The heads in its slots (codec.hpp) are the 8 bytes
// behind the prefix. A search is one of integers, and only of keys with equal heads does it follow
// the blobs.
//
// Only the prefix's length is stored, and nobody compares the prefix itself. Why that is enough:
//   * A node lies between two separators, its fences: low <= key < high for all keys in it and for
//     all that are looked for in it (low < key <= high for a walk backward from `key`). Strings
//     between two that begin with P begin with P. So whoever was led to the node has a key that
//     begins with what low and high have in common, be it in the tree or not.
//   * So every length up to what the fences have in common is right; 0 where there is no fence, at
//     the tree's ends.
//   * Fences move only when the node is locked: when it is split, merged, or shares its children. A
//     node at one version has one pair of fences, and the length and the heads that were stored
//     with them.
//   * A split moves the fences closer together: what was right stays right. Each half's prefix is
//     then lengthened to what its new fences have in common, as far as the parent shows them, if
//     two of its heads are equal: that reads all of its blobs.
//   * Where two neighbours become one (or one gets children of the other), with a separator s
//     between them, low and high have in common what low and s, and s and high both have: of the
//     two lengths the smaller one is right for both.
//
// Readers that race with a writer: a length or heads that don't fit together give some rank, from 0
// to the count. It is believed only after the node's version is validated, and validated before the
// first address is followed. head_behind() reads no byte outside of the key that is looked for,
// whatever the length.
#pragma once

#include <algorithm>
#include <cstdint>

#include "elidex/internal/tree/branchless_lower_bound.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/field.hpp"

namespace elidex::internal {

// The length that a node stores; nothing, and always 0, where keys have no prefixes.
template <class Keys, bool Racing, bool = Keys::has_prefixes>
class prefix_length {
 public:
  static unsigned get() noexcept { return 0; }
  static void set(unsigned /*length*/) noexcept {}
};

template <class Keys, bool Racing>
class prefix_length<Keys, Racing, true> {
 public:
  prefix_length() noexcept { set(0); }
  unsigned get() const noexcept { return length_.template load<Racing>(); }
  void set(unsigned length) noexcept {
    length_.template store<Racing>(static_cast<std::uint16_t>(length));
  }

 private:
  field<std::uint16_t> length_;
};

// --- with the node's lock ---

// The keys stay, with heads behind a prefix of another length.
template <class Node>
void change_prefix(Node& n, unsigned length) noexcept {
  using keys = typename Node::keys;
  if (length == n.prefix.get()) return;
  const unsigned count = n.count();
  // The blobs lie anywhere: have them all on their way before the first one is read.
  for (unsigned i = 0; i < count; ++i) __builtin_prefetch(keys::blob_of(n.stored_key(i)));
  const unsigned before = n.prefix.get();
  for (unsigned i = 0; i < count; ++i) {
    n.store_key(i, keys::put_in(keys::taken_out(n.stored_key(i), before), length));
  }
  n.prefix.set(length);
}

// To `length`, if that is longer and may tell keys apart that have equal heads now.
template <class Node>
void lengthen_prefix(Node& n, unsigned length) noexcept {
  length = Node::keys::prefix_no_longer_than(length);
  if (length <= n.prefix.get()) return;
  bool equal_heads = false;
  for (unsigned i = 1; i < n.count(); ++i) equal_heads |= n.head(i - 1) == n.head(i);
  if (equal_heads) change_prefix(n, length);
}

// Both nodes' slots may be copied to the other one afterwards.
template <class Node>
void share_prefix(Node& left, Node& right) noexcept {
  if constexpr (Node::keys::has_prefixes) {
    const unsigned shorter = std::min(left.prefix.get(), right.prefix.get());
    change_prefix(left, shorter);
    change_prefix(right, shorter);
  }
}

// The halves of a node that was split at `separator`; it is child `index` of `parent`, which holds
// the separator not yet (null: it is the root). At the parent's ends the fence is not in sight, but
// it begins with the parent's prefix, as all do in it.
template <class Node, class Parent, class KeySlot>
void lengthen_prefixes(Node& left, Node& right, const Parent* parent, unsigned index,
                       const KeySlot& separator) noexcept {
  using keys = typename Node::keys;
  if constexpr (keys::has_prefixes) {
    if (parent == nullptr) return;
    const unsigned least = parent->prefix.get();
    lengthen_prefix(left, index > 0 ? keys::in_common(parent->key(index - 1), separator) : least);
    lengthen_prefix(
        right, index < parent->count() ? keys::in_common(separator, parent->key(index)) : least);
  }
}

// --- by readers ---

// How many of the node's keys are less than `key` (OrEqual: or equal to it), and whether one is
// equal; false when torn.
template <bool OrEqual, class Node, class Probe, class StillValid>
bool rank_by_heads(const Node& n, unsigned count, const Probe& key, StillValid&& still_valid,
                   unsigned& rank, bool& exact) noexcept {
  using keys = typename Node::keys;
  exact = false;
  const unsigned prefix = n.prefix.get();
  const std::uint64_t head = keys::head_behind(key, prefix);
  unsigned low = branchless_lower_bound<false>([&](unsigned i) { return n.head(i); }, count, head);
  // Of the keys with this head, mostly one or none:
  unsigned high = low + 1 < count && n.head(low + 1) == head ? count : std::min(low + 1, count);
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    const comparison c = keys::compare(n.stored_key(middle), key, prefix, head, still_valid);
    if (c == comparison::torn) return false;
    if (c == comparison::equal) {
      exact = true;
      rank = middle + (OrEqual ? 1 : 0);
      return true;
    }
    if (c == comparison::less) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  rank = low;
  return true;
}

}  // namespace elidex::internal
