// What an operation that changes a Masstree carries from attempt to attempt: memory set aside for
// it, and what it has unlinked. As btree_operation, but for as many nodes as a split or a removal
// that reaches up to the root may need.
//
//   masstree_operation op(tree);
//   for (;;) switch (region(op)) {
//     case op_status::need_memory: op.provide(); continue;      // may throw: the tree is unchanged
//     ...
//   }
//   op.settle();  // what was unlinked goes to the retire list
//
// Everything here is touched by one thread. An aborted hardware transaction rolls it back together
// with the tree.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/retire_list.hpp"

namespace elidex::papers {

using namespace internal;

template <class Tree>
class masstree_operation {
  using leaf = typename Tree::leaf;
  using inner = typename Tree::inner;
  using key_type = typename Tree::key_type;
  using node_state = typename inner::version_type::state;

 public:
  // Throws std::bad_alloc on a thread's first use: later calls into the counters can then not fail.
  explicit masstree_operation(Tree& tree) : tree_(tree) { static_cast<void>(this_thread_slot()); }
  masstree_operation(const masstree_operation&) = delete;
  masstree_operation& operator=(const masstree_operation&) = delete;

  ~masstree_operation() {
    if (spare_leaf_ != nullptr) tree_.leaf_pool_.deallocate(spare_leaf_);
    while (spare_inner_count_ > 0)
      tree_.inner_pool_.deallocate(spare_inners_[--spare_inner_count_]);
    give_up_reservations();
  }

  // --- inside the region: each says whether it is there, and otherwise notes that it is wanted ---

  bool has_nodes(bool leaf_too, std::size_t inners) noexcept {
    wants_leaf_ = leaf_too;
    wanted_inners_ = inners;
    return (!leaf_too || spare_leaf_ != nullptr) && spare_inner_count_ >= inners;
  }
  bool may_retire(std::size_t nodes) noexcept {
    if constexpr (!Tree::defers_reclamation) return true;
    wanted_reservations_ =
        (nodes + retire_list::reserved_entries - 1) / retire_list::reserved_entries;
    return reservations_ >= wanted_reservations_;
  }

  // --- inside the region: from here on it will not be run again, unless a transaction aborts ---

  leaf* take_leaf(key_type low) noexcept {
    return ::new (std::exchange(spare_leaf_, nullptr)) leaf(low, node_state::locked_and_splitting);
  }
  inner* take_inner(node_state at_first) noexcept {
    return ::new (spare_inners_[--spare_inner_count_]) inner(at_first);
  }

  void retire_leaf(leaf* l) noexcept { retired_[retired_count_++] = {l, &destroy_leaf}; }
  void retire_inner(inner* n) noexcept { retired_[retired_count_++] = {n, &destroy_inner}; }

  void note_splits(std::int64_t nodes) noexcept { splits_ = nodes; }

  // --- after the region ---

  // Gets what the last attempt wanted. Throws std::bad_alloc.
  void provide() {
    for (; reservations_ < wanted_reservations_; ++reservations_) tree_.retire_list_.reserve();
    if (wants_leaf_ && spare_leaf_ == nullptr) spare_leaf_ = tree_.leaf_pool_.allocate();
    for (; spare_inner_count_ < wanted_inners_; ++spare_inner_count_) {
      spare_inners_[spare_inner_count_] = tree_.inner_pool_.allocate();
    }
    wants_leaf_ = false;
    wanted_inners_ = wanted_reservations_ = 0;
  }

  // Hands over what the last attempt unlinked, and counts what it did.
  void settle() noexcept {
    if (splits_ != 0) tree_.splits_.add(std::exchange(splits_, 0));
    if (retired_count_ == 0) return;
    tree_.removals_.add(static_cast<std::int64_t>(retired_count_));
    for (std::size_t i = 0; i < retired_count_; ++i) {
      if constexpr (Tree::defers_reclamation) {
        tree_.retire_list_.retire(retired_[i].object, retired_[i].destroy);
      } else {
        retired_[i].destroy(&tree_, retired_[i].object);
      }
    }
    retired_count_ = 0;
    give_up_reservations();
  }

 private:
  struct retired {
    void* object;
    retire_list::destroyer destroy;
  };
  static constexpr std::size_t nodes_max = Tree::levels_max + 1;

  void give_up_reservations() noexcept {
    for (; reservations_ > 0; --reservations_) tree_.retire_list_.unreserve();
  }

  static void destroy_leaf(void* tree, void* l) noexcept {
    static_cast<Tree*>(tree)->leaf_pool_.deallocate(l);
  }
  static void destroy_inner(void* tree, void* n) noexcept {
    static_cast<Tree*>(tree)->inner_pool_.deallocate(n);
  }

  Tree& tree_;
  void* spare_leaf_ = nullptr;
  std::size_t spare_inner_count_ = 0;
  std::size_t reservations_ = 0;
  std::size_t retired_count_ = 0;

  bool wants_leaf_ = false;
  std::size_t wanted_inners_ = 0;
  std::size_t wanted_reservations_ = 0;
  std::int64_t splits_ = 0;

  // Not initialised: few operations touch them.
  std::array<void*, nodes_max> spare_inners_;
  std::array<retired, nodes_max> retired_;
};

}  // namespace elidex::papers
