// Fills an empty tree with sorted records.
//
//   bulk_loader<Tree> loader(tree);
//   // may throw: then nothing was loaded
//   for (const auto& [key, value] : sorted) loader.add(key, value);
//   loader.publish();
//
// Thread-safety: a loader belongs to one thread. Other threads may use the tree meanwhile. They
// find it empty until publish(), which makes all records visible at one moment.
// Errors: std::invalid_argument from add() if the keys do not ascend, or if a key or a value is too
// long. std::logic_error from publish() if the tree is not empty by then. std::bad_alloc from both.
// Nothing is then loaded, and the loader can only be destroyed.
//
// Implementation notes
// The loader builds the nodes aside, from the leaves up. It fills leaves and inner nodes to fifteen
// sixteenths, so that the first inserts do not split all of them. It distributes the children of a
// level evenly over the nodes above. Prefixes of strings are those that splits would give
// (key_prefix.hpp): a node between two separators gets what these have in common.
//
// Invariant: until publish() no other thread knows the nodes. publish() replaces the old root, an
// empty leaf, by the new root. It holds that leaf's lock and the root's, or runs in both regions.
// Its linearization point is the store of the root.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <ranges>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/key_prefix.hpp"
#include "elidex/internal/tree/node_operation.hpp"

namespace elidex::internal {

// Calls fn(record) for the records of a range. Sorted strings mostly lie in no order in memory. So
// it prefetches the bytes of the keys ahead, if the range holds records that have such keys.
template <class Range, class Fn>
void for_each_prefetched(Range& records, Fn&& fn) {
  if constexpr (std::ranges::forward_range<Range> &&
                std::is_lvalue_reference_v<std::ranges::range_reference_t<Range>> &&
                requires { std::ranges::begin(records)->first.data(); }) {
    constexpr std::ptrdiff_t keys_ahead = 8;  // chosen
    const auto end = std::ranges::end(records);
    auto ahead = std::ranges::next(std::ranges::begin(records), keys_ahead, end);
    for (auto&& record : records) {
      if (ahead != end) {
        __builtin_prefetch(ahead->first.data());
        ++ahead;
      }
      fn(record);
    }
  } else {
    for (auto&& record : records) fn(std::forward<decltype(record)>(record));
  }
}

template <class Tree>
class bulk_loader {
  using keys = typename Tree::keys;
  using values = typename Tree::values;
  using key_slot = typename Tree::key_slot;
  using leaf = typename Tree::leaf;
  using inner = typename Tree::inner;
  using node = typename Tree::node;

 public:
  explicit bulk_loader(Tree& tree) : tree_(tree), op_(tree) {}
  bulk_loader(const bulk_loader&) = delete;
  bulk_loader& operator=(const bulk_loader&) = delete;
  ~bulk_loader() {
    discard_records(records_);
    for (leaf* const l : leaves_) {
      discard_records(*l);
      tree_.leaf_pool_.deallocate(l);
    }
    for (inner* const in : inners_) {
      for (unsigned i = 0; i < in->count(); ++i) op_.discard_key(in->key(i));
      tree_.inner_pool_.deallocate(in);
    }
  }

  // Throws std::invalid_argument unless the key is greater than the one before, and std::bad_alloc.
  void add(typename keys::argument key, typename values::argument value) {
    static_cast<void>(keys::search_key_of(key));  // checks the length
    values::check(value);
    if (const unsigned count = records_.count(); count != 0) {
      const typename keys::view last(records_.key(count - 1));
      if (!(last.get() < key)) throw std::invalid_argument("elidex: bulk_load: keys do not ascend");
      const typename keys::view first(records_.key(0));
      if (count >= filled(leaf::room_between(first.get(), key))) finish_leaf();
    }
    const bool has_key = op_.has_key(key);
    if (!op_.has_value(value) || !has_key) op_.provide();
    records_.append(op_.take_key(key), op_.take_value(value));
  }

  // Throws std::logic_error if the tree is not empty, and std::bad_alloc.
  void publish() {
    if (records_.count() != 0) finish_leaf();
    for (unsigned level = 1; level_.size() > 1; ++level) build_level(level);
    node* const root = level_.empty() ? nullptr : level_.front().at;
    const op_status s = tree_.run_changing(
        op_, [&] { return tree_.changing_region([&] { return try_replace_empty(root); }); });
    if (s == op_status::no) throw std::logic_error("elidex: bulk_load: the map is not empty");
    level_.clear();  // the tree owns the nodes now
    leaves_.clear();
    inners_.clear();
    tree_.size_.add(static_cast<std::int64_t>(records_added_));
  }

 private:
  // A node of the level under construction, and the separator in front of it. The first node has
  // none.
  using owned_key = typename owned_key_of<keys>::type;
  struct child {
    owned_key before;
    node* at;
  };
  static unsigned filled(unsigned slots) noexcept { return slots - slots / 16; }

  template <class Records>
  void discard_records(const Records& records) noexcept {
    if constexpr (keys::owns_blobs || values::owns_objects) {
      for (unsigned i = 0; i < records.count(); ++i) {
        op_.discard_key(records.key(i));
        op_.discard_value(records.value(i));
      }
    }
  }

  // Allocates a node and records it in `made`.
  template <class Node, class... Args>
  static Node* keep(std::vector<Node*>& made, block_pool& pool, Args... args) {
    made.push_back(nullptr);
    try {
      return made.back() = ::new (pool.allocate()) Node(args...);
    } catch (...) {
      made.pop_back();
      throw;
    }
  }

  void finish_leaf() {
    leaf* const made = keep(leaves_, tree_.leaf_pool_);
    const bool is_first = level_.empty();
    level_.push_back({owned_key{}, made});
    if (!is_first) {
      const typename keys::separator between(last_of_leaf_, records_.key(0));
      level_.back().before = owned_key(between.get());
      lengthen_prefix_of_leaf(level_.size() - 2);
    }
    const unsigned count = records_.count();
    last_of_leaf_ = records_.key(count - 1);
    tree_.begin_life(*made);
    made->fill(records_, 0, count);
    records_added_ += count;
    records_.clear();
  }

  // Calls fn(length, begins_alike) with the prefix of the node of children `first` to `last` - 1 of
  // the level. The outer nodes have a separator on one side only.
  template <class Fn>
  void with_prefix(std::size_t first, std::size_t last, Fn&& fn) noexcept {
    if constexpr (keys::has_prefixes) {
      if (first == 0 || last >= level_.size()) return;
      fn(keys::in_common(level_[first].before, level_[last].before), level_[first].before);
    }
  }
  void lengthen_prefix_of_leaf(std::size_t i) noexcept {
    with_prefix(i, i + 1, [&](unsigned length, const auto& begins_alike) {
      lengthen_prefix(static_cast<leaf&>(*level_[i].at), length, begins_alike);
    });
  }

  void build_level(unsigned level) {
    std::vector<child> above;
    const std::size_t children_max = filled(inner::capacity) + 1;
    for (std::size_t next = 0; next < level_.size();) {
      const std::size_t left = level_.size() - next;
      const std::size_t nodes = (left + children_max - 1) / children_max;
      inner* const made = keep(inners_, tree_.inner_pool_, level);
      above.push_back({level_[next].before, made});
      next = fill_inner(*made, next, next + left / nodes);
    }
    level_ = std::move(above);
  }

  // Gives a new node the children from `first` to `last` - 1, or fewer if it is full before.
  // Returns the first child that it did not get.
  std::size_t fill_inner(inner& made, std::size_t first, std::size_t last) {
    with_prefix(first, last, [&](unsigned length, const auto& begins_alike) {
      lengthen_prefix(made, length, begins_alike);
    });
    made.set_child(0, level_[first].at);
    std::size_t next = first + 1;
    for (; next < last && made.takes_in_bulk(level_[next].before); ++next) {
      const std::size_t blob_bytes = inner::blob_bytes(level_[next].before, &made);
      if (!op_.has_separator(blob_bytes)) op_.provide();
      made.insert(made.count(), op_.template take_separator<inner>(level_[next].before, blob_bytes),
                  level_[next].at);
    }
    return next;
  }

  // Yes: the tree was empty, and now has the new root unless that is null. No: the tree was not
  // empty.
  op_status try_replace_empty(node* new_root) noexcept {
    typename Tree::position p;
    if (!tree_.enter_root(p)) return op_status::restart;
    if (!p.at->is_leaf() || p.as_leaf().used() != 0)
      return p.still_valid() ? op_status::no : op_status::restart;
    if (new_root == nullptr) return p.still_valid() ? op_status::yes : op_status::restart;
    if (!op_.may_retire()) return op_status::need_memory;
    if (!p.try_lock_parent_and_node()) return op_status::restart;
    leaf& old = p.as_leaf();
    // Where the leaf locks keys apart, an insert needs no other lock than these.
    old.for_each_value_lock([](auto& one) { one.lock(); });
    if (old.used() != 0) {
      old.for_each_value_lock([](auto& one) { one.unlock(); });
      p.unlock_both_unchanged();
      return op_status::restart;
    }
    tree_.end_life(old, op_);
    tree_.root_.template store<Tree::racing>(new_root);
    op_.retire_leaf(&old);
    old.for_each_value_lock([](auto& one) { one.unlock(); });
    old.lock.unlock_obsolete();
    p.parent_lock->unlock();
    return op_status::yes;
  }

  Tree& tree_;
  typename Tree::operation op_;
  typename leaf::ordered_copy records_;  // of the leaf that is being filled
  key_slot last_of_leaf_{};              // the last key of the leaf before it
  std::size_t records_added_ = 0;
  std::vector<child> level_;
  std::vector<leaf*> leaves_;
  std::vector<inner*> inners_;
};

}  // namespace elidex::internal
