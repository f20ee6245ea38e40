// What ordered_map does when it is misused, with integer keys and with strings.
#include "elidex/ordered_map.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "misuse/rows.hpp"

namespace elidex::testing {

namespace {

struct thrown_by_callback {};

constexpr std::string_view must_not_use = "must not use the tree";
constexpr std::string_view integer_map = "elidex/internal/tree/fixed_key_btree.hpp";
constexpr std::string_view string_map = "elidex/internal/tree/btree.hpp";

template <class Key>
struct keys;
template <>
struct keys<std::uint64_t> {
  static std::uint64_t of(unsigned n) { return n; }
};
template <>
struct keys<std::string> {
  static std::string of(unsigned n) { return "key " + std::to_string(n); }
};

template <class Key>
class OrderedMapMisuse : public ::testing::Test {
 protected:
  OrderedMapMisuse() {
    for (unsigned n = 1; n <= 3; ++n) subject.insert(keys<Key>::of(n), n);
  }

  // 1, 2 and 3, and nothing is left locked: each can be changed and the map grows.
  void expect_unchanged_and_usable() {
    std::vector<std::uint64_t> seen;
    subject.scan(keys<Key>::of(0), 10, [&](auto&&, std::uint64_t value) { seen.push_back(value); });
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_EQ(subject.size(), 3U);
    for (unsigned n = 1; n <= 3; ++n) {
      EXPECT_TRUE(subject.update(keys<Key>::of(n), [](std::uint64_t& value) { value += 10; }));
      EXPECT_EQ(subject.get(keys<Key>::of(n)), n + 10);
    }
    for (unsigned n = 100; n < 400; ++n) EXPECT_TRUE(subject.insert(keys<Key>::of(n), n));
  }

  ordered_map<Key, std::uint64_t> subject;
};

using KeyTypes = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(OrderedMapMisuse, KeyTypes);

TYPED_TEST(OrderedMapMisuse, UpdatesFunctionThrows) {
  EXPECT_THROW(this->subject.update(keys<TypeParam>::of(2),
                                    [](std::uint64_t& value) {
                                      value = 99;
                                      throw thrown_by_callback();
                                    }),
               thrown_by_callback);
  this->expect_unchanged_and_usable();
  misuse_row("ordered_map::update", misuse::callback_throws,
             "the exception comes out; the value stays, and the map is usable");
}

TYPED_TEST(OrderedMapMisuse, MakeThrows) {
  const auto make = []() -> std::uint64_t { throw thrown_by_callback(); };
  EXPECT_THROW(this->subject.get_or_insert(keys<TypeParam>::of(7), make), thrown_by_callback);
  EXPECT_FALSE(this->subject.contains(keys<TypeParam>::of(7)));
  this->expect_unchanged_and_usable();
  misuse_row("ordered_map::get_or_insert", misuse::callback_throws,
             "the exception comes out; nothing is added, and the map is usable");
}

TYPED_TEST(OrderedMapMisuse, MakeOfASlotThrows) {
  const auto make = [](const auto&) -> std::optional<std::uint64_t> { throw thrown_by_callback(); };
  EXPECT_THROW(this->subject.get_or_insert_if_made(keys<TypeParam>::of(7), make),
               thrown_by_callback);
  EXPECT_FALSE(this->subject.contains(keys<TypeParam>::of(7)));
  this->expect_unchanged_and_usable();
  misuse_row("ordered_map::get_or_insert_if_made", misuse::callback_throws,
             "the exception comes out; nothing is added, and the map is usable");
}

TYPED_TEST(OrderedMapMisuse, ScansFunctionThrows) {
  const auto throws = [](auto&&...) { throw thrown_by_callback(); };
  EXPECT_THROW(this->subject.scan(keys<TypeParam>::of(0), 10, throws), thrown_by_callback);
  this->expect_unchanged_and_usable();
  misuse_row("ordered_map::scan", misuse::callback_throws,
             "the exception comes out; the map is unchanged and usable");
}

TYPED_TEST(OrderedMapMisuse, FunctionsThatRunUnderALeafsLock) {
  const std::string_view header = std::is_same_v<TypeParam, std::string> ? string_map : integer_map;
  for (const char* const function : {"ordered_map::update", "ordered_map::get_or_insert",
                                     "ordered_map::get_or_insert_if_made"}) {
    undefined_row(function, misuse::reentrance,
                  "its function must not use the map: it runs under the leaf's lock", header,
                  must_not_use);
  }
}

// Every function once, from within scan()'s function.
TYPED_TEST(OrderedMapMisuse, AllFunctionsFromScansFunction) {
  auto& map = this->subject;
  using argument = typename ordered_map<TypeParam, std::uint64_t>::key_argument;
  const auto key = [](unsigned n) { return keys<TypeParam>::of(n); };
  std::vector<std::uint64_t> seen;
  map.scan(key(0), 10, [&](argument, std::uint64_t value) {
    seen.push_back(value);
    if (seen.size() > 1) return;
    EXPECT_TRUE(map.erase(key(2)));  // the scan still shows it: it is as of one moment
    EXPECT_TRUE(map.insert(key(5), 5));
    EXPECT_FALSE(map.upsert(key(3), 30));
    EXPECT_TRUE(map.update(key(3), [](std::uint64_t& v) { ++v; }));
    EXPECT_EQ(map.get(key(3)), 31U);
    EXPECT_TRUE(map.contains(key(5)));
    EXPECT_TRUE(map.get_or_insert(key(6), [] { return std::uint64_t{6}; }).second);
    EXPECT_TRUE(map.get_or_insert_if_made(
        key(7), [](const auto&) { return std::optional<std::uint64_t>(7); }));
    const TypeParam wanted_key = key(6);
    const argument wanted = wanted_key;
    std::optional<std::uint64_t> found;
    map.multi_get(std::span(&wanted, 1), std::span(&found, 1));
    EXPECT_EQ(found, 6U);
    EXPECT_EQ(map.scan(key(0), 10, [](auto&&...) {}), 5U);
    auto cursor = map.cursor();
    cursor.seek_first();
    EXPECT_TRUE(cursor.valid());
    EXPECT_EQ(map.size(), 5U);
    EXPECT_FALSE(map.empty());
    EXPECT_GT(map.memory_bytes(), 0U);
    static_cast<void>(map.stats());
    map.reclaim();
  });
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(map.size(), 5U);
  for (const char* const function :
       {"get", "contains", "multi_get", "insert", "upsert", "erase", "cursor", "size", "empty",
        "memory_bytes", "stats", "reclaim", "update", "get_or_insert", "get_or_insert_if_made"}) {
    misuse_row("ordered_map::" + std::string(function), misuse::reentrance,
               "from scan()'s function: works as usual; the scan shows what was there before");
  }
  misuse_row("ordered_map::scan", misuse::reentrance,
             "its function may use and change the map, scan() included; the outer scan shows what "
             "was there before");
}

TEST(IntegerMapMisuse, BulkLoad) {
  using record = std::pair<std::uint64_t, std::uint64_t>;
  ordered_map<std::uint64_t, std::uint64_t> map;
  EXPECT_THROW(map.bulk_load(std::vector<record>{{2, 2}, {1, 1}}), std::invalid_argument);
  EXPECT_TRUE(map.empty());
  misuse_row("ordered_map::bulk_load", misuse::bad_argument,
             "keys that do not ascend: throws std::invalid_argument; the map stays empty");

  const std::vector<record> sorted{{1, 1}, {2, 2}, {3, 3}};
  const auto from = [&](auto&& on_the_way) {
    return std::views::transform(sorted, [&, on_the_way](const record& one) {
      if (one.first == 2) on_the_way();
      return one;
    });
  };
  EXPECT_THROW(map.bulk_load(from([] { throw thrown_by_callback(); })), thrown_by_callback);
  EXPECT_TRUE(map.empty());
  misuse_row("ordered_map::bulk_load", misuse::callback_throws,
             "what the range throws comes out; the map stays empty and usable");

  EXPECT_THROW(map.bulk_load(from([&] { map.insert(9, 9); })), std::logic_error);
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(map.get(9), 9U);
  misuse_row("ordered_map::bulk_load", misuse::reentrance,
             "a range that fills the map meanwhile: throws std::logic_error; the map keeps what "
             "the range inserted");

  EXPECT_THROW(map.bulk_load(sorted), std::logic_error);
  EXPECT_EQ(map.size(), 1U);
  misuse_row("ordered_map::bulk_load", misuse::bad_argument,
             "a map that is not empty: throws std::logic_error; the map is unchanged");
  EXPECT_TRUE(map.erase(9));
  map.bulk_load(sorted);
  EXPECT_EQ(map.size(), 3U);
}

TEST(IntegerMapMisuse, StatisticsFromAScansFunction) {
  ordered_map<std::uint64_t, std::uint64_t> map(synchronization::optimistic);
  map.insert(1, 1);
  std::size_t calls = map.scan(0, 1, [&](auto&&...) {
    EXPECT_EQ(map.synchronization(), synchronization::optimistic);
    EXPECT_EQ(map.htm_counts(), lock_counts{});
  });
  EXPECT_EQ(calls, 1U);
  for (const char* const function : {"ordered_map::synchronization", "ordered_map::htm_counts"}) {
    misuse_row(function, misuse::reentrance, "from scan()'s function: works as usual");
  }
}

TEST(StringMapMisuse, PolicyFromAScansFunction) {
  ordered_map<std::string, std::uint64_t> map;
  map.insert("1", 1);
  EXPECT_EQ(map.scan("", 1, [&](auto&&...) { static_cast<void>(map.sync()); }), 1U);
  misuse_row("ordered_map::sync", misuse::reentrance, "from scan()'s function: works as usual");
}

TYPED_TEST(OrderedMapMisuse, MultiGetWithoutRoom) {
  const TypeParam key = keys<TypeParam>::of(1);
  const std::vector<typename ordered_map<TypeParam, std::uint64_t>::key_argument> wanted{key, key};
  std::vector<std::optional<std::uint64_t>> found(1);
  EXPECT_THROW(this->subject.multi_get(wanted, found), std::invalid_argument);
  EXPECT_FALSE(found[0].has_value());
  misuse_row("ordered_map::multi_get", misuse::bad_argument,
             "fewer places than keys: throws std::invalid_argument; nothing is written");
}

TEST(StringMapMisuse, KeysThatAreTooLong) {
  ordered_map<std::string, std::uint64_t> map;
  map.insert("a", 1);
  const std::string key((std::size_t{64} << 10) + 1, 'k');
  const std::string_view view = key;
  std::optional<std::uint64_t> found;
  EXPECT_THROW(static_cast<void>(map.get(key)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(map.contains(key)), std::invalid_argument);
  EXPECT_THROW(map.multi_get(std::span(&view, 1), std::span(&found, 1)), std::invalid_argument);
  EXPECT_THROW(map.insert(key, 1), std::invalid_argument);
  EXPECT_THROW(map.upsert(key, 1), std::invalid_argument);
  EXPECT_THROW(map.get_or_insert(key, [] { return std::uint64_t{1}; }), std::invalid_argument);
  EXPECT_THROW(map.update(key, [](std::uint64_t&) {}), std::invalid_argument);
  EXPECT_THROW(map.erase(key), std::invalid_argument);
  EXPECT_THROW(map.scan(key, 1, [](auto&&...) {}), std::invalid_argument);
  auto cursor = map.cursor();
  cursor.seek_first();
  EXPECT_THROW(cursor.seek(key), std::invalid_argument);
  EXPECT_THROW(cursor.seek_before(key), std::invalid_argument);
  EXPECT_EQ(cursor.key(), "a");
  EXPECT_EQ(map.size(), 1U);
  for (const char* const function : {"get", "contains", "multi_get", "insert", "upsert",
                                     "get_or_insert", "update", "erase", "scan"}) {
    misuse_row("ordered_map::" + std::string(function), misuse::bad_argument,
               "a key over 64 KiB: throws std::invalid_argument; the map is unchanged");
  }
  for (const char* const function : {"seek", "seek_before"}) {
    misuse_row("ordered_map::cursor_type::" + std::string(function), misuse::bad_argument,
               "a key over 64 KiB: throws std::invalid_argument; the cursor does not move");
  }
}

constexpr const char* cursor_functions[] = {
    "seek", "seek_before", "seek_first", "seek_last", "next", "prev", "key", "value", "valid"};

TYPED_TEST(OrderedMapMisuse, CursorOnAnotherThread) {
  auto cursor = this->subject.cursor();
  cursor.seek(keys<TypeParam>::of(2));
  std::thread([&] {
    EXPECT_TRUE(cursor.valid());
    EXPECT_EQ(cursor.value(), 2U);
    cursor.next();
    EXPECT_EQ(cursor.key(), keys<TypeParam>::of(3));
    cursor.prev();
    cursor.seek_before(keys<TypeParam>::of(2));
    EXPECT_EQ(cursor.value(), 1U);
    cursor.seek_last();
    EXPECT_EQ(cursor.value(), 3U);
    cursor.seek_first();
    EXPECT_EQ(cursor.value(), 1U);
  }).join();
  cursor.next();
  EXPECT_EQ(cursor.value(), 2U);
  for (const char* const function : cursor_functions) {
    misuse_row("ordered_map::cursor_type::" + std::string(function), misuse::other_thread,
               "may be passed to another thread: works for one thread at a time");
  }
}

TYPED_TEST(OrderedMapMisuse, CursorThatWasMovedFrom) {
  auto cursor = this->subject.cursor();
  cursor.seek(keys<TypeParam>::of(2));
  const auto to = std::move(cursor);
  EXPECT_EQ(to.value(), 2U);
  EXPECT_FALSE(cursor.valid());  // NOLINT(bugprone-use-after-move): that is the test
  misuse_row("ordered_map::cursor_type::valid", misuse::closed_object, "moved from: false");
  cursor.seek_before(keys<TypeParam>::of(2));
  EXPECT_EQ(cursor.value(), 1U);
  auto again = std::move(cursor);
  cursor.seek_first();
  EXPECT_EQ(cursor.value(), 1U);
  again = std::move(cursor);
  cursor.seek_last();
  EXPECT_EQ(cursor.value(), 3U);
  again = std::move(cursor);
  cursor.seek(keys<TypeParam>::of(2));
  EXPECT_EQ(cursor.value(), 2U);
  for (const char* const function : {"seek", "seek_before", "seek_first", "seek_last"}) {
    misuse_row("ordered_map::cursor_type::" + std::string(function), misuse::closed_object,
               "moved from: works, and the cursor is valid again");
  }
  for (const char* const function : {"key", "value", "next", "prev"}) {
    undefined_row("ordered_map::cursor_type::" + std::string(function), misuse::closed_object,
                  "needs valid(): not before a seek, behind the last key, or moved from",
                  "elidex/internal/tree/cursor.hpp",
                  "key(), value(), next() and prev() need valid()");
  }
}

TYPED_TEST(OrderedMapMisuse, CursorOverAMapThatLosesItsKeys) {
  auto cursor = this->subject.cursor();
  cursor.seek(keys<TypeParam>::of(2));
  for (unsigned n = 1; n <= 3; ++n) this->subject.erase(keys<TypeParam>::of(n));
  EXPECT_EQ(cursor.value(), 2U);
  cursor.seek_first();
  EXPECT_FALSE(cursor.valid());
  misuse_row("ordered_map::cursor_type::value", misuse::closed_object,
             "its key was erased: the value is still the copy that the cursor took");
}

}  // namespace
}  // namespace elidex::testing
