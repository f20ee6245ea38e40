#pragma once
// A map of byte strings behind the interface of a map of integers: what is checked with integers is
// checked with strings too.
//
//   strings_as_integers<ordered_tree<std::string, std::string>> map;
//   map.insert(7, 70);  // "a shared head 00000007" -> "70"
//
// The keys' order is that of the integers. All keys share more than the 8 bytes that lie in a slot:
// nodes between two separators have prefixes that change as they split and merge, the others follow
// a blob for every comparison. Thread-safety: the map's.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "elidex/internal/tree/tree_range.hpp"

namespace elidex::testing {

using namespace internal;

inline constexpr std::string_view shared_head = "a shared head ";

inline std::string string_of_key(std::uint64_t key) {
  std::string s(shared_head);
  for (int shift = 56; shift >= 0; shift -= 8) s += static_cast<char>(key >> shift & 0xff);
  return s;
}
// A damaged key gives a number that no test uses.
inline std::uint64_t key_of_string(std::string_view s) {
  if (s.size() != shared_head.size() + 8 || !s.starts_with(shared_head)) return ~std::uint64_t{0};
  std::uint64_t key = 0;
  for (const char c : s.substr(shared_head.size())) key = key << 8 | static_cast<unsigned char>(c);
  return key;
}

// Values are numbers or strings; those of different numbers have different lengths, too.
template <class Value>
struct value_as_integer {
  static Value from(std::uint64_t n) { return static_cast<Value>(n); }
  static std::uint64_t to(const Value& v) { return static_cast<std::uint64_t>(v); }
};
template <>
struct value_as_integer<std::string> {
  static std::string from(std::uint64_t n) { return std::to_string(n) + std::string(n % 31, '.'); }
  static std::uint64_t to(std::string_view v) {
    std::uint64_t n = 0;
    std::size_t i = 0;
    for (; i < v.size() && v[i] != '.'; ++i) n = n * 10 + static_cast<std::uint64_t>(v[i] - '0');
    const bool whole =
        i > 0 && v.size() - i == n % 31 && v.find_first_not_of('.', i) == std::string_view::npos;
    return whole ? n : ~std::uint64_t{0};
  }
};

struct no_change {
  template <class... Args>
  void operator()(Args&&... /*arguments*/) const {}
};

template <class Map>
class strings_as_integers {
  using values = value_as_integer<typename Map::mapped_type>;
  using map_cursor = typename Map::cursor_type;

 public:
  using key_type = std::uint64_t;
  using mapped_type = std::uint64_t;

  class cursor_type : map_cursor {
   public:
    explicit cursor_type(const Map& map) : map_cursor(map) {}
    using map_cursor::next;
    using map_cursor::prev;
    using map_cursor::seek_first;
    using map_cursor::seek_last;
    using map_cursor::valid;
    void seek(std::uint64_t key) { map_cursor::seek(string_of_key(key)); }
    void seek_before(std::uint64_t key) { map_cursor::seek_before(string_of_key(key)); }
    std::uint64_t key() const { return key_of_string(map_cursor::key()); }
    std::uint64_t value() const { return values::to(map_cursor::value()); }
  };

  std::optional<std::uint64_t> get(std::uint64_t key) const {
    const auto value = map_.get(string_of_key(key));
    return value ? std::optional(values::to(*value)) : std::nullopt;
  }
  void multi_get(std::span<const std::uint64_t> wanted,
                 std::span<std::optional<std::uint64_t>> found) const {
    std::vector<std::string> keys;
    for (const std::uint64_t key : wanted) keys.push_back(string_of_key(key));
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<std::optional<typename Map::mapped_type>> found_values(wanted.size());
    map_.multi_get(views, found_values);
    for (std::size_t i = 0; i < found_values.size(); ++i) {
      found[i] =
          found_values[i]
              ? std::optional(value_as_integer<typename Map::mapped_type>::to(*found_values[i]))
              : std::nullopt;
    }
  }
  bool contains(std::uint64_t key) const { return map_.contains(string_of_key(key)); }
  bool insert(std::uint64_t key, std::uint64_t value) {
    return map_.insert(string_of_key(key), values::from(value));
  }
  bool upsert(std::uint64_t key, std::uint64_t value) {
    return map_.upsert(string_of_key(key), values::from(value));
  }
  template <class Fn>
  bool update(std::uint64_t key, Fn&& fn) {
    return map_.update(string_of_key(key), [&](auto& v) {
      std::uint64_t n = values::to(v);
      fn(n);
      v = values::from(n);
    });
  }
  template <class Fn>
    requires requires(Map& map) { map.compute(std::string_view(), no_change()); }
  bool compute(std::uint64_t key, Fn&& fn) {
    return map_.compute(string_of_key(key), [&](auto& v) {
      std::optional<std::uint64_t> n;
      if (v) n = values::to(*v);
      fn(n);
      v.reset();
      if (n) v.emplace(values::from(*n));
    });
  }
  bool erase(std::uint64_t key) { return map_.erase(string_of_key(key)); }
  template <class Fn>
  std::size_t scan(std::uint64_t from, std::size_t limit, Fn&& fn) const {
    return map_.scan(string_of_key(from), limit, [&](std::string_view key, const auto& value) {
      fn(key_of_string(key), values::to(value));
    });
  }
  template <class Fn>
    requires requires(const Map& map, tree_range<std::string_view> which) {
      map.scan(which, 1, no_change());
    }
  std::size_t scan_down(std::uint64_t from, std::size_t limit, Fn&& fn) const {
    const std::string upper = string_of_key(from);
    tree_range<std::string_view> which{};
    which.upper.emplace(upper);
    which.with_upper = true;
    which.descends = true;
    return map_.scan(which, limit, [&](std::string_view key, const auto& value) {
      fn(key_of_string(key), values::to(value));
    });
  }
  cursor_type cursor() const { return cursor_type(map_); }

  std::size_t size() const { return map_.size(); }
  bool empty() const { return map_.empty(); }
  auto stats() const { return map_.stats(); }
  void reclaim() { map_.reclaim(); }

 private:
  Map map_;
};

}  // namespace elidex::testing
