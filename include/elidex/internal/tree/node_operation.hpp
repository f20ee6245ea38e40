// What an operation that changes a tree carries from attempt to attempt: nodes set aside for it,
// and what it has unlinked.
//
//   operation op(tree);
//   for (;;) switch (region(op)) {
//     case step::need_memory: op.provide(); continue;      // may throw: the tree is unchanged
//     ...
//   }
//   op.settle();  // what was unlinked goes to the retire list
//
// Region bodies allocate nothing (DESIGN.md, rule 3): a body that lacks memory notes what it lacks
// and returns need_memory, before it has changed anything. What is set aside and not used goes back
// at the end. Everything here is touched by one thread. An aborted hardware transaction rolls it
// back together with the tree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/memory/thread_slot.hpp"

namespace elidex::internal {

// How an attempt at an operation ended.
enum class step : std::uint8_t {
  yes,           // done: it was there, or it has been changed
  no,            // done: it was not there, or it was there already
  restart,       // another thread changed something; try again
  restructured,  // a node was split or merged; try again
  need_memory,   // provide() first
  full,          // the leaf must be split first
  threw,         // the caller's function threw
  unmade,        // the caller's function gave no value
};

struct no_pin {};

// Tree has leaf_pool_, inner_pool_, splits_, merges_ and shares_, and a retire_list_ where it
// defers reclamation.
template <class Tree>
class node_operation {
  using leaf = typename Tree::leaf;
  using inner = typename Tree::inner;

 public:
  // Throws std::bad_alloc on a thread's first use: later calls into the counters can then not fail.
  explicit node_operation(Tree& tree) : tree_(tree) { static_cast<void>(this_thread_slot()); }
  node_operation(const node_operation&) = delete;
  node_operation& operator=(const node_operation&) = delete;

  ~node_operation() {
    if (spare_leaf_ != nullptr) tree_.leaf_pool_.deallocate(spare_leaf_);
    while (spare_inner_count_ > 0)
      tree_.inner_pool_.deallocate(spare_inners_[--spare_inner_count_]);
    if constexpr (Tree::defers_reclamation) {
      if (may_retire_) tree_.retire_list_.unreserve();
    }
  }

  // --- inside the region: each says whether it is there, and otherwise notes that it is wanted ---

  bool has_nodes(bool leaf_too, std::size_t inners) noexcept {
    wants_leaf_ = leaf_too;
    wanted_inners_ = inners;
    return (!leaf_too || spare_leaf_ != nullptr) && spare_inner_count_ >= inners;
  }
  bool has_spare_leaf() const noexcept { return spare_leaf_ != nullptr; }
  bool may_retire() noexcept {
    wants_to_retire_ = true;
    return may_retire_ || !Tree::defers_reclamation;
  }

  // --- inside the region: from here on it will not be run again, unless a transaction aborts ---

  leaf* take_leaf() noexcept { return ::new (std::exchange(spare_leaf_, nullptr)) leaf; }
  void put_back_leaf(leaf* unused) noexcept { spare_leaf_ = unused; }
  inner* take_inner(unsigned level) noexcept {
    return ::new (spare_inners_[--spare_inner_count_]) inner(level);
  }

  void retire_leaf(leaf* l) noexcept { retire(l, &destroy_leaf); }
  void retire_inner(inner* n) noexcept { retire(n, &destroy_inner); }

  // Anything else that others may still look at.
  void retire(void* object, retire_list::destroyer destroy) noexcept {
    if (object != nullptr) retired_[retired_count_++] = {object, destroy};
  }

  void note_split() noexcept { ++splits_; }
  void note_merge() noexcept { ++merges_; }
  void note_share() noexcept { ++shares_; }

  // --- after the region ---

  // Gets what the last attempt wanted. Throws std::bad_alloc.
  void provide() {
    if constexpr (Tree::defers_reclamation) {
      if (wants_to_retire_ && !may_retire_) {
        tree_.retire_list_.reserve();
        may_retire_ = true;
      }
    }
    if (wants_leaf_ && spare_leaf_ == nullptr) spare_leaf_ = tree_.leaf_pool_.allocate();
    while (spare_inner_count_ < wanted_inners_) {
      spare_inners_[spare_inner_count_] = tree_.inner_pool_.allocate();
      ++spare_inner_count_;
    }
    wants_leaf_ = wants_to_retire_ = false;
    wanted_inners_ = 0;
  }

  // Hands over what the last attempt unlinked, and counts what it did.
  void settle() noexcept {
    if (splits_ != 0) tree_.splits_.add(std::exchange(splits_, 0));
    if (merges_ != 0) tree_.merges_.add(std::exchange(merges_, 0));
    if (shares_ != 0) tree_.shares_.add(std::exchange(shares_, 0));
    if (retired_count_ == 0) return;
    for (std::size_t i = 0; i < retired_count_; ++i) {
      if constexpr (Tree::defers_reclamation) {
        tree_.retire_list_.retire(retired_[i].object, retired_[i].destroy);
      } else {
        retired_[i].destroy(&tree_, retired_[i].object);
      }
    }
    retired_count_ = 0;
    if constexpr (Tree::defers_reclamation) {
      if (std::exchange(may_retire_, false)) tree_.retire_list_.unreserve();
    }
  }

 protected:
  Tree& tree() noexcept { return tree_; }

 private:
  struct retired {
    void* object;
    retire_list::destroyer destroy;
  };

  static void destroy_leaf(void* tree, void* l) noexcept {
    static_cast<Tree*>(tree)->leaf_pool_.deallocate(l);
  }
  static void destroy_inner(void* tree, void* n) noexcept {
    static_cast<Tree*>(tree)->inner_pool_.deallocate(n);
  }

  Tree& tree_;
  void* spare_leaf_ = nullptr;
  std::array<void*, 2> spare_inners_{};  // a split of an inner root takes two
  std::size_t spare_inner_count_ = 0;
  bool may_retire_ = false;

  bool wants_leaf_ = false;
  bool wants_to_retire_ = false;
  std::size_t wanted_inners_ = 0;

  std::array<retired, retire_list::reserved_entries> retired_{};
  std::size_t retired_count_ = 0;
  std::int64_t splits_ = 0;
  std::int64_t merges_ = 0;
  std::int64_t shares_ = 0;
};

}  // namespace elidex::internal
