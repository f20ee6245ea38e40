// Every tree under explored interleavings: short histories on trees so small that every operation
// splits or merges something, each checked for linearizability.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "elidex/ordered_map.hpp"
#include "papers/eunomia/euno_btree.hpp"
#include "papers/eunomia/euno_skip_list.hpp"
#include "papers/eunomia/lock_free_skip_list.hpp"
#include "papers/eunomia/locked_skip_list.hpp"
#include "papers/eunomia/masstree.hpp"
#include "papers/eunomia/skip_list.hpp"
#include "schedule/explore.hpp"
#include "schedule/histories.hpp"
#include "support/broken_maps.hpp"
#include "support/fixed_key_trees.hpp"
#include "support/linearizability.hpp"
#include "support/map_faces.hpp"
#include "support/model.hpp"
#include "support/policies_under_test.hpp"
#include "support/small_slotted.hpp"
#include "support/sparse_masstree.hpp"
#include "support/strings_as_integers.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

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
    for (u64 key = 0; key < history_keys; ++key) before[key] = map.get(key);  // some come with keys
    // grown and shrunk, so that nodes are in all states between sparse and full
    for (int i = 0; i < 16; ++i) {
      const u64 key = random.below(history_keys);
      if (random.below(3) != 0) {
        map.upsert(key, static_cast<u64>(i));
        before[key] = static_cast<u64>(i);
      } else {
        map.erase(key);
        before[key].reset();
      }
    }
    const std::vector<call> calls = calls_of<Map>(scans_are_snapshots<Map>);
    const bool with_scanner = scans_are_snapshots<Map> && random.below(2) == 0;
    for (std::size_t t = 0; t < threads; ++t) {
      for (std::size_t i = 0; i < events_per_thread; ++i) {
        event e;
        e.what = calls[random.below(calls.size())];
        if (with_scanner && t == 0)
          e.what = calls.back() == call::scan_down && i % 2 == 0 ? call::scan_down : call::scan;
        e.key = e.what == call::scan ? random.below(2) : random.below(history_keys);
        e.value = random() >> 8;
        plans[t].push_back(e);
      }
    }
  }

  std::vector<std::function<void()>> bodies() { return performing(map, plans); }

  std::string verdict() { return history_difference(map, plans, before); }
};

template <class Map>
class MapSchedules : public ::testing::Test {};
using maps = ::testing::Types<
    btree<u64, u64, optimistic, fan_out<2, 3>>, btree<u64, u64, optimistic, fan_out<4, 4>>,
    ordered_tree<u64, u64>, masstree<u64, u64, optimistic, 3>, masstree<u64, u64, optimistic, 4>,
    masstree<u64, u64, coarse_mutex, 3>, masstree<u64, u64, coarse_elided_dbx, 3>,
    sparse_masstree<optimistic>, sparse_masstree<coarse_elided_dbx>,
    btree<u64, u64, coarse_mutex, fan_out<2, 3>>, btree<u64, u64, coarse_spin, fan_out<2, 3>>,
    btree<u64, u64, coarse_shared, fan_out<2, 3>>, btree<u64, u64, coarse_hle, fan_out<2, 3>>,
    btree<u64, u64, coarse_elided, fan_out<2, 3>>,
    btree<u64, u64, coarse_elided_noretry, fan_out<2, 3>>,
    btree<u64, u64, coarse_elided_dbx, fan_out<2, 3>>,
    strings_as_integers<btree<std::string, std::string, optimistic, fan_out<2, 3>>>,
    strings_as_integers<btree<std::string, std::string, coarse_elided, fan_out<2, 3>>>,
    strings_as_integers<btree<std::string, u64, optimistic, small_slotted>>,
    strings_as_integers<btree<std::string, std::string, optimistic, small_slotted>>,
    strings_as_integers<btree<std::string, u64, coarse_elided, small_slotted>>,
    skip_list<u64, u64, coarse_elided_dbx, 1>, locked_skip_list<u64, u64, 1>,
    lock_free_skip_list<u64, u64, 1>,
    euno_skip_list<u64, u64, htm_split_regions, euno_skip_parts, 1>,
    euno_skip_list<u64, u64, split_by_mutexes, always_controlled, 1>,
    euno_skip_list<u64, u64, htm_split_regions, always_changing_control, 1>,
    euno_skip_list<u64, u64, split_by_mutexes, always_changing_control, 1>,
    face_as_integers<ordered_map<u64, u64>>,
    face_as_integers<ordered_map<std::string, std::string>>,
    face_as_integers<ordered_map<u64, std::unique_ptr<u64>>>>;
TYPED_TEST_SUITE(MapSchedules, maps);

using eunomia_maps = ::testing::Types<
    fixed_key_btree<u64, u64, elided_regions, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, elided_regions_dbx, tiny_partitioned, always_control>,
    fixed_key_btree<u64, u64, elided_regions, dense_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, elided_regions, separated_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, elided_regions, tiny_partitioned, locking_control>,
    fixed_key_btree<u64, u64, elided_regions, separated_fan_out<3, 3>, restless_control>,
    fixed_key_btree<u64, u64, spinning_regions, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, locked_regions, separated_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, optimistic, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, optimistic, separated_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, optimistic, separated_fan_out<12, 3>, always_control>,
    fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>>;
template <class Map>
class EunomiaSchedules : public MapSchedules<Map> {};
TYPED_TEST_SUITE(EunomiaSchedules, eunomia_maps);

TYPED_TEST(EunomiaSchedules, AreLinearizable) {
  EXPECT_EQ(explore<history<TypeParam>>(static_cast<u64>(300 * effort())), "");
}

TEST(EunomiaSchedulesCanary, AMissingSequenceCheckIsFound) {
  EXPECT_NE(
      (explore<history<fixed_key_btree<u64, u64, blind_regions, tiny_partitioned, no_control>>>(
          2'000)),
      "");
}
TEST(EunomiaSchedulesCanary, AMissingMarkIsFound) {
  EXPECT_NE(
      (explore<history<fixed_key_btree<u64, u64, spinning_regions, forgets_marks, always_control>>>(
          2'000)),
      "");
}
TEST(EunomiaSchedulesCanary, ALockOfValuesThatExcludesNobodyIsFound) {
  EXPECT_NE((explore<history<
                 fixed_key_btree<u64, u64, excludes_nobody, separated_fan_out<12, 3>, no_control>>>(
                2'000)),
            "");
}

TYPED_TEST(MapSchedules, AreLinearizable) {
  EXPECT_EQ(explore<history<TypeParam>>(static_cast<u64>(300 * effort())), "");
}

// A version lock that says yes to everything; all keys lie in one leaf, which is never split.
TEST(MapSchedulesCanary, ALockThatValidatesNothingIsFound) {
  EXPECT_NE((explore<history<btree<u64, u64, validates_nothing>>>(2'000)), "");
  using strings = btree<std::string, u64, validates_nothing, small_slotted>;
  EXPECT_NE((explore<history<strings_as_integers<strings>>>(2'000)), "");
}
// A Masstree whose operations never walk right, nor begin again, when a node on their way has been
// split.
struct ignores_splits : optimistic {
  struct masstree_version : papers::masstree_version<true> {
    using papers::masstree_version<true>::masstree_version;
    static bool split_between(token, token) noexcept { return false; }
  };
};
TEST(MapSchedulesCanary, AMasstreeThatIgnoresSplitsIsFound) {
  EXPECT_NE((explore<history<sparse_masstree<ignores_splits>>>(2'000)), "");
  EXPECT_NE((explore<history<masstree<u64, u64, ignores_splits, 3>>>(2'000)), "");
}
// One whose readers believe what they saw of a node that was being changed.
struct ignores_marks : optimistic {
  struct masstree_version : papers::masstree_version<true> {
    using papers::masstree_version<true>::masstree_version;
    bool changed_since(token) const noexcept { return false; }
  };
};
TEST(MapSchedulesCanary, AMasstreeThatIgnoresMarksIsFound) {
  EXPECT_NE((explore<history<masstree<u64, u64, ignores_marks, 3>>>(2'000)), "");
}

// The sparse trees are as deep as is said of them, and lose nodes while others look for keys below
// them.
TEST(MapSchedules, SparseTreesLoseNodes) {
  u64 losing = 0;
  for (u64 seed = 1; seed <= 20; ++seed) {
    history<sparse_masstree<optimistic>> program(seed);
    const masstree_stats before = program.map.stats();
    EXPECT_GT(before.inner_nodes, 10u);
    const auto schedule = schedule_of(seed);
    sim::run(sim::small_machine(), {.schedule = schedule.get()}, program.bodies());
    losing += program.map.stats().removals > before.removals ? 1u : 0u;
  }
  EXPECT_GE(losing, 5u);
}

// A lock-free erase that takes a node out without marking it: what comes in behind it meanwhile is
// lost.
struct unlinks_without_marking : lock_free_list_rules {
  static constexpr bool marks_before_unlinking = false;
};
TEST(MapSchedulesCanary, ALockFreeListThatDoesNotMarkIsFound) {
  EXPECT_NE((explore<history<lock_free_skip_list<u64, u64, 1, unlinks_without_marking>>>(2'000)),
            "");
}
// One key comes while it goes, in towers of two: what has gone must not stay linked above. All
// schedules with two preemptions.
template <class Rules>
struct two_levels : Rules {
  template <unsigned /*BitsPerLevel*/>
  struct heights {
    unsigned draw() noexcept { return 2; }
  };
};
template <class Rules>
struct a_key_comes_while_it_goes {
  lock_free_skip_list<u64, u64, 1, two_levels<Rules>> map;
  a_key_comes_while_it_goes() { map.insert(5, 0); }
  std::vector<std::function<void()>> bodies() {
    return {[this] { map.insert(5, 1); }, [this] { map.erase(5); }};
  }
  std::string verdict() const { return map.is_sound() ? "" : "an erased node is still linked"; }
};
struct lets_equal_keys_meet : lock_free_list_rules {
  static constexpr bool keeps_equal_keys_apart = false;
};
TEST(MapSchedules, ALockFreeListUnlinksWhatItRetires) {
  u64 schedules = 0;
  EXPECT_EQ(explore_all<a_key_comes_while_it_goes<lock_free_list_rules>>(2, schedules), "");
  EXPECT_GT(schedules, 100u);
}
TEST(MapSchedulesCanary, ALockFreeListThatLetsEqualKeysMeetIsFound) {
  u64 schedules = 0;
  EXPECT_NE(explore_all<a_key_comes_while_it_goes<lets_equal_keys_meet>>(2, schedules), "");
}
// A segment's sequence number that says yes to everything.
struct ignores_sequence : split_by_mutexes {
  struct sequence : region_sequence {
    bool validate(token) const noexcept { return true; }
  };
};
TEST(MapSchedulesCanary, AnEunoListThatIgnoresSequenceNumbersIsFound) {
  EXPECT_NE(
      (explore<history<euno_skip_list<u64, u64, ignores_sequence, nothing_but_split_regions, 1>>>(
          20'000)),
      "");
}
// An insert into a controlled segment that sets no mark.
struct sets_no_marks : always_controlled {
  struct control : segment_control {
    void mark(unsigned) noexcept {}
  };
};
TEST(MapSchedulesCanary, AnEunoListThatForgetsMarksIsFound) {
  EXPECT_NE((explore<history<euno_skip_list<u64, u64, split_by_mutexes, sets_no_marks, 1>>>(2'000)),
            "");
}
TEST(MapSchedulesCanary, LostUpdatesAndPiecemealScansAreFound) {
  EXPECT_NE((explore<history<loses_updates>>(2'000)), "");
  EXPECT_NE((explore<history<scans_piecemeal>>(2'000)), "");
}
TEST(MapSchedulesCanary, FunctionsInTwoStepsAreFound) {
  using map = face_as_integers<ordered_map<u64, u64>>;
  EXPECT_NE((explore<history<computes_in_two_steps<map>>>(2'000)), "");
  EXPECT_NE((explore<history<extracts_in_two_steps<map>>>(2'000)), "");
  EXPECT_NE((explore<history<scans_down_piecemeal<map>>>(2'000)), "");
}

}  // namespace
}  // namespace elidex::testing
