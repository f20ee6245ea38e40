// What an operation on a map carries from attempt to attempt: besides nodes (node_operation.hpp), the blobs of its key, its
// value and a separator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "elidex/index/blob.hpp"
#include "elidex/index/node_operation.hpp"

namespace elidex::detail {

template <class Tree>
class btree_operation : public node_operation<Tree> {
  using keys = typename Tree::keys;
  using values = typename Tree::values;
  using key_argument = typename keys::argument;
  using value_argument = typename values::argument;

 public:
  using node_operation<Tree>::node_operation;

  ~btree_operation() {
    for (blob* b : {key_blob_, value_blob_, separator_blob_}) free_blob(b);
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

  void retire_key(const typename keys::slot& key) noexcept { this->retire(keys::blob_of(key), &destroy_blob); }
  void retire_value(const typename values::slot& value) noexcept {
    this->retire(values::blob_of(value), &destroy_blob);
  }

  // --- after the region ---

  // Gets what the last attempt wanted. Throws std::bad_alloc.
  void provide() {
    node_operation<Tree>::provide();
    if (wants_key_ && key_blob_ == nullptr) key_blob_ = make_blob(wanted_key_);
    if (wants_value_ && value_blob_ == nullptr) value_blob_ = make_blob(wanted_value_);
    if (wanted_separator_bytes_ != 0) {
      free_blob(std::exchange(separator_blob_, nullptr));
      separator_blob_ = blob::make_room(wanted_separator_bytes_);
      count_blob(separator_blob_, 1);
    }
    wants_key_ = wants_value_ = false;
    wanted_separator_bytes_ = 0;
  }

 private:
  static void destroy_blob(void* tree, void* b) noexcept {
    count_blob(*static_cast<Tree*>(tree), static_cast<blob*>(b), -1);
    blob::destroy(static_cast<blob*>(b));
  }

  static void count_blob([[maybe_unused]] Tree& tree, [[maybe_unused]] const blob* b,
                         [[maybe_unused]] int sign) noexcept {
    if constexpr (keys::owns_blobs || values::owns_blobs)
      tree.blob_bytes_.add(sign * static_cast<std::int64_t>(blob::footprint_bytes(b->size())));
  }
  void count_blob(const blob* b, int sign) noexcept { count_blob(this->tree(), b, sign); }
  blob* make_blob(std::string_view bytes) {
    blob* const made = blob::make(bytes);
    count_blob(made, 1);
    return made;
  }
  void free_blob([[maybe_unused]] blob* b) noexcept {
    if constexpr (keys::owns_blobs || values::owns_blobs) {
      if (b != nullptr) destroy_blob(&this->tree(), b);
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

}  // namespace elidex::detail
