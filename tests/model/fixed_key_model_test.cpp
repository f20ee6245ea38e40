// Eunomia's tree with every leaf, policy and control, against std::map.
#include "support/fixed_key_trees.hpp"
#include "support/integer_model_tests.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using maps = ::testing::Types<
    euno_btree<u64, u64, locked_regions>,
    fixed_key_btree<u64, u64, locked_regions, tiny_partitioned, always_control>,
    fixed_key_btree<u64, u64, locked_regions, dense_fan_out<4, 3>, no_control>,
    fixed_key_btree<u64, u64, locked_regions, separated_fan_out<3, 3>, always_control>,
    fixed_key_btree<u64, u64, elided_regions, tiny_partitioned, restless_control>,
    euno_btree<u64, u64, optimistic>,
    fixed_key_btree<u64, u64, optimistic, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, optimistic, dense_fan_out<4, 4>, always_control>,
    fixed_key_btree<u64, u64, optimistic, separated_fan_out<>, no_control>,
    fixed_key_btree<u64, u64, optimistic, separated_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>,
    fixed_key_btree<u64, u64, elided_regions, packed_fan_out<4, 20>, restless_control>,
    fixed_key_btree<std::int32_t, wide_value, locked_regions, packed_node_bytes<1024, 256>,
                    no_control>,
    fixed_key_btree<u64, u64, optimistic, tiny_bucketed, no_control>,
    fixed_key_btree<u64, u64, elided_regions, tiny_bucketed, no_control>,
    fixed_key_btree<u64, u64, optimistic, bucketed_node_bytes<1024>, no_control>,
    fixed_key_btree<std::int64_t, std::uint32_t, locked_regions, small_bucketed, no_control>,
    fixed_key_btree<std::int32_t, wide_value, optimistic, small_bucketed, no_control>,
    fixed_key_btree<std::uint16_t, std::array<char, 3>, optimistic, tiny_bucketed, no_control>,
    fixed_key_btree<std::int8_t, std::uint16_t, optimistic, tiny_bucketed, no_control>,
    euno_btree<std::int32_t, wide_value, optimistic, partitioned_fan_out<4, 4>>,
    fixed_key_btree<std::int8_t, std::uint16_t, locked_regions, partitioned_fan_out<>,
                    always_control>,
    fixed_key_btree<std::int32_t, wide_value, optimistic, separated_fan_out<5, 4>, no_control>,
    fixed_key_btree<std::int8_t, std::uint16_t, optimistic, separated_fan_out<20, 4>, no_control>,
    fixed_key_btree<std::uint16_t, std::array<char, 3>, locked_regions, separated_fan_out<>,
                    adaptive_control>>;
INSTANTIATE_TYPED_TEST_SUITE_P(FixedKey, ModelOfIntegers, maps);

template <class Rules>
std::string first_difference_with() {
  fixed_key_btree<u64, u64, optimistic, bucketed_node_bytes<256, 2, 64, Rules>> map;
  return first_difference(map, {.seed = 3, .keys = 300});
}
TEST(BucketedLeafCanary, AwayKeysThatAreLostAreFound) {
  EXPECT_EQ(first_difference_with<bucket_rules>(), "");
  EXPECT_NE(first_difference_with<forgets_away_keys>(), "");
  EXPECT_NE(first_difference_with<forgets_away_keys_when_kept>(), "");
}

}  // namespace
}  // namespace elidex::testing
