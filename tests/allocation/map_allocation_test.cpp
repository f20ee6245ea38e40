// Every allocation of every operation fails once: the map stays as it was, and works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elidex/ordered_map.hpp"
#include "support/broken_maps.hpp"
#include "support/failing_allocations.hpp"
#include "support/model.hpp"
#include "support/policies_under_test.hpp"

namespace elidex::testing {
namespace {

// Runs `operation` with its first, second, ... allocation failing, until it needs no more; what differs after a
// failure from `expected`, in words. `failures` counts them.
template <class Map, class Expected, class Operation>
std::string with_failing_allocations(const Map& map, const Expected& expected, int& failures, Operation operation) {
  for (int nth = 1;; ++nth) {
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
    if (failed != threw) return failed ? "a failed allocation was swallowed" : "bad_alloc without a failed allocation";
    if (!threw) return "";
    ++failures;
    if (const std::string what = content_difference(map, expected); !what.empty())
      return what + " differs after bad_alloc";
  }
}

// What differs over a run of random operations, every one of which meets every failure.
template <class Map>
std::string first_harm(int operations, std::uint64_t keys, int& failures) {
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
    bool result = false;
    bool wanted = false;
    std::string what;
    switch (random.below(shrinking ? 9 : 6)) {
      case 0:
      case 1:
        next.emplace(key, value);
        wanted = !present;
        what = with_failing_allocations(map, expected, failures, [&] { result = map.insert(key, value); });
        break;
      case 2:
        next[key] = value;
        wanted = !present;
        what = with_failing_allocations(map, expected, failures, [&] { result = map.upsert(key, value); });
        break;
      case 3:
        if (present) next[key] = value;
        wanted = present;
        what = with_failing_allocations(map, expected, failures,
                                        [&] { result = map.update(key, [&](mapped_type& v) { v = value; }); });
        break;
      case 4: {
        std::size_t count = 0;
        wanted = true;
        what = with_failing_allocations(map, expected, failures,
                                        [&] { count = map.scan(key, SIZE_MAX, [](const auto&, const auto&) {}); });
        result = count == static_cast<std::size_t>(std::distance(expected.lower_bound(key), expected.end()));
        break;
      }
      case 5: {
        wanted = present;
        what = with_failing_allocations(map, expected, failures, [&] {
          const auto got = map.get(key);
          auto cursor = map.cursor();
          cursor.seek(key);
          result = got.has_value() && cursor.valid() && cursor.key() == key;
        });
        break;
      }
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

template <class Map>
class AllocationFailure : public ::testing::Test {};
using u64 = std::uint64_t;
using maps = ::testing::Types<btree<u64, u64, optimistic, fan_out<2, 3>>, btree<u64, u64, coarse_spin, fan_out<4, 4>>,
                              btree<u64, u64, coarse_elided, fan_out<4, 4>>, ordered_map<u64, u64>,
                              btree<std::string, u64, optimistic, fan_out<2, 3>>,
                              btree<std::string, std::string, coarse_mutex, fan_out<4, 4>>,
                              ordered_map<std::string, std::string>>;
TYPED_TEST_SUITE(AllocationFailure, maps);

TYPED_TEST(AllocationFailure, LeavesTheMapUnchangedAndUsable) {
  int failures = 0;
  EXPECT_EQ(first_harm<TypeParam>(1'500 * effort(), 120, failures), "");
  EXPECT_GT(failures, 10);
}

TEST(AllocationFailureCanary, AMapThatForgetsIsFound) {
  int failures = 0;
  EXPECT_THAT(first_harm<forgets_on_bad_alloc>(500, 50, failures), ::testing::HasSubstr("differs after bad_alloc"));
}

}  // namespace
}  // namespace elidex::testing
