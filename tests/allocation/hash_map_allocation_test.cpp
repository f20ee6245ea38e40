// Every allocation of every operation on a hash map fails once: the map stays as it was, and works.
#include <gtest/gtest.h>

#include "support/allocation_harm.hpp"
#include "support/hash_maps.hpp"

namespace elidex::testing {

// Goes on without a larger table.
template <class Key, class Value, class Hash, class Rules>
inline constexpr bool hides_failures<in_order<hash_index<Key, Value, Hash, Rules>>> = true;

namespace {

using std::uint64_t;

template <class Map>
class HashMapAllocationFailure : public ::testing::Test {};
using maps = ::testing::Types<
    in_order<hash_index<uint64_t, uint64_t>>,
    in_order<hash_index<uint64_t, uint64_t, default_hash<uint64_t>, tiny_buckets>>,
    in_order<hash_index<uint64_t, uint64_t, same_for_all>>,
    in_order<hash_index<std::string, uint64_t, default_hash<std::string>, tiny_buckets>>,
    in_order<hash_index<std::string, std::string, default_hash<std::string>, long_chains>>>;
TYPED_TEST_SUITE(HashMapAllocationFailure, maps);

TYPED_TEST(HashMapAllocationFailure, LeavesTheMapUnchangedAndUsable) {
  allocation_failures failures;
  EXPECT_EQ(first_harm<TypeParam>(1'500 * effort(), 120, failures), "");
  EXPECT_GT(failures.reported, 10);
}

// Without memory the table stays as it is, and grows when there is some again.
TEST(HashMapAllocationFailure, GrowsLater) {
  hash_index<uint64_t, uint64_t, default_hash<uint64_t>, tiny_buckets> map;
  uint64_t kept_small = 0;
  for (uint64_t key = 0; key < 1'000; ++key) {
    const std::size_t before = map.stats().buckets;
    {
      // What fails is the growth, unless it is the chained block before it, which is reported.
      const failing_allocation armed(1);
      bool threw = false;
      try {
        map.insert(key, key);
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      if (!threw && failing_allocation::has_failed()) {
        ++kept_small;
        EXPECT_EQ(map.stats().buckets, before);
      }
    }
    map.upsert(key, key);
    for (uint64_t k = 0; k <= key; k += 1 + key / 20) ASSERT_EQ(map.get(k), k);
  }
  EXPECT_GT(kept_small, 0u);
  EXPECT_GT(map.stats().buckets, 256u);
  EXPECT_EQ(map.size(), 1'000u);
  const failing_allocation armed(1);
  EXPECT_THROW(map.reserve(10'000), std::bad_alloc);
}

}  // namespace
}  // namespace elidex::testing
