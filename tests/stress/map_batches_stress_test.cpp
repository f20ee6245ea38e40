// multi_upsert() and multi_erase() of threads that change neighbouring keys: leaves fill, split and
// merge in the middle of batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "elidex/internal/tree/ordered_tree.hpp"
#include "support/fixed_key_trees.hpp"
#include "support/policies_under_test.hpp"
#include "support/random_seed.hpp"
#include "support/spread_threads.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;

constexpr int threads = 3;

// Changes the keys n with n % threads == thread, which no other thread changes, and compares each
// result with a std::map's. Returns what differed, or "".
template <class Map>
std::string difference_of_own_keys(Map& map, int thread, int rounds, u64 seed) {
  random_numbers random(seed + static_cast<u64>(thread));
  std::map<u64, u64> expected;
  for (int round = 0; round < rounds; ++round) {
    // The keys of a batch lie anywhere, or side by side. Some occur twice.
    const bool narrow = random.below(3) == 0;
    const u64 first = random.below(narrow ? 900 : 1);
    std::vector<u64> keys(1 + random.below(40));
    for (u64& key : keys)
      key = (first + random.below(narrow ? 30 : 1000)) * threads + static_cast<u64>(thread);
    if (random.below(4) == 0) std::ranges::sort(keys);
    const bool shrinking = round / 40 % 2 == 1;
    std::size_t counted = 0;
    if (random.below(4) < (shrinking ? 3U : 1U)) {
      for (const u64 key : keys) counted += expected.erase(key);
      if (map.multi_erase(std::span<const u64>(keys)) != counted) return "multi_erase";
    } else {
      std::vector<u64> values;
      for (const u64 key : keys) {
        values.push_back(random());
        counted += expected.insert_or_assign(key, values.back()).second ? 1U : 0U;
      }
      if (map.multi_upsert(std::span<const u64>(keys), std::span<const u64>(values)) != counted)
        return "multi_upsert";
    }
    std::vector<std::optional<u64>> found(keys.size());
    map.multi_get(std::span<const u64>(keys), std::span(found));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto at = expected.find(keys[i]);
      if (found[i] != (at == expected.end() ? std::nullopt : std::optional(at->second)))
        return "multi_get";
    }
  }
  std::size_t seen = 0;
  map.scan(0, SIZE_MAX, [&](u64 key, u64) {
    if (key % threads == static_cast<u64>(thread)) seen += expected.contains(key) ? 1U : 10'000U;
  });
  return seen == expected.size() ? "" : "the keys at the end";
}

template <class Map>
std::string difference(int rounds) {
  Map map;
  std::vector<std::string> found(threads);
  {
    std::vector<std::jthread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        stay_on_nth_core(t);
        found[static_cast<std::size_t>(t)] = difference_of_own_keys(map, t, rounds, seed_or(5));
      });
    }
  }
  for (const std::string& what : found) {
    if (!what.empty()) return what;
  }
  return "";
}

template <class Map>
class MapBatchesStress : public ::testing::Test {};
using maps =
    ::testing::Types<ordered_tree<u64, u64>,
                     fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>,
                     fixed_key_btree<u64, u64, optimistic, tiny_partitioned, restless_control>,
                     fixed_key_btree<u64, u64, optimistic, tiny_bucketed, no_control>,
                     fixed_key_btree<u64, u64, elided_regions, tiny_partitioned, always_control>>;
TYPED_TEST_SUITE(MapBatchesStress, maps);

TYPED_TEST(MapBatchesStress, DoWhatSingleCallsDo) {
  EXPECT_EQ(difference<TypeParam>(repetitions(10'000)), "");
}

// The last value of a key does not stay.
struct upserts_backwards : ordered_tree<u64, u64> {
  std::size_t multi_upsert(std::span<const u64> wanted, std::span<const u64> given) {
    const std::vector<u64> backwards(wanted.rbegin(), wanted.rend());
    const std::vector<u64> their_values(given.rbegin(), given.rend());
    return ordered_tree<u64, u64>::multi_upsert(backwards, their_values);
  }
};
// Loses a key of a batch in which a leaf is split.
struct loses_a_key : fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control> {
  std::size_t multi_upsert(std::span<const u64> wanted, std::span<const u64> given) {
    const std::int64_t before = stats().splits;
    const std::size_t added = fixed_key_btree::multi_upsert(wanted, given);
    if (stats().splits != before) erase(wanted.back());
    return added;
  }
};

TEST(MapBatchesStressCanary, BrokenBatchesAreFound) {
  EXPECT_NE(difference<upserts_backwards>(4'000), "");
  EXPECT_NE(difference<loses_a_key>(4'000), "");
}

}  // namespace
}  // namespace elidex::testing
