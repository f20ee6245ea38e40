#pragma once
// What ordered_map and hash_map have in common when they are misused, for the tests of both.
//
//   ordered_map<std::string, std::uint64_t> map;
//   add_three(map);
//   callbacks_throw(map, "ordered_map");   // asserts, and records the rows of ordered_map

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "misuse/rows.hpp"

namespace elidex::testing {

struct thrown_by_callback {};

template <class Key>
Key key_of(unsigned n) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return "key " + std::to_string(n);
  } else {
    return n;
  }
}

inline std::string long_key() {
  return std::string((std::size_t{64} << 10) + 1, 'k');
}

// One row for each of these functions of a class.
inline void rows_of(std::string_view name, std::initializer_list<const char*> functions, misuse how,
                    std::string_view what) {
  for (const char* const function : functions)
    misuse_row(std::string(name) + "::" + function, how, what);
}
inline void undefined_rows_of(std::string_view name, std::initializer_list<const char*> functions,
                              misuse how, std::string_view what, std::string_view header,
                              std::string_view promise) {
  for (const char* const function : functions)
    undefined_row(std::string(name) + "::" + function, how, what, header, promise);
}

template <class Map>
void add_three(Map& map) {
  for (unsigned n = 1; n <= 3; ++n) map.insert(key_of<typename Map::key_type>(n), n);
}

// The map has 1, 2 and 3, and nothing is left locked: each can be changed and the map grows.
template <class Map>
void expect_three_and_usable(Map& map) {
  using key = typename Map::key_type;
  EXPECT_EQ(map.size(), 3U);
  for (unsigned n = 1; n <= 3; ++n) {
    EXPECT_EQ(map.get(key_of<key>(n)), n);
    EXPECT_TRUE(map.update(key_of<key>(n), [](std::uint64_t& value) { value += 10; }));
  }
  for (unsigned n = 100; n < 400; ++n) EXPECT_TRUE(map.insert(key_of<key>(n), n));
  for (unsigned n = 100; n < 400; ++n) EXPECT_EQ(map.get(key_of<key>(n)), n);
}

// --- functions that throw ---

template <class Map>
void callbacks_throw(Map& map, std::string_view name) {
  using key = typename Map::key_type;
  const key here = key_of<key>(2);
  const key absent = key_of<key>(7);
  const auto make = []() -> std::uint64_t { throw thrown_by_callback(); };
  const auto change = [](std::uint64_t& value) {
    value = 99;
    throw thrown_by_callback();
  };
  const auto set = [](std::optional<std::uint64_t>& value) {
    value = 99;
    throw thrown_by_callback();
  };
  EXPECT_THROW(map.update(here, change), thrown_by_callback);
  EXPECT_THROW(map.get_or_insert(absent, make), thrown_by_callback);
  EXPECT_THROW(map.upsert_with(here, make, change), thrown_by_callback);
  EXPECT_THROW(map.upsert_with(absent, make, change), thrown_by_callback);
  EXPECT_THROW(map.compute(here, set), thrown_by_callback);
  EXPECT_THROW(map.compute(absent, set), thrown_by_callback);
  EXPECT_THROW(map.erase_if(here, [](std::uint64_t) -> bool { throw thrown_by_callback(); }),
               thrown_by_callback);
  EXPECT_THROW(map.visit(here, [](std::uint64_t) { throw thrown_by_callback(); }),
               thrown_by_callback);
  EXPECT_FALSE(map.contains(absent));
  expect_three_and_usable(map);
  rows_of(name, {"update", "get_or_insert", "upsert_with", "compute", "erase_if", "visit"},
          misuse::callback_throws, "the exception comes out; the map is unchanged and usable");
}

// Its constructor calls a function.
struct calling_value {
  explicit calling_value(const std::function<void()>& call) { call(); }
  std::uint64_t number = 1;
};

// Map: with values of type calling_value.
template <class Map>
void constructors_of_values(Map& map, std::string_view name) {
  using key = typename Map::key_type;
  const key one = key_of<key>(1);
  EXPECT_THROW(map.try_emplace(one, [] { throw thrown_by_callback(); }), thrown_by_callback);
  EXPECT_TRUE(map.empty());
  rows_of(name, {"try_emplace"}, misuse::callback_throws,
          "what the value's constructor throws comes out; nothing is added");
  EXPECT_FALSE(map.try_emplace(one, [&] { map.insert(one, calling_value([] {})); }));
  EXPECT_EQ(map.size(), 1U);
  rows_of(name, {"try_emplace"}, misuse::reentrance,
          "the value's constructor may use the map; if it adds the key: false");
}

// --- re-entrance ---

inline void functions_that_run_under_a_lock(std::string_view name) {
  undefined_rows_of(name, {"update", "get_or_insert", "upsert_with", "compute", "erase_if"},
                    misuse::reentrance, "its function must not use the map: it runs under a lock",
                    "elidex/internal/map_face.hpp", "fn must not use the map, and should be short");
}

template <class Map>
void use_single_keys(Map& map) {
  using key = typename Map::key_type;
  const key five = key_of<key>(5);
  const key six = key_of<key>(6);
  const auto increment = [](std::uint64_t& value) { ++value; };
  EXPECT_TRUE(map.insert(five, 5));
  EXPECT_FALSE(map.upsert(five, 6));
  EXPECT_FALSE(map.insert_or_assign(five, 7));
  EXPECT_TRUE(map.update(five, increment));
  EXPECT_FALSE(map.upsert_with(five, std::uint64_t{1}, increment));
  EXPECT_TRUE(map.compute(five, [](std::optional<std::uint64_t>& value) { ++*value; }));
  EXPECT_EQ(map.get(five), 10U);
  EXPECT_EQ(map.at(five), 10U);
  EXPECT_TRUE(map.contains(five));
  std::uint64_t visited = 0;
  EXPECT_TRUE(map.visit(five, [&](std::uint64_t value) { visited = value; }));
  EXPECT_EQ(visited, 10U);
  EXPECT_FALSE(map.get_or_insert(five, [] { return std::uint64_t{0}; }).second);
  EXPECT_TRUE(map.try_emplace(six, 6U));
  EXPECT_FALSE(map.erase_if(six, [](std::uint64_t value) { return value == 7; }));
  EXPECT_TRUE(map.erase(six));
  EXPECT_EQ(map.extract(five), 10U);
}

// Calls every function that both maps have, except clear() and swap(). Leaves the map as it was.
template <class Map>
void use_all_functions(Map& map) {
  using key = typename Map::key_type;
  const std::size_t size = map.size();
  use_single_keys(map);
  const std::array<key, 2> own{key_of<key>(5), key_of<key>(6)};
  const std::vector<std::remove_cvref_t<typename Map::key_argument>> keys(own.begin(), own.end());
  const std::array<std::uint64_t, 2> values{5, 6};
  std::array<std::optional<std::uint64_t>, 2> found;
  EXPECT_EQ(map.multi_upsert(keys, values), 2U);
  map.multi_get(keys, found);
  EXPECT_EQ(found[1], 6U);
  EXPECT_EQ(map.size(), size + 2);
  EXPECT_EQ(map.multi_erase(keys), 2U);
  EXPECT_FALSE(map.empty());
  EXPECT_GT(map.memory_bytes(), 0U);
  static_cast<void>(map.stats());
  map.reclaim();
}

template <class Map>
void visitors_use_the_map(Map& map, std::string_view name) {
  EXPECT_TRUE(
      map.visit(key_of<typename Map::key_type>(1), [&](auto&&) { use_all_functions(map); }));
  expect_three_and_usable(map);
  rows_of(name, {"get",          "at",      "contains",         "visit",       "multi_get",
                 "insert",       "upsert",  "insert_or_assign", "try_emplace", "get_or_insert",
                 "multi_upsert", "update",  "upsert_with",      "compute",     "erase",
                 "erase_if",     "extract", "multi_erase",      "size",        "empty",
                 "memory_bytes", "stats",   "reclaim"},
          misuse::reentrance, "from visit()'s function: works as usual");
}

// Map: with values of type std::unique_ptr<int>. each(map, fn): calls fn from a function that the
// map calls.
template <class Map, class Each>
void extracts_from_a_visitor(Map& map, std::string_view name, Each each) {
  using key = typename Map::key_type;
  const key one = key_of<key>(1);
  map.insert(one, std::make_unique<int>(1));
  int calls = 0;
  const auto try_it = [&] {
    ++calls;
    EXPECT_THROW(map.extract(one), std::logic_error);
  };
  EXPECT_TRUE(map.visit(one, [&](const std::unique_ptr<int>&) { try_it(); }));
  each(map, try_it);
  Map other;
  other.insert(one, nullptr);
  EXPECT_TRUE(other.visit(one, [&](const std::unique_ptr<int>&) { try_it(); }));
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(map.contains(one));
  const std::optional<std::unique_ptr<int>> taken = map.extract(one);
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ(**taken, 1);
  EXPECT_TRUE(map.empty());
  rows_of(name, {"extract"}, misuse::reentrance,
          "a value that cannot be copied, from a visitor of this or another map: throws "
          "std::logic_error; nothing is removed");
}

// --- bad arguments ---

template <class Map>
void arguments_of_different_number(Map& map, std::string_view name) {
  using key = typename Map::key_type;
  const key here = key_of<key>(1);
  const std::vector<std::remove_cvref_t<typename Map::key_argument>> wanted{here, here};
  std::vector<std::optional<std::uint64_t>> found(1);
  EXPECT_THROW(map.multi_get(wanted, found), std::invalid_argument);
  EXPECT_FALSE(found[0].has_value());
  rows_of(name, {"multi_get"}, misuse::bad_argument,
          "fewer places than keys: throws std::invalid_argument; nothing is written");
  const std::vector<std::uint64_t> too_few{8};
  const std::vector<std::uint64_t> too_many{8, 9, 10};
  EXPECT_THROW(map.multi_upsert(wanted, too_few), std::invalid_argument);
  EXPECT_THROW(map.multi_upsert(wanted, too_many), std::invalid_argument);
  EXPECT_THROW(map.at(key_of<key>(7)), std::out_of_range);
  expect_three_and_usable(map);
  rows_of(name, {"multi_upsert"}, misuse::bad_argument,
          "not as many values as keys: throws std::invalid_argument; the map is unchanged");
  rows_of(name, {"at"}, misuse::bad_argument, "no such key: throws std::out_of_range");
  const std::vector<std::uint64_t> two{8, 9};
  EXPECT_EQ(map.multi_upsert(wanted, two), 0U);
  EXPECT_EQ(map.get(here), 9U);
  rows_of(name, {"multi_upsert"}, misuse::bad_argument, "the same key twice: the last value stays");
  EXPECT_EQ(map.multi_erase(wanted), 1U);
  EXPECT_FALSE(map.contains(here));
  rows_of(name, {"multi_erase"}, misuse::bad_argument, "the same key twice: it counts once");
}

// Map: with std::string keys.
template <class Map>
void keys_that_are_too_long(Map& map, std::string_view name) {
  const std::string key = long_key();
  const std::string longest = key.substr(1);
  EXPECT_TRUE(map.insert(longest, 1));
  EXPECT_EQ(map.extract(longest), 1U);
  const std::array<std::string_view, 1> keys{key};
  const std::array<std::uint64_t, 1> values{1};
  std::array<std::optional<std::uint64_t>, 1> found;
  const auto make = [] { return std::uint64_t{1}; };
  const auto change = [](std::uint64_t&) {};
  EXPECT_THROW(map.get(key), std::invalid_argument);
  EXPECT_THROW(map.at(key), std::invalid_argument);
  EXPECT_THROW(map.contains(key), std::invalid_argument);
  EXPECT_THROW(map.visit(key, [](std::uint64_t) {}), std::invalid_argument);
  EXPECT_THROW(map.multi_get(keys, found), std::invalid_argument);
  EXPECT_THROW(map.insert(key, 1), std::invalid_argument);
  EXPECT_THROW(map.upsert(key, 1), std::invalid_argument);
  EXPECT_THROW(map.insert_or_assign(key, 1), std::invalid_argument);
  EXPECT_THROW(map.try_emplace(key, 1U), std::invalid_argument);
  EXPECT_THROW(map.get_or_insert(key, make), std::invalid_argument);
  EXPECT_THROW(map.multi_upsert(keys, values), std::invalid_argument);
  EXPECT_THROW(map.update(key, change), std::invalid_argument);
  EXPECT_THROW(map.upsert_with(key, make, change), std::invalid_argument);
  EXPECT_THROW(map.compute(key, [](std::optional<std::uint64_t>&) {}), std::invalid_argument);
  EXPECT_THROW(map.erase(key), std::invalid_argument);
  EXPECT_THROW(map.erase_if(key, [](std::uint64_t) { return true; }), std::invalid_argument);
  EXPECT_THROW(map.extract(key), std::invalid_argument);
  EXPECT_THROW(map.multi_erase(keys), std::invalid_argument);
  expect_three_and_usable(map);
  rows_of(name,
          {"get", "at", "contains", "visit", "multi_get", "insert", "upsert", "insert_or_assign",
           "try_emplace", "get_or_insert", "update", "upsert_with", "compute", "erase", "erase_if",
           "extract"},
          misuse::bad_argument,
          "a key over 64 KiB: throws std::invalid_argument; the map is unchanged");
  const std::array<std::string_view, 3> some{"a", key, "b"};
  const std::array<std::uint64_t, 3> three{1, 2, 3};
  EXPECT_THROW(map.multi_upsert(some, three), std::invalid_argument);
  EXPECT_TRUE(map.contains("a"));
  EXPECT_THROW(map.multi_erase(some), std::invalid_argument);
  EXPECT_FALSE(map.contains("a"));
  EXPECT_FALSE(map.contains("b"));
  rows_of(
      name, {"multi_upsert", "multi_erase"}, misuse::bad_argument,
      "a key over 64 KiB: throws std::invalid_argument; the changes for the keys before it stay");
}

// Map: with keys of type std::pair<std::string, std::int32_t>. Among the bytes of such a key, the
// string ends with two bytes, and each of its NUL bytes takes two.
template <class Map>
void pairs_that_are_too_long(Map& map, std::string_view name) {
  const std::size_t room = (std::size_t{64} << 10) - 2 - sizeof(std::int32_t);
  const typename Map::key_type longest{std::string(room, 'k'), 1};
  EXPECT_TRUE(map.insert(longest, 1));
  for (const std::string& first :
       {std::string(room + 1, 'k'), std::string(room / 2 + 1, '\0'), long_key()}) {
    EXPECT_THROW(map.insert({first, 1}, 1), std::invalid_argument);
    EXPECT_THROW(map.get({first, 1}), std::invalid_argument);
    EXPECT_THROW(map.compute({first, 1}, [](std::optional<std::uint64_t>&) {}),
                 std::invalid_argument);
    EXPECT_THROW(map.extract({first, 1}), std::invalid_argument);
  }
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(map.extract(longest), 1U);
  rows_of(name, {"insert", "get", "compute", "extract"}, misuse::bad_argument,
          "a pair or tuple over 64 KiB, where a string takes two bytes more and a NUL byte in it "
          "two: throws std::invalid_argument; the map is unchanged");
}

// --- the whole map ---

template <class Map>
void maps_that_were_moved_from(Map& map, std::string_view name) {
  using key = typename Map::key_type;
  Map to = std::move(map);
  EXPECT_EQ(to.size(), 3U);
  EXPECT_TRUE(map.empty());  // NOLINT(bugprone-use-after-move): that is the test
  EXPECT_EQ(map.get(key_of<key>(1)), std::nullopt);
  EXPECT_FALSE(map.erase(key_of<key>(1)));
  add_three(map);
  Map assigned;
  assigned.insert(key_of<key>(9), 9);
  assigned = std::move(map);
  EXPECT_FALSE(assigned.contains(key_of<key>(9)));
  expect_three_and_usable(assigned);
  map.clear();
  map.reclaim();
  EXPECT_EQ(map.size(), 0U);
  add_three(map);
  expect_three_and_usable(map);
  misuse_row(std::string(name) + "::" + std::string(name), misuse::closed_object,
             "moved from: empty, and can be used again");
  to.swap(to);
  expect_three_and_usable(to);
  rows_of(name, {"swap"}, misuse::bad_argument, "the map itself: nothing changes");
}

template <class Map>
void maps_that_are_cleared(Map& map, std::string_view name) {
  map.clear();
  map.clear();
  EXPECT_TRUE(map.empty());
  add_three(map);
  expect_three_and_usable(map);
  rows_of(name, {"clear"}, misuse::closed_object, "a second time: nothing happens");
  undefined_rows_of(name, {"clear"}, misuse::other_thread, "while another thread uses the map",
                    "elidex/internal/map_face.hpp", "No other thread may use the map meanwhile");
  undefined_rows_of(name, {"clear", "swap"}, misuse::reentrance,
                    "from a function that the map calls", "elidex/" + std::string(name) + ".hpp",
                    "A function that the map calls must not call them");
  undefined_rows_of(name, {"swap"}, misuse::other_thread, "while another thread uses the map",
                    "elidex/" + std::string(name) + ".hpp",
                    "During these no other thread may use the map");
}

}  // namespace elidex::testing
