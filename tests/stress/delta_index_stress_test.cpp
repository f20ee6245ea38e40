// Threads that add the same values at once: each value gets one ID, every thread sees its own
// additions at once, and scans are in order.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/delta_indexes.hpp"
#include "support/policies_under_test.hpp"
#include "support/random_seed.hpp"
#include "support/spread_threads.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using u64 = std::uint64_t;

template <class Value>
Value nth_value(u64 n) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return "value " + std::to_string(n * 7919 % 100'003);
  } else {
    return static_cast<Value>(n * 7919 % 100'003);
  }
}

// What goes wrong when `threads` add `values` values each in an order of their own; empty if
// nothing.
template <class Index>
std::string first_harm(int threads, u64 values) {
  using value = typename Index::value_type;
  using id = typename Index::id_type;
  Index index;
  std::atomic<u64> added{0};
  std::atomic<int> running{threads};
  std::vector<std::vector<id>> ids(static_cast<std::size_t>(threads), std::vector<id>(values));
  std::atomic<bool> harmed{false};
  {
    std::vector<std::jthread> adding;
    for (int t = 0; t < threads; ++t) {
      adding.emplace_back([&, t] {
        stay_on_nth_core(t);
        const u64 begin =
            // mostly the same at the same time
            static_cast<u64>(t) * values / static_cast<u64>(threads) / 4;
        for (u64 i = 0; i < values; ++i) {
          const u64 n = (begin + i) % values;
          const value v = nth_value<value>(n);
          const auto result = index.find_or_add(v);
          ids[static_cast<std::size_t>(t)][n] = result.id;
          added += result.is_new ? 1 : 0;
          if (index.find(v) != result.id || index.view(result.id).get() != v) harmed = true;
        }
        --running;
      });
    }
    while (running > 0) {
      value last{};
      bool first = true;
      index.scan(nth_value<value>(17), 200, [&](const auto& v, id) {
        if (!first && !(last < v)) harmed = true;
        last = value(v);
        first = false;
      });
    }
  }
  if (harmed) return "a value or a scan was wrong";
  if (added != values || index.size() != values) return "a value was added twice or never";
  for (const auto& of_thread : ids) {
    if (of_thread != ids.front()) return "threads got different IDs for a value";
  }
  return "";
}

template <class Index>
class DeltaIndexStress : public ::testing::Test {};
using indexes = ::testing::Types<
    delta_index<u64, optimistic>, delta_index<u64, optimistic, tiny_together>,
    delta_index<std::string, optimistic, tiny_friendly>, delta_index<std::string, optimistic>,
    delta_index<u64, coarse_shared, tiny_original>, delta_index<u64, coarse_elided, original_delta>,
    delta_index<std::string, coarse_elided>, keyed_delta_index<u64>,
    keyed_delta_index<std::string>>;
TYPED_TEST_SUITE(DeltaIndexStress, indexes);

TYPED_TEST(DeltaIndexStress, EachValueGetsOneId) {
  for (int round = 0; round < 3 * effort(); ++round) {
    ASSERT_EQ(first_harm<TypeParam>(3, static_cast<u64>(repetitions(20'000))), "");
  }
}

// Where IDs have run out, values that have one are still found by everybody: by two who add the one
// that gets the last, and by one who asks for old values while another's hopeless addition splits
// leaves.
template <class Index>
std::string harm_without_ids(int rounds) {
  constexpr u64 ids = 255;
  constexpr u64 late = 333;
  for (int round = 0; round < rounds; ++round) {
    Index index;
    for (u64 n = 0; n + 1 < ids; ++n) index.find_or_add(2 * n);
    std::atomic<int> waiting{2};
    std::atomic<int> refused{0};
    const auto add_late = [&] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      try {
        index.find_or_add(late);
      } catch (const std::length_error&) {
        ++refused;
      }
    };
    {
      const std::jthread other(add_late);
      add_late();
    }
    if (refused != 0) return "an addition of the value with the last ID was refused";
    std::atomic<bool> done{false};
    const std::jthread hopeless([&] {
      try {
        index.find_or_add(late + 8);
      } catch (const std::length_error&) {
        done = true;
      }
    });
    do {
      for (u64 n = 150; n < 190; ++n) {
        if (index.find_or_add(2 * n).is_new) return "an old value was added";
      }
    } while (!done);
  }
  return "";
}

TEST(DeltaIndexWithoutIds, StillFindsWhatHasOne) {
  const int rounds = repetitions(400);
  EXPECT_EQ((harm_without_ids<delta_index<u64, optimistic, tiny_together, std::uint8_t>>(rounds)),
            "");
  EXPECT_EQ((harm_without_ids<delta_index<u64, optimistic, elision_friendly_delta, std::uint8_t>>(
                rounds)),
            "");
  EXPECT_EQ(
      (harm_without_ids<delta_index<u64, coarse_elided, original_delta, std::uint8_t>>(rounds)),
      "");
  EXPECT_EQ((harm_without_ids<keyed_delta_index<u64, std::uint8_t>>(rounds)), "");
}

// Two who add the same value at once both append it.
struct excludes_no_writer : optimistic {
  struct node_lock : version_lock {
    bool try_upgrade(token) noexcept {
      lock();
      return true;
    }
  };
};
struct one_leaf : elision_friendly_delta {
  using shape = fan_out<200, 4>;
};
TEST(DeltaIndexStressCanary, AnUpgradeThatAsksForNoVersionIsFound) {
  EXPECT_TRUE(found_in_time(
      [] { return !first_harm<delta_index<u64, excludes_no_writer, one_leaf>>(3, 60).empty(); }));
}

}  // namespace
}  // namespace elidex::testing
