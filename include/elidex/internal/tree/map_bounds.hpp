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
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "elidex/bounds.hpp"
#include "elidex/internal/tree/key_format.hpp"
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
      if (which.lower()) bound_below(*which.lower());
      if (which.upper()) bound_above(*which.upper());
    }
  }
  template <class... First>
  explicit map_bounds(const prefix_bounds<First...>& which) : descends_(which.descends()) {
    key_bytes bytes;
    if constexpr (is_bytes) {
      static_assert(sizeof...(First) == 1, "the prefix of a string is one string");
      const typename keys::argument first = std::get<0>(which.first());
      bytes.add(reinterpret_cast<const char*>(first.data()), first.size());
    } else {
      static_assert(
          requires { std::tuple_size<Key>::value; },
          "prefix() is for strings, bytes, pairs, tuples and arrays");
      static_assert(sizeof...(First) <= std::tuple_size_v<Key>,
                    "the prefix has more members than the keys");
      add_members(bytes, which.first(), std::index_sequence_for<First...>());
    }
    std::string begin(bytes.view());
    set_lower_code(padded(begin));
    while (!begin.empty() && begin.back() == '\xff') begin.pop_back();
    if (begin.empty()) return;
    begin.back() = static_cast<char>(static_cast<unsigned char>(begin.back()) + 1);
    set_upper_code(padded(begin));
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
  static constexpr bool is_bytes = requires(typename keys::argument key) {
    key.data() + key.size();
  } && std::is_same_v<tree_key, std::string> && !requires { std::tuple_size<Key>::value; };

  template <class Given>
  static typename keys::encoded encoded(const Given& key) {
    static_assert(std::is_convertible_v<const Given&, typename keys::argument>,
                  "these bounds are no keys of the map");
    static_assert(!std::is_floating_point_v<Given> || !std::is_integral_v<Key>,
                  "the bounds of integer keys are integers");
    return typename keys::encoded(static_cast<typename keys::argument>(key));
  }
  // Integers that are no keys of the map bound either all of its keys or none.
  template <class Given>
  static constexpr bool is_other_integer =
      std::is_integral_v<Given> && std::is_integral_v<Key> && !std::is_same_v<Given, Key> &&
      !std::is_same_v<Given, bool> && !std::is_same_v<Key, bool>;
  template <class Given>
  static bool is_below_all(const Given& key) noexcept {
    if constexpr (is_other_integer<Given>) {
      return std::is_signed_v<Given> && key < Given{} &&
             (std::is_unsigned_v<Key> ||
              static_cast<std::intmax_t>(key) <
                  static_cast<std::intmax_t>(std::numeric_limits<Key>::min()));
    } else {
      return false;
    }
  }
  template <class Given>
  static bool is_above_all(const Given& key) noexcept {
    if constexpr (is_other_integer<Given>) {
      return (std::is_unsigned_v<Given> || !(key < Given{})) &&
             static_cast<std::uintmax_t>(key) >
                 static_cast<std::uintmax_t>(std::numeric_limits<Key>::max());
    } else {
      return false;
    }
  }
  template <class Given>
  void bound_below(const Given& key) {
    if (is_below_all(key)) return;
    if (is_above_all(key)) return be_empty();
    set_lower_code(tree_key(encoded(key).get()));
  }
  template <class Given>
  void bound_above(const Given& key) {
    if (is_above_all(key)) return;
    if (is_below_all(key)) return be_empty();
    set_upper_code(tree_key(encoded(key).get()));
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

  template <class Members, std::size_t... I>
  static void add_members(key_bytes& to, const Members& members, std::index_sequence<I...>) {
    constexpr std::size_t size = std::tuple_size_v<Key>;
    (key_format<std::tuple_element_t<I, Key>>::add(
         to, static_cast<std::tuple_element_t<I, Key>>(std::get<I>(members)), I + 1 == size),
     ...);
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
