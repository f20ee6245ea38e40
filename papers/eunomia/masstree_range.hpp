// Collects a range of a Masstree as it stood at one moment.
//
//   masstree_range range(tree, limit);
//   range.collect(from);  // up to `limit` keys and values, in ascending order
//   for (const auto& e : range.entries()) ...
//
// How: walk along the leaves, copy what they hold, keep each leaf with its version, and compare all
// of them at the end. If none has changed, each held what was copied at the moment of the first
// comparison, and each was followed by the next one, since a leaf's changes include those of its
// next pointer: that moment is the linearization point.
//
// What other readers compare would not do here: insertions into fresh slots, removals and new
// values leave it as it was. So a leaf is read while it is unlocked, and the whole of its version
// is compared.
//
// A range that is being changed all the time would never compare equal. After `optimistic_attempts`
// the leaves are locked instead, from left to right, each before it is read, and all are let go at
// the end; the linearization point is then any moment at which all are held.
//
// Under a coarse policy there is nothing to remember or to compare: the region is one moment.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/node_operation.hpp"
#include "elidex/internal/tree/range_collector.hpp"

namespace elidex::papers {

using namespace internal;

template <class Tree>
class masstree_range {
  using key_type = typename Tree::key_type;
  using leaf = typename Tree::leaf;
  using token = typename Tree::token;
  using version = typename Tree::version;

 public:
  struct entry {
    key_type key;
    typename Tree::mapped_type value;
  };

  static constexpr unsigned optimistic_attempts = 8;  // chosen: by then the range is hot

  masstree_range(const Tree& tree, std::size_t limit) noexcept : tree_(tree), limit_(limit) {}

  // Throws std::bad_alloc. The caller is pinned.
  void collect(key_type from) {
    if (limit_ == 0) return;
    backoff wait;
    for (unsigned restarts = 0;;) {
      locking_ = racing && restarts >= optimistic_attempts;
      const op_status s = tree_.sync_.shared([&] { return attempt(from); });
      if (s == op_status::yes) return;
      if (s == op_status::need_memory) {
        if (visited_.full()) visited_.grow();
        if (entries_.full()) entries_.grow();
      } else {
        ++restarts;
        tree_.count_restart();
        wait.once();
      }
    }
  }

  std::span<const entry> entries() const noexcept { return entries_.items(); }

 private:
  static constexpr bool racing = Tree::racing;
  struct visited {
    const leaf* at;
    token seen;
  };

  op_status attempt(key_type from) noexcept {
    entries_.clear();
    visited_.clear();
    op_status s = walk(from);
    if constexpr (racing) {
      for (const visited& v : visited_.items()) {
        if (locking_) {
          v.at->version.unlock();
        } else if (s == op_status::yes && v.at->version.touched_since(v.seen)) {
          s = op_status::restart;
        }
      }
    }
    return s;
  }

  op_status walk(key_type from) noexcept {
    leaf* l = nullptr;
    token found;
    if (!tree_.find_leaf(from, l, found)) return op_status::restart;
    unsigned position = 0;
    for (bool first = true;; first = false) {
      if constexpr (racing) {
        if (visited_.full()) return op_status::need_memory;
        const token seen = locking_ ? l->version.lock() : l->version.unlocked();
        visited_.push({l, seen});
        if (seen.is_deleted() || (first && version::split_between(found, seen)))
          return op_status::restart;
      }
      const auto order = l->permuted();
      if (first) position = l->rank(order, from);
      leaf* const next = l->next();
      if (next != nullptr) prefetch_bytes<sizeof(leaf)>(next);
      for (; position < order.count(); ++position) {
        const unsigned slot = order.slot(position);
        if (!entries_.push({l->key(slot), l->value(slot)})) return op_status::need_memory;
        if (entries_.size() == limit_) return op_status::yes;
      }
      if (next == nullptr) return op_status::yes;
      l = next;
      position = 0;
    }
  }

  const Tree& tree_;
  const std::size_t limit_;
  bool locking_ = false;
  staging_buffer<entry, 4096> entries_;
  staging_buffer<visited, 512> visited_;
};

}  // namespace elidex::papers
