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

using namespace internal;

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

// What the threads of one storm share: the locks, the accounts that they protect, and counters.
template <class Latches, class Cell>
struct storm_bank {
  struct account {
    Cell money;
    std::atomic<lock_owner_id> writer{0};
  };

  storm_result result() {
    storm_result found;
    found.commits = commits;
    found.torn_sums = torn;
    found.timeouts = timeouts;
    for (const account& one : all) found.money += one.money.get();
    found.consistent = locks.is_consistent();
    found.counts = locks.counts();
    return found;
  }

  lock_system<Latches> locks{lock_system_options{.transactions_max = threads, .buckets = 16}};
  std::array<account, accounts> all;
  std::atomic<std::uint64_t> commits{0};
  std::atomic<std::uint64_t> torn{0};
  std::atomic<std::uint64_t> timeouts{0};
};

// One thread of a storm. It skips one record lock in `forgets_one_in`, or none if that is 0.
template <class Latches, class Cell>
class storm_client {
 public:
  using bank = storm_bank<Latches, Cell>;

  storm_client(bank& of, std::uint64_t seed, std::uint64_t forgets_one_in)
      : bank_(of), forgets_one_in_(forgets_one_in), random_(seed), transaction_(of.locks) {}

  // Runs `rounds` transactions, and repeats each one until all its locks are granted.
  void run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (bool done = false; !done;) {
        transaction_.begin();
        done = random_.below(8) == 0 ? look() : transfer();
        transaction_.end();
      }
      ++bank_.commits;
    }
  }

 private:
  static record_address address(std::uint32_t i) { return at(i, i % 3); }

  bool lock_table(lock_mode mode) {
    return transaction_.lock_table(1, mode, 60s) == lock_outcome::granted;
  }

  bool lock_record(std::uint32_t i, bool write) {
    if (forgets_one_in_ != 0 && random_.below(forgets_one_in_) == 0) return true;
    auto& writer = bank_.all[i].writer;
    lock_outcome outcome;
    if (!write) {
      outcome =
          transaction_.lock_record(address(i), lock_mode::shared, lock_kind::record, writer, 60s);
    } else if (random_.below(2) == 0) {
      outcome = transaction_.write_record(address(i), writer, 60s);
    } else {
      outcome = transaction_.lock_record(address(i), lock_mode::exclusive, lock_kind::record,
                                         writer, 60s);
    }
    if (outcome == lock_outcome::timed_out) ++bank_.timeouts;
    return outcome == lock_outcome::granted;
  }

  // Moves money between two random accounts. Returns false and changes nothing if a lock fails.
  bool transfer() {
    if (!lock_table(lock_mode::intention_exclusive)) return false;
    const auto from = static_cast<std::uint32_t>(random_.below(accounts));
    const auto to = static_cast<std::uint32_t>((from + 1 + random_.below(accounts - 1)) % accounts);
    // Half of the transfers read first and then upgrade.
    if (random_.below(2) == 0 && !lock_record(from, false)) return false;
    if (!lock_record(from, true)) return false;
    add(from, -7);
    transaction_.add_changes(1);
    if (random_.below(8) == 0) std::this_thread::yield();
    if (!lock_record(to, true)) {
      add(from, 7);
      return false;
    }
    add(to, 7);
    return true;
  }

  void add(std::uint32_t i, std::int64_t amount) {
    Cell& money = bank_.all[i].money;
    money.set(money.get() + amount);
  }

  // Reads all accounts under locks and counts a sum that is wrong. Returns false if a lock fails.
  bool look() {
    if (!lock_for_reading_all()) return false;
    std::int64_t sum = 0;
    for (const auto& one : bank_.all) sum += one.money.get();
    if (sum != accounts * each_begins_with) ++bank_.torn;
    return true;
  }

  // Locks either the table or each of its records, in a random rotation.
  bool lock_for_reading_all() {
    if (random_.below(2) == 0) return lock_table(lock_mode::shared);
    if (!lock_table(lock_mode::intention_shared)) return false;
    const auto begin = static_cast<std::uint32_t>(random_.below(accounts));
    for (std::uint32_t i = 0; i < accounts; ++i) {
      if (!lock_record((begin + i) % accounts, false)) return false;
    }
    return true;
  }

  bank& bank_;
  std::uint64_t forgets_one_in_;
  random_numbers random_;
  typename lock_system<Latches>::transaction transaction_;
};

// Runs one storm. The canary's clients forget locks.
template <class Latches, class Cell>
storm_result storm(std::uint64_t seed, int rounds, std::uint64_t forgets_one_in = 0) {
  storm_bank<Latches, Cell> bank;
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        storm_client<Latches, Cell> client(bank, seed * 1000 + static_cast<std::uint64_t>(i),
                                           forgets_one_in);
        client.run(rounds);
      });
    }
  }
  return bank.result();
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
