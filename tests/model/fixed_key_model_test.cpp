// Eunomia's tree with every leaf, policy and control, against std::map.
#include "support/integer_model_tests.hpp"
#include "support/fixed_key_trees.hpp"

namespace elidex::testing {
namespace {

using maps = ::testing::Types<
    scattered_btree<u64, u64, locked_regions>,
    scattered_btree<u64, u64, locked_regions, tiny_scattered, always_control>,
    scattered_btree<u64, u64, locked_regions, dense_fan_out<4, 3>, no_control>,
    scattered_btree<u64, u64, locked_regions, keys_apart_fan_out<3, 3>, always_control>,
    scattered_btree<u64, u64, elided_regions, tiny_scattered, restless_control>, scattered_btree<u64, u64, optimistic>,
    scattered_btree<u64, u64, optimistic, tiny_scattered, restless_control>,
    scattered_btree<u64, u64, optimistic, dense_fan_out<4, 4>, always_control>,
    scattered_btree<u64, u64, optimistic, keys_apart_fan_out<>, no_control>,
    scattered_btree<u64, u64, optimistic, keys_apart_fan_out<3, 3>, no_control>,
    scattered_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>,
    scattered_btree<u64, u64, elided_regions, packed_fan_out<4, 20>, restless_control>,
    scattered_btree<std::int32_t, wide_value, locked_regions, packed_node_bytes<1024, 256>, no_control>,
    scattered_btree<std::int32_t, wide_value, optimistic, scattered_fan_out<4, 4>>,
    scattered_btree<std::int8_t, std::uint16_t, locked_regions, scattered_fan_out<>, always_control>,
    scattered_btree<std::int32_t, wide_value, optimistic, keys_apart_fan_out<5, 4>, no_control>,
    scattered_btree<std::int8_t, std::uint16_t, optimistic, keys_apart_fan_out<20, 4>, no_control>,
    scattered_btree<std::uint16_t, std::array<char, 3>, locked_regions, keys_apart_fan_out<>, adaptive_control>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Scattered, ModelOfIntegers, maps);

}  // namespace
}  // namespace elidex::testing
