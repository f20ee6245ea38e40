// Every tree under explored interleavings: short histories on trees so small that every operation splits or merges
// something, each checked for linearizability.
#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "elidex/ordered_map.hpp"
#include "schedule/explore.hpp"
#include "support/broken_maps.hpp"
#include "support/linearizability.hpp"
#include "support/model.hpp"
#include "support/policies_under_test.hpp"
#include "support/scattered_trees.hpp"
#include "support/strings_as_integers.hpp"

namespace elidex::testing {
namespace {

constexpr std::size_t threads = 3;
constexpr std::size_t events_per_thread = 4;

template <class Map>
struct history {
  Map map;
  map_state before;
  std::array<std::vector<event>, threads> plans;

  using made_by_seed = void;
  explicit history(u64 seed) {
    random_numbers random(seed);
    for (int i = 0; i < 16; ++i) {  // grown and shrunk, so that nodes are in all states between sparse and full
      const u64 key = random.below(history_keys);
      if (random.below(3) != 0) {
        map.upsert(key, static_cast<u64>(i));
        before[key] = static_cast<u64>(i);
      } else {
        map.erase(key);
        before[key].reset();
      }
    }
    const bool with_scanner = random.below(2) == 0;
    for (std::size_t t = 0; t < threads; ++t) {
      for (std::size_t i = 0; i < events_per_thread; ++i) {
        event e;
        e.what = with_scanner && t == 0 ? call::scan : static_cast<call>(random.below(6));
        e.key = e.what == call::scan ? random.below(2) : random.below(history_keys);
        e.value = random() >> 8;
        plans[t].push_back(e);
      }
    }
  }

  std::vector<std::function<void()>> bodies() {
    std::vector<std::function<void()>> all;
    for (auto& plan : plans) {
      all.emplace_back([this, &plan] {
        for (event& e : plan) {
          const auto begin = static_cast<std::int64_t>(sim::steps());
          perform(map, e);
          e.begin = begin;
          e.end = static_cast<std::int64_t>(sim::steps());
        }
      });
    }
    return all;
  }

  std::string verdict() {
    std::vector<event> all;
    for (const auto& plan : plans) all.insert(all.end(), plan.begin(), plan.end());
    std::map<u64, u64> left;
    for (u64 key = 0; key < history_keys; ++key) {
      event e;
      e.what = call::get;
      e.key = key;
      e.got = map.get(key);
      e.begin = e.end = INT64_MAX;
      if (e.got) left.emplace(key, *e.got);
      all.push_back(e);
    }
    if (!linearizability(all).holds(before)) return "not linearizable";
    return content_difference(map, left);
  }
};

template <class Map>
class MapSchedules : public ::testing::Test {};
using maps =
    ::testing::Types<btree<u64, u64, optimistic, fan_out<2, 3>>, btree<u64, u64, optimistic, fan_out<4, 4>>,
                     ordered_map<u64, u64>, btree<u64, u64, coarse_mutex, fan_out<2, 3>>,
                     btree<u64, u64, coarse_spin, fan_out<2, 3>>, btree<u64, u64, coarse_shared, fan_out<2, 3>>,
                     btree<u64, u64, coarse_hle, fan_out<2, 3>>, btree<u64, u64, coarse_elided, fan_out<2, 3>>,
                     btree<u64, u64, coarse_elided_noretry, fan_out<2, 3>>,
                     btree<u64, u64, coarse_elided_dbx, fan_out<2, 3>>,
                     strings_as_integers<btree<std::string, std::string, optimistic, fan_out<2, 3>>>,
                     strings_as_integers<btree<std::string, std::string, coarse_elided, fan_out<2, 3>>>>;
TYPED_TEST_SUITE(MapSchedules, maps);

using eunomia_maps =
    ::testing::Types<scattered_btree<u64, u64, elided_regions, tiny_scattered, restless_control>,
                     scattered_btree<u64, u64, elided_regions_dbx, tiny_scattered, always_control>,
                     scattered_btree<u64, u64, elided_regions, dense_fan_out<3, 3>, no_control>,
                     scattered_btree<u64, u64, elided_regions, keys_apart_fan_out<3, 3>, restless_control>,
                     scattered_btree<u64, u64, spinning_regions, tiny_scattered, restless_control>,
                     scattered_btree<u64, u64, locked_regions, keys_apart_fan_out<3, 3>, no_control>,
                     scattered_btree<u64, u64, optimistic, tiny_scattered, restless_control>,
                     scattered_btree<u64, u64, optimistic, keys_apart_fan_out<3, 3>, no_control>,
                     scattered_btree<u64, u64, optimistic, keys_apart_fan_out<12, 3>, always_control>>;
template <class Map>
class EunomiaSchedules : public MapSchedules<Map> {};
TYPED_TEST_SUITE(EunomiaSchedules, eunomia_maps);

TYPED_TEST(EunomiaSchedules, AreLinearizable) {
  EXPECT_EQ(explore<history<TypeParam>>(static_cast<u64>(300 * effort())), "");
}

TEST(EunomiaSchedulesCanary, AMissingSequenceCheckIsFound) {
  EXPECT_NE((explore<history<scattered_btree<u64, u64, blind_regions, tiny_scattered, no_control>>>(2'000)), "");
}
TEST(EunomiaSchedulesCanary, AMissingMarkIsFound) {
  EXPECT_NE((explore<history<scattered_btree<u64, u64, spinning_regions, forgets_marks, always_control>>>(2'000)), "");
}
TEST(EunomiaSchedulesCanary, ALockOfValuesThatExcludesNobodyIsFound) {
  EXPECT_NE(
      (explore<history<scattered_btree<u64, u64, excludes_nobody, keys_apart_fan_out<12, 3>, no_control>>>(2'000)), "");
}

TYPED_TEST(MapSchedules, AreLinearizable) {
  EXPECT_EQ(explore<history<TypeParam>>(static_cast<u64>(300 * effort())), "");
}

// A version lock that says yes to everything; all keys lie in one leaf, which is never split.
TEST(MapSchedulesCanary, ALockThatValidatesNothingIsFound) {
  EXPECT_NE((explore<history<btree<u64, u64, validates_nothing>>>(2'000)), "");
}
TEST(MapSchedulesCanary, LostUpdatesAndPiecemealScansAreFound) {
  EXPECT_NE((explore<history<loses_updates>>(2'000)), "");
  EXPECT_NE((explore<history<scans_piecemeal>>(2'000)), "");
}

}  // namespace
}  // namespace elidex::testing
