#pragma once
// Random operations on a map beside the same on std::map: every result must be equal.
//
//   EXPECT_EQ(first_difference(map, {.seed = 1, .operations = 10'000, .keys = 100}), "");
//
// Returns words instead of failing, so that a canary can demand that a broken map is found out.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/random_seed.hpp"
#include "support/samples.hpp"

namespace elidex::testing {

struct model_run {
  std::uint64_t seed = 1;
  int operations = 20'000;
  std::uint64_t keys = 200;  // how many different ones
  // phases in which the map grows take turns with phases in which it shrinks
  int operations_per_phase = 4'000;
};

template <class Map, class Key, class Value>
std::string difference_by_cursors(const Map& map, const std::map<Key, Value>& expected) {
  auto cursor = map.cursor();
  auto ascending = expected.begin();
  for (cursor.seek_first(); cursor.valid(); cursor.next(), ++ascending) {
    if (ascending == expected.end() || cursor.key() != ascending->first ||
        !(cursor.value() == ascending->second)) {
      return "cursor forward";
    }
  }
  if (ascending != expected.end()) return "cursor forward ends early";
  auto descending = expected.rbegin();
  for (cursor.seek_last(); cursor.valid(); cursor.prev(), ++descending) {
    if (descending == expected.rend() || cursor.key() != descending->first)
      return "cursor backward";
  }
  return descending == expected.rend() ? "" : "cursor backward ends early";
}

template <class Map, class Key, class Value>
std::string scan_difference(const Map& map, const std::map<Key, Value>& expected, const Key& from,
                            std::size_t limit) {
  auto at = expected.lower_bound(from);
  bool equal = true;
  const std::size_t count = map.scan(from, limit, [&](const auto& key, const auto& value) {
    equal = equal && at != expected.end() && at->first == key && at->second == value;
    if (at != expected.end()) ++at;
  });
  const auto rest =
      static_cast<std::size_t>(std::distance(expected.lower_bound(from), expected.end()));
  return equal && count == std::min(limit, rest) ? "" : "scan";
}

template <class Map>
concept has_cursors = requires(const Map& map) { map.cursor(); };

// What the map's content differs in from `expected`, by cursors in both directions where it has
// them; empty if in nothing.
template <class Map, class Key, class Value>
std::string content_difference(const Map& map, const std::map<Key, Value>& expected) {
  if (map.size() != expected.size()) return "size";
  if constexpr (!has_cursors<Map>) {
    return expected.empty() ? ""
                            : scan_difference(map, expected, expected.begin()->first, SIZE_MAX);
  } else {
    return difference_by_cursors(map, expected);
  }
}

// A walk that changes its direction, from a random key on.
template <class Map, class Key, class Value>
std::string walk_difference(const Map& map, const std::map<Key, Value>& expected, const Key& from,
                            random_numbers& random) {
  auto cursor = map.cursor();
  auto at = expected.lower_bound(from);
  if (random.below(2) == 0) {
    cursor.seek(from);
  } else {
    cursor.seek_before(from);
    if (cursor.valid() != (at != expected.begin())) return "seek_before";
    if (!cursor.valid()) return "";
    --at;
  }
  for (int step = 0; step < 40; ++step) {
    if (cursor.valid() != (at != expected.end())) return "cursor's validity";
    if (!cursor.valid()) return "";
    if (cursor.key() != at->first) return "cursor's key";
    if (random.below(3) != 0) {
      cursor.next();
      ++at;
    } else {
      cursor.prev();
      if (at == expected.begin()) return cursor.valid() ? "cursor before the first key" : "";
      --at;
    }
  }
  return "";
}

// Looks up all of the keys, and others, with one call.
template <class Map, class Key, class Value>
std::string multi_get_difference(const Map& map, const std::map<Key, Value>& expected,
                                 std::uint64_t keys, random_numbers& random) {
  std::vector<Key> all(random.below(70));
  for (Key& key : all) key = sample<Key>::of(random.below(keys));
  const std::vector<typename Map::key_argument> wanted(all.begin(), all.end());
  std::vector<std::optional<Value>> found(all.size(), Value{});
  map.multi_get(wanted, found);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto at = expected.find(all[i]);
    if (found[i].has_value() != (at != expected.end())) return "multi_get";
    if (found[i] && !(*found[i] == at->second)) return "multi_get's value";
  }
  return "";
}

// Whether a map changes several keys with one call.
template <class Map>
concept changes_together = requires(Map& map, std::span<const typename Map::key_type> keys,
                                    std::span<const typename Map::mapped_type> values) {
  map.multi_upsert(keys, values);
  map.multi_erase(keys);
};

// Changes keys anywhere or side by side, some of them twice.
template <class Map, class Key, class Value>
std::string batch_difference(Map& map, std::map<Key, Value>& expected, std::uint64_t keys,
                             random_numbers& random) {
  std::vector<Key> wanted(random.below(50));
  const std::uint64_t range = random.below(2) == 0 ? keys : std::min<std::uint64_t>(keys, 30);
  const std::uint64_t first = random.below(keys - range + 1);
  for (Key& key : wanted) key = sample<Key>::of(first + random.below(range));
  std::size_t counted = 0;
  if (random.below(2) == 0) {
    for (const Key& key : wanted) counted += expected.erase(key);
    return map.multi_erase(std::span<const Key>(wanted)) == counted ? "" : "multi_erase";
  }
  std::vector<Value> given;
  for (const Key& key : wanted) {
    given.push_back(sample<Value>::of(random.below(1'000'000)));
    counted += expected.insert_or_assign(key, given.back()).second ? 1U : 0U;
  }
  return map.multi_upsert(std::span<const Key>(wanted), std::span<const Value>(given)) == counted
             ? ""
             : "multi_upsert";
}

// By functions that take several keys, where the map has them.
template <class Map, class Key, class Value>
std::string several_keys_difference(Map& map, std::map<Key, Value>& expected, std::uint64_t keys,
                                    random_numbers& random) {
  std::string what;
  if constexpr (requires { map.multi_get({}, {}); }) {
    what = multi_get_difference(map, expected, keys, random);
  }
  if constexpr (changes_together<Map>) {
    if (what.empty()) what = batch_difference(map, expected, keys, random);
  }
  return what;
}

// Whether a map makes values only where it has none.
template <class Map>
concept has_get_or_insert = requires(Map& map, typename Map::key_argument key) {
  map.get_or_insert(key, [] { return typename Map::mapped_type{}; });
};

// Adds `key` unless it is there, now and then with a maker that throws first.
template <class Map, class Key, class Value>
std::string get_or_insert_difference(Map& map, const std::map<Key, Value>& expected, const Key& key,
                                     const Value& value, random_numbers& random) {
  const auto at = expected.find(key);
  const bool present = at != expected.end();
  struct unmade {};
  if (random.below(4) == 0) {
    bool threw = false;
    try {
      map.get_or_insert(key, [&]() -> Value { throw unmade{}; });
    } catch (const unmade&) {
      threw = true;
    }
    if (threw == present) return "get_or_insert's exception";
  }
  bool made = false;
  const auto [got, is_new] = map.get_or_insert(key, [&] {
    made = true;
    return value;
  });
  if (is_new == present || made != is_new) return "get_or_insert";
  return got == (present ? at->second : value) ? "" : "get_or_insert's value";
}

template <class Map>
std::string first_difference(Map& map, const model_run& run) {
  using key_type = typename Map::key_type;
  using mapped_type = typename Map::mapped_type;
  std::map<key_type, mapped_type> expected;
  const std::uint64_t seed = seed_or(run.seed);
  random_numbers random(seed);
  const auto where = [&](const std::string& what, int operation) {
    return what + " differs at operation " + std::to_string(operation) +
           "; ELIDEX_TEST_SEED=" + std::to_string(seed);
  };
  for (int i = 0; i < run.operations * effort(); ++i) {
    const bool shrinking = (i / run.operations_per_phase) % 2 == 1;
    const key_type key = sample<key_type>::of(random.below(run.keys));
    const mapped_type value = sample<mapped_type>::of(random.below(1'000'000));
    const auto found = expected.find(key);
    const bool present = found != expected.end();
    std::string what;
    switch (random.below(shrinking ? 12 : 9)) {
      case 0:
        if constexpr (has_get_or_insert<Map>) {
          what = get_or_insert_difference(map, expected, key, value, random);
          expected.emplace(key, value);
          break;
        }
        [[fallthrough]];
      case 1:
        if (map.insert(key, value) == present) what = "insert";
        expected.emplace(key, value);
        break;
      case 2:
        if (map.upsert(key, value) == present) what = "upsert";
        expected[key] = value;
        break;
      case 3: {
        const auto got = map.get(key);
        if (got.has_value() != present || (present && !(*got == found->second))) what = "get";
        if (map.contains(key) != present) what = "contains";
        break;
      }
      case 4:
        if (map.update(key, [&](mapped_type& v) {
              if (!present || !(v == found->second)) what = "update's old value";
              v = value;
            }) != present) {
          what = "update";
        }
        if (present) found->second = value;
        break;
      case 5:
        what =
            scan_difference(map, expected, key, random.below(8) == 0 ? SIZE_MAX : random.below(40));
        break;
      case 6:
        if constexpr (has_cursors<Map>) what = walk_difference(map, expected, key, random);
        if (what.empty()) what = several_keys_difference(map, expected, run.keys, random);
        break;
      default:
        if (map.erase(key) != present) what = "erase";
        expected.erase(key);
    }
    if (what.empty() && i % 1'000 == 999) what = content_difference(map, expected);
    if (!what.empty()) return where(what, i);
  }
  const std::string what = content_difference(map, expected);
  return what.empty() ? "" : where(what, run.operations);
}

}  // namespace elidex::testing
