#pragma once
// Keys and values for tests: sample<T>::of(n) is different for different n and always the same for
// the same n.

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

namespace elidex::testing {

template <class T>
struct sample;

template <std::unsigned_integral T>
struct sample<T> {
  static T of(std::uint64_t n) { return static_cast<T>(n * 7 + 1); }
};

template <std::signed_integral T>
struct sample<T> {  // negative ones too
  static T of(std::uint64_t n) { return static_cast<T>(static_cast<std::int64_t>(n) * 7 - 1000); }
};

template <std::floating_point T>
struct sample<T> {  // negative ones and fractions too, infinities and NaN
  static T of(std::uint64_t n) {
    if (n == 0) return std::numeric_limits<T>::quiet_NaN();
    if (n == 1) return -std::numeric_limits<T>::infinity();
    if (n == 2) return std::numeric_limits<T>::infinity();
    return (static_cast<T>(n) - 1000) / 8;
  }
};

template <>
// equal heads, prefixes of each other, NUL bytes, high bytes, empty, inline and not
struct sample<std::string> {
  static std::string of(std::uint64_t n) {
    std::string s(n % 23, n % 3 == 0 ? 'x' : '\0');
    if (n == 0) return s;
    s += std::to_string(n);
    if (n % 5 == 0) s.insert(s.size() / 2, 1, '\0');
    if (n % 7 == 0) s += '\xff';
    return s;
  }
};

// A value of more than a word, whose words must stay together.
struct wide_value {
  std::array<std::uint64_t, 5> words{};
  friend bool operator==(const wide_value&, const wide_value&) = default;
};

template <>
struct sample<std::array<char, 3>> {
  static std::array<char, 3> of(std::uint64_t n) {
    return {static_cast<char>(n), static_cast<char>(n >> 8), static_cast<char>(n >> 16)};
  }
};

template <>
struct sample<wide_value> {
  static wide_value of(std::uint64_t n) { return {{n, n + 1, n + 2, n + 3, n + 4}}; }
};

}  // namespace elidex::testing
