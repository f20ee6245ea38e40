// How a map's values lie in a tree or a hash table.
//
//   values = map_value<Value>;
//   typename values::holder made(std::move(value));   // for insert() and the like
//   values::loaded(tree.get(key))                     // std::optional<Value>
//
//   Value                         in a slot                          the map's functions take
//   trivially copyable            the value                          const Value&
//   std::string                   the address of a blob              std::string_view
//   movable                       the address of an object           Value
//
// Thread-safety: all of it.
// Errors: std::bad_alloc where an object is made.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "elidex/internal/tree/codec.hpp"

namespace elidex::internal {

// A trivially copyable value that cannot be default-constructed or assigned, as bytes.
template <class Value>
struct raw_value {
  alignas(Value) std::array<std::byte, sizeof(Value)> bytes;
};

template <class Value>
struct map_value {
  static_assert(std::is_object_v<Value> && std::move_constructible<Value>,
                "values are objects that can be moved");
  static constexpr bool is_plain = plain_value<Value>;
  static constexpr bool is_object = !is_plain;  // an object of its own on the heap
  static constexpr bool can_be_copied = std::copy_constructible<Value>;
  static constexpr bool is_same = true;  // the tree has the values themselves
  using tree_value = Value;
  using argument = std::conditional_t<is_plain, const Value&, Value>;
  using holder = std::conditional_t<is_plain, const Value&, typename value_codec<Value>::holder>;

  static std::optional<Value> loaded(std::optional<Value>&& value) { return std::move(value); }
  static const Value& loaded(const Value& value) noexcept { return value; }
};

template <>
struct map_value<std::string> {
  static constexpr bool is_plain = false;
  static constexpr bool is_object = false;
  static constexpr bool can_be_copied = true;
  static constexpr bool is_same = true;
  using tree_value = std::string;
  using argument = std::string_view;
  using holder = std::string_view;

  static std::optional<std::string> loaded(std::optional<std::string>&& value) {
    return std::move(value);
  }
  static std::string_view loaded(std::string_view value) noexcept { return value; }
};

template <class Value>
  requires(std::is_trivially_copyable_v<Value> && !plain_value<Value>)
struct map_value<Value> {
  static_assert(std::move_constructible<Value>, "values are objects that can be moved");
  static constexpr bool is_plain = true;
  static constexpr bool is_object = false;
  static constexpr bool can_be_copied = std::copy_constructible<Value>;
  static constexpr bool is_same = false;
  using tree_value = raw_value<Value>;
  using argument = const Value&;
  class holder {
   public:
    explicit holder(const Value& value) noexcept : raw_(stored(value)) {}
    operator const tree_value&() const noexcept { return raw_; }

   private:
    tree_value raw_;
  };

  static tree_value stored(const Value& value) noexcept { return std::bit_cast<tree_value>(value); }
  static Value loaded(const tree_value& raw) noexcept { return std::bit_cast<Value>(raw); }
  static std::optional<Value> loaded(std::optional<tree_value>&& raw) {
    return raw ? std::optional<Value>(std::bit_cast<Value>(*raw)) : std::nullopt;
  }
};

}  // namespace elidex::internal
