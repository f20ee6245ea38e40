// What hash_map does when it is misused, with integer keys and with strings.
#include "elidex/hash_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "misuse/rows.hpp"

namespace elidex::testing {
namespace {

struct thrown_by_callback {};

template <class Key>
Key key_of(unsigned n) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return "key " + std::to_string(n);
  } else {
    return n;
  }
}

template <class Key>
class HashMapMisuse : public ::testing::Test {
 protected:
  HashMapMisuse() {
    for (unsigned n = 1; n <= 3; ++n) subject.insert(key_of<Key>(n), n);
  }

  // 1, 2 and 3, and no bucket is left locked: each can be changed and the map grows.
  void expect_unchanged_and_usable() {
    EXPECT_EQ(subject.size(), 3U);
    for (unsigned n = 1; n <= 3; ++n) {
      EXPECT_EQ(subject.get(key_of<Key>(n)), n);
      EXPECT_TRUE(subject.update(key_of<Key>(n), [](std::uint64_t& value) { value += 10; }));
    }
    for (unsigned n = 100; n < 400; ++n) EXPECT_TRUE(subject.insert(key_of<Key>(n), n));
    for (unsigned n = 100; n < 400; ++n) EXPECT_EQ(subject.get(key_of<Key>(n)), n);
  }

  hash_map<Key, std::uint64_t> subject;
};

using KeyTypes = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(HashMapMisuse, KeyTypes);

TYPED_TEST(HashMapMisuse, UpdatesFunctionThrows) {
  EXPECT_THROW(this->subject.update(key_of<TypeParam>(2),
                                    [](std::uint64_t& value) {
                                      value = 99;
                                      throw thrown_by_callback();
                                    }),
               thrown_by_callback);
  this->expect_unchanged_and_usable();
  misuse_row("hash_map::update", misuse::callback_throws,
             "the exception comes out; the value stays, and the map is usable");
}

TYPED_TEST(HashMapMisuse, MakeThrows) {
  const auto make = []() -> std::uint64_t { throw thrown_by_callback(); };
  EXPECT_THROW(this->subject.get_or_insert(key_of<TypeParam>(7), make), thrown_by_callback);
  EXPECT_FALSE(this->subject.contains(key_of<TypeParam>(7)));
  this->expect_unchanged_and_usable();
  misuse_row("hash_map::get_or_insert", misuse::callback_throws,
             "the exception comes out; nothing is added, and the map is usable");
}

TYPED_TEST(HashMapMisuse, ForEachsFunctionThrows) {
  EXPECT_THROW(this->subject.for_each([](auto&&...) { throw thrown_by_callback(); }),
               thrown_by_callback);
  this->expect_unchanged_and_usable();
  misuse_row("hash_map::for_each", misuse::callback_throws,
             "the exception comes out; the map is unchanged and usable");
}

TEST(HashMapOfStringsMisuse, UpdatesFunctionThrows) {
  hash_map<std::string, std::string> map;
  map.insert("a", "value");
  EXPECT_THROW(map.update("a",
                          [](std::string& value) {
                            value = "other";
                            throw thrown_by_callback();
                          }),
               thrown_by_callback);
  EXPECT_EQ(map.get("a"), "value");
  EXPECT_TRUE(map.update("a", [](std::string& value) { value = "next"; }));
  misuse_row("hash_map::update", misuse::callback_throws,
             "the exception comes out; the value stays, and the map is usable");
}

TEST(HashMapMisuseByDesign, FunctionsThatRunUnderABucketsLock) {
  for (const char* const function : {"hash_map::update", "hash_map::get_or_insert"}) {
    undefined_row(function, misuse::reentrance,
                  "its function must not use the map: it runs under the bucket's lock",
                  "elidex/hash_map.hpp", "must not use the map");
  }
}

TYPED_TEST(HashMapMisuse, AllFunctionsFromForEachsFunction) {
  auto& map = this->subject;
  std::size_t calls = 0;
  map.for_each([&](auto&&...) {
    if (++calls > 1) return;
    EXPECT_FALSE(map.upsert(key_of<TypeParam>(3), 30));
    EXPECT_TRUE(map.update(key_of<TypeParam>(3), [](std::uint64_t& value) { ++value; }));
    EXPECT_EQ(map.get(key_of<TypeParam>(3)), 31U);
    EXPECT_TRUE(map.contains(key_of<TypeParam>(3)));
    for (unsigned n = 100; n < 200; ++n)
      EXPECT_TRUE(map.insert(key_of<TypeParam>(n), n));  // it grows meanwhile
    EXPECT_TRUE(map.get_or_insert(key_of<TypeParam>(6), [] { return std::uint64_t{6}; }).second);
    EXPECT_TRUE(map.erase(key_of<TypeParam>(6)));
    map.reserve(1000);
    const TypeParam wanted_key = key_of<TypeParam>(100);
    const typename hash_map<TypeParam, std::uint64_t>::key_argument wanted = wanted_key;
    std::optional<std::uint64_t> found;
    map.multi_get(std::span(&wanted, 1), std::span(&found, 1));
    EXPECT_EQ(found, 100U);
    EXPECT_EQ(map.for_each([](auto&&...) {}), 103U);
    EXPECT_EQ(map.size(), 103U);
    EXPECT_FALSE(map.empty());
    EXPECT_GT(map.memory_bytes(), 0U);
    static_cast<void>(map.stats());
    map.reclaim();
  });
  EXPECT_GE(calls, 3U);
  for (unsigned n = 100; n < 200; ++n) EXPECT_EQ(map.get(key_of<TypeParam>(n)), n);
  for (const char* const function :
       {"get", "contains", "multi_get", "insert", "upsert", "get_or_insert", "update", "erase",
        "reserve", "size", "empty", "memory_bytes", "stats", "reclaim"}) {
    misuse_row("hash_map::" + std::string(function), misuse::reentrance,
               "from for_each()'s function: works as usual");
  }
  misuse_row("hash_map::for_each", misuse::reentrance,
             "its function may use and change the map; keys that stay come exactly once");
}

TYPED_TEST(HashMapMisuse, ForEachsFunctionErasesEveryKey) {
  std::vector<std::uint64_t> seen;
  this->subject.for_each([&](auto&& key, std::uint64_t value) {
    seen.push_back(value);
    EXPECT_TRUE(this->subject.erase(key));
  });
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_TRUE(this->subject.empty());
  misuse_row("hash_map::for_each", misuse::reentrance,
             "its function may erase the key that it was called with; the others still come");
}

TYPED_TEST(HashMapMisuse, MultiGetWithoutRoom) {
  const TypeParam key = key_of<TypeParam>(1);
  const std::vector<typename hash_map<TypeParam, std::uint64_t>::key_argument> wanted{key, key};
  std::vector<std::optional<std::uint64_t>> found(1);
  EXPECT_THROW(this->subject.multi_get(wanted, found), std::invalid_argument);
  EXPECT_FALSE(found[0].has_value());
  misuse_row("hash_map::multi_get", misuse::bad_argument,
             "fewer places than keys: throws std::invalid_argument; nothing is written");
}

TEST(HashMapOfStringsMisuse, KeysThatAreTooLong) {
  hash_map<std::string, std::uint64_t> map;
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
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(map.get("a"), 1U);
  for (const char* const function :
       {"get", "contains", "multi_get", "insert", "upsert", "get_or_insert", "update", "erase"}) {
    misuse_row("hash_map::" + std::string(function), misuse::bad_argument,
               "a key over 64 KiB: throws std::invalid_argument; the map is unchanged");
  }
}

}  // namespace
}  // namespace elidex::testing
