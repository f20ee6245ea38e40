// What an operation on a map carries from attempt to attempt: besides nodes (node_operation.hpp),
// the blobs of its key, its value and a separator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "elidex/internal/tree/blob.hpp"
#include "elidex/internal/tree/node_operation.hpp"

namespace elidex::internal {

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
      // mostly the later one first: an arena can take that back
      for (blob* b : {separator_blob_, key_blob_}) {
        if (b != nullptr) destroy_key_blob(&this->tree(), b);
      }
    }
    if constexpr (values::owns_blobs) {
      if (value_blob_ != nullptr) destroy_value_blob(&this->tree(), value_blob_);
    }
  }

  // --- inside the region: each says whether it is there, and otherwise notes that it is wanted ---

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

  // --- inside the region: from here on it will not be run again, unless a transaction aborts ---

  // What take_key() will give.
  typename keys::slot key(key_argument key) const noexcept { return keys::slot_of(key, key_blob_); }
  typename keys::slot take_key(key_argument key) noexcept {
    return keys::slot_of(key, keys::needs_blob(key) ? std::exchange(key_blob_, nullptr) : nullptr);
  }
  typename values::slot take_value(value_argument value) noexcept {
    return values::slot_of(value, std::exchange(value_blob_, nullptr));
  }
  template <class Separator>
  typename keys::slot take_separator(const Separator& separator) noexcept {
    return separator.to_slot(separator.blob_bytes() == 0 ? nullptr
                                                         : std::exchange(separator_blob_, nullptr));
  }

  void retire_key(const typename keys::slot& key) noexcept {
    this->retire(keys::blob_of(key), &destroy_key_blob);
  }
  void retire_value(const typename values::slot& value) noexcept {
    this->retire(values::blob_of(value), &destroy_value_blob);
  }

  // --- after the region ---

  // Gets what the last attempt wanted. Throws std::bad_alloc.
  void provide() {
    node_operation<Tree>::provide();
    if constexpr (keys::owns_blobs) {
      if (wants_key_ && key_blob_ == nullptr)
        key_blob_ = counted<key_blobs>(this->tree().key_blobs_.make(wanted_key_));
      if (wanted_separator_bytes_ != 0) {
        if (separator_blob_ != nullptr)
          destroy_key_blob(&this->tree(), std::exchange(separator_blob_, nullptr));
        separator_blob_ =
            counted<key_blobs>(this->tree().key_blobs_.make_room(wanted_separator_bytes_));
      }
    }
    if constexpr (values::owns_blobs) {
      if (wants_value_ && value_blob_ == nullptr)
        value_blob_ = counted<heap_blobs>(heap_blobs::make(wanted_value_));
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
      count<key_blobs>(*static_cast<Tree*>(tree), static_cast<blob*>(b), -1);
      static_cast<Tree*>(tree)->key_blobs_.destroy(static_cast<blob*>(b));
    }
  }
  static void destroy_value_blob(void* tree, void* b) noexcept {
    if constexpr (values::owns_blobs) {
      count<heap_blobs>(*static_cast<Tree*>(tree), static_cast<blob*>(b), -1);
      heap_blobs::destroy(static_cast<blob*>(b));
    }
  }

  blob* key_blob_ = nullptr;
  blob* value_blob_ = nullptr;
  blob* separator_blob_ = nullptr;

  bool wants_key_ = false;
  bool wants_value_ = false;
  std::size_t wanted_separator_bytes_ = 0;
  std::string_view wanted_key_;
  std::string_view wanted_value_;
};

}  // namespace elidex::internal
