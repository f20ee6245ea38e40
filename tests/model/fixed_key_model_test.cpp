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
    euno_btree<std::int32_t, wide_value, optimistic, partitioned_fan_out<4, 4>>,
    fixed_key_btree<std::int8_t, std::uint16_t, locked_regions, partitioned_fan_out<>,
                    always_control>,
    fixed_key_btree<std::int32_t, wide_value, optimistic, separated_fan_out<5, 4>, no_control>,
    fixed_key_btree<std::int8_t, std::uint16_t, optimistic, separated_fan_out<20, 4>, no_control>,
    fixed_key_btree<std::uint16_t, std::array<char, 3>, locked_regions, separated_fan_out<>,
                    adaptive_control>>;
INSTANTIATE_TYPED_TEST_SUITE_P(FixedKey, ModelOfIntegers, maps);

}  // namespace
}  // namespace elidex::testing
