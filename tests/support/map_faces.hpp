#pragma once
// ordered_map and hash_map, with keys and values of any type, as maps of integers.
//
//   face_as_integers<ordered_map<std::string, std::vector<u64>>> map;
//   map.compute(7, [](std::optional<std::uint64_t>& value) { value = 70; });
//
// A map of values that cannot be copied lacks the functions that copy them. The order of the keys
// is the order of the integers. Thread-safety: the map's.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/bounds.hpp"
#include "support/strings_as_integers.hpp"

namespace elidex::testing {

template <class Key>
struct key_as_integer;
template <>
struct key_as_integer<std::uint64_t> {
  static std::uint64_t from(std::uint64_t n) { return n; }
  static std::uint64_t to(std::uint64_t key) { return key; }
};
template <>
struct key_as_integer<std::string> {
  static std::string from(std::uint64_t n) { return string_of_key(n); }
  static std::uint64_t to(std::string_view key) { return key_of_string(key); }
};
// Several keys have the same first member.
template <>
struct key_as_integer<std::tuple<std::string, std::int64_t>> {
  using key = std::tuple<std::string, std::int64_t>;
  static key from(std::uint64_t n) {
    return {string_of_key(n / 3), static_cast<std::int64_t>(n % 3) - 1};
  }
  static std::uint64_t to(const key& k) {
    return 3 * key_of_string(std::get<0>(k)) + static_cast<std::uint64_t>(std::get<1>(k) + 1);
  }
};
template <>
struct key_as_integer<std::pair<std::int32_t, std::uint64_t>> {
  using key = std::pair<std::int32_t, std::uint64_t>;
  static key from(std::uint64_t n) { return {static_cast<std::int32_t>(n / 3) - 2, n % 3 << 40}; }
  static std::uint64_t to(const key& k) {
    return static_cast<std::uint64_t>(k.first + 2) * 3 + (k.second >> 40);
  }
};

// Objects on the heap: one that can be copied, and one that cannot.
template <>
struct value_as_integer<std::vector<std::uint64_t>> {
  static std::vector<std::uint64_t> from(std::uint64_t n) { return {n, ~n}; }
  static std::uint64_t to(const std::vector<std::uint64_t>& v) {
    return v.size() == 2 && v[1] == ~v[0] ? v[0] : ~std::uint64_t{0};
  }
};
template <>
struct value_as_integer<std::unique_ptr<std::uint64_t>> {
  static std::unique_ptr<std::uint64_t> from(std::uint64_t n) {
    return std::make_unique<std::uint64_t>(n);
  }
  static std::uint64_t to(const std::unique_ptr<std::uint64_t>& v) {
    return v == nullptr ? ~std::uint64_t{0} : *v;
  }
};

template <class Map>
class face_as_integers {
 protected:
  using u64 = std::uint64_t;

 private:
  using keys = key_as_integer<typename Map::key_type>;
  using value_type = typename Map::mapped_type;
  using values = value_as_integer<value_type>;
  static constexpr bool copies = std::copy_constructible<value_type>;
  static constexpr bool is_ordered =
      requires(const Map& map) { map.scan(all, [](const auto&, const auto&) {}); };

  // The function that the map calls with its own types, for a function of integers.
  template <class Fn>
  static auto of_value(Fn& fn) {
    return [&fn](value_type& v) {
      u64 n = values::to(v);
      fn(n);
      v = values::from(n);
    };
  }
  template <class Fn>
  static auto of_record(Fn& fn) {
    return [&fn](const auto& key, const auto& value) { fn(keys::to(key), values::to(value)); };
  }
  static std::vector<typename Map::key_type> all_keys(std::span<const u64> wanted) {
    std::vector<typename Map::key_type> own;
    for (const u64 key : wanted) own.push_back(keys::from(key));
    return own;
  }
  using arguments = std::vector<std::remove_cvref_t<typename Map::key_argument>>;
  static arguments arguments_of(const std::vector<typename Map::key_type>& own) {
    return arguments(own.begin(), own.end());
  }
  static std::optional<u64> number_of(const std::optional<value_type>& v) {
    return v ? std::optional(values::to(*v)) : std::nullopt;
  }

 public:
  using map_type = Map;
  using key_type = u64;
  using mapped_type = u64;
  using key_argument = u64;
  static constexpr bool scans_are_snapshots = is_ordered;

  std::optional<u64> get(u64 key) const {
    if constexpr (copies) {
      return number_of(map_.get(keys::from(key)));
    } else {
      return visit(key);
    }
  }
  // The value, as visit() shows it.
  std::optional<u64> visit(u64 key) const {
    std::optional<u64> seen;
    map_.visit(keys::from(key), [&](const auto& v) { seen = values::to(v); });
    return seen;
  }
  bool contains(u64 key) const { return map_.contains(keys::from(key)); }
  void multi_get(std::span<const u64> wanted, std::span<std::optional<u64>> found) const
    requires copies
  {
    const auto own = all_keys(wanted);
    std::vector<std::optional<value_type>> seen(wanted.size());
    map_.multi_get(arguments_of(own), seen);
    for (std::size_t i = 0; i < seen.size(); ++i) found[i] = number_of(seen[i]);
  }
  bool insert(u64 key, u64 value) { return map_.insert(keys::from(key), values::from(value)); }
  bool try_emplace(u64 key, u64 value) {
    return map_.try_emplace(keys::from(key), values::from(value));
  }
  bool upsert(u64 key, u64 value) { return map_.upsert(keys::from(key), values::from(value)); }
  template <class Make>
    requires copies
  std::pair<u64, bool> get_or_insert(u64 key, Make make) {
    const auto [value, added] =
        map_.get_or_insert(keys::from(key), [&] { return values::from(make()); });
    return {values::to(value), added};
  }
  template <class Fn>
    requires copies
  bool update(u64 key, Fn fn) {
    return map_.update(keys::from(key), of_value(fn));
  }
  template <class Make, class Fn>
    requires copies
  bool upsert_with(u64 key, Make make, Fn fn) {
    return map_.upsert_with(keys::from(key), [&] { return values::from(make()); }, of_value(fn));
  }
  template <class Fn>
    requires copies
  bool compute(u64 key, Fn fn) {
    return map_.compute(keys::from(key), [&](std::optional<value_type>& v) {
      std::optional<u64> n = number_of(v);
      fn(n);
      if (n) {
        v = values::from(*n);
      } else {
        v.reset();
      }
    });
  }
  bool erase(u64 key) { return map_.erase(keys::from(key)); }
  template <class Pred>
    requires copies
  bool erase_if(u64 key, Pred pred) {
    return map_.erase_if(keys::from(key), [&](const value_type& v) { return pred(values::to(v)); });
  }
  std::optional<u64> extract(u64 key) { return number_of(map_.extract(keys::from(key))); }

  // hash_map: what for_each() visits, put in order.
  template <class Fn>
  std::size_t scan(u64 from, std::size_t limit, Fn fn) const {
    if constexpr (is_ordered) {
      return map_.scan_n(elidex::from(keys::from(from)), limit, of_record(fn));
    } else {
      std::vector<std::pair<u64, u64>> seen;
      map_.for_each([&](const auto& key, const auto& value) {
        if (keys::to(key) >= from) seen.emplace_back(keys::to(key), values::to(value));
      });
      std::sort(seen.begin(), seen.end());
      seen.resize(std::min(limit, seen.size()));
      for (const auto& [key, value] : seen) fn(key, value);
      return seen.size();
    }
  }
  // From a key down. One record: by floor().
  template <class Fn>
    requires is_ordered
  std::size_t scan_down(u64 from, std::size_t limit, Fn fn) const {
    if constexpr (copies) {
      if (limit == 1) {
        const auto found = map_.floor(keys::from(from));
        if (found) fn(keys::to(found->first), values::to(found->second));
        return found ? 1 : 0;
      }
    }
    return map_.scan_n(up_to(keys::from(from)).descending(), limit, of_record(fn));
  }

  // Of many keys.
  std::size_t multi_upsert(std::span<const u64> wanted, std::span<const u64> given)
    requires copies
  {
    const auto own = all_keys(wanted);
    std::vector<value_type> made;
    for (const u64 value : given) made.push_back(values::from(value));
    const std::vector<std::remove_cvref_t<typename Map::value_argument>> passed(made.begin(),
                                                                                made.end());
    return map_.multi_upsert(arguments_of(own), passed);
  }
  std::size_t multi_erase(std::span<const u64> wanted) {
    const auto own = all_keys(wanted);
    return map_.multi_erase(arguments_of(own));
  }
  // lower <= key < upper
  std::size_t erase_between(u64 lower, u64 upper, bool descends)
    requires is_ordered
  {
    const auto which = between(keys::from(lower), keys::from(upper));
    return map_.erase(descends ? which.descending() : which);
  }
  std::size_t bulk_load(std::span<const std::pair<u64, u64>> sorted)
    requires is_ordered
  {
    std::vector<std::pair<typename Map::key_type, value_type>> records;
    for (const auto& [key, value] : sorted)
      records.emplace_back(keys::from(key), values::from(value));
    return map_.bulk_load(std::ranges::subrange(std::move_iterator(records.begin()),
                                                std::move_iterator(records.end())));
  }
  // Calls all functions that read many records, here some twenty, or the neighbours of a key.
  void read_around(u64 key) const {
    const auto ignore = [](const auto&, const auto&) {};
    if constexpr (is_ordered) {
      const auto here = keys::from(key);
      const auto which = between(here, keys::from(key + 20));
      map_.scan(which, ignore);
      map_.scan(which.descending(), ignore);
      map_.scan_n(above(here), 5, ignore);
      map_.scan_n(up_to(here).descending(), 5, ignore);
      static_cast<void>(map_.split(4));
      if constexpr (copies) {
        for (const auto& one : map_.range(which)) ignore(one.first, one.second);
        for (const auto& one : map_.range(which.descending())) ignore(one.first, one.second);
        static_cast<void>(map_.front());
        static_cast<void>(map_.back());
        static_cast<void>(map_.lower_bound(here));
        static_cast<void>(map_.upper_bound(here));
        static_cast<void>(map_.floor(here));
      }
    } else {
      map_.for_each(ignore);
    }
  }

  std::size_t size() const { return map_.size(); }
  auto stats() const { return map_.stats(); }
  void reclaim() { map_.reclaim(); }
  Map& map() { return map_; }
  const Map& map() const { return map_; }

 private:
  Map map_;
};

}  // namespace elidex::testing
