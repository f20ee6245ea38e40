// Fills an empty tree with sorted records.
//
//   bulk_loader<Tree> loader(tree);
//   // may throw: then nothing was loaded
//   for (const auto& [key, value] : sorted) loader.add(key, value);
//   loader.publish();
//
// Thread-safety: a loader belongs to one thread. Other threads may use the tree meanwhile. They
// find it empty until publish(), which makes all records visible at one moment.
// Errors: std::invalid_argument from add() if the keys do not ascend. std::logic_error from
// publish() if the tree is not empty by then. std::bad_alloc from both. Nothing is then loaded.
//
// Implementation notes
// The loader builds the nodes aside, from the leaves up. It fills leaves and inner nodes to fifteen
// sixteenths, so that the first inserts do not split all of them. It distributes the children of a
// level evenly over the nodes above.
//
// Invariant: until publish() no other thread knows the nodes. publish() replaces the old root, an
// empty leaf, by the new root. It holds that leaf's lock and the root's, or runs in both regions.
// Its linearization point is the store of the root.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/tree/node_operation.hpp"

namespace elidex::internal {

template <class Tree>
class bulk_loader {
  using key_type = typename Tree::key_type;
  using value_type = typename Tree::mapped_type;
  using leaf = typename Tree::leaf;
  using inner = typename Tree::inner;
  using node = typename Tree::node;

 public:
  explicit bulk_loader(Tree& tree) : tree_(tree) {}
  bulk_loader(const bulk_loader&) = delete;
  bulk_loader& operator=(const bulk_loader&) = delete;
  ~bulk_loader() {
    for (void* const memory : leaves_) tree_.leaf_pool_.deallocate(memory);
    for (void* const memory : inners_) tree_.inner_pool_.deallocate(memory);
  }

  // Throws std::invalid_argument unless the key is greater than the one before, and std::bad_alloc.
  void add(const key_type& key, const value_type& value) {
    if (records_.count() != 0) {
      if (!(last_ < key)) throw std::invalid_argument("elidex: bulk_load: keys do not ascend");
      if (records_.count() >= filled(leaf::room_between(records_.key(0), key))) finish_leaf();
    }
    records_.append(key, value);
    last_ = key;
  }

  // Throws std::logic_error if the tree is not empty, and std::bad_alloc.
  void publish() {
    if (records_.count() != 0) finish_leaf();
    const std::size_t added = records_added_;
    for (unsigned level = 1; level_.size() > 1; ++level) build_level(level);
    btree_operation<Tree> op(tree_);
    node* const root = level_.empty() ? nullptr : level_.front().at;
    const op_status s = tree_.run_changing(
        op, [&] { return tree_.sync_.whole([&] { return tree_.try_replace_empty(root, op); }); });
    if (s == op_status::no) throw std::logic_error("elidex: bulk_load: the map is not empty");
    if (root == nullptr) return;
    leaves_.clear();  // the tree owns them now
    inners_.clear();
    tree_.size_.add(static_cast<std::int64_t>(added));
  }

 private:
  // A node of the level under construction, and the first of its keys.
  struct child {
    key_type first;
    node* at;
  };
  static unsigned filled(unsigned slots) noexcept { return slots - slots / 16; }

  void finish_leaf() {
    auto* const made = ::new (keep(leaves_, tree_.leaf_pool_)) leaf;
    made->sequence.begin_life(tree_.leaves_made_.fetch_add(1));
    made->fill(records_, 0, records_.count());
    level_.push_back({records_.key(0), made});
    records_added_ += records_.count();
    records_.clear();
  }

  // Allocates memory for a node and records it in `made`.
  static void* keep(std::vector<void*>& made, block_pool& pool) {
    made.push_back(nullptr);
    try {
      return made.back() = pool.allocate();
    } catch (...) {
      made.pop_back();
      throw;
    }
  }

  void build_level(unsigned level) {
    std::vector<child> above;
    const std::size_t children_max = filled(inner::capacity) + 1;
    const std::size_t nodes = (level_.size() + children_max - 1) / children_max;
    above.reserve(nodes);
    std::size_t next = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      auto* const made = ::new (keep(inners_, tree_.inner_pool_)) inner(level);
      const std::size_t end = level_.size() * (i + 1) / nodes;
      above.push_back({level_[next].first, made});
      made->set_child(0, level_[next].at);
      for (unsigned slot = 0; ++next < end; ++slot) {
        made->set_key(slot, level_[next].first);
        made->set_child(slot + 1, level_[next].at);
        made->set_count(slot + 1);
      }
    }
    level_ = std::move(above);
  }

  Tree& tree_;
  typename leaf::ordered_copy records_;  // of the leaf that is being filled
  key_type last_{};
  std::size_t records_added_ = 0;
  std::vector<child> level_;
  std::vector<void*> leaves_;
  std::vector<void*> inners_;
};

}  // namespace elidex::internal
