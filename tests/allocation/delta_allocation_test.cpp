// Every allocation of every addition to a delta index fails once: the index stays as it was, and
// the addition comes through when it is tried again.
#include <gtest/gtest.h>

#include <map>
#include <new>
#include <string>

#include "support/delta_indexes.hpp"
#include "support/failing_allocations.hpp"
#include "support/policies_under_test.hpp"
#include "support/random_seed.hpp"
#include "support/samples.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using u64 = std::uint64_t;

template <class Index>
class DeltaAllocationFailure : public ::testing::Test {};
using indexes = ::testing::Types<delta_index<u64, optimistic, tiny_friendly>,
                                 delta_index<u64, coarse_spin, tiny_original>,
                                 delta_index<u64, coarse_elided, tiny_friendly>,
                                 delta_index<std::string, optimistic, tiny_friendly>,
                                 delta_index<std::string, coarse_mutex, tiny_original>,
                                 keyed_delta_index<u64>, keyed_delta_index<std::string>>;
TYPED_TEST_SUITE(DeltaAllocationFailure, indexes);

TYPED_TEST(DeltaAllocationFailure, LeavesTheIndexUnchangedAndUsable) {
  using value = typename TypeParam::value_type;
  constexpr u64 values = 2'000;
  random_numbers random(seed_or(1));
  TypeParam index;
  std::map<value, typename TypeParam::id_type> expected;
  int reported = 0;
  for (int i = 0; i < 3'000; ++i) {
    const value v = sample<value>::of(random.below(values));
    for (int nth = 1;; ++nth) {
      bool threw = false;
      bool failed = false;
      typename TypeParam::added added{};
      {
        const failing_allocation armed(nth);
        try {
          added = index.find_or_add(v);
        } catch (const std::bad_alloc&) {
          threw = true;
        }
        failed = failing_allocation::has_failed();
      }
      if (!threw) {  // what the test itself allocates shall not fail
        const auto [at, is_new] = expected.emplace(v, added.id);
        ASSERT_EQ(added.is_new, is_new);
        ASSERT_EQ(added.id, at->second);
        break;
      }
      ASSERT_TRUE(failed);
      ++reported;
      ASSERT_EQ(index.size(), expected.size());
      ASSERT_EQ(index.find(v).has_value(), expected.contains(v));
    }
  }
  EXPECT_GT(reported, 10);
  auto at = expected.begin();
  index.scan_all([&](const auto& v, auto id) {
    ASSERT_NE(at, expected.end());
    EXPECT_EQ(v, at->first);
    EXPECT_EQ(id, at->second);
    ++at;
  });
  EXPECT_EQ(at, expected.end());
}

}  // namespace
}  // namespace elidex::testing
