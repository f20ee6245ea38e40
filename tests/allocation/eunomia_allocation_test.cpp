// Eunomia's indexes and those they are compared with: every allocation of every operation fails
// once.
#include <gtest/gtest.h>

#include "papers/eunomia/lock_free_skip_list.hpp"
#include "papers/eunomia/locked_skip_list.hpp"
#include "papers/eunomia/masstree.hpp"
#include "papers/eunomia/skip_list.hpp"
#include "support/allocation_harm.hpp"
#include "support/fixed_key_trees.hpp"
#include "support/policies_under_test.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

// Fixed-key trees merge leaves and switch controls if there is memory, and the skip list does the
// latter.
template <class Sync, class Shape, class Control>
inline constexpr bool hides_failures<fixed_key_btree<u64, u64, Sync, Shape, Control>> = true;
template <class Sync, class Parts, unsigned Bits>
inline constexpr bool hides_failures<euno_skip_list<u64, u64, Sync, Parts, Bits>> =
    Parts::controls_conflicts || Parts::locks_segment_for != auxiliary_lock_use::none;

namespace {

template <class Map>
class EunomiaAllocationFailure : public ::testing::Test {};
using maps = ::testing::Types<
    fixed_key_btree<u64, u64, locked_regions, tiny_partitioned, always_control>,
    fixed_key_btree<u64, u64, locked_regions, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, locked_regions, dense_fan_out<4, 3>, no_control>,
    fixed_key_btree<u64, u64, optimistic, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, optimistic, separated_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, elided_regions, separated_fan_out<3, 3>, always_control>,
    fixed_key_btree<u64, u64, optimistic, packed_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, optimistic, tiny_bucketed, no_control>,
    masstree<u64, u64, optimistic, 3>, masstree<u64, u64, coarse_elided_dbx, 3>,
    skip_list<u64, u64, coarse_elided_dbx, 2>, locked_skip_list<u64, u64, 2>,
    lock_free_skip_list<u64, u64, 2>, lock_free_skip_list<u64, wide_value, 2>,
    euno_skip_list<u64, u64, split_by_mutexes, nothing_but_split_regions, 2>,
    euno_skip_list<u64, u64, split_by_mutexes, always_controlled, 2>,
    euno_skip_list<u64, u64, split_by_mutexes, always_changing_control, 2>>;
TYPED_TEST_SUITE(EunomiaAllocationFailure, maps);

TYPED_TEST(EunomiaAllocationFailure, LeavesTheMapUnchangedAndUsable) {
  int reported = 0;
  // What hides its failure comes first, and ends the matter: so in other runs it is spared.
  for (int first = 1; first <= (hides_failures<TypeParam> ? 3 : 1); ++first) {
    allocation_failures failures{.first = first};
    EXPECT_EQ(first_harm<TypeParam>(1'500 * effort(), 120, failures), "")
        << "from allocation " << first << " on";
    if (first == 1 && hides_failures<TypeParam>) {
      EXPECT_GT(failures.hidden, 0);
    }
    reported += failures.reported;
  }
  EXPECT_GT(reported, 10);
}

// Every allocation of one bulk_load fails once: nothing is loaded, and no node is lost.
TEST(BulkLoadAllocationFailure, LoadsNothing) {
  using map_type = fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>;
  std::map<u64, u64> records;
  for (u64 i = 0; i < 500; ++i) records[i * i] = i;
  map_type map;
  allocation_failures failures;
  const std::map<u64, u64> nothing;
  EXPECT_EQ(with_failing_allocations(map, nothing, failures, [&] { map.bulk_load(records); }), "");
  EXPECT_GT(failures.reported, 10);
  EXPECT_EQ(content_difference(map, records), "");
  map.reclaim();
  const auto facts = map.stats();
  EXPECT_LE(facts.leaves, records.size() / 5 + 2);  // those of the failed attempts are gone
}

}  // namespace
}  // namespace elidex::testing
