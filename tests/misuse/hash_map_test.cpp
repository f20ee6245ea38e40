// What hash_map does when it is misused, with integer keys and with strings.
#include "elidex/hash_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "misuse/map_functions.hpp"
#include "misuse/rows.hpp"

namespace elidex::testing {
namespace {

template <class Key>
class HashMapMisuse : public ::testing::Test {
 protected:
  HashMapMisuse() { add_three(subject); }
  hash_map<Key, std::uint64_t> subject;
};

using KeyTypes = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(HashMapMisuse, KeyTypes);

TYPED_TEST(HashMapMisuse, CallbacksThrow) {
  callbacks_throw(this->subject, "hash_map");
}
TYPED_TEST(HashMapMisuse, VisitorUsesTheMap) {
  visitors_use_the_map(this->subject, "hash_map");
}
TYPED_TEST(HashMapMisuse, NumbersOfArguments) {
  arguments_of_different_number(this->subject, "hash_map");
}
TYPED_TEST(HashMapMisuse, MovedFrom) {
  maps_that_were_moved_from(this->subject, "hash_map");
}
TYPED_TEST(HashMapMisuse, Cleared) {
  maps_that_are_cleared(this->subject, "hash_map");
}
TYPED_TEST(HashMapMisuse, ConstructorsOfValues) {
  hash_map<TypeParam, calling_value> map;
  constructors_of_values(map, "hash_map");
}
TEST(HashMapMisuseByDesign, FunctionsThatRunUnderALock) {
  functions_that_run_under_a_lock("hash_map");
}
TYPED_TEST(HashMapMisuse, ExtractFromAVisitor) {
  hash_map<TypeParam, std::unique_ptr<int>> map;
  extracts_from_a_visitor(map, "hash_map", [](const auto& m, const auto& fn) {
    EXPECT_EQ(m.for_each([&](auto&&...) { fn(); }), 1U);
  });
}
TEST(HashMapOfStringsMisuse, KeysThatAreTooLong) {
  hash_map<std::string, std::uint64_t> map;
  add_three(map);
  keys_that_are_too_long(map, "hash_map");
}

TEST(HashMapOfPairsMisuse, KeysThatAreTooLong) {
  hash_map<std::pair<std::string, std::int32_t>, std::uint64_t> map;
  pairs_that_are_too_long(map, "hash_map");
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
}

TYPED_TEST(HashMapMisuse, ForEachsFunctionThrows) {
  EXPECT_THROW(this->subject.for_each([](auto&&...) { throw thrown_by_callback(); }),
               thrown_by_callback);
  expect_three_and_usable(this->subject);
  misuse_row("hash_map::for_each", misuse::callback_throws,
             "the exception comes out; the map is unchanged and usable");
}

TYPED_TEST(HashMapMisuse, AllFunctionsFromForEachsFunction) {
  auto& map = this->subject;
  std::size_t calls = 0;
  map.for_each([&](auto&&...) {
    if (++calls > 1) return;
    use_all_functions(map);
    for (unsigned n = 100; n < 200; ++n)
      EXPECT_TRUE(map.insert(key_of<TypeParam>(n), n));  // it grows meanwhile
    map.reserve(1000);
    EXPECT_EQ(map.for_each([](auto&&...) {}), 103U);
  });
  EXPECT_GE(calls, 3U);
  for (unsigned n = 100; n < 200; ++n) EXPECT_EQ(map.get(key_of<TypeParam>(n)), n);
  misuse_row("hash_map::reserve", misuse::reentrance, "from for_each()'s function: works as usual");
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

TYPED_TEST(HashMapMisuse, ReserveForTooManyKeys) {
  EXPECT_THROW(this->subject.reserve(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
  expect_three_and_usable(this->subject);
  misuse_row("hash_map::reserve", misuse::bad_argument,
             "more keys than fit into the system's memory: throws std::bad_alloc; the map is "
             "unchanged");
}

TYPED_TEST(HashMapMisuse, SameKeyTwiceInAList) {
  const TypeParam key = key_of<TypeParam>(1);
  const hash_map<TypeParam, std::uint64_t> map{{key, 1}, {key, 2}};
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(map.get(key), 1U);
  misuse_row("hash_map::hash_map", misuse::bad_argument,
             "the same key twice in the list: the first value stays");
}

TEST(HashMapMisuseByDesign, Hashes) {
  undefined_row("hash_map::hash_map", misuse::callback_throws,
                "a hash that throws: std::terminate() if the table grows then",
                "elidex/hash_map.hpp", "Threads call it at the same time. It must not throw.");
  undefined_row("hash_map::hash_map", misuse::bad_argument, "a hash that differs for equal keys",
                "elidex/hash_map.hpp", "Equal keys must have equal hashes.");
}

}  // namespace
}  // namespace elidex::testing
