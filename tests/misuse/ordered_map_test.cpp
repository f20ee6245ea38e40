// What ordered_map does when it is misused, with integer keys and with strings.
#include "elidex/ordered_map.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "misuse/map_functions.hpp"
#include "misuse/rows.hpp"

namespace elidex::testing {

namespace {

template <class Key>
using record = std::pair<Key, std::uint64_t>;

template <class Key>
class OrderedMapMisuse : public ::testing::Test {
 protected:
  OrderedMapMisuse() { add_three(subject); }

  std::vector<std::uint64_t> values() const {
    std::vector<std::uint64_t> seen;
    subject.scan(all, [&](auto&&, std::uint64_t value) { seen.push_back(value); });
    return seen;
  }
  void expect_unchanged_and_usable() {
    EXPECT_EQ(values(), one_to_three);
    expect_three_and_usable(subject);
  }

  const std::vector<std::uint64_t> one_to_three{1, 2, 3};
  ordered_map<Key, std::uint64_t> subject;
};

using KeyTypes = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(OrderedMapMisuse, KeyTypes);

TYPED_TEST(OrderedMapMisuse, CallbacksThrow) {
  callbacks_throw(this->subject, "ordered_map");
}
TYPED_TEST(OrderedMapMisuse, VisitorUsesTheMap) {
  visitors_use_the_map(this->subject, "ordered_map");
}
TYPED_TEST(OrderedMapMisuse, NumbersOfArguments) {
  arguments_of_different_number(this->subject, "ordered_map");
}
TYPED_TEST(OrderedMapMisuse, MovedFrom) {
  maps_that_were_moved_from(this->subject, "ordered_map");
}
TYPED_TEST(OrderedMapMisuse, Cleared) {
  maps_that_are_cleared(this->subject, "ordered_map");
}
TYPED_TEST(OrderedMapMisuse, ConstructorsOfValues) {
  ordered_map<TypeParam, calling_value> map;
  constructors_of_values(map, "ordered_map");
}
TEST(OrderedMapMisuseByDesign, FunctionsThatRunUnderALock) {
  functions_that_run_under_a_lock("ordered_map");
}
TYPED_TEST(OrderedMapMisuse, ExtractFromAVisitor) {
  ordered_map<TypeParam, std::unique_ptr<int>> map;
  extracts_from_a_visitor(map, "ordered_map", [](const auto& m, const auto& fn) {
    EXPECT_EQ(m.scan(all, [&](auto&&...) { fn(); }), 1U);
  });
}
TEST(StringMapMisuse, KeysThatAreTooLong) {
  ordered_map<std::string, std::uint64_t> map;
  add_three(map);
  keys_that_are_too_long(map, "ordered_map");
}

TEST(PairMapMisuse, KeysThatAreTooLong) {
  ordered_map<std::pair<std::string, std::int32_t>, std::uint64_t> map;
  pairs_that_are_too_long(map, "ordered_map");
  map.insert({"a", 1}, 1);
  const std::pair<std::string, std::int32_t> key{long_key(), 1};
  const auto ignore = [](auto&&...) {};
  EXPECT_THROW(map.scan(from(key), ignore), std::invalid_argument);
  EXPECT_THROW(map.scan(up_to(key).descending(), ignore), std::invalid_argument);
  EXPECT_THROW(map.scan(prefix(long_key()), ignore), std::invalid_argument);
  EXPECT_THROW(map.floor(key), std::invalid_argument);
  EXPECT_THROW(map.erase(below(key)), std::invalid_argument);
  EXPECT_EQ(map.size(), 1U);
}

TEST(FloatMapMisuse, BoundsThatAreNoNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  ordered_map<double, std::uint64_t> map{{-infinity, 1}, {0.5, 2}, {infinity, 3}, {nan, 4}};
  const auto ignore = [](auto&&...) {};
  EXPECT_EQ(map.scan(between(nan, 1.0), ignore), 0U);
  EXPECT_EQ(map.scan(between(1.0, nan), ignore), 1U);
  EXPECT_EQ(map.scan(closed(1.0, -nan).descending(), ignore), 2U);
  EXPECT_EQ(map.scan(above(infinity), ignore), 1U);
  EXPECT_EQ(map.floor(nan)->second, 4U);
  EXPECT_EQ(map.upper_bound(nan), std::nullopt);
  for (const char* const function : {"between", "closed", "above"})
    misuse_row(function, misuse::bad_argument, "NaN as a bound or key: comes behind infinity");
  using records = std::vector<record<double>>;
  EXPECT_EQ(map.bulk_load(records{{1.0, 5}, {nan, 6}}), 1U);
  EXPECT_EQ(map.get(nan), 4U);
  EXPECT_THROW(map.bulk_load(records{{nan, 7}, {2.0, 8}}), std::invalid_argument);
  EXPECT_THROW(map.bulk_load(records{{3.0, 9}, {nan, 7}, {-nan, 7}}), std::invalid_argument);
  EXPECT_EQ(map.erase(from(nan)), 1U);
  EXPECT_EQ(map.size(), 5U);
  misuse_row(
      "ordered_map::bulk_load", misuse::bad_argument,
      "a key behind NaN, or NaN twice: throws std::invalid_argument, as these do not ascend");
}

TYPED_TEST(OrderedMapMisuse, ScansFunctionThrows) {
  const auto throws = [](auto&&...) { throw thrown_by_callback(); };
  EXPECT_THROW(this->subject.scan(all, throws), thrown_by_callback);
  EXPECT_THROW(this->subject.scan_n(all, 10, throws), thrown_by_callback);
  EXPECT_THROW(this->subject.scan_n(key_of<TypeParam>(0), 10, throws), thrown_by_callback);
  this->expect_unchanged_and_usable();
  rows_of("ordered_map", {"scan", "scan_n"}, misuse::callback_throws,
          "the exception comes out; the map is unchanged and usable");
}

TYPED_TEST(OrderedMapMisuse, ReserveForTooManyKeys) {
  EXPECT_THROW(this->subject.reserve(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
  this->expect_unchanged_and_usable();
  misuse_row("ordered_map::reserve", misuse::bad_argument,
             "more keys than fit into the system's memory: throws std::bad_alloc; the map is "
             "unchanged");
}

// --- re-entrance ---

// Calls every function that only ordered maps have. Leaves the map, with 1, 2 and 3, as it was.
template <class Key>
void use_functions_of_ordered_maps(ordered_map<Key, std::uint64_t>& map) {
  const auto key = [](unsigned n) { return key_of<Key>(n); };
  EXPECT_EQ(map.scan(all, [](auto&&...) {}), 3U);
  EXPECT_EQ(map.scan_n(key(2), 10, [](auto&&...) {}), 2U);
  std::uint64_t sum = 0;
  for (const auto& one : map.range(all)) sum += one.second;
  EXPECT_EQ(sum, 6U);
  EXPECT_EQ(map.count(from(key(2))), 2U);
  EXPECT_EQ(map.split(2).size(), 2U);
  EXPECT_EQ(map.front()->second, 1U);
  EXPECT_EQ(map.back()->second, 3U);
  EXPECT_EQ(map.lower_bound(key(2))->second, 2U);
  EXPECT_EQ(map.ceiling(key(2))->second, 2U);
  EXPECT_EQ(map.upper_bound(key(2))->second, 3U);
  EXPECT_EQ(map.floor(key(2))->second, 2U);
  EXPECT_EQ(map.bulk_load(std::vector<record<Key>>{{key(3), 30}, {key(4), 4}}), 1U);
  EXPECT_EQ(map.erase(from(key(4))), 1U);
  map.reserve(1000);
  auto cursor = map.cursor();
  cursor.seek_first();
  EXPECT_TRUE(cursor.valid());
  EXPECT_NE(map.synchronization(), synchronization::automatic);
  static_cast<void>(map.htm_counts());
}

TYPED_TEST(OrderedMapMisuse, AllFunctionsFromAVisitor) {
  auto& map = this->subject;
  EXPECT_TRUE(
      map.visit(key_of<TypeParam>(1), [&](std::uint64_t) { use_functions_of_ordered_maps(map); }));
  EXPECT_EQ(map.scan(all, [&](auto&&...) { use_functions_of_ordered_maps(map); }), 3U);
  EXPECT_EQ(map.scan_n(all, 1, [&](auto&&...) { use_all_functions(map); }), 1U);
  this->expect_unchanged_and_usable();
  rows_of(
      "ordered_map",
      {"range", "count", "split", "erase", "front", "back", "lower_bound", "ceiling", "upper_bound",
       "floor", "bulk_load", "cursor", "synchronization", "htm_counts", "reserve"},
      misuse::reentrance, "from visit()'s or scan()'s function: works as usual");
}

TYPED_TEST(OrderedMapMisuse, ScansFunctionChangesTheMap) {
  auto& map = this->subject;
  for (const bool is_counted : {false, true}) {
    std::vector<std::uint64_t> seen;
    const auto change = [&](auto&&, std::uint64_t value) {
      if (seen.empty()) {
        map.erase(key_of<TypeParam>(2));
        map.upsert(key_of<TypeParam>(3), 30);
        map.insert(key_of<TypeParam>(5), 5);
      }
      seen.push_back(value);
    };
    EXPECT_EQ(is_counted ? map.scan_n(all, 10, change) : map.scan(all, change), 3U);
    EXPECT_EQ(seen, this->one_to_three);
    EXPECT_EQ(this->values(), (std::vector<std::uint64_t>{1, 30, 5}));
    map.clear();
    add_three(map);
  }
  rows_of("ordered_map", {"scan", "scan_n"}, misuse::reentrance,
          "its function may use and change the map; the scan shows what was there before");
}

TYPED_TEST(OrderedMapMisuse, WalkErasesItsKeys) {
  auto& map = this->subject;
  for (unsigned n = 100; n < 300; ++n) map.insert(key_of<TypeParam>(n), n);
  std::size_t steps = 0;
  for (const auto& [key, value] : map.range(all)) {
    EXPECT_TRUE(map.erase(key));
    ++steps;
  }
  EXPECT_EQ(steps, 203U);
  EXPECT_TRUE(map.empty());
  misuse_row("ordered_map::range", misuse::reentrance,
             "a walk may erase the key that it is at; the others still come");
}

// --- ranges ---

TYPED_TEST(OrderedMapMisuse, ReversedBounds) {
  auto& map = this->subject;
  const TypeParam one = key_of<TypeParam>(1);
  const TypeParam three = key_of<TypeParam>(3);
  const auto ignore = [](auto&&...) {};
  for (const auto& which : {between(three, one), closed(three, one), between(one, one)}) {
    EXPECT_EQ(map.scan(which, ignore), 0U);
    EXPECT_EQ(map.scan(which.descending(), ignore), 0U);
    EXPECT_EQ(map.scan_n(which, 10, ignore), 0U);
    auto walk = map.range(which);
    EXPECT_EQ(walk.begin(), walk.end());
    EXPECT_EQ(map.erase(which), 0U);
    EXPECT_EQ(map.erase(which.descending()), 0U);
  }
  auto walk = map.range(three, one);
  EXPECT_EQ(walk.begin(), walk.end());
  this->expect_unchanged_and_usable();
  constexpr std::string_view what =
      "an upper bound that is less than the lower one: an empty range";
  rows_of("ordered_map", {"scan", "scan_n", "range", "erase"}, misuse::bad_argument, what);
  for (const char* const function : {"between", "closed"})
    misuse_row(function, misuse::bad_argument, what);
}

TYPED_TEST(OrderedMapMisuse, NumbersOfPartsAndKeys) {
  auto& map = this->subject;
  EXPECT_EQ(map.split(0).size(), 1U);
  EXPECT_EQ(map.scan(map.split(0).front(), [](auto&&...) {}), 3U);
  misuse_row("ordered_map::split", misuse::bad_argument, "0 parts: one part, the whole map");
  std::size_t keys = 0;
  for (const auto& part : map.split(std::numeric_limits<std::size_t>::max()))
    keys += map.scan(part, [](auto&&...) {});
  EXPECT_EQ(keys, 3U);
  misuse_row("ordered_map::split", misuse::bad_argument,
             "more parts than keys: fewer parts, which have all keys");
  EXPECT_EQ(map.scan_n(all, 0, [](auto&&...) { ADD_FAILURE(); }), 0U);
  misuse_row("ordered_map::scan_n", misuse::bad_argument, "0 keys: 0, without a call");
}

template <class Bounds>
void expect_refused(ordered_map<std::string, std::uint64_t>& map, const Bounds& which) {
  const auto ignore = [](auto&&...) {};
  EXPECT_THROW(map.scan(which, ignore), std::invalid_argument);
  EXPECT_THROW(map.scan(which.descending(), ignore), std::invalid_argument);
  EXPECT_THROW(map.scan_n(which, 1, ignore), std::invalid_argument);
  EXPECT_THROW(map.range(which).begin(), std::invalid_argument);
  EXPECT_THROW(map.erase(which), std::invalid_argument);
}

TEST(StringMapMisuse, BoundsThatAreTooLong) {
  ordered_map<std::string, std::uint64_t> map;
  add_three(map);
  const std::string key = long_key();
  expect_refused(map, between(std::string("a"), key));
  expect_refused(map, closed(key, key));
  expect_refused(map, from(key));
  expect_refused(map, above(key));
  expect_refused(map, below(key));
  expect_refused(map, up_to(key));
  expect_refused(map, prefix(key));
  EXPECT_THROW(map.range("a", key).begin(), std::invalid_argument);
  EXPECT_THROW(map.scan_n(key, 1, [](auto&&...) {}), std::invalid_argument);
  EXPECT_THROW(map.lower_bound(key), std::invalid_argument);
  EXPECT_THROW(map.ceiling(key), std::invalid_argument);
  EXPECT_THROW(map.upper_bound(key), std::invalid_argument);
  EXPECT_THROW(map.floor(key), std::invalid_argument);
  expect_three_and_usable(map);
  rows_of("ordered_map",
          {"scan", "scan_n", "erase", "lower_bound", "ceiling", "upper_bound", "floor"},
          misuse::bad_argument,
          "a key or bound over 64 KiB: throws std::invalid_argument; the map is unchanged");
  misuse_row("ordered_map::range", misuse::bad_argument,
             "a bound over 64 KiB: begin() throws std::invalid_argument");
  for (const char* const function :
       {"between", "closed", "from", "above", "below", "up_to", "prefix"}) {
    misuse_row(function, misuse::bad_argument,
               "a bound over 64 KiB: the map throws std::invalid_argument");
  }
}

TYPED_TEST(OrderedMapMisuse, WalkOnAnotherThread) {
  auto walk = this->subject.range(all);
  auto at = walk.begin();
  std::thread([&] {
    EXPECT_EQ(at->second, 1U);
    ++at;
  }).join();
  EXPECT_EQ(at->second, 2U);
  misuse_row("map_range::begin", misuse::other_thread,
             "may be passed to another thread: works for one thread at a time");
  EXPECT_EQ(walk.begin()->second, 2U);
  misuse_row("map_range::begin", misuse::closed_object,
             "called again: the record that the walk has come to");
  undefined_row("map_range::begin", misuse::closed_object, "an iterator whose range is destroyed",
                "elidex/internal/tree/map_range.hpp",
                "an iterator is valid until the next ++ and while the range lives");
}

// --- loading ---

// A range of these records that calls on_the_way() before the second one.
template <class Record, class Fn>
auto interrupted(const std::vector<Record>& sorted, Fn on_the_way) {
  return std::views::transform(sorted, [&sorted, on_the_way](const Record& one) {
    if (one == sorted[1]) on_the_way();
    return one;
  });
}

TYPED_TEST(OrderedMapMisuse, BulkLoadIntoAnEmptyMap) {
  const auto key = [](unsigned n) { return key_of<TypeParam>(n); };
  using records = std::vector<record<TypeParam>>;
  ordered_map<TypeParam, std::uint64_t> map;
  EXPECT_THROW(map.bulk_load(records{{key(2), 2}, {key(1), 1}}), std::invalid_argument);
  EXPECT_TRUE(map.empty());
  misuse_row("ordered_map::bulk_load", misuse::bad_argument,
             "keys that do not ascend, into an empty map: throws std::invalid_argument; the map "
             "stays empty");

  const records sorted{{key(1), 1}, {key(2), 2}, {key(3), 3}};
  EXPECT_THROW(map.bulk_load(interrupted(sorted, [] { throw thrown_by_callback(); })),
               thrown_by_callback);
  EXPECT_TRUE(map.empty());
  misuse_row("ordered_map::bulk_load", misuse::callback_throws,
             "what the range throws comes out; into an empty map: the map stays empty");

  EXPECT_THROW(map.bulk_load(interrupted(sorted, [&] { map.insert(key(9), 9); })),
               std::logic_error);
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(map.get(key(9)), 9U);
  misuse_row("ordered_map::bulk_load", misuse::reentrance,
             "into an empty map that the range fills meanwhile: throws std::logic_error; the map "
             "keeps what the range inserted");
  EXPECT_TRUE(map.erase(key(9)));
  EXPECT_EQ(map.bulk_load(sorted), 3U);
  expect_three_and_usable(map);
}

TYPED_TEST(OrderedMapMisuse, BulkLoadIntoAMapWithKeys) {
  auto& map = this->subject;
  const auto key = [](unsigned n) { return key_of<TypeParam>(n); };
  using records = std::vector<record<TypeParam>>;
  EXPECT_THROW(map.bulk_load(records{{key(4), 4}, {key(4), 4}, {key(5), 5}}),
               std::invalid_argument);
  EXPECT_EQ(this->values(), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  misuse_row("ordered_map::bulk_load", misuse::bad_argument,
             "keys that do not ascend, into a map with keys: throws std::invalid_argument; the "
             "keys before stay added");
  const records sorted{{key(3), 30}, {key(5), 5}, {key(6), 6}};
  EXPECT_THROW(map.bulk_load(interrupted(sorted, [] { throw thrown_by_callback(); })),
               thrown_by_callback);
  EXPECT_EQ(this->values(), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  misuse_row("ordered_map::bulk_load", misuse::callback_throws,
             "what the range throws comes out; into a map with keys: the keys before stay added");
  EXPECT_EQ(map.bulk_load(interrupted(sorted, [&] { map.insert(key(6), 60); })), 1U);
  EXPECT_EQ(this->values(), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 60}));
  misuse_row("ordered_map::bulk_load", misuse::reentrance,
             "a range that changes the map meanwhile: keys that it adds keep its values");
}

TYPED_TEST(OrderedMapMisuse, BulkLoadsThatOverlap) {
  auto& map = this->subject;
  std::vector<record<TypeParam>> first;
  std::vector<record<TypeParam>> second;
  for (unsigned n = 1'000; n < 1'600; ++n) {
    if (n < 1'400) first.emplace_back(key_of<TypeParam>(n), n);
    if (n >= 1'200) second.emplace_back(key_of<TypeParam>(n), n);
  }
  std::size_t added_by_first = 0;
  std::size_t added_by_second = 0;
  std::thread other([&] { added_by_second = map.bulk_load(second); });
  added_by_first = map.bulk_load(first);
  other.join();
  EXPECT_EQ(added_by_first + added_by_second, 600U);
  for (unsigned n = 1'000; n < 1'600; ++n) EXPECT_EQ(map.get(key_of<TypeParam>(n)), n);
  EXPECT_EQ(map.size(), 603U);
  misuse_row("ordered_map::bulk_load", misuse::other_thread,
             "two threads load records with the same keys into a map with keys: each key is added "
             "once");
}

TEST(StringMapMisuse, BulkLoadOfAKeyThatIsTooLong) {
  ordered_map<std::string, std::uint64_t> map;
  EXPECT_THROW(map.bulk_load(std::vector<record<std::string>>{{"a", 1}, {long_key(), 2}}),
               std::invalid_argument);
  EXPECT_TRUE(map.empty());
  misuse_row(
      "ordered_map::bulk_load", misuse::bad_argument,
      "a key over 64 KiB: throws std::invalid_argument; an empty map stays empty, to another "
      "one the keys before stay added");
  map.insert("0", 0);
  EXPECT_THROW(map.bulk_load(std::vector<record<std::string>>{{"a", 1}, {long_key(), 2}}),
               std::invalid_argument);
  EXPECT_EQ(map.size(), 2U);
}

TYPED_TEST(OrderedMapMisuse, SameKeyTwiceInAList) {
  const TypeParam key = key_of<TypeParam>(1);
  const ordered_map<TypeParam, std::uint64_t> map{{key, 1}, {key, 2}};
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(map.get(key), 1U);
  misuse_row("ordered_map::ordered_map", misuse::bad_argument,
             "the same key twice in the list: the first value stays");
}

// --- cursors ---

TEST(StringMapMisuse, CursorToAKeyThatIsTooLong) {
  ordered_map<std::string, std::uint64_t> map;
  map.insert("a", 1);
  auto cursor = map.cursor();
  cursor.seek_first();
  EXPECT_THROW(cursor.seek(long_key()), std::invalid_argument);
  EXPECT_THROW(cursor.seek_before(long_key()), std::invalid_argument);
  EXPECT_EQ(cursor.key(), "a");
  rows_of("ordered_map::cursor_type", {"seek", "seek_before"}, misuse::bad_argument,
          "a key over 64 KiB: throws std::invalid_argument; the cursor does not move");
}

TYPED_TEST(OrderedMapMisuse, CursorOnAnotherThread) {
  auto cursor = this->subject.cursor();
  cursor.seek(key_of<TypeParam>(2));
  std::thread([&] {
    EXPECT_TRUE(cursor.valid());
    EXPECT_EQ(cursor.value(), 2U);
    cursor.next();
    EXPECT_EQ(cursor.key(), key_of<TypeParam>(3));
    cursor.prev();
    cursor.seek_before(key_of<TypeParam>(2));
    EXPECT_EQ(cursor.value(), 1U);
    cursor.seek_last();
    EXPECT_EQ(cursor.value(), 3U);
    cursor.seek_first();
    EXPECT_EQ(cursor.value(), 1U);
  }).join();
  cursor.next();
  EXPECT_EQ(cursor.value(), 2U);
  rows_of(
      "ordered_map::cursor_type",
      {"seek", "seek_before", "seek_first", "seek_last", "next", "prev", "key", "value", "valid"},
      misuse::other_thread, "may be passed to another thread: works for one thread at a time");
}

TYPED_TEST(OrderedMapMisuse, CursorThatWasMovedFrom) {
  auto cursor = this->subject.cursor();
  cursor.seek(key_of<TypeParam>(2));
  const auto to = std::move(cursor);
  EXPECT_EQ(to.value(), 2U);
  EXPECT_FALSE(cursor.valid());  // NOLINT(bugprone-use-after-move): that is the test
  misuse_row("ordered_map::cursor_type::valid", misuse::closed_object, "moved from: false");
  cursor.seek_before(key_of<TypeParam>(2));
  EXPECT_EQ(cursor.value(), 1U);
  auto again = std::move(cursor);
  cursor.seek_first();
  EXPECT_EQ(cursor.value(), 1U);
  again = std::move(cursor);
  cursor.seek_last();
  EXPECT_EQ(cursor.value(), 3U);
  again = std::move(cursor);
  cursor.seek(key_of<TypeParam>(2));
  EXPECT_EQ(cursor.value(), 2U);
  rows_of("ordered_map::cursor_type", {"seek", "seek_before", "seek_first", "seek_last"},
          misuse::closed_object, "moved from: works, and the cursor is valid again");
  undefined_rows_of(
      "ordered_map::cursor_type", {"key", "value", "next", "prev"}, misuse::closed_object,
      "needs valid(): not before a seek, behind the last key, or moved from",
      "elidex/internal/tree/cursor.hpp", "key(), value(), next() and prev() need valid()");
}

TYPED_TEST(OrderedMapMisuse, CursorOverAMapThatLosesItsKeys) {
  auto cursor = this->subject.cursor();
  cursor.seek(key_of<TypeParam>(2));
  for (unsigned n = 1; n <= 3; ++n) this->subject.erase(key_of<TypeParam>(n));
  EXPECT_EQ(cursor.value(), 2U);
  cursor.seek_first();
  EXPECT_FALSE(cursor.valid());
  misuse_row("ordered_map::cursor_type::value", misuse::closed_object,
             "its key was erased: the value is still the copy that the cursor took");
}

}  // namespace
}  // namespace elidex::testing
