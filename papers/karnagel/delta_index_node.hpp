// What a node of the Delta Storage Index holds for a key: the ID of a value. Inner nodes are those
// of the other B+trees (btree_inner.hpp); a leaf is IDs and nothing else.
#pragma once

#include <array>
#include <cstddef>

#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "papers/karnagel/id_search.hpp"

namespace elidex::papers {

using namespace internal;

// Stands for the key type of such nodes.
template <class Dictionary, class Search>
struct value_id;

}  // namespace elidex::papers

namespace elidex::internal {

template <class Dictionary, class Search>
struct key_codec<papers::value_id<Dictionary, Search>> {
  using slot = typename Dictionary::id_type;
  static constexpr bool owns_blobs = false;
  static constexpr bool compares_in_place = false;
  static constexpr bool has_prefixes = false;

  static slot put_in(slot s, unsigned /*prefix*/) noexcept { return s; }
  static slot taken_out(slot s, unsigned /*prefix*/) noexcept { return s; }

  // A value, and where those live that IDs stand for.
  struct search_key {
    const Dictionary* dictionary;
    typename Dictionary::keys::search_key value;

    template <bool OrEqual, class Node, class StillValid>
    bool rank(const Node& n, unsigned count, StillValid&& still_valid, unsigned& result,
              bool& exact) const noexcept {
      const auto compare = [&](unsigned i) {
        return dictionary->compare(n.key(i), value, still_valid);
      };
      return Search::template rank<OrEqual>(count, compare, result, exact);
    }
    template <bool OrEqual, class Node, class StillValid>
    bool rank(const Node& n, unsigned count, StillValid&& still_valid,
              unsigned& result) const noexcept {
      bool exact = false;
      return rank<OrEqual>(n, count, still_valid, result, exact);
    }
  };
};

}  // namespace elidex::internal

namespace elidex::papers {

template <class Id, class Sync, class Shape>
struct id_leaf : btree_node<Sync> {
  static constexpr bool racing = Sync::readers_race;
  static constexpr unsigned capacity = Shape::leaf_slots(sizeof(Id));
  static constexpr std::size_t head_bytes = sizeof(btree_node<Sync>);
  static constexpr bool in_order = true;
  static constexpr std::size_t value_locks = 0;
  struct ordered_view {};
  struct no_value {};

  id_leaf() noexcept : btree_node<Sync>(0) {}

  Id key(unsigned i) const noexcept { return ids_[i].template load<racing>(); }
  no_value value(unsigned /*i*/) const noexcept { return {}; }

  void insert(unsigned position, Id id) noexcept {
    const unsigned n = this->count();
    for (unsigned i = n; i > position; --i) set_key(i, ids_[i - 1].template load<false>());
    set_key(position, id);
    this->set_count(n + 1);
  }
  // Moves the IDs from `first` on to the empty leaf `to`.
  void move_tail(unsigned first, id_leaf& to) noexcept {
    const unsigned n = this->count();
    for (unsigned i = first; i < n; ++i) to.set_key(i - first, ids_[i].template load<false>());
    to.set_count(n - first);
    this->set_count(first);
  }
  template <class Fn>
  void for_each_value_lock(Fn&& /*fn*/) const noexcept {}

 private:
  void set_key(unsigned i, Id id) noexcept { ids_[i].template store<racing>(id); }

  std::array<field<Id>, capacity> ids_;
};

}  // namespace elidex::papers
