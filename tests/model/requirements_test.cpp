// The requirements of the C++ standard on associative containers ([associative.reqmts],
// [unord.req]), as far as the maps have such operations, and the operations that they lack.
#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/hash_map.hpp"
#include "elidex/ordered_map.hpp"
#include "support/conformance.hpp"

namespace elidex::testing {
namespace {

// A value that counts its copies, can be moved, and can refuse to be made.
struct counted {
  static inline int copies = 0;
  static inline bool refuses = false;
  struct refused {};
  std::unique_ptr<int> number;

  explicit counted(int n) : number(std::make_unique<int>(n)) {
    if (refuses) throw refused();
  }
  counted(const counted& other) : number(std::make_unique<int>(*other.number)) { ++copies; }
  counted(counted&&) noexcept = default;
  counted& operator=(const counted& other) {
    ++copies;
    number = std::make_unique<int>(*other.number);
    return *this;
  }
  counted& operator=(counted&&) noexcept = default;
  ~counted() = default;
};

template <template <class...> class Map>
struct of_maps {
  using texts = Map<std::string, std::string>;
  using numbers = Map<int, int>;
  using objects = Map<std::string, counted>;
};

// Everything that a map has, in the order of its keys.
template <class Map>
auto content_of(const Map& map) {
  std::map<typename Map::key_type, typename Map::mapped_type> content;
  const auto add = [&](const auto& key, const auto& value) {
    content.emplace(typename Map::key_type(key), typename Map::mapped_type(value));
  };
  if constexpr (requires { map.scan(all, add); }) {
    map.scan(all, add);
  } else {
    map.for_each(add);
  }
  return content;
}
template <class Map>
bool has(const Map& map, std::map<typename Map::key_type, typename Map::mapped_type> wanted) {
  return map.size() == wanted.size() && content_of(map) == wanted;
}

// --- what both maps have ---

template <class Numbers>
bool is_empty_at_first() {
  const Numbers map;
  return map.empty() && map.size() == 0 && !map.contains(1) && !map.get(1) && has(map, {});
}
template <class Numbers>
bool list_keeps_the_first_of_equal_keys() {
  const Numbers map{{2, 20}, {1, 10}, {2, 21}};
  return has(map, {{1, 10}, {2, 20}});
}
template <class Numbers>
bool insert_tells_whether_it_added_and_keeps_the_value() {
  Numbers map;
  return map.insert(1, 10) && !map.insert(1, 11) && has(map, {{1, 10}});
}
template <class Numbers>
bool insert_or_assign_assigns() {
  Numbers map;
  return map.insert_or_assign(1, 10) && !map.insert_or_assign(1, 11) && has(map, {{1, 11}});
}
template <class Objects>
bool try_emplace_leaves_its_arguments_alone() {
  Objects map;
  counted first(1);
  counted second(2);
  return map.try_emplace("a", std::move(first)) && !first.number &&
         !map.try_emplace("a", std::move(second)) && second.number && map.size() == 1;
}
template <class Objects>
bool insert_moves_the_value() {
  Objects map;
  counted::copies = 0;
  map.insert("a", counted(1));
  map.try_emplace("b", 2);
  map.insert_or_assign("a", counted(3));
  return counted::copies == 0 && *map.get("a")->number == 3;
}
template <class Numbers>
bool erase_returns_the_number() {
  Numbers map{{1, 10}, {2, 20}};
  return map.erase(1) == 1 && map.erase(1) == 0 && has(map, {{2, 20}});
}
template <class Objects>
bool extract_moves_the_element_out() {
  Objects map;
  map.try_emplace("a", 1);
  const std::optional<counted> taken = map.extract("a");
  return taken && *taken->number == 1 && map.empty() && !map.extract("a");
}
template <class Numbers>
bool clear_leaves_an_empty_usable_map() {
  Numbers map{{1, 10}, {2, 20}};
  map.clear();
  return map.empty() && !map.contains(1) && map.insert(1, 11) && has(map, {{1, 11}});
}
template <class Numbers>
bool a_moved_from_map_is_empty_and_usable() {
  Numbers map{{1, 10}};
  Numbers to(std::move(map));
  const bool moved = map.empty() && has(to, {{1, 10}});  // NOLINT(bugprone-use-after-move)
  map.insert(2, 20);
  to = std::move(map);
  return moved && has(to, {{2, 20}}) && map.empty() && map.insert(3, 30);
}
template <class Numbers>
bool self_move_changes_nothing() {
  Numbers map{{1, 10}};
  Numbers& same = map;
  map = std::move(same);
  map.swap(map);
  return has(map, {{1, 10}});
}
template <class Numbers>
bool swap_exchanges_the_elements() {
  Numbers a{{1, 10}};
  Numbers b{{2, 20}, {3, 30}};
  a.swap(b);
  const bool member = has(a, {{2, 20}, {3, 30}}) && has(b, {{1, 10}});
  swap(a, b);
  std::swap(a, b);
  return member && b.size() == 1 && a.size() == 2 && std::is_nothrow_swappable_v<Numbers>;
}
template <class Numbers>
bool moves_throw_nothing() {
  return std::is_nothrow_move_constructible_v<Numbers> &&
         std::is_nothrow_move_assignable_v<Numbers> && std::is_nothrow_destructible_v<Numbers> &&
         noexcept(std::declval<const Numbers&>().size()) &&
         noexcept(std::declval<const Numbers&>().empty()) &&
         noexcept(std::declval<Numbers&>().clear());
}
template <class Numbers>
bool at_throws_out_of_range() {
  const Numbers map{{1, 10}};
  try {
    static_cast<void>(map.at(2));
  } catch (const std::out_of_range&) {
    return map.at(1) == 10;
  }
  return false;
}
template <class Texts>
bool looks_up_views_without_a_string() {
  static_assert(std::same_as<typename Texts::key_argument, std::string_view>);
  const std::string_view key = std::string_view("pear tree").substr(0, 4);
  Texts map{{"pear", "green"}};
  return map.get(key) == "green" && map.contains("pear") && map.erase(key) && map.empty();
}
template <class Objects>
bool a_value_that_throws_changes_nothing() {
  Objects map;
  map.try_emplace("a", 1);
  counted::refuses = true;
  int thrown = 0;
  const auto expect_thrown = [&](auto&& call) {
    try {
      call();
    } catch (const counted::refused&) {
      ++thrown;
    }
  };
  expect_thrown([&] { map.try_emplace("b", 2); });
  expect_thrown([&] { map.get_or_insert("b", [] { return counted(2); }); });
  expect_thrown([&] { map.compute("a", [](std::optional<counted>& v) { v.emplace(3); }); });
  expect_thrown([&] { map.update("a", [](counted& v) { v = counted(3); }); });
  counted::refuses = false;
  return thrown == 4 && map.size() == 1 && *map.get("a")->number == 1 && map.try_emplace("b", 4);
}
template <class Objects>
bool values_need_no_default_constructor() {
  static_assert(!std::default_initializable<counted>);
  Objects map;
  return map.try_emplace("a", 1) && map.contains("a");
}
template <class Numbers>
bool keys_are_unique() {
  Numbers map;
  for (int round = 0; round < 3; ++round) {
    for (int n = 0; n < 300; ++n) map.insert(n, round);
  }
  std::size_t visits = 0;
  for (const auto& [key, value] : content_of(map)) visits += value == 0 ? 1U : 0U;
  return map.size() == 300 && visits == 300;
}

// --- what only ordered_map has ---

bool elements_ascend() {
  ordered_map<int, int> map;
  for (int n = 0; n < 1'000; ++n) map.insert(n * 7919 % 1'000 - 500, n);
  int last = -1'000;
  bool ascends = true;
  map.scan(all, [&](int key, int) { ascends = ascends && std::exchange(last, key) < key; });
  return ascends && last == 499;
}
bool bounds_are_those_of_the_standard() {
  const std::map<int, int> standard{{1, 10}, {3, 30}, {5, 50}};
  const ordered_map<int, int> map{{1, 10}, {3, 30}, {5, 50}};
  bool same = true;
  for (int key = 0; key <= 6; ++key) {
    const auto equals = [&](const auto& record, auto at) {
      return record ? at != standard.end() && record->first == at->first : at == standard.end();
    };
    same = same && equals(map.lower_bound(key), standard.lower_bound(key)) &&
           equals(map.upper_bound(key), standard.upper_bound(key)) &&
           map.scan(closed(key, key), [](auto&&...) {}) == standard.count(key);
  }
  return same;
}
bool erase_of_a_range_returns_the_number() {
  ordered_map<int, int> map{{1, 10}, {3, 30}, {5, 50}};
  return map.erase(between(1, 5)) == 2 && has(map, {{5, 50}});
}

// --- what only hash_map has ---

bool reserve_avoids_growth() {
  hash_map<int, int> map;
  map.reserve(20'000);
  const auto before = map.stats();
  for (int n = 0; n < 20'000; ++n) map.insert(n, n);
  return map.stats().buckets == before.buckets && map.stats().splits == before.splits;
}
struct parity_hash {
  std::uint64_t operator()(int key) const noexcept { return key % 2 == 0 ? 7 : 8; }
};
bool equal_hashes_are_no_equal_keys() {
  hash_map<int, int, parity_hash> map;
  for (int n = 0; n < 200; ++n) map.insert(n, n);
  static_assert(std::same_as<decltype(map)::hasher, parity_hash>);
  return map.size() == 200 && map.get(100) == 100 && !map.contains(200);
}

struct requirement {
  std::string_view section;
  std::string_view words;
  bool (*holds)();
};

template <template <class...> class Map>
std::vector<requirement> common_requirements() {
  using of = of_maps<Map>;
  using numbers = typename of::numbers;
  using objects = typename of::objects;
  return {
      {"container.reqmts", "A default-constructed map is empty.", is_empty_at_first<numbers>},
      {"container.reqmts", "Moves, `swap()`, `clear()`, `size()` and `empty()` throw nothing.",
       moves_throw_nothing<numbers>},
      {"container.reqmts", "`swap()` exchanges the elements.",
       swap_exchanges_the_elements<numbers>},
      {"container.reqmts",
       "A map that was moved from is empty and usable. (The standard: valid, but unspecified.)",
       a_moved_from_map_is_empty_and_usable<numbers>},
      {"container.reqmts", "Assigning or swapping a map with itself changes nothing.",
       self_move_changes_nothing<numbers>},
      {"associative.reqmts.general", "Keys are unique.", keys_are_unique<numbers>},
      {"associative.reqmts.general", "An initializer list keeps the first of equal keys.",
       list_keeps_the_first_of_equal_keys<numbers>},
      {"associative.reqmts.general",
       "`insert()` returns whether it added the key, and keeps the value of a present key.",
       insert_tells_whether_it_added_and_keeps_the_value<numbers>},
      {"associative.reqmts.general", "`erase(key)` returns the number of removed elements.",
       erase_returns_the_number<numbers>},
      {"associative.reqmts.general", "`extract(key)` removes the element and passes it on.",
       extract_moves_the_element_out<objects>},
      {"associative.reqmts.general", "`clear()` leaves an empty, usable map.",
       clear_leaves_an_empty_usable_map<numbers>},
      {"associative.reqmts.general",
       "Look-ups and `erase()` take what compares with the key: views of strings, no copies.",
       looks_up_views_without_a_string<typename of::texts>},
      {"associative.reqmts.except",
       "If a value's constructor or the caller's function throws, the map is unchanged.",
       a_value_that_throws_changes_nothing<objects>},
      {"map.access", "`at()` of an absent key throws `std::out_of_range`.",
       at_throws_out_of_range<numbers>},
      {"map.modifiers", "`insert_or_assign()` assigns to a present key.",
       insert_or_assign_assigns<numbers>},
      {"map.modifiers", "`try_emplace()` does not move from its arguments if the key is present.",
       try_emplace_leaves_its_arguments_alone<objects>},
      {"map.modifiers", "`insert()`, `try_emplace()` and `insert_or_assign()` move; none copies.",
       insert_moves_the_value<objects>},
      {"map.modifiers", "Values need no default constructor.",
       values_need_no_default_constructor<objects>},
  };
}

void expect_requirements(std::string_view map, const std::vector<requirement>& all_of_them) {
  for (const requirement& one : all_of_them) {
    EXPECT_TRUE(one.holds()) << map << ": " << one.words;
    conformance_row({"requirement", one.section, one.words, map});
  }
}

template <class... Types>
using hash_map_of = hash_map<Types...>;

TEST(MapRequirements, OfBothMaps) {
  expect_requirements("ordered_map", common_requirements<ordered_map>());
  expect_requirements("hash_map", common_requirements<hash_map_of>());
}
TEST(MapRequirements, OfOneMap) {
  expect_requirements(
      "ordered_map",
      {{"associative.reqmts.general", "Iteration is in ascending order of the keys.",
        elements_ascend},
       {"associative.reqmts.general",
        "`lower_bound()` and `upper_bound()` find the standard's elements. `closed(k, k)` is "
        "`equal_range(k)`.",
        bounds_are_those_of_the_standard},
       {"associative.reqmts.general", "`erase()` of a range removes its elements.",
        erase_of_a_range_returns_the_number}});
  expect_requirements("hash_map",
                      {{"unord.req.general", "After `reserve(n)`, n keys fit without growth.",
                        reserve_avoids_growth},
                       {"unord.req.general", "Keys with equal hashes may differ.",
                        equal_hashes_are_no_equal_keys}});
}

// --- what the maps lack ---

template <class Map>
void expect_absent(std::string_view name) {
  using key = typename Map::key_type;
  using record = typename Map::record;
  const auto absent = [&](bool exists, std::string_view what, std::string_view why) {
    EXPECT_FALSE(exists) << name << " has " << what;
    conformance_row({"absent", what, why, name});
  };
  const std::string_view references =
      "A reference into the map would be invalid as soon as another thread erases the key.";
  absent(
      requires(Map& map) { map.begin(); }, "`begin()`, `end()`, `find()` and iterators",
      references);
  absent(requires(Map& map, const key& k) { map[k]; }, "`operator[]`", references);
  absent(
      requires { typename Map::node_type; }, "node handles, `merge()`",
      "`extract()` returns the value itself.");
  absent(
      requires(Map& map, const key& k) { map.emplace(k, k); }, "`emplace()`, `emplace_hint()`",
      "`try_emplace()` does the same for a map.");
  absent(
      requires(Map& map, std::initializer_list<record> l) { map.insert(l.begin(), l.end()); },
      "`insert()` and constructors of iterator ranges",
      "`bulk_load()`, or a loop. Neither is one atomic step.");
  absent(std::copy_constructible<Map>, "copies",
         "A copy would be no snapshot unless it stopped all writers. "
         "`copy.bulk_load(map.range(all))` makes one.");
  absent(std::equality_comparable<Map>, "`==`, `<=>`",
         "Other threads may change both maps during the comparison.");
  absent(
      requires { typename Map::allocator_type; }, "an allocator parameter",
      "`memory_options` takes a `std::pmr::memory_resource`.");
  absent(
      requires { typename Map::key_compare; }, "`key_compare`, `key_comp()`, `value_comp()`",
      "The order is that of the encoded key. A `key_encoding` gives another.");
  absent(
      requires { typename Map::key_equal; }, "`key_equal`, `key_eq()`",
      "Keys are equal if their encodings are.");
  absent(
      requires(const Map& map, const key& k) { map.equal_range(k); },
      "`count(key)`, `equal_range()`", "`contains()`, and `closed(k, k)` as bounds.");
  absent(requires(const Map& map) { map.max_size(); }, "`max_size()`", "Memory is the limit.");
  absent(
      requires(const Map& map) { map.bucket_count(); },
      "buckets, `load_factor()`, `rehash()`, `hash_function()`",
      "Buckets are split while the map is in use. `stats()` has their number.");
}
TEST(MapRequirements, WhatIsAbsent) {
  expect_absent<ordered_map<int, int>>("ordered_map");
  expect_absent<hash_map<int, int>>("hash_map");
}

// --- canaries ---

template <class... Types>
struct overwrites_on_insert : ordered_map<Types...> {
  using ordered_map<Types...>::ordered_map;
  template <class Key, class Value>
  bool insert(Key&& key, Value&& value) {
    return this->upsert(std::forward<Key>(key), std::forward<Value>(value));
  }
  // Makes the value first.
  template <class Key, class... Args>
  bool try_emplace(Key&& key, Args&&... args) {
    return ordered_map<Types...>::insert(
        key, typename ordered_map<Types...>::mapped_type(std::forward<Args>(args)...));
  }
};
TEST(MapRequirementsCanary, AMapThatOverwritesIsFound) {
  using of = of_maps<overwrites_on_insert>;
  EXPECT_FALSE(insert_tells_whether_it_added_and_keeps_the_value<of::numbers>());
  EXPECT_FALSE(keys_are_unique<of::numbers>());
  EXPECT_FALSE(try_emplace_leaves_its_arguments_alone<of::objects>());
}

}  // namespace
}  // namespace elidex::testing
