#pragma once
// Random operations on a map, every allocation of every operation failing once: afterwards the map
// must be as it was, and the operation must come through when it is tried again. For executables
// that link failing_allocations.

#include <cstdint>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <string>

#include "support/failing_allocations.hpp"
#include "support/model.hpp"

namespace elidex::testing {

// Which allocations fail, and what came of it.
struct allocation_failures {
  int first = 1;  // of an operation's allocations: those before always succeed
  int reported = 0;
  int hidden = 0;
};

// Whether a map gets along without some of its memory.
template <class Map>
inline constexpr bool hides_failures = false;

// Runs `operation` with its allocations failing one after the other, until it comes through; what
// differs after a failure from `expected`, in words.
template <class Map, class Expected, class Operation>
std::string with_failing_allocations(const Map& map, const Expected& expected,
                                     allocation_failures& failures, Operation operation) {
  for (int nth = failures.first;; ++nth) {
    bool threw = false;
    bool failed = false;
    {
      const failing_allocation armed(nth);
      try {
        operation();
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      failed = failing_allocation::has_failed();
    }
    if (threw && !failed) return "bad_alloc without a failed allocation";
    if (failed && !threw) {
      ++failures.hidden;
      return hides_failures<Map> ? "" : "a failed allocation was swallowed";
    }
    if (!threw) return "";
    ++failures.reported;
    if (const std::string what = content_difference(map, expected); !what.empty())
      return what + " differs after bad_alloc";
  }
}

// The harm of a scan from `key` to the end, a wrong number of records included.
template <class Map, class Expected>
std::string harm_of_scan(const Map& map, const Expected& expected,
                         const typename Map::key_type& key, allocation_failures& failures) {
  std::size_t count = 0;
  std::string what;
  if constexpr (requires { Map::scan_is_of_the_test; }) {
    // The scan puts what for_each() gives in order. Only for_each()'s allocations are the map's.
    what = with_failing_allocations(map, expected, failures,
                                    [&] { map.for_each([](const auto&, const auto&) {}); });
    count = map.scan(key, SIZE_MAX, [](const auto&, const auto&) {});
  } else {
    what = with_failing_allocations(map, expected, failures, [&] {
      count = map.scan(key, SIZE_MAX, [](const auto&, const auto&) {});
    });
  }
  if (!what.empty()) return what;
  const auto rest =
      static_cast<std::size_t>(std::distance(expected.lower_bound(key), expected.end()));
  return count == rest ? "" : "result";
}

// The harm of looking `key` up, by a cursor too where there are cursors, a wrong answer included.
template <class Map, class Expected>
std::string harm_of_look_up(const Map& map, const Expected& expected,
                            const typename Map::key_type& key, allocation_failures& failures) {
  bool found = false;
  const std::string what = with_failing_allocations(map, expected, failures, [&] {
    const auto got = map.get(key);
    found = got.has_value();
    if constexpr (has_cursors<Map>) {
      auto cursor = map.cursor();
      cursor.seek(key);
      found = found && cursor.valid() && cursor.key() == key;
    }
  });
  if (!what.empty()) return what;
  return found == expected.contains(key) ? "" : "result";
}

template <class Map>
concept has_compute = requires(Map& map, const typename Map::key_type& key) {
  map.compute(key, [](std::optional<typename Map::mapped_type>&) {});
};

// The harm of a compute() that leaves this value, or none. `result`: what it returned.
template <class Map, class Expected>
std::string harm_of_compute(Map& map, const Expected& expected, const typename Map::key_type& key,
                            const std::optional<typename Map::mapped_type>& left,
                            allocation_failures& failures, bool& result) {
  return with_failing_allocations(map, expected, failures, [&] {
    result =
        map.compute(key, [&](std::optional<typename Map::mapped_type>& value) { value = left; });
  });
}

// What differs over a run of random operations, every one of which meets every failure.
template <class Map>
std::string first_harm(int operations, std::uint64_t keys, allocation_failures& failures) {
  using key_type = typename Map::key_type;
  using mapped_type = typename Map::mapped_type;
  Map map;
  std::map<key_type, mapped_type> expected;
  random_numbers random(seed_or(1));
  for (int i = 0; i < operations; ++i) {
    const key_type key = sample<key_type>::of(random.below(keys));
    const mapped_type value = sample<mapped_type>::of(random.below(1'000));
    const bool present = expected.contains(key);
    const bool shrinking = (i / 300) % 2 == 1;
    auto next = expected;
    bool result = false;  // of what changes the map
    bool wanted = false;
    std::string what;
    switch (random.below(shrinking ? 9 : 6)) {
      case 0:
      case 1:
        next.emplace(key, value);
        wanted = !present;
        what = with_failing_allocations(map, expected, failures, [&] {
          if constexpr (has_get_or_insert<Map>) {
            if (i % 2 == 0) {
              result = map.get_or_insert(key, [&] { return value; }).second;
              return;
            }
          }
          result = map.insert(key, value);
        });
        break;
      case 2:
        next[key] = value;
        wanted = !present;
        what = with_failing_allocations(map, expected, failures,
                                        [&] { result = map.upsert(key, value); });
        break;
      case 3:
        if constexpr (has_compute<Map>) {
          if (i % 2 == 0) {
            wanted = !present || i % 3 != 0;
            next.erase(key);
            if (wanted) next.emplace(key, value);
            what = harm_of_compute(map, expected, key, wanted ? std::optional(value) : std::nullopt,
                                   failures, result);
            break;
          }
        }
        if (present) next[key] = value;
        wanted = present;
        what = with_failing_allocations(map, expected, failures, [&] {
          result = map.update(key, [&](mapped_type& v) { v = value; });
        });
        break;
      case 4:
        what = harm_of_scan(map, expected, key, failures);
        break;
      case 5:
        what = harm_of_look_up(map, expected, key, failures);
        break;
      default:
        next.erase(key);
        wanted = present;
        what = with_failing_allocations(map, expected, failures, [&] { result = map.erase(key); });
    }
    if (what.empty() && result != wanted) what = "result";
    if (!what.empty()) return what + " at operation " + std::to_string(i);
    expected = std::move(next);
  }
  return content_difference(map, expected);
}

}  // namespace elidex::testing
