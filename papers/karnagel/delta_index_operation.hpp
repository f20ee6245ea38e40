// What an operation that changes a delta_index carries from attempt to attempt: besides nodes
// (node_operation.hpp), the bytes of a string, and the part of the dictionary that it appends to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/node_operation.hpp"

namespace elidex::papers {

using namespace internal;

// Nodes that splits take inside their region, with the same counters for all threads: the shared
// allocator of paper 001, section 5.2.2. Protected by the region.
template <bool Used>
class node_stock {
 public:
  node_stock() noexcept { name_memory(this, sizeof(*this), "node stock"); }

  static constexpr std::size_t leaves_max = 32;
  static constexpr std::size_t inners_max = 8;

  bool has(std::size_t leaves, std::size_t inners) const noexcept {
    return leaves_ >= leaves && inners_ >= inners;
  }
  void* take_leaf() noexcept { return leaf_[--leaves_]; }
  void* take_inner() noexcept { return inner_[--inners_]; }
  bool put_leaf(void* memory) noexcept {
    if (leaves_ == leaves_max) return false;
    leaf_[leaves_++] = memory;
    return true;
  }
  bool put_inner(void* memory) noexcept {
    if (inners_ == inners_max) return false;
    inner_[inners_++] = memory;
    return true;
  }

 private:
  std::size_t leaves_ = 0;
  std::size_t inners_ = 0;
  std::array<void*, leaves_max> leaf_{};
  std::array<void*, inners_max> inner_{};
};
template <>
class node_stock<false> {};

template <class Index>
class delta_index_operation : public node_operation<Index> {
  using base = node_operation<Index>;
  using leaf = typename Index::leaf;
  using inner = typename Index::inner;
  using values = typename Index::values;
  using value_argument = typename values::argument;
  using id_type = typename Index::id_type;
  static constexpr bool takes_nodes_inside = !std::is_empty_v<decltype(Index::stock_)>;

 public:
  delta_index_operation(Index& index, value_argument value)
      : base(index),
        value_(value),
        part_(index.dictionary_.part_with_ids(this_thread_slot() % Index::dictionary::parts)) {}
  ~delta_index_operation() {
    if (string_ != nullptr) dictionary().take_back_string(string_part_, string_);
  }

  // --- inside the region ---

  bool has_nodes(bool leaf_too, std::size_t inners) noexcept {
    if constexpr (takes_nodes_inside) {
      wants_nodes_ = !stock().has(leaf_too ? 1 : 0, inners);
      return !wants_nodes_;
    } else {
      return base::has_nodes(leaf_too, inners);
    }
  }
  leaf* take_leaf() noexcept {
    if constexpr (takes_nodes_inside) return ::new (stock().take_leaf()) leaf;
    return base::take_leaf();
  }
  inner* take_inner(unsigned level) noexcept {
    if constexpr (takes_nodes_inside) return ::new (stock().take_inner()) inner(level);
    return base::take_inner(level);
  }

  // What append() needs.
  bool has_entry() noexcept {
    wants_string_ = values::needs_blob(value_) && string_ == nullptr;
    wants_room_ = !dictionary().has_room(part_);
    return !wants_string_ && !wants_room_;
  }
  // The value's ID; nothing when others have taken the room, which is then wanted.
  std::optional<id_type> append() noexcept {
    const auto id = dictionary().append(part_, values::slot_of(value_, string_));
    wants_room_ = !id.has_value();
    if (id) string_ = nullptr;
    return id;
  }

  // --- after the region ---

  // Gets what the last attempt wanted. Throws std::bad_alloc and std::length_error.
  void provide() {
    base::provide();
    if (std::exchange(wants_room_, false)) part_ = dictionary().make_room(part_);
    if constexpr (values::owns_blobs) {
      if (std::exchange(wants_string_, false)) {
        string_ = dictionary().make_string(part_, value_);
        string_part_ = part_;
      }
    }
    if constexpr (takes_nodes_inside) {
      if (std::exchange(wants_nodes_, false)) fill_stock();
    }
  }

 private:
  auto& dictionary() noexcept { return this->tree().dictionary_; }
  auto& stock() noexcept { return this->tree().stock_; }

  // As much as a few splits need; what does not fit goes back.
  void fill_stock()
    requires takes_nodes_inside
  {
    constexpr std::size_t leaves = 8;
    // chosen, both; a split of an inner root takes two inner nodes
    constexpr std::size_t inners = 4;
    Index& index = this->tree();
    std::array<void*, leaves> leaf_memory{};
    std::array<void*, inners> inner_memory{};
    const auto give_back = [&] {
      for (void* m : leaf_memory) {
        if (m != nullptr) index.leaf_pool_.deallocate(m);
      }
      for (void* m : inner_memory) {
        if (m != nullptr) index.inner_pool_.deallocate(m);
      }
    };
    try {
      for (void*& m : leaf_memory) m = index.leaf_pool_.allocate();
      for (void*& m : inner_memory) m = index.inner_pool_.allocate();
    } catch (...) {
      give_back();
      throw;
    }
    index.sync_.exclusive([&] {
      for (void*& m : leaf_memory) {
        if (m != nullptr && stock().put_leaf(m)) m = nullptr;
      }
      for (void*& m : inner_memory) {
        if (m != nullptr && stock().put_inner(m)) m = nullptr;
      }
      return op_status::yes;
    });
    give_back();
  }

  const value_argument value_;
  unsigned part_;
  blob* string_ = nullptr;
  unsigned string_part_ = 0;
  bool wants_string_ = false;
  bool wants_room_ = false;
  bool wants_nodes_ = false;
};

}  // namespace elidex::papers
