// Every tree under explored interleavings: short histories on trees so small that every operation splits or merges
// something, each checked for linearizability.
#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "elidex/index/masstree.hpp"
#include "elidex/ordered_map.hpp"
#include "schedule/explore.hpp"
#include "support/broken_maps.hpp"
#include "support/linearizability.hpp"
#include "support/model.hpp"
#include "support/policies_under_test.hpp"
#include "support/strings_as_integers.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

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
using maps = ::testing::Types<
    btree<u64, u64, optimistic, fan_out<2, 3>>, btree<u64, u64, optimistic, fan_out<4, 4>>, ordered_map<u64, u64>,
    masstree<u64, u64, optimistic, 3>, masstree<u64, u64, optimistic, 4>, masstree<u64, u64, coarse_mutex, 3>,
    masstree<u64, u64, coarse_elided_dbx, 3>, btree<u64, u64, coarse_mutex, fan_out<2, 3>>,
    btree<u64, u64, coarse_spin, fan_out<2, 3>>, btree<u64, u64, coarse_shared, fan_out<2, 3>>,
    btree<u64, u64, coarse_hle, fan_out<2, 3>>, btree<u64, u64, coarse_elided, fan_out<2, 3>>,
    btree<u64, u64, coarse_elided_noretry, fan_out<2, 3>>, btree<u64, u64, coarse_elided_dbx, fan_out<2, 3>>,
    strings_as_integers<btree<std::string, std::string, optimistic, fan_out<2, 3>>>,
    strings_as_integers<btree<std::string, std::string, coarse_elided, fan_out<2, 3>>>>;
TYPED_TEST_SUITE(MapSchedules, maps);

TYPED_TEST(MapSchedules, AreLinearizable) {
  EXPECT_EQ(explore<history<TypeParam>>(static_cast<u64>(300 * effort())), "");
}

// A version lock that says yes to everything; all keys lie in one leaf, which is never split.
TEST(MapSchedulesCanary, ALockThatValidatesNothingIsFound) {
  EXPECT_NE((explore<history<btree<u64, u64, validates_nothing>>>(2'000)), "");
}
// A Masstree whose operations never walk right, nor begin again, when a node on their way has been split.
struct ignores_splits : optimistic {
  struct masstree_version : detail::masstree_version<true> {
    using detail::masstree_version<true>::masstree_version;
    static bool split_between(token, token) noexcept { return false; }
  };
};
TEST(MapSchedulesCanary, AMasstreeThatIgnoresSplitsIsFound) {
  EXPECT_NE((explore<history<masstree<u64, u64, ignores_splits, 3>>>(2'000)), "");
}
// One whose readers believe what they saw of a node that was being changed.
struct ignores_marks : optimistic {
  struct masstree_version : detail::masstree_version<true> {
    using detail::masstree_version<true>::masstree_version;
    bool changed_since(token) const noexcept { return false; }
  };
};
TEST(MapSchedulesCanary, AMasstreeThatIgnoresMarksIsFound) {
  EXPECT_NE((explore<history<masstree<u64, u64, ignores_marks, 3>>>(2'000)), "");
}
TEST(MapSchedulesCanary, LostUpdatesAndPiecemealScansAreFound) {
  EXPECT_NE((explore<history<loses_updates>>(2'000)), "");
  EXPECT_NE((explore<history<scans_piecemeal>>(2'000)), "");
}

}  // namespace
}  // namespace elidex::testing
