// Threads that lock random records in random order, so that there are deadlocks all the time:
// everything ends, what exclusive locks protect is changed by one at a time, money is conserved,
// and readers of everything see the same sum. The money is plain memory, so that ThreadSanitizer
// sees whether locks order what they protect.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "elidex/internal/locking/lock_system.hpp"
#include "support/lock_systems.hpp"
#include "support/random_seed.hpp"
#include "support/spread_threads.hpp"

namespace elidex::testing {
namespace {

using namespace std::chrono_literals;

constexpr int threads = 6;
constexpr std::uint32_t accounts = 12;
constexpr std::int64_t each_begins_with = 1000;

struct plain_cell {
  std::int64_t value = each_begins_with;
  std::int64_t get() const { return value; }
  void set(std::int64_t next) { value = next; }
};
// The canary's, whose races are on purpose.
struct racing_cell {
  std::atomic<std::int64_t> value{each_begins_with};
  std::int64_t get() const { return value.load(); }
  void set(std::int64_t next) { value.store(next); }
};

struct storm_result {
  std::uint64_t commits = 0;
  std::uint64_t torn_sums = 0;
  std::uint64_t timeouts = 0;
  std::int64_t money = 0;
  bool consistent = false;
  lock_system_counts counts;

  bool violated() const { return torn_sums != 0 || money != accounts * each_begins_with; }
};

// Forgets one lock in so many (the canary); 0: none.
template <class Latches, class Cell>
storm_result storm(std::uint64_t seed, int rounds, std::uint64_t forgets_one_in = 0) {
  using transaction = typename lock_system<Latches>::transaction;
  struct account {
    Cell money;
    std::atomic<lock_owner_id> writer{0};
  };
  lock_system<Latches> locks({.transactions_max = threads, .buckets = 16});
  std::array<account, accounts> all;
  std::atomic<std::uint64_t> commits{0};
  std::atomic<std::uint64_t> torn{0};
  std::atomic<std::uint64_t> timeouts{0};

  const auto address = [](std::uint32_t i) { return at(i, i % 3); };
  const auto work = [&](int thread) {
    random_numbers random(seed * 1000 + static_cast<std::uint64_t>(thread));
    transaction t(locks);
    const auto lock = [&](std::uint32_t i, bool write) {
      if (forgets_one_in != 0 && random.below(forgets_one_in) == 0) return true;
      lock_outcome outcome;
      if (!write) {
        outcome =
            t.lock_record(address(i), lock_mode::shared, lock_kind::record, all[i].writer, 60s);
      } else if (random.below(2) == 0) {
        outcome = t.write_record(address(i), all[i].writer, 60s);
      } else {
        outcome =
            t.lock_record(address(i), lock_mode::exclusive, lock_kind::record, all[i].writer, 60s);
      }
      if (outcome == lock_outcome::timed_out) ++timeouts;
      return outcome == lock_outcome::granted;
    };
    const auto transfer = [&] {
      if (t.lock_table(1, lock_mode::intention_exclusive, 60s) != lock_outcome::granted)
        return false;
      const auto from = static_cast<std::uint32_t>(random.below(accounts));
      const auto to =
          static_cast<std::uint32_t>((from + 1 + random.below(accounts - 1)) % accounts);
      // Half of them read first and upgrade then.
      if (random.below(2) == 0 && !lock(from, false)) return false;
      if (!lock(from, true)) return false;
      const std::int64_t had = all[from].money.get();
      all[from].money.set(had - 7);
      t.add_changes(1);
      if (random.below(8) == 0) std::this_thread::yield();
      if (!lock(to, true)) {
        all[from].money.set(all[from].money.get() + 7);
        return false;
      }
      all[to].money.set(all[to].money.get() + 7);
      return true;
    };
    const auto look = [&] {
      if (random.below(2) == 0) {
        if (t.lock_table(1, lock_mode::shared, 60s) != lock_outcome::granted) return false;
      } else {
        if (t.lock_table(1, lock_mode::intention_shared, 60s) != lock_outcome::granted)
          return false;
        const auto begin = static_cast<std::uint32_t>(random.below(accounts));
        for (std::uint32_t i = 0; i < accounts; ++i) {
          if (!lock((begin + i) % accounts, false)) return false;
        }
      }
      std::int64_t sum = 0;
      for (const account& one : all) sum += one.money.get();
      if (sum != accounts * each_begins_with) ++torn;
      return true;
    };
    for (int round = 0; round < rounds; ++round) {
      for (bool done = false; !done;) {
        t.begin();
        done = random.below(8) == 0 ? look() : transfer();
        t.end();
      }
      ++commits;
    }
  };
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) running.emplace_back(work, i);
  }
  storm_result result;
  result.commits = commits;
  result.torn_sums = torn;
  result.timeouts = timeouts;
  for (const account& one : all) result.money += one.money.get();
  result.consistent = locks.is_consistent();
  result.counts = locks.counts();
  return result;
}

template <class Latches>
class LockSystemStress : public ::testing::Test {};
TYPED_TEST_SUITE(LockSystemStress, latches_under_test, latches_name);

TYPED_TEST(LockSystemStress, MoneyIsConservedInADeadlockStorm) {
  const int rounds = repetitions(4000);
  const storm_result result = storm<TypeParam, plain_cell>(seed_or(1), rounds);
  EXPECT_EQ(result.commits, static_cast<std::uint64_t>(threads * rounds));
  EXPECT_EQ(result.torn_sums, 0u);
  EXPECT_EQ(result.money, accounts * each_begins_with);
  EXPECT_EQ(result.timeouts, 0u) << "somebody slept for ever";
  EXPECT_TRUE(result.consistent);
  EXPECT_GT(result.counts.deadlocks, 0u) << "no storm";
  EXPECT_GT(result.counts.conversions, 0u);
  EXPECT_GT(result.counts.implicit, 0u);
  this->RecordProperty("deadlocks", std::to_string(result.counts.deadlocks));
  this->RecordProperty("waits", std::to_string(result.counts.waits));
}

TEST(LockSystemStressCanary, TheSameStormFindsAForgottenLock) {
  std::uint64_t seed = 1;
  EXPECT_TRUE(found_in_time([&] {
    return storm<sharded_latches<>, racing_cell>(seed++, repetitions(500), 4).violated();
  }));
}

// Short times: requests that are given up while they are granted.
TYPED_TEST(LockSystemStress, TimeOutsRaceWithGrants) {
  lock_system<TypeParam> locks({.transactions_max = threads});
  std::array<plain_cell, 2> both;
  std::atomic<std::uint64_t> in_time{0};
  std::atomic<std::uint64_t> late{0};
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        random_numbers random(seed_or(1) + static_cast<std::uint64_t>(i));
        typename lock_system<TypeParam>::transaction t(locks);
        for (int round = 0; round < repetitions(2000); ++round) {
          t.begin();
          const std::chrono::microseconds time(random.below(20));
          if (t.lock_record(at(1), lock_mode::exclusive, lock_kind::record, 0, time) ==
              lock_outcome::granted) {
            both[0].set(both[0].get() + 1);
            if (random.below(4) == 0) std::this_thread::yield();
            both[1].set(both[1].get() + 1);
            ++in_time;
          } else {
            ++late;
          }
          t.end();
        }
      });
    }
  }
  EXPECT_EQ(both[0].get(), both[1].get());
  EXPECT_EQ(static_cast<std::uint64_t>(both[0].get() - each_begins_with), in_time);
  EXPECT_GT(in_time, 0u);
  EXPECT_EQ(locks.counts().timeouts, late);
  EXPECT_TRUE(locks.is_consistent());
}

// Scans that count the keys of a range twice, with a lock on its gap, beside inserts into it. The
// caller's own latch of the page is a mutex. How many phantoms there were.
template <class Latches>
std::uint64_t phantoms(std::uint64_t seed, int rounds, bool inserts_ask) {
  lock_system<Latches> locks({.transactions_max = threads});
  std::mutex page;
  std::int64_t keys = 0;
  std::atomic<std::uint64_t> seen{0};
  const auto insert = [&](auto& t) {
    for (;;) {
      {
        const std::lock_guard latch(page);
        if (!inserts_ask || t.lock_record(at(7), lock_mode::exclusive, lock_kind::insert_intention,
                                          0, 0s) == lock_outcome::granted) {
          ++keys;
          return;
        }
      }
      if (t.lock_record(at(7), lock_mode::exclusive, lock_kind::insert_intention) !=
          lock_outcome::granted)
        return;
    }
  };
  const auto count = [&](auto& t) {
    const std::lock_guard latch(page);
    EXPECT_EQ(t.lock_record(at(7), lock_mode::shared, lock_kind::gap, 0, 0s),
              lock_outcome::granted);
    return keys;
  };
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        random_numbers random(seed * 1000 + static_cast<std::uint64_t>(i));
        typename lock_system<Latches>::transaction t(locks);
        for (int round = 0; round < rounds; ++round) {
          t.begin();
          const std::int64_t first = i % 2 == 0 ? count(t) : 0;
          if (random.below(4) == 0) std::this_thread::yield();
          if (i % 2 != 0) {
            insert(t);
          } else if (count(t) != first) {
            ++seen;
          }
          t.end();
        }
      });
    }
  }
  EXPECT_TRUE(locks.is_consistent());
  return seen;
}

TYPED_TEST(LockSystemStress, GapLocksKeepPhantomsOut) {
  EXPECT_EQ(phantoms<TypeParam>(seed_or(1), repetitions(5000), true), 0u);
}

TEST(LockSystemStressCanary, InsertsThatDoNotAskAreFound) {
  std::uint64_t seed = 1;
  EXPECT_TRUE(found_in_time(
      [&] { return phantoms<sharded_latches<>>(seed++, repetitions(500), false) != 0; }));
}

}  // namespace
}  // namespace elidex::testing
