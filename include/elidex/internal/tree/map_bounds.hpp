// The bounds of a range of a map's keys, as the bounds of a range of its tree.
//
//   const map_bounds<std::string> which(prefix("ab"));
//   tree.scan(which.get(), limit, fn);
//
// Thread-safety: a value.
// Errors: std::bad_alloc.
//
// Implementation notes
// The keys that begin with some bytes are those from these bytes on, and less than the bytes with
// the last one incremented. A last byte FF is dropped first. If nothing is left, there is no upper
// bound.
// A bound that no key equals becomes the nearest key. Whether the range includes this key follows
// from which of them is less. Where a member of a pair, tuple or array has no equal, all keys
// that begin with its nearest one and the members before are on the same side of the bound.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "elidex/bounds.hpp"
#include "elidex/internal/tree/key_format.hpp"
#include "elidex/internal/tree/nearest_key.hpp"
#include "elidex/internal/tree/tree_range.hpp"

namespace elidex::internal {

template <class Key>
class map_bounds {
  using keys = map_key<Key>;
  using tree_key = typename keys::tree_key;
  using tree_argument = typename key_codec<tree_key>::argument;

 public:
  // lower <= key < upper
  static map_bounds of_tree_keys(std::optional<tree_key> lower, std::optional<tree_key> upper,
                                 bool descends = false) {
    map_bounds which;
    which.descends_ = descends;
    if (lower) which.set_lower_code(*std::move(lower));
    if (upper) which.set_upper_code(*std::move(upper));
    return which;
  }
  map_bounds() = default;
  template <class Lower, class Upper>
  explicit map_bounds(const bounds<Lower, Upper>& which)
      : without_lower_(which.is_without_lower()),
        with_upper_(which.is_with_upper()),
        descends_(which.descends()) {
    if constexpr (!std::is_same_v<Lower, no_key>) {
      if (const auto& lower = which.lower()) bound_below(*lower);
      if (const auto& upper = which.upper()) bound_above(*upper);
    }
  }
  template <class... First>
  explicit map_bounds(const prefix_bounds<First...>& which) : descends_(which.descends()) {
    key_bytes begin;
    if (add_prefix(begin, which.first()) != 0) {  // no key begins with it
      be_empty();
      return;
    }
    set_lower_code(padded(begin.view()));
    if (auto end = behind(begin.view())) set_upper_code(*std::move(end));
  }

  // The same range in the opposite direction: first from its last key to its first.
  map_bounds descending() const {
    map_bounds turned = *this;
    turned.descends_ = !descends_;
    return turned;
  }

  tree_range<tree_argument> get() const noexcept {
    tree_range<tree_argument> range;
    if (has_lower_) range.lower.emplace(lower_);
    if (has_upper_) range.upper.emplace(upper_);
    range.without_lower = without_lower_;
    range.with_upper = with_upper_;
    range.descends = descends_;
    if (is_empty_) {  // half-open, from a key to the same key
      range.lower.emplace(lower_);
      range.upper.emplace(lower_);
      range.with_upper = false;
    }
    return range;
  }

  // Leaves only the keys behind this one, in the direction of the range.
  void continue_behind(const typename keys::argument& last) {
    if (descends_) {
      set_upper_code(tree_key(encoded(last).get()));
      with_upper_ = false;
    } else {
      set_lower_code(tree_key(encoded(last).get()));
      without_lower_ = true;
    }
  }

 private:
  using encoded = typename keys::encoded;
  // A bound as a code, and how the code compares with it, as in key_beside. No code: the bound is
  // greater than all keys.
  struct edge {
    std::optional<tree_key> code;
    int order = 0;
  };

  template <class Given>
  static edge edge_at(const Given& given) {
    static_assert(given_for<Given, Key>,
                  "bounds have the type of the map's keys, or one that converts to it");
    if constexpr (!given_for<Given, Key>) {
      return {};
    } else if constexpr (members_for<Given, Key>) {
      key_bytes bytes;
      const int order = add_given<Key>(bytes, given, true);
      if (order < 0) return {behind(bytes.view()), 1};
      return {padded(bytes.view()), order};
    } else if constexpr (has_nearest_key<Key, Given>) {
      const key_beside<Key> nearest = nearest_key<Key>(given);
      return {tree_key(encoded(nearest.key).get()), nearest.order};
    } else {
      return {tree_key(encoded(static_cast<typename keys::argument>(given)).get()), 0};
    }
  }
  template <class Given>
  void bound_below(const Given& given) {
    edge at = edge_at(given);
    if (!at.code) return be_empty();
    if (at.order != 0) without_lower_ = at.order < 0;
    set_lower_code(*std::move(at.code));
  }
  template <class Given>
  void bound_above(const Given& given) {
    edge at = edge_at(given);
    if (!at.code) return;
    if (at.order != 0) with_upper_ = at.order < 0;
    set_upper_code(*std::move(at.code));
  }
  // Adds what the keys begin with, and returns 0 if keys can begin with it.
  template <class... First>
  static int add_prefix(key_bytes& to, const std::tuple<First...>& first) {
    if constexpr (std::is_base_of_v<bytes_format<Key>, key_format<Key>>) {
      static_assert(sizeof...(First) == 1, "the prefix of a string is one string");
      return add_prefix_members<std::tuple<Key>>(to, first, std::index_sequence<0>());
    } else {
      static_assert(has_members<Key>, "prefix() is for strings, bytes, pairs, tuples and arrays");
      static_assert(sizeof...(First) <= std::tuple_size_v<Key>,
                    "the prefix has more members than the keys");
      return add_prefix_members<Key>(to, first, std::index_sequence_for<First...>());
    }
  }
  template <class Members, class... First, std::size_t... I>
  static int add_prefix_members(key_bytes& to, const std::tuple<First...>& first,
                                std::index_sequence<I...> which) {
    constexpr bool are_members = (given_for<First, std::tuple_element_t<I, Members>> && ...);
    static_assert(are_members, "the members of the prefix are no members of the keys");
    if constexpr (are_members) {
      return add_given_members<Members>(to, first, true, which);
    } else {
      return 0;
    }
  }
  void be_empty() noexcept { is_empty_ = true; }
  void set_lower_code(tree_key key) {
    lower_ = std::move(key);
    has_lower_ = true;
  }
  void set_upper_code(tree_key key) {
    upper_ = std::move(key);
    has_upper_ = true;
  }

  // The tree's key with these bytes and zeros behind them.
  static tree_key padded(std::string_view bytes) {
    if constexpr (std::is_same_v<tree_key, std::string>) {
      return std::string(bytes);
    } else {
      std::array<char, sizeof(tree_key)> whole{};
      std::copy(bytes.begin(), bytes.end(), whole.begin());
      return key_of_bytes<tree_key>(whole);
    }
  }

  // The code behind all keys that begin with these bytes. None if there is no such code.
  static std::optional<tree_key> behind(std::string_view bytes) {
    std::string end(bytes.substr(0, bytes.find_last_not_of('\xff') + 1));
    if (end.empty()) return std::nullopt;
    end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
    return padded(end);
  }

  // Not std::optional, about which GCC 12 warns without cause when it holds a string.
  tree_key lower_{};
  tree_key upper_{};
  bool is_empty_ = false;
  bool has_lower_ = false;
  bool has_upper_ = false;
  bool without_lower_ = false;
  bool with_upper_ = false;
  bool descends_ = false;
};

// Bounds of a range of keys, not a key.
template <class Which, class Key>
concept bounds_of = std::constructible_from<map_bounds<Key>, const Which&>;

}  // namespace elidex::internal
