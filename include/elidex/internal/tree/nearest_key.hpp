// The key nearest to a given bound, where the bound has another type than the keys.
//
//   nearest_key<std::uint8_t>(300)   // {255, -1}: the key is less than the bound
//   nearest_key<float>(0.1)          // {0.1f, 1}: the key is greater than the bound
//
// Thread-safety: pure functions.
// Errors: std::bad_alloc from add_given().
//
// Implementation notes
// Comparisons are exact for all types of numbers. A number outside the range of the keys becomes
// their least or greatest key, or an infinity. An integer is compared with a floating key as an
// integer, so no wider floating type is needed.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "elidex/internal/tree/key_format.hpp"

namespace elidex::internal {

template <class T>
concept any_integer = std::integral<T> || integer_128<T>;
template <class T>
concept any_number = any_integer<T> || std::floating_point<T>;
template <class T>
concept has_members = requires { std::tuple_size<T>::value; };

// A key, and how it compares with the bound: -1 if it is less, 1 if it is greater, else 0.
template <class Key>
struct key_beside {
  Key key;
  int order;
};

template <any_integer T>
constexpr bool is_negative(T number) noexcept {
  if constexpr (ordered_number<T>::is_signed) {
    return number < 0;
  } else {
    return false;
  }
}
template <any_integer Key, any_integer Given>
key_beside<Key> nearest_key(Given given) noexcept {
  using number = typename ordered_number<Key>::type;
  const auto key = static_cast<Key>(given);
  const bool is_below_zero = is_negative(given);
  if (static_cast<Given>(key) == given && is_negative(key) == is_below_zero) return {key, 0};
  if (is_below_zero) return {ordered_number<Key>::from(0), 1};
  return {ordered_number<Key>::from(static_cast<number>(~number{0})), -1};
}
template <std::floating_point Key, any_integer Given>
key_beside<Key> nearest_key(Given given) noexcept {
  constexpr int sign_bits = ordered_number<Given>::is_signed ? 1 : 0;
  constexpr int digits = static_cast<int>(8 * sizeof(Given)) - sign_bits;
  const auto key = static_cast<Key>(given);
  if (key >= std::ldexp(Key{1}, digits)) return {key, 1};
  const auto rounded = static_cast<Given>(key);
  return {key, rounded < given ? -1 : given < rounded ? 1 : 0};
}
// A NaN is the key NaN.
template <std::floating_point Key, std::floating_point Given>
key_beside<Key> nearest_key(Given given) noexcept {
  using limits = std::numeric_limits<Key>;
  const Key key = given > limits::max()      ? limits::infinity()
                  : given < limits::lowest() ? -limits::infinity()
                                             : static_cast<Key>(given);
  return {key, key < given ? -1 : key > given ? 1 : 0};
}
template <any_integer Key, std::floating_point Given>
key_beside<Key> nearest_key(Given /*given*/) noexcept {
  static_assert(!any_integer<Key>, "the bounds of integer keys are integers");
  return {};
}
template <any_number Key, class Given>
  requires(std::is_enum_v<Given>)
key_beside<Key> nearest_key(Given given) noexcept {
  return nearest_key<Key>(static_cast<std::underlying_type_t<Given>>(given));
}
template <class Key, class Given>
concept has_nearest_key = requires(const Given& given) { nearest_key<Key>(given); };

// Whether the bounds of keys can have this type.
template <class Given, class Key>
concept given_for = std::convertible_to<const Given&, typename map_key<Key>::argument>;

// Whether a bound is compared with the keys member by member.
template <class Given, class Key>
concept members_for = !std::same_as<Given, Key> && has_members<Given> && has_members<Key> &&
                      std::tuple_size<Given>::value == std::tuple_size<Key>::value;

// Whether a bound of this type may have no equal among the keys.
template <class Given, class Key>
concept inexact_for =
    members_for<Given, Key> || (has_nearest_key<Key, Given> && !std::same_as<Given, Key>);

template <class Key, class Given>
int add_given(key_bytes& to, const Given& given, bool last);

// The same as add_given() for the first members of a key. Stops behind a member that is not equal.
template <class Key, class Given, std::size_t... I>
int add_given_members(key_bytes& to, const Given& given, bool last, std::index_sequence<I...>) {
  int order = 0;
  const auto goes_on = [&]<std::size_t Member>() {
    order = add_given<std::tuple_element_t<Member, Key>>(
        to, std::get<Member>(given), last && Member + 1 == std::tuple_size_v<Key>);
    return order == 0;
  };
  static_cast<void>((goes_on.template operator()<I>() && ...));
  return order;
}

// Adds the bytes of a key that is equal to the given bound, and returns 0. If no key is equal, adds
// some first bytes of keys, and returns how all keys that begin with them compare with the bound.
template <class Key, class Given>
int add_given(key_bytes& to, const Given& given, bool last) {
  if constexpr (members_for<Given, Key>) {
    return add_given_members<Key>(to, given, last,
                                  std::make_index_sequence<std::tuple_size_v<Given>>());
  } else if constexpr (has_nearest_key<Key, Given>) {
    const key_beside<Key> nearest = nearest_key<Key>(given);
    key_format<Key>::add(to, nearest.key, last);
    return nearest.order;
  } else {
    key_format<Key>::add(to, static_cast<typename map_key<Key>::argument>(given), last);
    return 0;
  }
}

}  // namespace elidex::internal
