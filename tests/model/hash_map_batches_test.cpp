// Operations of hash_map on many keys, beside std::map, on one thread.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elidex/hash_map.hpp"
#include "support/hash_maps.hpp"
#include "support/random_seed.hpp"
#include "support/samples.hpp"

namespace elidex::testing {
namespace {

using std::uint64_t;

// Batches of any length, with the same key several times, while the table grows and shrinks.
template <class Map>
void batches_agree() {
  using key_type = typename Map::key_type;
  Map map;
  std::map<key_type, uint64_t> expected;
  random_numbers random(seed_or(3));
  for (int round = 0; round < 300; ++round) {
    const uint64_t range = round % 100 < 50 ? 3'000 : 100;
    std::vector<key_type> keys(random.below(200));
    for (key_type& key : keys) key = sample<key_type>::of(random.below(range));
    std::vector<uint64_t> values;
    std::size_t added = 0;
    for (const key_type& key : keys) {
      values.push_back(random());
      added += expected.insert_or_assign(key, values.back()).second ? 1U : 0U;
    }
    EXPECT_EQ(map.multi_upsert(keys, values), added);
    for (key_type& key : keys) key = sample<key_type>::of(random.below(range));
    std::vector<std::optional<uint64_t>> found(keys.size(), 1);
    map.multi_get(keys, found);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto at = expected.find(keys[i]);
      ASSERT_EQ(found[i], at == expected.end() ? std::nullopt : std::optional(at->second));
    }
    std::size_t erased = 0;
    for (const key_type& key : keys) erased += expected.erase(key);
    EXPECT_EQ(map.multi_erase(keys), erased);
    ASSERT_EQ(map.size(), expected.size());
  }
}
TEST(HashMapBatches, AgreeWithStdMap) {
  batches_agree<hash_map<uint64_t, uint64_t>>();
  batches_agree<hash_map<uint64_t, uint64_t, same_for_all>>();
  batches_agree<hash_map<std::string, uint64_t>>();
}

}  // namespace
}  // namespace elidex::testing
