// The Delta Storage Index under explored interleavings: additions beside additions, look-ups and
// scans, on trees so small that every addition splits something.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "schedule/explore.hpp"
#include "schedule/histories.hpp"
#include "support/broken_maps.hpp"
#include "support/delta_indexes.hpp"
#include "support/linearizability.hpp"
#include "support/policies_under_test.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using u64 = std::uint64_t;
constexpr std::size_t threads = 3;
constexpr std::size_t events_per_thread = 4;

template <class Index>
struct delta_history {
  delta_as_map<Index> map;
  map_state before;
  std::array<std::vector<event>, threads> plans;

  using made_by_seed = void;
  explicit delta_history(u64 seed) {
    random_numbers random(seed);
    for (std::size_t i = 0; i < 2 + random.below(3); ++i) {
      const u64 key = random.below(history_keys);
      map.insert(key, 0);
      before[key] = 0;
    }
    for (std::size_t t = 0; t < threads; ++t) {
      for (std::size_t i = 0; i < events_per_thread; ++i) {
        event e;
        constexpr std::array kinds{call::insert, call::insert, call::get, call::scan};
        e.what = kinds[random.below(kinds.size())];
        e.key = e.what == call::scan ? random.below(2) : random.below(history_keys);
        plans[t].push_back(e);
      }
    }
  }

  std::vector<std::function<void()>> bodies() { return performing(map, plans); }

  std::string verdict() {
    // An ID for each value and a value for each ID.
    for (u64 key = 0; key < history_keys; ++key) {
      const auto id = map.index().find(key);
      if (id && map.index().view(*id).get() != key) return "an ID that stands for another value";
    }
    return history_difference(map, plans, before);
  }
};

template <class Index>
class DeltaSchedules : public ::testing::Test {};
using indexes =
    ::testing::Types<delta_index<u64, optimistic, tiny_friendly>,
                     delta_index<u64, optimistic, tiny_together>,
                     delta_index<u64, coarse_elided, tiny_original>,
                     delta_index<u64, coarse_elided_noretry, tiny_friendly>,
                     delta_index<u64, coarse_hle, tiny_original>,
                     delta_index<u64, coarse_shared, tiny_original>, keyed_delta_index<u64>>;
TYPED_TEST_SUITE(DeltaSchedules, indexes);

TYPED_TEST(DeltaSchedules, AreLinearizable) {
  EXPECT_EQ(explore<delta_history<TypeParam>>(static_cast<u64>(300 * effort())), "");
}

TEST(DeltaSchedulesCanary, ALockThatExcludesNobodyIsFound) {
  EXPECT_NE((explore<delta_history<delta_index<u64, excludes_nobody, tiny_friendly>>>(2'000)), "");
}

}  // namespace
}  // namespace elidex::testing
