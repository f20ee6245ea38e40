// Integer keys under optimistic lock coupling, against std::map.
#include "support/integer_model_tests.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;

using maps =
    ::testing::Types<btree<u64, u64, optimistic>, btree<u64, u64, optimistic, fan_out<2, 3>>,
                     btree<u64, u64, optimistic, fan_out<7, 4>>, ordered_tree<u64, u64>,
                     btree<std::int32_t, wide_value, optimistic>,
                     ordered_tree<std::int8_t, std::uint16_t>,
                     ordered_tree<std::uint16_t, std::array<char, 3>>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Optimistic, ModelOfIntegers, maps);

}  // namespace
}  // namespace elidex::testing
