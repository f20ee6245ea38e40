// What an operation that changes a tree carries from attempt to attempt: memory set aside for it, and what it has
// unlinked.
//
//   operation op(tree);
//   for (;;) switch (region(op)) {
//     case step::need_memory: op.provide(); continue;      // may throw: the tree is unchanged
//     ...
//   }
//   op.settle();                                           // what was unlinked goes to limbo
//
// Region bodies allocate nothing (DESIGN.md, rule 3): a body that lacks memory notes what it lacks and returns
// need_memory, before it has changed anything. What is set aside and not used goes back at the end.
// Everything here is touched by one thread. An aborted hardware transaction rolls it back together with the tree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include "elidex/index/blob.hpp"
#include "elidex/reclaim/limbo.hpp"

namespace elidex::detail {

// How an attempt at an operation ended.
enum class step : std::uint8_t {
  yes,           // done: it was there, or it has been changed
  no,            // done: it was not there, or it was there already
  restart,       // another thread changed something; try again
  restructured,  // a node was split or merged; try again
  need_memory,   // provide() first
  full,          // the leaf must be split first
  threw,         // the caller's function threw
};

struct no_pin {};

template <class Tree>
class btree_operation {
  using leaf = typename Tree::leaf;
  using inner = typename Tree::inner;
  using keys = typename Tree::keys;
  using values = typename Tree::values;
  using key_argument = typename keys::argument;
  using value_argument = typename values::argument;

 public:
  // Throws std::bad_alloc on a thread's first use: later calls into the counters can then not fail.
  explicit btree_operation(Tree& tree) : tree_(tree) { static_cast<void>(this_thread_slot()); }
  btree_operation(const btree_operation&) = delete;
  btree_operation& operator=(const btree_operation&) = delete;

  ~btree_operation() {
    if (spare_leaf_ != nullptr) tree_.leaf_pool_.deallocate(spare_leaf_);
    while (spare_inner_count_ > 0) tree_.inner_pool_.deallocate(spare_inners_[--spare_inner_count_]);
    for (blob* b : {key_blob_, value_blob_, separator_blob_}) free_blob(b);
    if (may_retire_) tree_.limbo_.unreserve();
  }

  // --- inside the region: each says whether it is there, and otherwise notes that it is wanted ---

  bool has_nodes(bool leaf_too, std::size_t inners) noexcept {
    wants_leaf_ = leaf_too;
    wanted_inners_ = inners;
    return (!leaf_too || spare_leaf_ != nullptr) && spare_inner_count_ >= inners;
  }
  bool has_spare_leaf() const noexcept { return spare_leaf_ != nullptr; }
  bool has_key(key_argument key) noexcept {
    if (!keys::needs_blob(key) || key_blob_ != nullptr) return true;
    if constexpr (keys::owns_blobs) wanted_key_ = key;
    wants_key_ = true;
    return false;
  }
  bool has_value(value_argument value) noexcept {
    if (!values::owns_blobs || value_blob_ != nullptr) return true;
    if constexpr (values::owns_blobs) wanted_value_ = value;
    wants_value_ = true;
    return false;
  }
  // A blob of just these many bytes; none for 0.
  bool has_separator(std::size_t bytes) noexcept {
    if (bytes == 0 || (separator_blob_ != nullptr && separator_blob_->size() == bytes)) return true;
    wanted_separator_bytes_ = bytes;
    return false;
  }
  bool may_retire() noexcept {
    wants_to_retire_ = true;
    return may_retire_ || !Tree::defers_reclamation;
  }

  // --- inside the region: from here on it will not be run again, unless a transaction aborts ---

  leaf* take_leaf() noexcept { return ::new (std::exchange(spare_leaf_, nullptr)) leaf; }
  void put_back_leaf(leaf* unused) noexcept { spare_leaf_ = unused; }
  inner* take_inner(unsigned level) noexcept { return ::new (spare_inners_[--spare_inner_count_]) inner(level); }
  typename keys::slot take_key(key_argument key) noexcept {
    return keys::slot_of(key, keys::needs_blob(key) ? std::exchange(key_blob_, nullptr) : nullptr);
  }
  typename values::slot take_value(value_argument value) noexcept {
    return values::slot_of(value, std::exchange(value_blob_, nullptr));
  }
  template <class Separator>
  typename keys::slot take_separator(const Separator& separator) noexcept {
    return separator.to_slot(separator.blob_bytes() == 0 ? nullptr : std::exchange(separator_blob_, nullptr));
  }

  void retire_key(const typename keys::slot& key) noexcept { retire(keys::blob_of(key), &destroy_blob); }
  void retire_value(const typename values::slot& value) noexcept { retire(values::blob_of(value), &destroy_blob); }
  void retire_leaf(leaf* l) noexcept { retire(l, &destroy_leaf); }
  void retire_inner(inner* n) noexcept { retire(n, &destroy_inner); }

  // Anything else that others may still look at.
  void retire(void* object, limbo_list::destroyer destroy) noexcept {
    if (object != nullptr) retired_[retired_count_++] = {object, destroy};
  }

  void note_split() noexcept { ++splits_; }
  void note_merge() noexcept { ++merges_; }
  void note_share() noexcept { ++shares_; }

  // --- after the region ---

  // Gets what the last attempt wanted. Throws std::bad_alloc.
  void provide() {
    if (wants_to_retire_ && !may_retire_ && Tree::defers_reclamation) {
      tree_.limbo_.reserve();
      may_retire_ = true;
    }
    if (wants_leaf_ && spare_leaf_ == nullptr) spare_leaf_ = tree_.leaf_pool_.allocate();
    while (spare_inner_count_ < wanted_inners_) {
      spare_inners_[spare_inner_count_] = tree_.inner_pool_.allocate();
      ++spare_inner_count_;
    }
    if (wants_key_ && key_blob_ == nullptr) key_blob_ = make_blob(wanted_key_);
    if (wants_value_ && value_blob_ == nullptr) value_blob_ = make_blob(wanted_value_);
    if (wanted_separator_bytes_ != 0) {
      free_blob(std::exchange(separator_blob_, nullptr));
      separator_blob_ = blob::make_room(wanted_separator_bytes_);
      count_blob(separator_blob_, 1);
    }
    wants_leaf_ = wants_key_ = wants_value_ = wants_to_retire_ = false;
    wanted_inners_ = wanted_separator_bytes_ = 0;
  }

  // Hands over what the last attempt unlinked, and counts what it did.
  void settle() noexcept {
    if (splits_ != 0) tree_.splits_.add(std::exchange(splits_, 0));
    if (merges_ != 0) tree_.merges_.add(std::exchange(merges_, 0));
    if (shares_ != 0) tree_.shares_.add(std::exchange(shares_, 0));
    if (retired_count_ == 0) return;
    for (std::size_t i = 0; i < retired_count_; ++i) {
      if constexpr (Tree::defers_reclamation) {
        tree_.limbo_.retire(retired_[i].object, retired_[i].destroy);
      } else {
        retired_[i].destroy(&tree_, retired_[i].object);
      }
    }
    retired_count_ = 0;
    if (std::exchange(may_retire_, false)) tree_.limbo_.unreserve();
  }

 private:
  struct retired {
    void* object;
    limbo_list::destroyer destroy;
  };

  static void destroy_blob(void* tree, void* b) noexcept {
    count_blob(*static_cast<Tree*>(tree), static_cast<blob*>(b), -1);
    blob::destroy(static_cast<blob*>(b));
  }
  static void destroy_leaf(void* tree, void* l) noexcept { static_cast<Tree*>(tree)->leaf_pool_.deallocate(l); }
  static void destroy_inner(void* tree, void* n) noexcept { static_cast<Tree*>(tree)->inner_pool_.deallocate(n); }

  static void count_blob([[maybe_unused]] Tree& tree, [[maybe_unused]] const blob* b,
                         [[maybe_unused]] int sign) noexcept {
    if constexpr (keys::owns_blobs || values::owns_blobs)
      tree.blob_bytes_.add(sign * static_cast<std::int64_t>(blob::footprint_bytes(b->size())));
  }
  void count_blob(const blob* b, int sign) noexcept { count_blob(tree_, b, sign); }
  blob* make_blob(std::string_view bytes) {
    blob* const made = blob::make(bytes);
    count_blob(made, 1);
    return made;
  }
  void free_blob([[maybe_unused]] blob* b) noexcept {
    if constexpr (keys::owns_blobs || values::owns_blobs) {
      if (b != nullptr) destroy_blob(&tree_, b);
    }
  }

  Tree& tree_;
  void* spare_leaf_ = nullptr;
  std::array<void*, 2> spare_inners_{};  // a split of an inner root takes two
  std::size_t spare_inner_count_ = 0;
  blob* key_blob_ = nullptr;
  blob* value_blob_ = nullptr;
  blob* separator_blob_ = nullptr;
  bool may_retire_ = false;

  bool wants_leaf_ = false;
  bool wants_key_ = false;
  bool wants_value_ = false;
  bool wants_to_retire_ = false;
  std::size_t wanted_inners_ = 0;
  std::size_t wanted_separator_bytes_ = 0;
  std::string_view wanted_key_;
  std::string_view wanted_value_;

  std::array<retired, limbo_list::reserved_entries> retired_{};
  std::size_t retired_count_ = 0;
  std::int64_t splits_ = 0;
  std::int64_t merges_ = 0;
  std::int64_t shares_ = 0;
};

}  // namespace elidex::detail
