// The skip lists against std::map, one thread.
#include "papers/eunomia/euno_skip_list.hpp"
#include "papers/eunomia/lock_free_skip_list.hpp"
#include "papers/eunomia/locked_skip_list.hpp"
#include "papers/eunomia/skip_list.hpp"
#include "support/integer_model_tests.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using u64 = std::uint64_t;

using maps = ::testing::Types<
    skip_list<u64, u64, unsynchronized>, skip_list<u64, u64, coarse_shared>,
    skip_list<std::int32_t, wide_value, coarse_elided_dbx, 1>, locked_skip_list<u64, u64>,
    locked_skip_list<std::int8_t, wide_value, 1>, lock_free_skip_list<u64, u64>,
    lock_free_skip_list<std::int32_t, wide_value, 1>, lock_free_skip_list<u64, std::uint8_t>,
    euno_skip_list<u64, u64, split_by_mutexes>,
    euno_skip_list<u64, u64, htm_split_regions, always_changing_control, 1>,
    euno_skip_list<std::int32_t, wide_value, split_by_mutexes, nothing_but_split_regions, 1>,
    euno_skip_list<std::int8_t, u64, split_by_mutexes, always_controlled, 1>>;
INSTANTIATE_TYPED_TEST_SUITE_P(SkipLists, ModelOfIntegers, maps);

template <class Map>
class SkipLists : public ::testing::Test {};
TYPED_TEST_SUITE(SkipLists, maps);

// All nodes but those of an empty list come back.
TYPED_TEST(SkipLists, GiveTheirNodesBack) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  TypeParam map;
  const std::size_t when_empty = map.stats().nodes;
  for (int round = 0; round < 3; ++round) {
    for (int n = 0; n < 120; ++n)
      map.insert(static_cast<key>(n), sample<value>::of(static_cast<u64>(n)));
    for (int n = 0; n < 120; ++n) {
      map.update(static_cast<key>(n),
                 [&](value& v) { v = sample<value>::of(static_cast<u64>(n + 1)); });
    }
    EXPECT_GE(map.stats().nodes, when_empty + 120);
    for (int n = 0; n < 120; ++n) EXPECT_TRUE(map.erase(static_cast<key>(n)));
    for (int sweep = 0; sweep < 3; ++sweep) map.reclaim();
    EXPECT_EQ(map.stats().retired_objects, 0u);
    EXPECT_EQ(map.stats().nodes, when_empty);
  }
}

// The second value for a key finds the first one.
TYPED_TEST(SkipLists, InsertOrGetFindsTheFirstValue) {
  using key = typename TypeParam::key_type;
  using value = typename TypeParam::mapped_type;
  TypeParam map;
  const auto value_of = [](int n) { return sample<value>::of(static_cast<u64>(n)); };
  for (int n = 0; n < 100; ++n)
    EXPECT_EQ(map.insert_or_get(static_cast<key>(n), value_of(n)), std::pair(value_of(n), true));
  for (int n = 0; n < 100; ++n)
    EXPECT_EQ(map.insert_or_get(static_cast<key>(n), value_of(n + 1)),
              std::pair(value_of(n), false));
  EXPECT_EQ(map.size(), 100u);
}

}  // namespace
}  // namespace elidex::testing
