// The bounds of a range of keys: of a map or a table, of the values of an index or a column.
//
//   map.scan(elidex::between(10, 20), fn);     // 10 <= key < 20
//   map.scan(from("m").descending(), fn);      // from the last key down to "m"
//   map.scan(prefix("ab"), fn);                // strings that begin with "ab"
//   map.scan(prefix(2026, 11), fn);            // tuples whose first two members are these
//   map.scan(all, fn);
//
//   between(a, b)   a <= key < b       closed(a, b)   a <= key <= b
//   from(a)         a <= key           above(a)       a < key
//   below(b)             key < b       up_to(b)            key <= b
//   prefix(...)     begins with these  all            every key
//
// A range whose upper bound is less than its lower bound is empty.
//
// A bound may be a number of another type than the keys. The comparison is exact. below(300)
// contains all keys of 8 bits, and prefix(300) contains none. above(0.1) contains the float 0.1f,
// which is greater than 0.1. This also holds for members of pairs and tuples, as in
// from(std::pair("a", 10)). The bounds of integer keys must be integers. A bound that is not a
// number converts to the key type.
//
// Lifetime: bounds copy their arguments, but not the characters of a const char* or
// std::string_view, which must outlive the bounds.
// Thread-safety: bounds are values.
// Errors: the constructors throw what the copies throw. The operation that takes the bounds throws
// std::invalid_argument for a bound that is too long for a key.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace elidex {

namespace internal {
struct no_key {};
}  // namespace internal

// A range whose bounds convert to the key type. Made by the functions below.
template <class Lower, class Upper = Lower>
class bounds {
 public:
  bounds() = default;
  bounds(std::optional<Lower> lower, bool without_lower, std::optional<Upper> upper,
         bool with_upper)
      : lower_(std::move(lower)),
        upper_(std::move(upper)),
        without_lower_(without_lower),
        with_upper_(with_upper) {}

  // The same range in the opposite direction: first from its last key to its first.
  bounds descending() const {
    bounds turned = *this;
    turned.descends_ = !descends_;
    return turned;
  }

  // Returns the lower bound, or std::nullopt.
  const std::optional<Lower>& lower() const noexcept { return lower_; }
  // Returns the upper bound, or std::nullopt.
  const std::optional<Upper>& upper() const noexcept { return upper_; }
  // Returns whether the lower bound itself is outside of the range.
  bool is_without_lower() const noexcept { return without_lower_; }
  // Returns whether the upper bound itself is inside the range.
  bool is_with_upper() const noexcept { return with_upper_; }
  // Returns whether the range goes from its last key to its first.
  bool descends() const noexcept { return descends_; }

 private:
  std::optional<Lower> lower_;
  std::optional<Upper> upper_;
  bool without_lower_ = false;
  bool with_upper_ = false;
  bool descends_ = false;
};

// A range of the keys that have a prefix. Made by prefix().
template <class... First>
class prefix_bounds {
 public:
  explicit prefix_bounds(First... first) : first_(std::move(first)...) {}
  // The same keys in the opposite direction.
  prefix_bounds descending() const {
    prefix_bounds turned = *this;
    turned.descends_ = !descends_;
    return turned;
  }
  // Returns the prefix.
  const std::tuple<First...>& first() const noexcept { return first_; }
  // Returns whether the range goes from its last key to its first.
  bool descends() const noexcept { return descends_; }

 private:
  std::tuple<First...> first_;
  bool descends_ = false;
};

// a <= key < b
template <class A, class B>
bounds<A, B> between(A a, B b) {
  return {std::optional<A>(std::move(a)), false, std::optional<B>(std::move(b)), false};
}
// a <= key <= b
template <class A, class B>
bounds<A, B> closed(A a, B b) {
  return {std::optional<A>(std::move(a)), false, std::optional<B>(std::move(b)), true};
}
// a <= key
template <class A>
bounds<A> from(A a) {
  return {std::optional<A>(std::move(a)), false, std::nullopt, false};
}
// a < key
template <class A>
bounds<A> above(A a) {
  return {std::optional<A>(std::move(a)), true, std::nullopt, false};
}
// key < b
template <class B>
bounds<B> below(B b) {
  return {std::nullopt, false, std::optional<B>(std::move(b)), false};
}
// key <= b
template <class B>
bounds<B> up_to(B b) {
  return {std::nullopt, false, std::optional<B>(std::move(b)), true};
}
// The keys that begin with the arguments. For keys that are strings or bytes: one string. For
// pairs, tuples and arrays: the first members. These must be equal, except that a string for the
// last member of the key matches as a prefix. A number that no member can equal, such as 0.1 for a
// float, matches no key.
template <class... First>
prefix_bounds<std::decay_t<First>...> prefix(First&&... first) {
  static_assert(sizeof...(First) > 0, "prefix() takes what the keys begin with");
  return prefix_bounds<std::decay_t<First>...>(std::forward<First>(first)...);
}
inline const bounds<internal::no_key> all;

}  // namespace elidex
