// An inner node of a tree of strings. Its separators lie in the node itself (slotted_node.hpp), so
// that a descent follows no other address than those of children.
//
//   slotted_inner_node<Sync, slotted_inner_layout<48, 188>> in(level);
//   in.insert(0, slotted_key("abc", nullptr), right);    // behind child 0
//   in.rank<true>(in.count(), search_key, still_valid, index, exact);
//   in.child(index)
//
// It has the functions of btree_inner_node (btree_inner.hpp), for keys with prefixes.
// Thread-safety and errors: as for slotted_node.
//
// Implementation notes
// The record of key i has the address of child i + 1. Child 0 lies beside the records.
//
// Which prefix a node has: every length up to that of its fences' common prefix is right
// (key_prefix.hpp). The parent's prefix is always right for its children, because their fences lie
// between the parent's. So a node that takes a separator from its parent gets a prefix that is at
// least as long as the parent's. Behind it, the separator is not longer than in the parent. So a
// separator that comes down never needs a blob that it did not have.
//
// A separator that goes up is behind a shorter prefix and may need a blob. Whatever its length, it
// takes at most record_words_max words in the parent. A descent that inserts splits a node that has
// fewer free. A replaced separator may need more words than the one before. The parent may lack
// them, because erases split nothing on their way (can_replace()).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/btree_node.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/slotted_node.hpp"

namespace elidex::internal {

// Words: of slots, heads and heap together.
template <unsigned Slots, std::size_t Words>
using slotted_inner_layout = slotted_layout<8 * (Words + 1), Slots, 2, 1, 32>;

// So many that short separators fill the slots before they fill the heap.
constexpr std::size_t roomy_slotted_words(unsigned slots) noexcept {
  const std::size_t heads = (slots + 3) / 4 + (slots + 7) / 8 * 16;
  return std::min<std::size_t>(heads + 48 + std::size_t{5} * slots, 256);
}

template <class Sync, class Layout>
struct slotted_inner_node : btree_node<Sync> {
  using node = btree_node<Sync>;
  using keys = key_codec<std::string>;
  using key_type = slotted_key;
  using search_key = keys::search_key;
  static constexpr bool racing = Sync::readers_race;
  using separators_type = slotted_node<Layout, racing>;
  static constexpr unsigned capacity = separators_type::capacity;
  static constexpr unsigned heap_words = separators_type::heap_words(0);
  // The longest prefix and one record of any length fit.
  static_assert(heap_words >= separators_type::prefix_words(slotted_key::prefix_max) + 31);

  explicit slotted_inner_node(unsigned level_above_leaves) noexcept : node(level_above_leaves) {}

  slotted_key key(unsigned i) const noexcept { return separators.key(i); }
  blob* blob_of(unsigned i) const noexcept { return separators.blob_of(i); }
  static std::string owned(const slotted_key& k) { return std::string(k.view()); }
  unsigned prefix() const noexcept { return separators.prefix(); }
  template <bool OrEqual, class StillValid>
  bool rank(unsigned count, const search_key& key, StillValid&& still_valid, unsigned& rank,
            bool& exact) const noexcept {
    return separators.template rank<OrEqual>(count, key, still_valid, rank, exact);
  }
  node* child(unsigned i) const noexcept {
    if (i == 0) return first_child.template load<racing>();
    return reinterpret_cast<node*>(separators.value(i - 1, 0));
  }
  void set_child(unsigned i, node* c) noexcept {
    if (i == 0) {
      first_child.template store<racing>(c);
    } else {
      separators.set_value(i - 1, 0, address_of(c));
    }
  }

  bool is_full(unsigned count) const noexcept { return separators.is_full(count); }
  bool takes_in_bulk(std::string_view key) const noexcept {
    const bool goes_outside = blob_bytes(key, this) != 0;
    const unsigned words = separators_type::words_for(key.size(), goes_outside, prefix());
    return separators.has_room(this->count(), words + separators_type::record_words_max);
  }
  bool is_sparse(unsigned count) const noexcept {
    return count <= capacity / 3 && separators.free_words(count) >= heap_words * 2 / 3;
  }
  static bool fit_together(const slotted_inner_node& left, const slotted_inner_node& right,
                           const slotted_inner_node& parent, unsigned index) noexcept {
    const unsigned l = left.count();
    const unsigned r = right.count();
    const unsigned length = shared_prefix(left, right, parent);
    const unsigned words = separators_type::prefix_words(length) +
                           left.separators.words_behind(length, 0, l) +
                           parent.separators.words_behind(length, index, index + 1) +
                           right.separators.words_behind(length, 0, r);
    const bool one_is_empty = l == 0 || r == 0;
    const unsigned full = heap_words - separators_type::record_words_max;
    return l + r + 1 <= (one_is_empty ? capacity : capacity * 5 / 6) &&
           words <= (one_is_empty ? full : heap_words * 5 / 6);
  }
  unsigned middle() const noexcept { return separators.middle(this->count()); }
  // So near to the middle that the receiver has room for its half.
  template <side Receiver>
  unsigned middle_for(const slotted_inner_node& receiver, const slotted_key& between,
                      const slotted_inner_node& parent) const noexcept {
    const unsigned n = this->count();
    const unsigned length = shared_prefix(receiver, *this, parent);
    const unsigned before =
        separators_type::prefix_words(length) +
        separators_type::words_for(between.size(), between.outside() != nullptr, length);
    const auto fits = [&](unsigned from, unsigned to) {
      return before + separators.words_behind(length, from, to) <= heap_words;
    };
    unsigned i = middle();
    if constexpr (Receiver == side::left) {
      while (i > 0 && !fits(0, i)) --i;
    } else {
      while (i + 1 < n && !fits(i + 1, n)) ++i;
    }
    return i;
  }
  // Whether any key has room in place of any other.
  bool can_replace() const noexcept {
    return Layout::rules::replaces_at_once &&
           separators.free_words(this->count()) >= separators_type::record_words_max;
  }

  static std::size_t blob_bytes(std::string_view key, const slotted_inner_node* parent) noexcept {
    const unsigned length = parent == nullptr ? 0 : parent->prefix();
    return separators_type::needs_blob(key.size(), length) ? key.size() : 0;
  }
  // Of a new node.
  void copy_prefix(const slotted_inner_node& from) noexcept {
    separators.copy_prefix(from.separators);
  }
  // Gives the node the prefix that it needs for children of a neighbour. `between` separates them.
  void share_prefix(const slotted_inner_node& other, const slotted_key& between,
                    const slotted_inner_node& parent) noexcept {
    separators.set_prefix(this->count(), between.search_key(), shared_prefix(*this, other, parent));
  }
  void lengthen_prefix(unsigned length, std::string_view begins_alike) noexcept {
    separators.lengthen_prefix(this->count(), length, begins_alike);
  }

  void set_key(unsigned i, const slotted_key& k) noexcept {
    const std::uint64_t c = separators.value(i, 0);
    const unsigned n = this->count();
    separators.erase(n, i, i + 1);
    separators.insert(n - 1, i, k.search_key(), k.outside(), {c});
  }
  void insert(unsigned position, const slotted_key& k, node* right) noexcept {
    const unsigned n = this->count();
    separators.insert(n, position, k.search_key(), k.outside(), {address_of(right)});
    this->set_count(n + 1);
  }
  void erase(unsigned position) noexcept { erase(position, position + 1); }
  void split(unsigned middle, slotted_inner_node& right) noexcept {
    const unsigned n = this->count();
    right.set_child(0, child(middle + 1));
    right.separators.append(0, separators, middle + 1, n);
    right.set_count(n - middle - 1);
    erase(middle, n);
  }
  void append(const slotted_key& k, const slotted_inner_node& right, unsigned taken) noexcept {
    const unsigned n = this->count();
    insert(n, k, right.child(0));
    separators.append(n + 1, right.separators, 0, taken - 1);
    this->set_count(n + taken);
  }
  void drop_front(unsigned dropped) noexcept {
    set_child(0, child(dropped));
    erase(0, dropped);
  }

  field<node*> first_child;
  separators_type separators;

  // A look-up touches the slots, the heads, and the record of one child.
  static constexpr std::size_t bytes_for_look_up = sizeof(node) + sizeof(node*) + Layout::bytes;

 private:
  static std::uint64_t address_of(node* c) noexcept { return reinterpret_cast<std::uintptr_t>(c); }
  static unsigned shared_prefix(const slotted_inner_node& one, const slotted_inner_node& other,
                                const slotted_inner_node& parent) noexcept {
    return separators_type::shared_prefix(one.separators, other.separators, parent.prefix());
  }
  void erase(unsigned first, unsigned last) noexcept {
    const unsigned n = this->count();
    separators.erase(n, first, last);
    this->set_count(n - (last - first));
  }
};

}  // namespace elidex::internal
