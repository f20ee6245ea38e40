// Concurrent histories of maps, checked for linearizability; with canaries.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "elidex/ordered_map.hpp"
#include "papers/eunomia/euno_skip_list.hpp"
#include "papers/eunomia/lock_free_skip_list.hpp"
#include "papers/eunomia/locked_skip_list.hpp"
#include "papers/eunomia/masstree.hpp"
#include "papers/eunomia/skip_list.hpp"
#include "support/broken_maps.hpp"
#include "support/concurrent_rounds.hpp"
#include "support/fixed_key_trees.hpp"
#include "support/linearizability.hpp"
#include "support/map_faces.hpp"
#include "support/policies_under_test.hpp"
#include "support/random_seed.hpp"
#include "support/small_slotted.hpp"
#include "support/sparse_masstree.hpp"
#include "support/spread_threads.hpp"
#include "support/strings_as_integers.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

constexpr int threads = 4;
constexpr std::size_t events_per_thread = 16;
static_assert(threads * events_per_thread <= history_events_max);

// Which calls a history is made of. Writers next to scanners find other bugs than all mixed.
std::vector<event> plan_of(random_numbers& random, int thread, bool with_specialists,
                           const std::vector<call>& calls) {
  const bool may_scan = std::ranges::count(calls, call::scan) != 0;
  std::vector<event> plan(events_per_thread);
  for (event& e : plan) {
    e.key = random.below(history_keys);
    e.value = random() >> 8;
    e.what = calls[random.below(calls.size())];
    if (!with_specialists || thread != 0) continue;
    e.what = random.below(4) == 0 || !may_scan ? call::get : call::scan;
    if (e.what == call::scan) e.key = random.below(2);
    if (e.what == call::scan && calls.back() == call::scan_down && e.value % 8 < 4) {
      e.what = call::scan_down;
      e.key = history_keys - 1 - e.key;
    }
  }
  return plan;
}

std::string words(const std::vector<event>& history) {
  static constexpr std::array names{"get",      "insert",  "upsert",   "add",
                                    "erase",    "scan",    "compute",  "upsert_with",
                                    "erase_if", "extract", "scan_down"};
  std::ostringstream out;
  const std::int64_t zero = history.empty() ? 0 : history.front().begin;
  for (const event& e : history) {
    out << names[static_cast<std::size_t>(e.what)] << " key " << e.key << " value " << e.value
        << " yes " << e.yes << " got " << (e.got ? std::to_string(*e.got) : "-") << " seen";
    for (const auto& [k, v] : e.seen) out << ' ' << k << '=' << v;
    out << " from " << e.begin - zero << " to " << e.end - zero << " ns\n";
  }
  return out.str();
}

// The first history that is not linearizable, in words; empty if there is none in so many rounds.
template <class Map>
std::string find_violation(int rounds, std::uint64_t seed) {
  Map map;
  map_state state;
  // some come with keys
  for (std::uint64_t key = 0; key < history_keys; ++key) state[key] = map.get(key);
  std::array<std::vector<event>, threads> plans;
  std::string violation;
  spinning_meeting all(threads);
  const auto plan_all = [&](int round) {
    random_numbers random(seed + static_cast<std::uint64_t>(round));
    for (int t = 0; t < threads; ++t)
      plans[static_cast<std::size_t>(t)] =
          plan_of(random, t, round % 2 == 0, calls_of<Map>(scans_are_snapshots<Map>));
  };
  plan_all(0);
  run_rounds(
      threads,
      [&](int t, int round) {
        if (round == 0) stay_on_nth_core(t);
        all.meet(round);
        for (event& e : plans[static_cast<std::size_t>(t)]) perform(map, e);
      },
      [&](int round) {
        std::vector<event> history;
        for (auto& plan : plans) history.insert(history.end(), plan.begin(), plan.end());
        if (!linearizability(history).holds(state)) {
          violation = "ELIDEX_TEST_SEED=" + std::to_string(seed) + " round " +
                      std::to_string(round) + "\n" + words(history);
          return false;
        }
        // The next history begins with what is there now: nobody is inside the map.
        for (std::uint64_t key = 0; key < history_keys; ++key) state[key] = map.get(key);
        plan_all(round + 1);
        return round + 1 < rounds;
      });
  return violation;
}

template <class Map>
class Linearizability : public ::testing::Test {};

using maps = ::testing::Types<
    btree<u64, u64, optimistic, fan_out<2, 3>>, btree<u64, u64, optimistic, fan_out<4, 4>>,
    ordered_tree<u64, u64>, masstree<u64, u64, optimistic, 3>, masstree<u64, u64, optimistic>,
    sparse_masstree<optimistic>, masstree<u64, u64, coarse_shared, 3>,
    masstree<u64, u64, coarse_elided_dbx, 3>, btree<u64, u64, coarse_mutex, fan_out<2, 3>>,
    btree<u64, u64, coarse_shared, fan_out<2, 3>>, btree<u64, u64, coarse_elided, fan_out<2, 3>>,
    strings_as_integers<btree<std::string, u64, optimistic, fan_out<2, 3>>>,
    strings_as_integers<btree<std::string, std::string, optimistic, fan_out<4, 4>>>,
    strings_as_integers<btree<std::string, std::string, coarse_shared, fan_out<2, 3>>>,
    strings_as_integers<ordered_tree<std::string, std::string>>,
    strings_as_integers<btree<std::string, u64, optimistic, small_slotted>>,
    strings_as_integers<btree<std::string, std::string, optimistic, small_slotted>>,
    fixed_key_btree<u64, u64, locked_regions, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, elided_regions, tiny_partitioned, always_control>,
    fixed_key_btree<u64, u64, locked_regions, separated_fan_out<3, 3>, restless_control>,
    fixed_key_btree<u64, u64, optimistic, tiny_partitioned, restless_control>,
    fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>,
    fixed_key_btree<u64, u64, optimistic, tiny_bucketed, no_control>,
    fixed_key_btree<u64, u64, elided_regions, tiny_bucketed, no_control>,
    fixed_key_btree<u64, u64, optimistic, separated_fan_out<3, 3>, no_control>,
    fixed_key_btree<u64, u64, optimistic, separated_fan_out<12, 4>, no_control>,
    skip_list<u64, u64, coarse_elided_dbx, 1>, locked_skip_list<u64, u64, 1>,
    lock_free_skip_list<u64, u64, 1>,
    euno_skip_list<u64, u64, htm_split_regions, euno_skip_parts, 1>,
    euno_skip_list<u64, u64, split_by_mutexes, always_controlled, 1>,
    euno_skip_list<u64, u64, split_by_mutexes, always_changing_control, 1>,
    face_as_integers<ordered_map<u64, u64>>,
    face_as_integers<ordered_map<std::string, std::string>>,
    face_as_integers<ordered_map<u64, std::vector<u64>>>,
    face_as_integers<ordered_map<std::string, std::unique_ptr<u64>>>>;
TYPED_TEST_SUITE(Linearizability, maps);

TYPED_TEST(Linearizability, OfRandomHistories) {
  EXPECT_EQ(find_violation<TypeParam>(repetitions(4'000), seed_or(1)), "");
}

// A thread that is preempted in the wrong place is rare on an idle machine; the planted bugs yield
// there.
TEST(LinearizabilityCanary, BrokenMapsAreFound) {
  EXPECT_NE(find_violation<loses_updates>(20'000, 1), "");
  EXPECT_NE(find_violation<strings_as_integers<loses_string_updates>>(20'000, 1), "");
  EXPECT_NE(find_violation<scans_piecemeal>(20'000, 1), "");
  EXPECT_NE(find_violation<gets_stale_values>(20'000, 1), "");
}

TEST(LinearizabilityCanary, FunctionsInTwoStepsAreFound) {
  using numbers = face_as_integers<ordered_map<u64, u64>>;
  using strings = face_as_integers<ordered_map<std::string, std::string>>;
  EXPECT_NE(find_violation<computes_in_two_steps<numbers>>(20'000, 1), "");
  EXPECT_NE(find_violation<computes_in_two_steps<strings>>(20'000, 1), "");
  EXPECT_NE(find_violation<extracts_in_two_steps<strings>>(20'000, 1), "");
  EXPECT_NE(find_violation<scans_down_piecemeal<numbers>>(20'000, 1), "");
}

TEST(LinearizabilityCanary, KeysInSlotsThatAreNotInUseAreFound) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two cores";
  EXPECT_TRUE(found_in_time([] {
    return find_violation<fixed_key_btree<u64, u64, optimistic, ghostly_buckets, no_control>>(
               20'000, 1) != "";
  }));
}

// All keys lie in one leaf here, which is never split.
TEST(LinearizabilityCanary, BrokenLocksAreFound) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two cores";
  EXPECT_TRUE(found_in_time(
      [] { return find_violation<btree<u64, u64, validates_nothing>>(20'000, 1) != ""; }));
}

// By hand: two threads each write a key and then miss what the other one has written; one of them
// may, not both.
TEST(LinearizabilityCanary, AStoreBufferedHistoryIsRefused) {
  const auto history = [](std::optional<u64> first_got, std::optional<u64> second_got) {
    std::vector<event> h(4);
    h[0] = {.what = call::upsert,
            .key = 0,
            .value = 1,
            .yes = true,
            .got = {},
            .seen = {},
            .begin = 0,
            .end = 1};
    h[1] = {.what = call::get, .key = 1, .got = first_got, .seen = {}, .begin = 2, .end = 3};
    h[2] = {.what = call::upsert,
            .key = 1,
            .value = 1,
            .yes = true,
            .got = {},
            .seen = {},
            .begin = 0,
            .end = 5};
    h[3] = {.what = call::get, .key = 0, .got = second_got, .seen = {}, .begin = 6, .end = 7};
    return h;
  };
  const auto linearizable = [](const std::vector<event>& h) {
    return linearizability(h).holds({});
  };
  EXPECT_FALSE(linearizable(history({}, {})));
  EXPECT_TRUE(linearizable(history({}, 1)));
  EXPECT_TRUE(linearizable(history(1, 1)));
}

}  // namespace
}  // namespace elidex::testing
