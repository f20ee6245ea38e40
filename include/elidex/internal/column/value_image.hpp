// The image that a column stores instead of a value: an unsigned integer that orders as the value
// does, or a string. So indexes, dictionaries and vector code handle unsigned integers and strings
// only.
//
//   value_image<double>::of(-1.5) < value_image<double>::of(0.25)
//   value_image<double>::value_of(value_image<double>::of(0.25)) == 0.25
//
//   value type           its image
//   unsigned integer     the value, in 32 or 64 bits
//   signed integer       the value with its sign bit inverted
//   float, double        from +0.0 on: the value's bits with the sign bit set
//                        below 0.0: the value's bits, all inverted
//                        -0.0 is stored as 0.0
//                        every NaN is stored as one NaN, which is greater than all numbers
//   std::string          the value
//
// Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace elidex::internal {

template <class T>
struct value_image {
  static_assert(sizeof(T) == 0,
                "columns hold integers of up to 64 bits but bool, float, double or std::string");
  using type = std::uint64_t;
  using argument = T;
};

template <class T>
  requires(std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= sizeof(std::uint64_t))
struct value_image<T> {
  using type = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;
  using argument = T;

  static type of(T value) noexcept {
    if constexpr (std::signed_integral<T>) {
      return static_cast<type>(static_cast<std::make_signed_t<type>>(value)) ^ sign_bit;
    } else {
      return value;
    }
  }
  static T value_of(type image) noexcept {
    return static_cast<T>(std::signed_integral<T> ? image ^ sign_bit : image);
  }

 private:
  static constexpr type sign_bit = type{1} << (std::numeric_limits<type>::digits - 1);
};

template <class T>
  requires(std::same_as<T, float> || std::same_as<T, double>)
struct value_image<T> {
  using type = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;
  using argument = T;
  static_assert(std::numeric_limits<T>::is_iec559);

  static type of(T value) noexcept {
    if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
    if (value == 0) value = 0;
    const auto bits = std::bit_cast<type>(value);
    return (bits & sign_bit) != 0 ? ~bits : bits | sign_bit;
  }
  static T value_of(type image) noexcept {
    return std::bit_cast<T>((image & sign_bit) != 0 ? image ^ sign_bit : static_cast<type>(~image));
  }

 private:
  static constexpr type sign_bit = type{1} << (std::numeric_limits<type>::digits - 1);
};

template <>
struct value_image<std::string> {
  using type = std::string;
  using argument = std::string_view;

  static std::string_view of(std::string_view value) noexcept { return value; }
  static std::string_view value_of(std::string_view image) noexcept { return image; }
};

}  // namespace elidex::internal
