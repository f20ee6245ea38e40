// Integer keys under no synchronisation and under every kind of lock, against std::map.
#include "support/integer_model_tests.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;

using maps =
    ::testing::Types<btree<u64, u64, unsynchronized>,
                     btree<u64, u64, unsynchronized, fan_out<2, 3>>, btree<u64, u64, coarse_mutex>,
                     btree<u64, u64, coarse_spin, fan_out<4, 4>>,
                     btree<u64, u64, coarse_shared, fan_out<5, 3>>, btree<u64, u64, coarse_hle>,
                     btree<u64, u64, coarse_elided, fan_out<4, 4>>,
                     btree<u64, u64, coarse_elided_noretry>, btree<u64, u64, coarse_elided_dbx>,
                     btree<std::int32_t, wide_value, coarse_mutex, fan_out<4, 4>>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Coarse, ModelOfIntegers, maps);

}  // namespace
}  // namespace elidex::testing
