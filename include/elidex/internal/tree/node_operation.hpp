// The state that an operation carries from attempt to attempt while it changes a tree: nodes that
// are set aside for it, and what it has unlinked.
//
//   operation op(tree);
//   for (;;) switch (region(op)) {
//     case op_status::need_memory: op.provide(); continue;      // may throw: the tree is unchanged
//     ...
//   }
//   op.settle();  // what was unlinked goes to the retire list
//
// Thread-safety: one thread.
// Errors: std::bad_alloc from the constructor and provide().
//
// Implementation notes
// A region body allocates nothing (docs/CONTRIBUTING.md). A body that lacks memory records this and
// returns need_memory, before it has changed anything. Memory that is set aside and not used is
// released at the end. An aborted hardware transaction rolls an operation back together with the
// tree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/slotted_node.hpp"

namespace elidex::internal {

// The result of an attempt at an operation.
enum class op_status : std::uint8_t {
  yes,           // done: the key was present, or has been changed
  no,            // done: the key was absent, or was present already
  restart,       // another thread changed something: try again
  restructured,  // a node was split or merged: try again
  need_memory,   // call provide() first
  full,          // the leaf must be split first
  threw,         // the caller's function threw
  unmade,        // the caller's function returned no value
  changed,       // done: the key's value has been changed
  erases,        // the caller's function wants the key erased
};

struct no_pin {};

// Runs the function of compute() on the value of a slot, under the locks that the value needs.
// Changes nothing if the result is `erases` or `threw`. Not inlined: GCC 12 would warn that a value
// may be missing which is there.
template <class Leaf, class Fn>
[[gnu::noinline]] op_status compute_in_slot(Leaf& l, unsigned slot, Fn& fn,
                                            std::exception_ptr& thrown) noexcept {
  // Not deduced: a value may itself be an optional.
  std::optional<std::remove_cvref_t<decltype(l.value(slot))>> value(std::in_place, l.value(slot));
  try {
    fn(value);
  } catch (...) {
    thrown = std::current_exception();
    return op_status::threw;
  }
  if (!value) return op_status::erases;
  l.set_value(slot, *value);
  return op_status::changed;
}

// Runs it for a key that is absent. Yes: `value` is to be added.
template <class Value, class Fn>
op_status compute_absent(std::optional<Value>& value, Fn& fn, std::exception_ptr& thrown) noexcept {
  try {
    fn(value);
  } catch (...) {
    thrown = std::current_exception();
    return op_status::threw;
  }
  return value ? op_status::yes : op_status::unmade;
}

// Tree has leaf_pool_, inner_pool_, splits_, merges_ and redistributions_, and a retire_list_ if it
// defers reclamation.
template <class Tree>
class node_operation {
  using leaf = typename Tree::leaf;
  using inner = typename Tree::inner;

 public:
  // Throws std::bad_alloc on a thread's first use. Later updates of the counters then cannot fail.
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

  // --- inside the region: each returns whether it is available, and otherwise records the wish ---

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

  // From here on, the operation's descents split full inner nodes. An erase needs it if a separator
  // is to be replaced by a longer one.
  void make_room_above() noexcept { makes_room_above_ = true; }
  bool makes_room_above() const noexcept { return makes_room_above_; }

  // --- inside the region: after these, it runs again only if a transaction aborts ---

  leaf* take_leaf() noexcept { return ::new (std::exchange(spare_leaf_, nullptr)) leaf; }
  void put_back_leaf(leaf* unused) noexcept { spare_leaf_ = unused; }
  inner* take_inner(unsigned level) noexcept {
    return ::new (spare_inners_[--spare_inner_count_]) inner(level);
  }

  void retire_leaf(leaf* l) noexcept { retire(l, &destroy_leaf); }
  void retire_inner(inner* n) noexcept { retire(n, &destroy_inner); }

  // Any other object that another thread may still read.
  void retire(void* object, retire_list::destroyer destroy) noexcept {
    if (object != nullptr) retired_[retired_count_++] = {object, destroy};
  }

  // Whether an erase has left a leaf empty.
  void note_empty_leaf(bool is_empty) noexcept { left_empty_leaf_ = is_empty; }
  bool left_empty_leaf() const noexcept { return left_empty_leaf_; }

  void note_split() noexcept { ++splits_; }
  void note_merge() noexcept { ++merges_; }
  void note_redistribute() noexcept { ++redistributions_; }

  // --- after the region ---

  // Obtains what the last attempt wanted. Throws std::bad_alloc.
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

  // Retires what the last attempt unlinked, and counts its splits, merges and redistributions.
  void settle() noexcept {
    if (splits_ != 0) tree_.splits_.add(std::exchange(splits_, 0));
    if (merges_ != 0) tree_.merges_.add(std::exchange(merges_, 0));
    if (redistributions_ != 0) tree_.redistributions_.add(std::exchange(redistributions_, 0));
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
  bool makes_room_above_ = false;
  bool left_empty_leaf_ = false;

  bool wants_leaf_ = false;
  bool wants_to_retire_ = false;
  std::size_t wanted_inners_ = 0;

  std::array<retired, retire_list::reserved_entries> retired_{};
  std::size_t retired_count_ = 0;
  std::int64_t splits_ = 0;
  std::int64_t merges_ = 0;
  std::int64_t redistributions_ = 0;
};

// An operation that also carries blobs of its key and of a separator, and the object of its value.
template <class Tree>
class btree_operation : public node_operation<Tree> {
  using keys = typename Tree::keys;
  using values = typename Tree::values;
  using key_argument = typename keys::argument;
  using value_argument = typename values::argument;

 public:
  using node_operation<Tree>::node_operation;

  ~btree_operation() {
    if constexpr (keys::owns_blobs) {
      // Mostly the later blob first: an arena can take that one back.
      for (blob* b : {separator_blob_, key_blob_}) {
        if (b != nullptr) destroy_key_blob(&this->tree(), b);
      }
    }
    if constexpr (values::makes_objects) {
      if (value_ != nullptr) destroy_value(&this->tree(), value_);
    }
  }

  // --- inside the region: each returns whether it is available, and otherwise records the wish ---

  // A blob of the key, if it needs one.
  bool has_key(key_argument key, bool needs_blob) noexcept {
    if (!needs_blob || key_blob_ != nullptr) return true;
    if constexpr (keys::owns_blobs) wanted_key_ = key;
    wants_key_ = true;
    return false;
  }
  bool has_value(value_argument value) noexcept {
    if constexpr (values::makes_objects) {
      if (value_ == nullptr) {
        wanted_value_ = value;
        wants_value_ = true;
        return false;
      }
    }
    return true;
  }
  // A blob of exactly so many bytes, or none for 0.
  bool has_separator(std::size_t bytes) noexcept {
    if (bytes == 0 || (separator_blob_ != nullptr && separator_blob_->size() == bytes)) return true;
    wanted_separator_bytes_ = bytes;
    return false;
  }

  // --- inside the region: after these, it runs again only if a transaction aborts ---

  // The key as a slot has it, with the blob that take_key_blob() will return.
  typename keys::slot key(key_argument key) const noexcept { return keys::slot_of(key, key_blob_); }
  blob* take_key_blob(bool needs_blob) noexcept {
    return needs_blob ? std::exchange(key_blob_, nullptr) : nullptr;
  }
  typename values::slot take_value(value_argument value) noexcept {
    if constexpr (values::owns_objects && !values::makes_objects) count_value(*value, 1);
    return values::slot_of(value, std::exchange(value_, nullptr));
  }
  // A separator for nodes of type Inner, with the blob of has_separator(blob_bytes).
  template <class Inner>
  typename Inner::key_type take_separator(key_argument key, std::size_t blob_bytes) noexcept {
    if constexpr (keys::has_prefixes) {
      blob* const outside = blob_bytes == 0 ? nullptr : std::exchange(separator_blob_, nullptr);
      if (outside != nullptr) outside->fill(key);
      return slotted_key(key, outside);
    } else {
      return key;
    }
  }

  // Null is none.
  void retire_key_blob(blob* b) noexcept { this->retire(b, &destroy_key_blob); }
  void retire_value(const typename values::slot& value) noexcept {
    if constexpr (values::owns_objects) {
      if (keeps_value_) {
        kept_ = value;
      } else {
        this->retire(value, &destroy_value);
      }
    }
  }

  // Frees what no other thread has seen.
  void discard_key_blob(blob* b) noexcept {
    if (b != nullptr) destroy_key_blob(&this->tree(), b);
  }
  void discard_value(const typename values::slot& value) noexcept {
    if constexpr (values::owns_objects) destroy_value(&this->tree(), value);
  }

  // From here on retire_value() keeps the value for kept_value(), which the caller must call if
  // there is one.
  void keep_value() noexcept { keeps_value_ = true; }
  template <class Values = values>
    requires Values::owns_objects
  auto kept_value() noexcept {
    count_value(*kept_, -1);
    return std::unique_ptr<typename values::object>(std::exchange(kept_, nullptr));
  }

  // --- after the region ---

  // Obtains what the last attempt wanted. Throws std::bad_alloc.
  [[gnu::noinline]] void provide() {
    node_operation<Tree>::provide();
    if constexpr (keys::owns_blobs) {
      if (wants_key_ && key_blob_ == nullptr)
        key_blob_ =
            counted<key_blobs>(this->tree().key_blobs_.make(wanted_key_, this->tree().memory_));
      if (wanted_separator_bytes_ != 0) {
        if (separator_blob_ != nullptr)
          destroy_key_blob(&this->tree(), std::exchange(separator_blob_, nullptr));
        separator_blob_ = counted<key_blobs>(
            this->tree().key_blobs_.make_room(wanted_separator_bytes_, this->tree().memory_));
      }
    }
    if constexpr (values::makes_objects) {
      if (wants_value_ && value_ == nullptr) {
        value_ = values::make(wanted_value_, this->tree().memory_);
        count_value(*value_, 1);
      }
    }
    wants_key_ = wants_value_ = false;
    wanted_separator_bytes_ = 0;
  }

 private:
  using key_blobs = typename keys::blob_store;

  template <class Store>
  static void count(Tree& tree, const blob* b, int sign) noexcept {
    tree.blob_bytes_.add(sign * static_cast<std::int64_t>(Store::footprint_bytes(b->size())));
  }
  template <class Store>
  blob* counted(blob* made) noexcept {
    count<Store>(this->tree(), made, 1);
    return made;
  }
  static void destroy_key_blob(void* tree, void* b) noexcept {
    if constexpr (keys::owns_blobs) {
      auto& of = *static_cast<Tree*>(tree);
      count<key_blobs>(of, static_cast<blob*>(b), -1);
      of.key_blobs_.destroy(static_cast<blob*>(b), of.memory_);
    }
  }
  template <class Object>
  void count_value(const Object& object, int sign) noexcept {
    count_value(this->tree(), object, sign);
  }
  template <class Object>
  static void count_value(Tree& tree, const Object& object, int sign) noexcept {
    tree.blob_bytes_.add(sign * static_cast<std::int64_t>(values::footprint_bytes(object)));
  }
  static void destroy_value(void* tree, void* object) noexcept {
    if constexpr (values::owns_objects) {
      auto* const gone = static_cast<typename values::object*>(object);
      auto& of = *static_cast<Tree*>(tree);
      count_value(of, *gone, -1);
      values::destroy(gone, of.memory_);
    }
  }

  blob* key_blob_ = nullptr;
  typename values::object* value_ = nullptr;
  typename values::object* kept_ = nullptr;
  bool keeps_value_ = false;
  blob* separator_blob_ = nullptr;

  bool wants_key_ = false;
  bool wants_value_ = false;
  std::size_t wanted_separator_bytes_ = 0;
  std::string_view wanted_key_;
  std::string_view wanted_value_;
};

}  // namespace elidex::internal
