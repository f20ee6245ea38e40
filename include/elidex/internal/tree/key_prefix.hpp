// The common prefix of a node's string keys, and the search for a string behind it.
//
// Strings in one node mostly begin alike ("https://www."), so that their first 8 bytes distinguish
// none of them. A node of strings therefore has a prefix: the first bytes that are common to all
// keys that can ever come to the node. The heads of its keys are the bytes behind the prefix: 8 of
// them in a leaf, 16 in an inner node. A search compares heads as integers, and reads more of a key
// only if its head is equal.
//
// Thread-safety: functions under "with the node's lock" need that lock. Those under "by readers"
// may race with a writer. Their result counts only after the node's version is validated.
//
// Implementation notes
// A leaf of slots (btree_leaf) stores only the prefix's length. A node that holds its keys
// (slotted_node.hpp) also stores the prefix's bytes, because its keys lie there without them. No
// search compares the prefix itself. Why that is enough:
//   * A node lies between two separators, its fences. low <= key < high for all keys in it and for
//     all keys searched in it (low < key <= high for a walk backward from `key`). If two strings
//     begin with P, so do all strings between them. So every key that leads to the node begins with
//     the common prefix of low and high, whether it is in the tree or not.
//   * So every length up to that of the fences' common prefix is right. At the tree's ends, where
//     there is no fence, it is 0.
//   * Fences move only while the node is locked: in a split, a merge, or a redistribution of
//     children. A node at one version has one pair of fences, and the length and the heads stored
//     with them.
//   * A split moves the fences closer together, so a length that was right stays right. Each half's
//     prefix is then lengthened to the common prefix of its new fences, as far as the parent shows
//     them. In a leaf of slots this happens only if two of the half's heads are equal, because it
//     reads all of its blobs. In other nodes it happens if prefix and keys fit then.
//   * When two neighbours become one (or one gets children of the other), with a separator s
//     between them, two common prefixes matter: of low and s, and of s and high. low and high have
//     the shorter of the two in common. So the smaller of the two lengths is right for both. The
//     parent's prefix is right for its children, too, because their fences lie between its own.
//
// Readers that race with a writer may see a length and heads that do not fit together. They then
// compute some rank from 0 to the count. The rank counts only after the node's version is
// validated, and the version is validated before the first address is followed. head_behind() reads
// no byte outside the searched key, whatever the length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/key_search.hpp"

namespace elidex::internal {

// The length that a node stores. Where keys have no prefixes, nothing is stored and the length is
// 0.
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

// Changes the length of the node's prefix, and the heads with it. The keys stay.
template <class Node>
void change_prefix(Node& n, unsigned length) noexcept {
  using keys = typename Node::keys;
  if (length == n.prefix.get()) return;
  const unsigned count = n.count();
  // The blobs lie anywhere. All are prefetched before the first one is read.
  for (unsigned i = 0; i < count; ++i) __builtin_prefetch(keys::blob_of(n.stored_key(i)));
  const unsigned before = n.prefix.get();
  for (unsigned i = 0; i < count; ++i) {
    n.store_key(i, keys::put_in(keys::taken_out(n.stored_key(i), before), length));
  }
  n.prefix.set(length);
}

// Lengthens the prefix to `length`. A node of slots does so only if that may distinguish keys that
// have equal heads now. All keys that can come to the node begin like `begins_alike`.
template <class Node>
void lengthen_prefix(Node& n, unsigned length, std::string_view begins_alike) noexcept {
  if constexpr (requires { n.lengthen_prefix(length, begins_alike); }) {
    n.lengthen_prefix(length, begins_alike);
  } else {
    length = Node::keys::prefix_no_longer_than(length);
    if (length <= n.prefix.get()) return;
    bool equal_heads = false;
    for (unsigned i = 1; i < n.count(); ++i) equal_heads |= n.head(i - 1) == n.head(i);
    if (equal_heads) change_prefix(n, length);
  }
}

// Gives both nodes the same prefix, so that slots of either may be copied to the other.
template <class Node>
void share_prefix(Node& left, Node& right) noexcept {
  if constexpr (Node::keys::has_prefixes) {
    const unsigned shorter = std::min(left.prefix.get(), right.prefix.get());
    change_prefix(left, shorter);
    change_prefix(right, shorter);
  }
}

// Lengthens the prefixes of the halves of a node that was split at `separator`. The node is child
// `index` of `parent`, which does not hold the separator yet (null: the node is the root). At the
// parent's ends the fence is not visible, but it begins with the parent's prefix, as all keys in
// the parent do.
template <class Node, class Parent, class Separator>
void lengthen_prefixes(Node& left, Node& right, const Parent* parent, unsigned index,
                       const Separator& separator) noexcept {
  using keys = typename Node::keys;
  if constexpr (keys::has_prefixes) {
    if (parent == nullptr) return;
    const auto in_common_with = [&](unsigned i) {
      return keys::in_common(parent->key(i).view(), separator.view());
    };
    const unsigned least = parent->prefix();
    const bool has_right_fence = index < parent->count();
    lengthen_prefix(left, index > 0 ? in_common_with(index - 1) : least, separator.view());
    lengthen_prefix(right, has_right_fence ? in_common_with(index) : least, separator.view());
  }
}

// --- by readers ---

// Searches among keys `low` to `high` - 1. Those in front of them are less than the wanted key,
// those behind them greater. compare_at(i) compares key i with the wanted one. Sets `rank` to the
// number of keys that are less (OrEqual: or equal), and `exact` to whether one is equal. Returns
// false when torn.
template <bool OrEqual, class CompareAt>
bool rank_by_comparisons(unsigned low, unsigned high, CompareAt&& compare_at, unsigned& rank,
                         bool& exact) noexcept {
  exact = false;
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    const comparison c = compare_at(middle);
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

// Sets `rank` to the number of the node's keys that are less than `key` (OrEqual: or equal to it),
// and `exact` to whether one is equal. Returns false when torn.
template <bool OrEqual, class Node, class SearchKey, class StillValid>
bool rank_by_heads(const Node& n, unsigned count, const SearchKey& key, StillValid&& still_valid,
                   unsigned& rank, bool& exact) noexcept {
  using keys = typename Node::keys;
  const unsigned prefix = n.prefix.get();
  const std::uint64_t head = keys::head_behind(key, prefix);
  const unsigned low =
      branchless_lower_bound<false>([&](unsigned i) { return n.head(i); }, count, head);
  // Mostly no key or a single key has this head.
  const unsigned high =
      low + 1 < count && n.head(low + 1) == head ? count : std::min(low + 1, count);
  return rank_by_comparisons<OrEqual>(
      low, high,
      [&](unsigned i) { return keys::compare(n.stored_key(i), key, prefix, head, still_valid); },
      rank, exact);
}

}  // namespace elidex::internal
