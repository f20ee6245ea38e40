// Eunomia's leaves get a conflict control when their requests collide, and lose it when they don't.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "elidex/internal/tree/fixed_key_btree.hpp"
#include "machine/simulation.hpp"
#include "papers/eunomia/euno_btree.hpp"

namespace elidex::testing {

using namespace papers;

namespace {

using u64 = std::uint64_t;
using tree = euno_btree<u64, u64>;

void run(unsigned cores, tree& map, u64 keys, int operations) {
  std::vector<std::function<void()>> bodies;
  for (unsigned t = 0; t < cores; ++t) {
    bodies.emplace_back([&map, keys, operations, t] {
      for (int i = 0; i < operations; ++i) {
        const u64 key = (static_cast<u64>(i) * 7 + t) % keys;
        if (i % 2 == 0) {
          map.update(key, [](u64& v) { ++v; });
        } else {
          static_cast<void>(map.get(key));
        }
      }
    });
  }
  const auto report = sim::run(sim::read_machine(ELIDEX_TEST_MACHINE), {}, bodies);
  ASSERT_TRUE(report.stuck.empty()) << report.stuck;
}

TEST(AdaptiveControl, ComesWithContentionAndGoesWithIt) {
  tree map;
  for (u64 key = 0; key < 10'000; ++key) map.insert(key, 0);

  run(1, map, 10'000, 2'000);
  EXPECT_EQ(map.stats().controls_switched_on, 0) << "nobody to meet";

  run(16, map, 8, 2'000);
  EXPECT_GT(map.stats().controls_switched_on, 0) << "sixteen cores on eight keys";
  EXPECT_GT(map.stats().controls, 0u);

  run(1, map, 8, 40'000);
  map.reclaim();
  EXPECT_EQ(map.stats().controls, 0u) << "calm again";
}

}  // namespace
}  // namespace elidex::testing
