// Masstree under its own protocol and under locks, against std::map; and what is left of it when
// all keys are gone.
#include <algorithm>
#include <vector>

#include "papers/eunomia/masstree.hpp"
#include "support/integer_model_tests.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using u64 = std::uint64_t;

using maps =
    ::testing::Types<masstree<u64, u64, optimistic>, masstree<u64, u64, optimistic, 3>,
                     masstree<u64, u64, optimistic, 4>, masstree<u64, u64, unsynchronized, 3>,
                     masstree<u64, u64, coarse_mutex>, masstree<u64, u64, coarse_shared, 3>,
                     masstree<u64, u64, coarse_elided_dbx>, masstree<u64, u64, coarse_elided, 4>,
                     masstree<std::int32_t, wide_value, optimistic, 5>,
                     masstree<std::int8_t, std::uint16_t, optimistic, 3>,
                     masstree<std::uint16_t, std::array<char, 3>, coarse_mutex>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Masstree, ModelOfIntegers, maps);

// In random orders too, so that leaves go from the middle of inner nodes, from their ends, and
// along with them.
template <class Map>
void comes_back_to_one_leaf() {
  Map map;
  random_numbers random(seed_or(1));
  std::vector<u64> keys(3'000);
  for (u64 i = 0; i < keys.size(); ++i) keys[i] = i;
  std::size_t bytes = 0;
  for (int round = 0; round < 8; ++round) {
    for (std::size_t i = keys.size(); i > 1 && round >= 2; --i)
      std::swap(keys[i - 1], keys[random.below(i)]);
    for (const u64 k : keys) ASSERT_TRUE(map.insert(k, k));
    EXPECT_GT(map.stats().inner_nodes, 0u);
    if (round == 1) std::reverse(keys.begin(), keys.end());
    for (const u64 k : keys) ASSERT_TRUE(map.erase(k));
    map.reclaim();
    EXPECT_EQ(map.stats().retired_objects, 0u);
    EXPECT_EQ(map.stats().leaves, 1u);
    EXPECT_EQ(map.stats().inner_nodes, 0u);
    if (round == 4) bytes = map.memory_bytes();
  }
  EXPECT_LE(map.memory_bytes(), bytes + bytes / 4);
}

TEST(MasstreeMemory, ComesBackWhenAllKeysAreErased) {
  comes_back_to_one_leaf<masstree<u64, u64, optimistic>>();
  comes_back_to_one_leaf<masstree<u64, u64, optimistic, 3>>();
  comes_back_to_one_leaf<masstree<u64, u64, coarse_mutex, 4>>();
}

TEST(Masstree, InsertOrGetKeepsAValueThatIsThere) {
  masstree<u64, u64, optimistic, 3> map;
  for (u64 k = 0; k < 100; ++k) EXPECT_EQ(map.insert_or_get(k, k + 1), std::pair(k + 1, true));
  for (u64 k = 0; k < 100; ++k) EXPECT_EQ(map.insert_or_get(k, 0), std::pair(k + 1, false));
  EXPECT_EQ(map.size(), 100u);
}

TEST(MasstreePermutation, KeepsSlotsApart) {
  using order = papers::permutation<15>;
  random_numbers random(seed_or(1));
  order p = order::first_slots(0);
  std::vector<unsigned> expected;
  for (int i = 0; i < 10'000; ++i) {
    if (expected.size() < 15 && (expected.empty() || random.below(2) == 0)) {
      const auto position = static_cast<unsigned>(random.below(expected.size() + 1));
      expected.insert(expected.begin() + position, p.slot(p.count()));
      p = p.inserted(position);
    } else {
      const auto position = static_cast<unsigned>(random.below(expected.size()));
      expected.erase(expected.begin() + position);
      p = p.removed(position);
    }
    ASSERT_EQ(p.count(), expected.size());
    unsigned seen = 0;
    for (unsigned k = 0; k < 15; ++k) {
      if (k < expected.size()) {
        ASSERT_EQ(p.slot(k), expected[k]);
      }
      seen |= 1u << p.slot(k);
    }
    ASSERT_EQ(seen, 0x7fffu);
  }
}

}  // namespace
}  // namespace elidex::testing
