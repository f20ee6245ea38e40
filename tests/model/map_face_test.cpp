// The operations of ordered_map and hash_map beside std::map, for many types of keys and values.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "elidex/hash_map.hpp"
#include "elidex/ordered_map.hpp"
#include "support/conformance.hpp"
#include "support/random_seed.hpp"
#include "support/samples.hpp"

namespace elidex::testing {

// A type with an encoding of its own, without a default constructor.
struct order_id {
  order_id(std::uint16_t where, std::uint64_t n) : venue(where), number(n) {}
  std::uint16_t venue;
  std::uint64_t number;
  friend auto operator<=>(const order_id&, const order_id&) = default;
};
enum class level : std::int16_t { lowest = -2000 };

// Trivially copyable, without a default constructor.
struct price {
  explicit price(std::int64_t n) : cents(n) {}
  std::int64_t cents;
  friend bool operator==(const price&, const price&) = default;
};

template <class... Members>
struct sample<std::tuple<Members...>> {
  static std::tuple<Members...> of(std::uint64_t n) {
    std::uint64_t rest = n;
    return {sample<Members>::of(std::exchange(rest, rest / 5) % 5)...};
  }
};
template <class First, class Second>
struct sample<std::pair<First, Second>> {
  static std::pair<First, Second> of(std::uint64_t n) {
    return {sample<First>::of(n % 13), sample<Second>::of(n / 13)};
  }
};
template <class Element, std::size_t Size>
struct sample<std::array<Element, Size>> {
  static std::array<Element, Size> of(std::uint64_t n) {
    std::array<Element, Size> all{};
    for (Element& e : all) e = sample<Element>::of(std::exchange(n, n / 4) % 4);
    all[0] = sample<Element>::of(n % 3);
    return all;
  }
};
template <>
struct sample<std::vector<std::byte>> {
  static std::vector<std::byte> of(std::uint64_t n) {
    std::vector<std::byte> all;
    for (const char c : sample<std::string>::of(n)) all.push_back(static_cast<std::byte>(c));
    return all;
  }
};
template <>
struct sample<order_id> {
  static order_id of(std::uint64_t n) { return {static_cast<std::uint16_t>(n % 7), n / 7 << 33}; }
};
template <>
struct sample<level> {
  static level of(std::uint64_t n) { return static_cast<level>(static_cast<int>(n) - 100); }
};
template <>
struct sample<bool> {
  static bool of(std::uint64_t n) { return n % 2 != 0; }
};
#if defined(__SIZEOF_INT128__)
template <>
struct sample<internal::signed_128> {
  static internal::signed_128 of(std::uint64_t n) {
    return (static_cast<internal::signed_128>(n) - 100) * 0x1'0000'0000'0001;
  }
};
#endif
template <>
struct sample<price> {
  static price of(std::uint64_t n) { return price(static_cast<std::int64_t>(n)); }
};
template <>
struct sample<std::monostate> {
  static std::monostate of(std::uint64_t /*n*/) { return {}; }
};
template <>
struct sample<std::vector<int>> {
  static std::vector<int> of(std::uint64_t n) {
    return std::vector<int>(n % 5, static_cast<int>(n));
  }
};

}  // namespace elidex::testing

template <>
struct elidex::key_encoding<elidex::testing::order_id> {
  using as = std::pair<std::uint16_t, std::uint64_t>;
  static as encode(const elidex::testing::order_id& id) { return {id.venue, id.number}; }
  static elidex::testing::order_id decode(const as& key) { return {key.first, key.second}; }
};

namespace elidex::testing {
namespace {

// The order that the documentation promises, in words of the standard library.
struct promised_order {
  template <class Key>
  bool operator()(const Key& a, const Key& b) const {
    if constexpr (std::floating_point<Key>) {
      return std::isnan(a) ? false : std::isnan(b) ? true : a < b;
    } else if constexpr (std::same_as<Key, std::string>) {
      return a.compare(b) < 0;
    } else {
      return a < b;
    }
  }
};

// The name of a type in docs/CONFORMANCE.md.
template <class T>
constexpr std::string_view name_of = "";
template <>
constexpr std::string_view name_of<std::uint64_t> = "std::uint64_t";
template <>
constexpr std::string_view name_of<std::int8_t> = "std::int8_t";
template <>
constexpr std::string_view name_of<bool> = "bool";
template <>
constexpr std::string_view name_of<level> = "an enumeration";
template <>
constexpr std::string_view name_of<float> = "float";
template <>
constexpr std::string_view name_of<double> = "double";
#if defined(__SIZEOF_INT128__)
template <>
constexpr std::string_view name_of<internal::signed_128> = "__int128";
#endif
template <>
constexpr std::string_view name_of<std::string> = "std::string";
template <>
constexpr std::string_view name_of<std::vector<std::byte>> = "std::vector<std::byte>";
template <>
constexpr std::string_view name_of<std::vector<int>> = "std::vector<int>";
template <>
constexpr std::string_view name_of<std::unique_ptr<int>> = "std::unique_ptr<int>";
template <>
constexpr std::string_view name_of<std::monostate> = "std::monostate";
template <>
constexpr std::string_view name_of<order_id> = "a type with key_encoding";
template <>
constexpr std::string_view name_of<price> = "a trivially copyable struct";
template <>
constexpr std::string_view name_of<std::pair<std::uint32_t, std::int16_t>> =
    "std::pair of integers";
template <>
constexpr std::string_view name_of<std::array<std::uint16_t, 3>> = "std::array of integers";
template <>
constexpr std::string_view name_of<std::tuple<std::int32_t, level, std::uint64_t>> =
    "std::tuple of fixed size";
template <>
constexpr std::string_view name_of<std::tuple<std::string, std::int64_t>> =
    "std::tuple that begins with a string";
template <>
constexpr std::string_view name_of<std::tuple<std::uint8_t, std::string, std::string>> =
    "std::tuple that ends with strings";

// The operations that a test has used, for docs/CONFORMANCE.md.
template <class Map, bool IsOrdered>
class used_operations {
 public:
  void add(std::initializer_list<std::string_view> operations) {
    used_.insert(operations.begin(), operations.end());
  }
  // Expects that each operation was used or is among `absent`, and records both.
  void record(std::initializer_list<std::string_view> absent = {}, std::string_view why = "") {
    for (const std::string_view one : absent) {
      EXPECT_FALSE(used_.contains(one)) << one;
      row(one, why);
    }
    for (const std::string_view one : operations()) {
      if (std::ranges::find(absent, one) != absent.end()) continue;
      EXPECT_TRUE(used_.contains(one)) << one;
      row(one, "");
    }
  }

 private:
  static std::vector<std::string_view> operations() {
    std::vector<std::string_view> all_of_them{"get",           "at",          "contains",
                                              "visit",         "multi_get",   "insert",
                                              "try_emplace",   "upsert",      "insert_or_assign",
                                              "get_or_insert", "upsert_with", "multi_upsert",
                                              "update",        "compute",     "erase",
                                              "erase_if",      "extract",     "multi_erase",
                                              "clear",         "swap",        "size",
                                              "empty"};
    const auto more =
        IsOrdered
            ? std::vector<std::string_view>{"count",         "scan",        "scan_n", "range",
                                            "cursor",        "front",       "back",   "lower_bound",
                                            "ceiling",       "upper_bound", "floor",  "split",
                                            "erase(bounds)", "bulk_load"}
            : std::vector<std::string_view>{"for_each"};
    all_of_them.insert(all_of_them.end(), more.begin(), more.end());
    return all_of_them;
  }
  static void row(std::string_view operation, std::string_view why) {
    static_assert(!name_of<typename Map::key_type>.empty() &&
                  !name_of<typename Map::mapped_type>.empty());
    conformance_row({"operation", name_of<typename Map::key_type>,
                     name_of<typename Map::mapped_type>, IsOrdered ? "ordered_map" : "hash_map",
                     operation, why});
  }
  std::set<std::string_view> used_;
};

template <class Map>
struct face_test {
  using key_type = typename Map::key_type;
  using mapped_type = typename Map::mapped_type;
  using key_argument = typename Map::key_argument;
  using model = std::map<key_type, mapped_type, promised_order>;
  static constexpr bool is_ordered = requires(const Map& m) { m.scan(all, [](auto&&...) {}); };

  Map map;
  model expected;
  random_numbers random{seed_or(1)};
  used_operations<Map, is_ordered> used;

  key_type any_key() { return sample<key_type>::of(random.below(150)); }
  static bool same(const key_type& a, const key_type& b) {
    return !promised_order()(a, b) && !promised_order()(b, a);
  }
  static key_type own(const auto& key) {
    if constexpr (std::same_as<key_type, std::vector<std::byte>>) {
      return key_type(key.begin(), key.end());
    } else {
      return key_type(key);
    }
  }
  static mapped_type own_value(const auto& value) { return mapped_type(value); }

  void look_up(const key_type& key) {
    used.add({"get", "at", "contains", "visit"});
    const auto at = expected.find(key);
    const bool present = at != expected.end();
    EXPECT_EQ(map.contains(key), present);
    EXPECT_EQ(map.get(key), present ? std::optional(at->second) : std::nullopt);
    if (present) {
      EXPECT_EQ(map.at(key), at->second);
    } else {
      EXPECT_THROW(static_cast<void>(map.at(key)), std::out_of_range);
    }
    int visits = 0;
    EXPECT_EQ(map.visit(key,
                        [&](const auto& value) {
                          ++visits;
                          EXPECT_TRUE(value == at->second);
                        }),
              present);
    EXPECT_EQ(visits, present ? 1 : 0);
  }

  void add(const key_type& key, const mapped_type& value) {
    const auto at = expected.find(key);
    const bool present = at != expected.end();
    switch (random.below(6)) {
      case 0:
        EXPECT_EQ(map.insert(key, value), !present);
        used.add({"insert"});
        expected.emplace(key, value);
        break;
      case 1:
        EXPECT_EQ(map.try_emplace(key, value), !present);
        used.add({"try_emplace"});
        expected.emplace(key, value);
        break;
      case 2:
        EXPECT_EQ(map.upsert(key, value), !present);
        used.add({"upsert"});
        expected.insert_or_assign(key, value);
        break;
      case 3:
        EXPECT_EQ(map.insert_or_assign(key, value), !present);
        used.add({"insert_or_assign"});
        expected.insert_or_assign(key, value);
        break;
      case 4: {
        const auto [got, added] = map.get_or_insert(key, [&] { return value; });
        used.add({"get_or_insert"});
        EXPECT_EQ(added, !present);
        EXPECT_TRUE(got == expected.emplace(key, value).first->second);
        break;
      }
      default:
        EXPECT_EQ(map.upsert_with(
                      key, [&] { return value; }, [&](mapped_type& v) { v = value; }),
                  !present);
        expected.insert_or_assign(key, value);
        used.add({"upsert_with"});
    }
  }

  void change(const key_type& key, const mapped_type& value) {
    const auto at = expected.find(key);
    const bool present = at != expected.end();
    if (random.below(2) == 0) {
      EXPECT_EQ(map.update(key,
                           [&](mapped_type& v) {
                             EXPECT_TRUE(v == at->second);
                             v = value;
                           }),
                present);
      if (present) at->second = value;
      used.add({"update"});
      return;
    }
    used.add({"compute"});
    const bool stays = random.below(3) != 0;
    EXPECT_EQ(map.compute(key,
                          [&](std::optional<mapped_type>& v) {
                            EXPECT_EQ(v.has_value(), present);
                            if (v) {
                              EXPECT_TRUE(*v == at->second);
                            }
                            v = stays ? std::optional(value) : std::nullopt;
                          }),
              stays);
    if (stays) {
      expected.insert_or_assign(key, value);
    } else {
      expected.erase(key);
    }
  }

  void remove(const key_type& key) {
    const auto at = expected.find(key);
    const bool present = at != expected.end();
    switch (random.below(3)) {
      case 0:
        EXPECT_EQ(map.erase(key), present);
        used.add({"erase"});
        break;
      case 1:
        EXPECT_FALSE(map.erase_if(key, [](const mapped_type&) { return false; }));
        EXPECT_EQ(map.erase_if(key, [](const mapped_type&) { return true; }), present);
        used.add({"erase_if"});
        break;
      default:
        EXPECT_EQ(map.extract(key), present ? std::optional(at->second) : std::nullopt);
        used.add({"extract"});
    }
    expected.erase(key);
  }

  void throw_from_functions(const key_type& key) {
    struct thrown {};
    EXPECT_THROW(map.compute(key, [](std::optional<mapped_type>&) { throw thrown(); }), thrown);
    if (expected.contains(key)) {
      EXPECT_THROW(map.update(key, [](mapped_type&) { throw thrown(); }), thrown);
      EXPECT_THROW(map.erase_if(key, [](const mapped_type&) -> bool { throw thrown(); }), thrown);
    } else {
      EXPECT_THROW(map.get_or_insert(key, []() -> mapped_type { throw thrown(); }), thrown);
    }
  }

  // std::vector<bool> is no span.
  template <class T>
  using array_of = std::conditional_t<std::same_as<T, bool>, std::unique_ptr<T[]>, std::vector<T>>;
  template <class To, class From>
  static array_of<To> arguments(const std::vector<From>& from) {
    if constexpr (std::same_as<To, bool>) {
      auto all_of_them = std::make_unique<bool[]>(from.size());
      for (std::size_t i = 0; i < from.size(); ++i) all_of_them[i] = from[i];
      return all_of_them;
    } else {
      return array_of<To>(from.begin(), from.end());
    }
  }
  template <class Array>
  static auto span_of(const Array& all_of_them, std::size_t many) {
    return std::span(std::to_address(&all_of_them[0]), many);
  }
  void many() {
    std::vector<key_type> keys;
    std::vector<mapped_type> values;
    for (int i = 0; i < 40; ++i) keys.push_back(any_key());
    for (std::uint64_t i = 0; i < 40; ++i) values.push_back(sample<mapped_type>::of(i));
    const auto wanted = arguments<std::remove_cvref_t<key_argument>>(keys);
    const auto given = arguments<std::remove_cvref_t<typename Map::value_argument>>(values);
    const auto look_up_all = [&] {
      std::vector<std::optional<mapped_type>> found(keys.size());
      map.multi_get(span_of(wanted, keys.size()), found);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto at = expected.find(keys[i]);
        EXPECT_EQ(found[i], at == expected.end() ? std::nullopt : std::optional(at->second));
      }
    };
    look_up_all();
    const std::size_t before = expected.size();
    for (std::size_t i = 0; i < keys.size(); ++i) expected.insert_or_assign(keys[i], values[i]);
    EXPECT_EQ(map.multi_upsert(span_of(wanted, keys.size()), span_of(given, keys.size())),
              expected.size() - before);
    look_up_all();
    std::size_t erased = 0;
    for (std::size_t i = 0; i < 20; ++i) erased += expected.erase(keys[i]);
    EXPECT_EQ(map.multi_erase(span_of(wanted, 20)), erased);
    look_up_all();
    used.add({"multi_get", "multi_upsert", "multi_erase"});
  }

  // Visits everything, and compares with the records from `first` to `last`.
  template <class Range>
  void compare(const Range& seen, auto first, auto last) {
    auto at = first;
    for (const auto& [key, value] : seen) {
      ASSERT_NE(at, last);
      EXPECT_TRUE(same(key, at->first));
      EXPECT_TRUE(value == at->second);
      ++at;
    }
    EXPECT_EQ(at, last);
  }
  using records = std::vector<std::pair<key_type, mapped_type>>;
  auto collecting(records& to) {
    return
        [&to](const auto& key, const auto& value) { to.emplace_back(own(key), own_value(value)); };
  }
  template <class Bounds>
  records scanned(const Bounds& which) {
    used.add({"scan", "range", "scan_n", "count"});
    records seen;
    const std::size_t visited = map.scan(which, collecting(seen));
    EXPECT_EQ(visited, seen.size());
    EXPECT_EQ(map.count(which), seen.size());
    records walked;
    for (const auto& one : map.range(which)) walked.push_back(one);
    compare(walked, seen.begin(), seen.end());
    records some;
    const std::size_t n = random.below(20);
    EXPECT_EQ(map.scan_n(which, n, collecting(some)), std::min(n, seen.size()));
    compare(some, seen.begin(),
            seen.begin() + static_cast<std::ptrdiff_t>(std::min(n, seen.size())));
    return seen;
  }
  template <class Bounds>
  void expect_range(const Bounds& which, auto first, auto last) {
    compare(scanned(which), first, last);
    compare(scanned(which.descending()), std::make_reverse_iterator(last),
            std::make_reverse_iterator(first));
  }
  void ranges() {
    key_type a = any_key();
    key_type b = any_key();
    if (promised_order()(b, a)) {
      EXPECT_EQ(map.scan(between(a, b), [](auto&&...) {}), 0U);
      std::swap(a, b);
    }
    const auto& e = expected;
    expect_range(all, e.begin(), e.end());
    expect_range(between(a, b), e.lower_bound(a), e.lower_bound(b));
    expect_range(closed(a, b), e.lower_bound(a), e.upper_bound(b));
    expect_range(from(a), e.lower_bound(a), e.end());
    expect_range(above(a), e.upper_bound(a), e.end());
    expect_range(below(b), e.begin(), e.lower_bound(b));
    expect_range(up_to(b), e.begin(), e.upper_bound(b));
    records part;
    for (const auto& one : map.range(a, b)) part.push_back(one);
    compare(part, e.lower_bound(a), e.lower_bound(b));
    std::size_t calls = 0;
    map.scan(all, [&](auto&&...) { return ++calls < 3; });
    EXPECT_EQ(calls, std::min<std::size_t>(3, e.size()));
    neighbours(a);
  }
  void neighbours(const key_type& key) {
    used.add({"front", "back", "lower_bound", "ceiling", "upper_bound", "floor", "cursor"});
    const auto& e = expected;
    const auto expect = [&](const auto& got, auto at, bool there) {
      EXPECT_EQ(got.has_value(), there);
      if (got && there) {
        EXPECT_TRUE(same(got->first, at->first) && got->second == at->second);
      }
    };
    expect(map.front(), e.begin(), !e.empty());
    expect(map.back(), e.empty() ? e.end() : std::prev(e.end()), !e.empty());
    expect(map.lower_bound(key), e.lower_bound(key), e.lower_bound(key) != e.end());
    expect(map.ceiling(key), e.lower_bound(key), e.lower_bound(key) != e.end());
    expect(map.upper_bound(key), e.upper_bound(key), e.upper_bound(key) != e.end());
    const auto behind = e.upper_bound(key);
    expect(map.floor(key), behind == e.begin() ? behind : std::prev(behind), behind != e.begin());
    auto cursor = map.cursor();
    cursor.seek(key);
    EXPECT_EQ(cursor.valid(), e.lower_bound(key) != e.end());
    if (cursor.valid()) {
      EXPECT_TRUE(same(own(cursor.key()), e.lower_bound(key)->first));
    }
  }
  void parts() {
    used.add({"split"});
    for (const std::size_t n : {1U, 2U, 5U}) {
      records seen;
      const auto parts = map.split(n);
      EXPECT_LE(parts.size(), n);
      for (const auto& part : parts) map.scan(part, collecting(seen));
      compare(seen, expected.begin(), expected.end());
    }
  }
  void everything() {
    EXPECT_EQ(map.size(), expected.size());
    EXPECT_EQ(map.empty(), expected.empty());
    used.add({"size", "empty"});
    if constexpr (is_ordered) {
      ranges();
      parts();
    } else {
      records seen;
      used.add({"for_each"});
      const std::size_t visited = map.for_each(collecting(seen));
      EXPECT_EQ(visited, seen.size());
      std::sort(seen.begin(), seen.end(),
                [](const auto& a, const auto& b) { return promised_order()(a.first, b.first); });
      compare(seen, expected.begin(), expected.end());
      std::size_t calls = 0;
      map.for_each([&](auto&&...) { return ++calls < 3; });
      EXPECT_EQ(calls, std::min<std::size_t>(3, expected.size()));
    }
  }
  void move_about() {
    used.add({"swap"});
    Map other(std::move(map));
    EXPECT_TRUE(map.empty());  // NOLINT(bugprone-use-after-move): that is the test
    EXPECT_EQ(other.size(), expected.size());
    map.insert(any_key(), sample<mapped_type>::of(1));
    swap(map, other);
    EXPECT_EQ(other.size(), 1U);
    other = std::move(map);
    map = std::move(other);
  }

  void run() {
    for (int i = 0; i < 3'000 * effort(); ++i) {
      const key_type key = any_key();
      const mapped_type value = sample<mapped_type>::of(random.below(1'000));
      switch (random.below(i / 500 % 2 == 0 ? 6 : 10)) {
        case 0:
          look_up(key);
          break;
        case 1:
          throw_from_functions(key);
          break;
        case 2:
          change(key, value);
          break;
        case 3:
        case 4:
        case 5:
          add(key, value);
          break;
        default:
          remove(key);
      }
      if (i % 100 == 0) everything();
      if (i % 500 == 0) {
        many();
        move_about();
      }
      if (::testing::Test::HasFailure()) return;
    }
    everything();
    load();
    erase_ranges();
    map.clear();
    expected.clear();
    everything();
    used.add({"clear"});
    used.record();
  }
  // Into a map that has every other key, and into one that was emptied.
  void load() {
    if constexpr (is_ordered) {
      Map copy;
      bool adds = false;
      for (const auto& [key, value] : expected) {
        if ((adds = !adds)) copy.insert(key, value);
      }
      EXPECT_EQ(copy.bulk_load(expected), expected.size() / 2);
      swap(map, copy);
      everything();
      for (const auto& [key, value] : expected) map.erase(key);
      EXPECT_EQ(map.bulk_load(expected), expected.size());
      everything();
      used.add({"bulk_load"});
    }
  }
  void erase_ranges() {
    if constexpr (is_ordered) {
      const key_type key = any_key();
      const auto at = expected.lower_bound(key);
      used.add({"erase(bounds)"});
      EXPECT_EQ(map.erase(from(key)), static_cast<std::size_t>(std::distance(at, expected.end())));
      expected.erase(at, expected.end());
      everything();
    }
  }
};

template <class Map>
class MapFace : public ::testing::Test {};

#if defined(__SIZEOF_INT128__)
using wide_number = internal::signed_128;
#else
using wide_number = std::int64_t;
#endif
template <template <class...> class Map>
using of_all_types = ::testing::Types<
    Map<std::uint64_t, std::uint64_t>, Map<std::int8_t, std::string>, Map<bool, std::monostate>,
    Map<level, price>, Map<float, std::vector<int>>, Map<double, std::uint64_t>,
    Map<wide_number, std::string>, Map<std::string, std::uint64_t>, Map<std::string, price>,
    Map<std::string, std::vector<int>>, Map<std::vector<std::byte>, std::monostate>,
    Map<order_id, std::string>, Map<std::pair<std::uint32_t, std::int16_t>, std::uint64_t>,
    Map<std::array<std::uint16_t, 3>, price>,
    Map<std::tuple<std::int32_t, level, std::uint64_t>, std::uint64_t>,
    Map<std::tuple<std::string, std::int64_t>, std::string>,
    Map<std::tuple<std::uint8_t, std::string, std::string>, std::uint64_t>>;

template <class... Types>
using hash_map_of = hash_map<Types...>;

TYPED_TEST_SUITE(MapFace, of_all_types<ordered_map>);
TYPED_TEST(MapFace, AgreesWithTheStandardMap) {
  face_test<TypeParam>().run();
}
template <class Map>
class HashMapFace : public ::testing::Test {};
TYPED_TEST_SUITE(HashMapFace, of_all_types<hash_map_of>);
TYPED_TEST(HashMapFace, AgreesWithTheStandardMap) {
  face_test<TypeParam>().run();
}

// What visits all values of a map.
template <class Map, class Fn>
std::size_t visit_all(const Map& map, Fn&& fn) {
  if constexpr (requires { map.scan(all, fn); }) {
    return map.scan(all, fn);
  } else {
    return map.for_each(fn);
  }
}
template <class Map, bool IsOrdered>
void values_that_only_move() {
  Map map;
  used_operations<Map, IsOrdered> used;
  EXPECT_TRUE(map.insert("a", std::make_unique<int>(1)));
  EXPECT_FALSE(map.insert("a", std::make_unique<int>(2)));
  EXPECT_FALSE(map.upsert("a", std::make_unique<int>(3)));
  EXPECT_FALSE(map.insert_or_assign("a", std::make_unique<int>(3)));
  EXPECT_TRUE(map.try_emplace("b", new int(4)));
  EXPECT_TRUE(map.contains("b"));
  int sum = 0;
  EXPECT_TRUE(map.visit("a", [&](const std::unique_ptr<int>& p) { sum += *p; }));
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(visit_all(map, [&](const auto&, const std::unique_ptr<int>& p) { sum += *p; }), 2U);
  EXPECT_EQ(sum, 10);
  EXPECT_GT(map.memory_bytes(), 0U);
  EXPECT_EQ(**map.extract("a"), 3);
  EXPECT_FALSE(map.extract("a"));
  EXPECT_TRUE(map.erase("b"));
  EXPECT_TRUE(map.insert("c", std::make_unique<int>(5)));
  map.visit("c", [&](const auto&) {
    EXPECT_THROW(static_cast<void>(map.extract("c")), std::logic_error);
  });
  EXPECT_FALSE(map.erase_if("x", [](const auto&) { return true; }));
  EXPECT_FALSE(map.erase_if("c", [](const std::unique_ptr<int>& p) { return *p == 4; }));
  EXPECT_EQ(map.size(), 1U);
  Map other;
  swap(map, other);
  EXPECT_TRUE(map.empty());
  const std::array<std::string_view, 2> keys{"c", "d"};
  EXPECT_EQ(other.multi_erase(keys), 1U);
  if constexpr (IsOrdered) {
    for (const char* const key : {"a", "b", "c"}) map.try_emplace(key, nullptr);
    EXPECT_EQ(map.scan_n(from("b"), 1, [](auto&&...) {}), 1U);
    EXPECT_EQ(map.split(1).size(), 1U);
    EXPECT_EQ(map.erase(from("b")), 2U);
    std::vector<std::pair<std::string, std::unique_ptr<int>>> records;
    records.emplace_back("e", std::make_unique<int>(1));
    EXPECT_EQ(other.bulk_load(std::ranges::subrange(std::move_iterator(records.begin()),
                                                    std::move_iterator(records.end()))),
              1U);
    std::vector<std::pair<std::string, std::unique_ptr<int>>> more;
    more.emplace_back("f", std::make_unique<int>(2));
    EXPECT_EQ(other.bulk_load(std::move(more)), 1U);
    other.visit("f", [](const auto& p) { EXPECT_EQ(*p, 2); });
    EXPECT_EQ(other.count(all), 2U);
    used.add({"count", "scan", "scan_n", "split", "erase(bounds)", "bulk_load"});
  } else {
    used.add({"for_each"});
  }
  map.try_emplace("g", new int(6));
  EXPECT_TRUE(map.erase_if("g", [](const std::unique_ptr<int>& p) { return *p == 6; }));
  EXPECT_FALSE(map.contains("g"));
  map.clear();
  EXPECT_TRUE(map.empty());
  used.add({"erase_if", "insert", "upsert", "insert_or_assign", "try_emplace", "contains", "visit",
            "extract", "erase", "multi_erase", "size", "empty", "swap", "clear"});
  if constexpr (IsOrdered) {
    used.record({"get", "at", "multi_get", "get_or_insert", "upsert_with", "multi_upsert", "update",
                 "compute", "range", "cursor", "front", "back", "lower_bound", "ceiling",
                 "upper_bound", "floor"},
                "copies the value");
  } else {
    used.record({"get", "at", "multi_get", "get_or_insert", "upsert_with", "multi_upsert", "update",
                 "compute"},
                "copies the value");
  }
}
TEST(MapFaceOfMovableValues, OrderedMap) {
  values_that_only_move<ordered_map<std::string, std::unique_ptr<int>>, true>();
}
TEST(MapFaceOfMovableValues, HashMap) {
  values_that_only_move<hash_map<std::string, std::unique_ptr<int>>, false>();
}

TEST(MapKeys, ZerosAreOneKeyAndSoAreNaNs) {
  ordered_map<double, int> map;
  map.insert(-0.0, 1);
  EXPECT_FALSE(map.insert(0.0, 2));
  EXPECT_FALSE(std::signbit(map.front()->first));
  EXPECT_TRUE(map.insert(-std::numeric_limits<double>::quiet_NaN(), 3));
  EXPECT_EQ(map.get(std::numeric_limits<double>::signaling_NaN()), 3);
  map.insert(std::numeric_limits<double>::infinity(), 4);
  EXPECT_TRUE(std::isnan(map.back()->first));
}

TEST(MapKeys, FractionsInTuplesKeepTheirOrder) {
  ordered_map<std::pair<std::string, double>, int> map{
      {{"b", -2.5}, 3}, {{"a", 1e9}, 2}, {{"b", 0.5}, 4}, {{"a", -1}, 1}};
  int next = 1;
  map.scan(all, [&](const auto&, int value) { EXPECT_EQ(value, next++); });
  EXPECT_EQ(next, 5);
}

TEST(MapBounds, Prefixes) {
  ordered_map<std::string, int> words{
      {"a", 1}, {"ab", 2}, {"ab\xff", 3}, {"ac", 4}, {"\xff\xff", 5}};
  const auto sum = [](const auto& map, const auto& which) {
    int all_values = 0;
    map.scan(which, [&](const auto&, int value) { all_values += value; });
    return all_values;
  };
  EXPECT_EQ(sum(words, prefix("ab")), 5);
  EXPECT_EQ(sum(words, prefix("ab\xff")), 3);
  EXPECT_EQ(sum(words, prefix("")), 15);
  EXPECT_EQ(sum(words, prefix("\xff").descending()), 5);
  ordered_map<std::tuple<std::string, std::uint32_t, std::int8_t>, int> tuples{
      {{"s", 1, 1}, 1}, {{"s", 1, 2}, 2}, {{"s", 2, 1}, 4}, {{"sensor", 1, 1}, 8}};
  EXPECT_EQ(sum(tuples, prefix("s")), 7);
  EXPECT_EQ(sum(tuples, prefix("s", 1U)), 3);
  EXPECT_EQ(sum(tuples, prefix("s", 1U, 2)), 2);
  ordered_map<std::array<std::uint8_t, 3>, int> bytes{{{255, 255, 1}, 1}, {{255, 254, 1}, 2}};
  EXPECT_EQ(sum(bytes, prefix(255)), 3);
  EXPECT_EQ(sum(bytes, prefix(255, 255)), 1);
}

// A bound that separates two leaves, from either side.
template <class Key>
void expect_no_key_outside_of_bounds() {
  ordered_map<Key, int> map;
  const auto key = [](std::size_t n) {
    if constexpr (std::same_as<Key, std::string>) {
      return std::to_string(100'000 + n);
    } else {
      return static_cast<Key>(n);
    }
  };
  constexpr std::size_t many = 2'000;
  for (std::size_t n = 0; n < many; ++n) map.insert(key(n), 1);
  const auto nothing = [](auto&&...) {};
  for (std::size_t n = 0; n + 20 < many; ++n) {
    EXPECT_EQ(map.scan_n(between(key(n), key(n)).descending(), 9, nothing), 0U);
    EXPECT_EQ(map.scan_n(closed(key(n), key(n)).descending(), 9, nothing), 1U);
    EXPECT_EQ(map.scan(closed(key(n), key(n)), nothing), 1U);
    EXPECT_EQ(map.scan_n(between(key(n), key(n + 20)).descending(), 99, nothing), 20U);
    EXPECT_EQ(std::ranges::distance(map.range(between(key(n), key(n + 16)).descending())), 16);
  }
  EXPECT_EQ(map.erase(between(key(600), key(600 + 256)).descending()), 256U);
  EXPECT_EQ(map.size(), many - 256);
}
TEST(MapBounds, NoKeyOutsideOfThem) {
  expect_no_key_outside_of_bounds<std::uint64_t>();
  expect_no_key_outside_of_bounds<std::string>();
}

TEST(MapBounds, IntegersThatAreNoKeys) {
  const auto nothing = [](auto&&...) {};
  ordered_map<std::uint8_t, int> bytes;
  for (int n = 0; n < 200; ++n) bytes.insert(static_cast<std::uint8_t>(n), n);
  EXPECT_EQ(bytes.scan(below(300), nothing), 200U);
  EXPECT_EQ(bytes.scan(from(-1), nothing), 200U);
  EXPECT_EQ(bytes.scan(from(256), nothing), 0U);
  EXPECT_EQ(bytes.scan(up_to(-1).descending(), nothing), 0U);
  ordered_map<std::int64_t, int> signed_keys;
  for (int n = -5; n < 10; ++n) signed_keys.insert(n, n);
  EXPECT_EQ(signed_keys.scan(between(-1, 10U), nothing), 11U);
  EXPECT_EQ(signed_keys.scan(up_to(~std::uint64_t{0}), nothing), 15U);
  ordered_map<std::uint64_t, int> unsigned_keys{{0, 0}, {1, 1}};
  EXPECT_EQ(unsigned_keys.scan(between(-1, 10), nothing), 2U);
}

TEST(OrderedMapSplit, OfStringsIsAboutEven) {
  ordered_map<std::string, int> map;
  for (int n = 0; n < 400; ++n) map.insert(std::to_string(100'000 + n), n);
  for (const auto& part : map.split(8)) {
    const std::size_t keys = map.scan(part, [](auto&&...) {});
    EXPECT_GT(keys, 20U);
    EXPECT_LT(keys, 110U);
  }
}

TEST(OrderedMapCursor, OfStringValues) {
  ordered_map<int, std::string> map{{1, "one"}};
  auto cursor = map.cursor();
  cursor.seek_first();
  EXPECT_EQ(cursor.value(), "one");
}

struct only_moves {
  explicit only_moves(int n) : handle(n) {}
  only_moves(only_moves&&) = default;
  only_moves& operator=(only_moves&&) = default;
  int handle;
};
struct never_assigned {
  explicit never_assigned(std::string s) : text(std::move(s)) {}
  const std::string text;
};
TEST(MapValues, OfUnusualTypes) {
  ordered_map<int, only_moves> handles;
  EXPECT_TRUE(handles.insert(1, only_moves(7)));
  EXPECT_EQ(handles.extract(1)->handle, 7);
  EXPECT_TRUE(handles.empty());
  hash_map<bool, never_assigned> texts;
  EXPECT_TRUE(texts.get_or_insert(true, [] { return never_assigned("a"); }).second);
  EXPECT_EQ(texts.extract(true)->text, "a");
  ordered_map<int, std::optional<int>> optionals{{1, std::nullopt}};
  EXPECT_FALSE(optionals.compute(1, [](std::optional<std::optional<int>>& v) {
    EXPECT_TRUE(v.has_value());
    v.reset();
  }));
  EXPECT_TRUE(optionals.empty());
  ordered_map<int, std::unique_ptr<int>> owners;
  std::vector<std::pair<int, std::unique_ptr<int>>> records;
  records.emplace_back(1, std::make_unique<int>(1));
  owners.bulk_load(std::ranges::subrange(std::move_iterator(records.begin()),
                                         std::move_iterator(records.end())));
  EXPECT_EQ(records.front().second, nullptr);
  EXPECT_EQ(owners.size(), 1U);
}

TEST(OrderedMapRange, IsAnInputRange) {
  ordered_map<std::uint64_t, std::uint64_t> map;
  for (std::uint64_t n = 0; n < 5'000; ++n) map.insert(2 * n, n);
  static_assert(std::ranges::input_range<decltype(map.range(all))>);
  std::uint64_t next = 0;
  for (const auto& [key, value] : map.range(all) | std::views::take(10)) {
    EXPECT_EQ(key, 2 * value);
    EXPECT_EQ(value, next++);
  }
  EXPECT_EQ(next, 10U);
  // It goes on behind a key that is erased, and finds one that is inserted further on.
  std::vector<std::uint64_t> seen;
  for (const auto& [key, value] : map.range(0, 10'000)) {
    if (key == 0) {
      map.erase(between(2, 9'990));
      map.insert(9'991, 1);
    }
    seen.push_back(key);
  }
  EXPECT_EQ(seen.back(), 9'998U);
  EXPECT_EQ(std::ranges::count(seen, 9'991U), 1);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

// Strings are views that last until the next step, also when the range has moved.
TEST(OrderedMapRange, OfStringsHoldsViews) {
  ordered_map<std::string, std::string> map;
  std::vector<std::pair<std::string, std::string>> expected;
  for (int n = 10'000; n < 13'000; ++n) {
    expected.emplace_back(std::to_string(n), std::string(static_cast<std::size_t>(n % 90), 'v'));
    map.insert(expected.back().first, expected.back().second);
  }
  auto range = map.range(all);
  static_assert(std::ranges::input_range<decltype(range)>);
  std::vector<std::pair<std::string, std::string>> seen;
  seen.push_back(*range.begin());
  auto moved = std::move(range);
  for (auto it = ++moved.begin(); it != moved.end(); ++it) seen.push_back(*it);
  EXPECT_EQ(seen, expected);
  seen.clear();
  std::ranges::copy(map.range(all), std::back_inserter(seen));
  EXPECT_EQ(seen, expected);
  std::size_t same = 0;
  for (const std::string_view key : map.range("10100", "10200") | std::views::keys)
    same += key == expected[100 + same].first ? 1U : 0U;
  EXPECT_EQ(same, 100U);
  ordered_map<std::vector<std::byte>, int> bytes;
  bytes.insert(std::vector<std::byte>{std::byte{7}}, 1);
  std::vector<std::pair<std::vector<std::byte>, int>> copies;
  for (const auto& one : bytes.range(all)) copies.push_back(one);
  EXPECT_EQ(copies.front().first.front(), std::byte{7});
}

template <class Map>
void look_ups_in_an_empty_map() {
  Map map(memory_options{.bytes_max = 1});
  std::vector<std::string> keys{"a", "b"};
  std::vector<std::optional<std::string>> found(2, "x");
  EXPECT_FALSE(map.get("a"));
  EXPECT_FALSE(map.contains("a"));
  EXPECT_FALSE(map.visit("a", [](std::string_view) {}));
  map.multi_get(keys, found);
  EXPECT_FALSE(found[1]);
  EXPECT_FALSE(map.erase("a"));
  EXPECT_FALSE(map.erase_if("a", [](const std::string&) { return true; }));
  EXPECT_FALSE(map.update("a", [](std::string&) {}));
  EXPECT_EQ(map.multi_erase(keys), 0U);
  EXPECT_EQ(visit_all(map, [](auto&&...) {}), 0U);
  const std::string too_long(70'000, 'k');
  EXPECT_THROW(static_cast<void>(map.get(too_long)), std::invalid_argument);
  if constexpr (requires { map.count(all); }) {
    EXPECT_EQ(map.count(all), 0U);
    EXPECT_FALSE(map.front());
    EXPECT_EQ(map.erase(from("a")), 0U);
    EXPECT_EQ(map.split(3).size(), 1U);
    EXPECT_EQ(std::ranges::distance(map.range("a", "b")), 0);
    EXPECT_THROW(map.scan(from(too_long), [](auto&&...) {}), std::invalid_argument);
  }
  EXPECT_LE(map.memory_bytes(), sizeof(map));
}
TEST(MapFaceOfStrings, LookUpsInAnEmptyMapTakeNoMemory) {
  look_ups_in_an_empty_map<ordered_map<std::string, std::string>>();
  look_ups_in_an_empty_map<hash_map<std::string, std::string>>();
}

TEST(MapFaceOfIntegers, ChangesNothingForAnEmptyBatch) {
  ordered_map<std::uint64_t, std::uint64_t> map(memory_options{.bytes_max = 100});
  const std::vector<std::uint64_t> none;
  EXPECT_EQ(map.multi_upsert(none, none), 0U);
  EXPECT_EQ(map.multi_erase(none), 0U);
  EXPECT_LE(map.memory_bytes(), sizeof(map));
}

// Arrays of other types than the map's keys and values.
TEST(MapFaceOfIntegers, TakesOtherArrays) {
  ordered_map<std::uint64_t, std::uint64_t> map;
  volatile std::uint64_t keys[] = {1, 2, 3};
  const std::array<int, 3> values{4, 5, 6};
  EXPECT_EQ(map.multi_upsert(keys, values), 3U);
  EXPECT_EQ(map.get(3), 6U);
  EXPECT_EQ(map.multi_erase(keys), 3U);
}

TEST(MapFaceOfStrings, TakesListsOfOwnedStrings) {
  ordered_map<std::string, std::string> map;
  const std::vector<std::string> keys{"a", "b"};
  const std::vector<std::string> values{"1", "2"};
  EXPECT_EQ(map.multi_upsert(keys, values), 2U);
  std::vector<std::optional<std::string>> found(2);
  map.multi_get(keys, found);
  EXPECT_EQ(found[1], "2");
  EXPECT_EQ(map.get_or_insert("c", "3").first, "3");
  EXPECT_EQ(map.multi_erase(keys), 2U);
}

TEST(MapFaceOfStrings, TakesRangesThatMakeTheirStrings) {
  ordered_map<std::string, std::string> map;
  const std::vector<int> numbers{1, 2, 3};
  const auto texts = std::views::transform(
      numbers, [](int n) { return "a text that is on the heap " + std::to_string(n); });
  EXPECT_EQ(map.multi_upsert(texts, texts), 3U);
  EXPECT_EQ(map.get(texts[2]), texts[2]);
  EXPECT_EQ(map.multi_erase(texts), 3U);
}

// Values that are views are the caller's, and not copied.
TEST(OrderedMapRange, LeavesValuesThatAreViewsAlone) {
  static constexpr std::string_view text = "abcdefgh";
  ordered_map<std::string, std::string_view> map;
  for (std::size_t n = 0; n < 900; ++n) map.insert(std::to_string(n), text.substr(n % 8, 1));
  for (const auto& [key, value] : map.range(all)) {
    EXPECT_GE(value.data(), text.data());
    EXPECT_LT(value.data(), text.data() + text.size());
  }
}

TEST(OrderedMapRange, CopiesAreAtTheSameRecord) {
  ordered_map<std::string, int> map;
  for (int n = 100; n < 900; ++n) map.insert(std::to_string(n), n);
  auto range = map.range(all);
  auto at = range.begin();
  ++at;
  auto copy = range;
  auto moved = std::move(range);
  EXPECT_EQ(copy.begin()->first, "101");
  EXPECT_NE(copy.begin()->first.data(), moved.begin()->first.data());
  EXPECT_EQ(std::ranges::distance(moved), 799);
  EXPECT_EQ(std::ranges::distance(copy | std::views::take(5)), 5);
}

struct metres {
  double number;
  explicit operator double() const { return number; }
};
TEST(MapFaceOfStrings, MakesValuesOfWhatIsGiven) {
  ordered_map<int, double> numbers;
  EXPECT_EQ(numbers.get_or_insert(1, [] { return metres{2}; }).first, 2);
  // A value that is a function is not called.
  ordered_map<int, std::function<int()>> functions;
  const std::function<int()> seven = [] { return 7; };
  EXPECT_EQ(functions.get_or_insert(1, seven).first(), 7);
  EXPECT_TRUE(functions.upsert_with(2, seven, [](std::function<int()>&) {}));
  hash_map<bool, bool> flags;
  const std::vector<bool> both{true, false};
  flags.multi_upsert(both, both);
  std::vector<std::optional<bool>> found(2);
  flags.multi_get(both, found);
  EXPECT_EQ(found[1], false);
}

TEST(OrderedMapBulkLoad, IntoAnyMap) {
  ordered_map<std::string, std::string> map;
  const std::vector<std::pair<std::string, std::string>> records{{"a", "1"}, {"b", "2"}};
  EXPECT_EQ(map.bulk_load(records), 2U);
  EXPECT_EQ(map.bulk_load(records), 0U);
  ordered_map<std::string, std::string> copy;
  EXPECT_EQ(copy.bulk_load(map.range(all)), 2U);
  EXPECT_EQ(copy.get("b"), "2");
  ordered_map<std::uint32_t, price> prices;
  prices.insert(2, price(20));
  const std::vector<std::pair<std::uint32_t, price>> more{{1, price(1)}, {2, price(2)}};
  EXPECT_EQ(prices.bulk_load(more), 1U);
  EXPECT_EQ(prices.get(2), price(20));
  const std::vector<std::pair<std::uint32_t, price>> twice{{3, price(1)}, {3, price(2)}};
  EXPECT_THROW(prices.bulk_load(twice), std::invalid_argument);
}

TEST(MapMemory, AnEmptyMapCostsAFewBytes) {
  EXPECT_LT((ordered_map<std::uint64_t, std::uint64_t>().memory_bytes()), 64U);
  EXPECT_LT((hash_map<std::string, std::string>().memory_bytes()), 64U);
}

}  // namespace
}  // namespace elidex::testing
