// Every allocation of every operation fails once: the map stays as it was, and works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elidex/ordered_map.hpp"
#include "support/allocation_harm.hpp"
#include "support/broken_maps.hpp"
#include "support/policies_under_test.hpp"

namespace elidex::testing {

using namespace internal;

// Of integers: merges leaves if there is memory.
template <>
inline constexpr bool hides_failures<ordered_map<std::uint64_t, std::uint64_t>> = true;

namespace {

template <class Map>
class AllocationFailure : public ::testing::Test {};
using u64 = std::uint64_t;
using maps = ::testing::Types<btree<u64, u64, optimistic, fan_out<2, 3>>,
                              btree<u64, u64, coarse_spin, fan_out<4, 4>>,
                              btree<u64, u64, coarse_elided, fan_out<4, 4>>, ordered_tree<u64, u64>,
                              btree<std::string, u64, optimistic, fan_out<2, 3>>,
                              btree<std::string, std::string, coarse_mutex, fan_out<4, 4>>,
                              ordered_tree<std::string, std::string>>;
TYPED_TEST_SUITE(AllocationFailure, maps);

TYPED_TEST(AllocationFailure, LeavesTheMapUnchangedAndUsable) {
  allocation_failures failures;
  EXPECT_EQ(first_harm<TypeParam>(1'500 * effort(), 120, failures), "");
  EXPECT_GT(failures.reported, 10);
}

// Each allocation of a bulk_load() fails once: the map stays empty.
template <class Map>
void load_with_failures() {
  std::map<typename Map::key_type, typename Map::mapped_type> records;
  for (u64 n = 0; n < 250; ++n)
    records[sample<typename Map::key_type>::of(n)] = sample<typename Map::mapped_type>::of(n);
  Map map;
  allocation_failures failures;
  const std::map<typename Map::key_type, typename Map::mapped_type> none;
  EXPECT_EQ(with_failing_allocations(map, none, failures, [&] { map.bulk_load(records); }), "");
  EXPECT_GT(failures.reported, 5);
  EXPECT_EQ(content_difference(map, records), "");
}
TEST(AllocationFailureOfBulkLoad, LeavesTheMapEmpty) {
  load_with_failures<ordered_map<u64, u64>>();
  load_with_failures<ordered_map<std::string, std::string>>();
}

TEST(AllocationFailureCanary, AMapThatForgetsIsFound) {
  allocation_failures failures;
  EXPECT_THAT(first_harm<forgets_on_bad_alloc>(500, 50, failures),
              ::testing::HasSubstr("differs after bad_alloc"));
}

}  // namespace
}  // namespace elidex::testing
