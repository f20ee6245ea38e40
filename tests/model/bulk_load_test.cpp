// bulk_load(): what was loaded is there and can be changed; what cannot be loaded changes nothing.
#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "elidex/ordered_map.hpp"
#include "support/fixed_key_trees.hpp"
#include "support/model.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

template <class Map>
class BulkLoad : public ::testing::Test {};
using maps =
    ::testing::Types<fixed_key_btree<u64, u64, locked_regions, tiny_partitioned, always_control>,
                     fixed_key_btree<u64, u64, elided_regions, dense_fan_out<4, 3>, no_control>,
                     fixed_key_btree<u64, u64, optimistic, separated_fan_out<3, 3>, no_control>,
                     fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>,
                     fixed_key_btree<u64, u64, optimistic, packed_fan_out<20, 4>, restless_control>,
                     ordered_tree<u64, u64>>;
TYPED_TEST_SUITE(BulkLoad, maps);

// `count` keys so far apart: close together, and from one end of all keys to the other.
std::map<u64, u64> records_of(u64 count, u64 gap) {
  std::map<u64, u64> records;
  for (u64 i = 0; i < count; ++i) records[i * gap + i % 3] = i;
  return records;
}

TYPED_TEST(BulkLoad, EverySizeAndWidth) {
  for (const u64 count :
       {0u, 1u, 2u, 3u, 4u, 5u, 17u, 70u, 71u, 72u, 75u, 76u, 150u, 1'000u, 5'000u}) {
    for (const u64 gap : {u64{3}, u64{256}, u64{1} << 40U, ~u64{0} / (count + 1)}) {
      const auto records = records_of(count, gap);
      TypeParam map;
      map.bulk_load(records);
      ASSERT_EQ(content_difference(map, records), "") << count << " keys, " << gap << " apart";
      ASSERT_EQ(map.size(), records.size());
    }
  }
}

TYPED_TEST(BulkLoad, ItsTreeCanBeChanged) {
  auto records = records_of(2'000, 1'000);
  TypeParam map;
  map.bulk_load(records);
  for (u64 i = 0; i < 2'000; ++i) {
    const u64 key = i * 7919 % 2'000'000;
    ASSERT_EQ(map.insert(key, i), records.try_emplace(key, i).second);
  }
  for (u64 i = 0; i < 3'000; ++i) {
    const u64 key = i * 1'000 + i % 3;
    ASSERT_EQ(map.erase(key), records.erase(key) == 1);
  }
  EXPECT_EQ(content_difference(map, records), "");
}

TYPED_TEST(BulkLoad, RefusesWhatIsNotInOrderOrNotEmpty) {
  TypeParam map;
  const std::vector<std::pair<u64, u64>> twice{{1, 1}, {2, 2}, {2, 3}};
  const std::vector<std::pair<u64, u64>> descending{{5, 1}, {4, 2}};
  EXPECT_THROW(map.bulk_load(twice), std::invalid_argument);
  EXPECT_THROW(map.bulk_load(descending), std::invalid_argument);
  EXPECT_EQ(map.size(), 0u);
  map.insert(9, 9);
  EXPECT_THROW(map.bulk_load(records_of(100, 5)), std::logic_error);
  EXPECT_EQ(content_difference(map, std::map<u64, u64>{{9, 9}}), "");
  map.erase(9);
  map.bulk_load(records_of(100, 5));
  EXPECT_EQ(map.size(), 100u);
}

// Others see all of it or nothing, and whoever inserts first makes it fail.
TYPED_TEST(BulkLoad, AppearsAtOneMoment) {
  const auto records = records_of(3'000, 11);
  for (int round = 0; round < 20; ++round) {
    TypeParam map;
    bool loaded = true;
    std::thread other([&] {
      std::size_t seen = 0;
      while (seen == 0) {
        seen = map.scan(0, 10'000, [](u64, u64) {});
        if (round % 2 == 1 && map.insert(1 + u64(round), 1)) break;
      }
      if (round % 2 == 0) {
        EXPECT_EQ(seen, records.size());
      }
    });
    try {
      map.bulk_load(records);
    } catch (const std::logic_error&) {
      loaded = false;
    }
    other.join();
    EXPECT_TRUE(loaded || round % 2 == 1);
    auto expected = loaded ? records : std::map<u64, u64>{};
    if (round % 2 == 1) expected.try_emplace(1 + u64(round), 1);
    EXPECT_EQ(content_difference(map, expected), "");
  }
}

}  // namespace
}  // namespace elidex::testing
