// One thread commits random transactions over tables that come into being meanwhile, another one
// writes checkpoints, power fails at random moments: what is recovered must be what was there
// behind some transaction, and not before one that was said to be durable.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "elidex/database.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"

using namespace std::chrono_literals;
using elidex::testing::faulty_disk;
using elidex::testing::random_numbers;
namespace db = elidex::db;

namespace {

struct account {
  std::int64_t balance;
};
constexpr std::size_t tables = 4;
// The balances by the number of their table and their key.
using model = std::map<std::pair<std::size_t, std::string>, std::int64_t>;

// What a power failure leaves, and the first state of the history that it may recover to.
struct snapshot {
  faulty_disk disk;
  std::uint64_t at_least;
};
// What one life of a database leaves to the checks.
struct life_record {
  std::vector<model> history;  // what the tables hold at first and after each transaction
  std::vector<snapshot> snapshots;
};

// A database with up to four tables of the same type, called t0, t1, and so on.
template <class Store>
struct numbered_tables {
  void create_next() {
    all.push_back(&store.template create_table<std::string, account>(
        std::string("t").append(std::to_string(all.size()))));
  }

  model content() {
    model found;
    for (std::size_t i = 0; i < all.size(); ++i)
      store.read_only([&](auto& t) {
        t.scan(*all[i], std::string(), std::string("z"), [&](auto key, const account& a) {
          found[{i, std::string(key)}] = a.balance;
          return true;
        });
      });
    return found;
  }

  // Commits a random transaction. Returns what the tables hold then; they held `before`.
  model commit_random_changes(const model& before, std::uint64_t seed) {
    model after;
    store.transact([&](auto& t) {
      std::mt19937_64 own(seed);
      after = before;
      for (std::uint64_t n = 1 + own() % 4; n > 0; --n) {
        const std::size_t at = own() % all.size();
        const std::string key = std::string("k").append(std::to_string(own() % 6));
        if (own() % 2 == 0) {
          t.erase(*all[at], key);
          after.erase({at, key});
        } else {
          const auto value = std::int64_t(own() % 1000);
          t.upsert(*all[at], key, {value});
          after[{at, key}] = value;
        }
      }
    });
    return after;
  }

  Store store;
  std::vector<typename Store::template table<std::string, account>*> all;
};

template <class Store>
void write_checkpoints_until(const std::atomic<bool>& over, Store& store) {
  while (!over) {
    try {
      store.checkpoint();
    } catch (const std::system_error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

// Commits transactions, creates the missing tables meanwhile, and takes snapshots of the disk.
template <class Store>
void commit_and_take_snapshots(numbered_tables<Store>& of, const faulty_disk& disk,
                               life_record& record, std::mt19937_64& random,
                               random_numbers& failures) {
  std::uint64_t durable = 0;
  for (int i = 0; i < 300; ++i) {
    if (of.all.size() < tables && random() % 40 == 0) of.create_next();
    record.history.push_back(of.commit_random_changes(record.history.back(), random()));
    if (random() % 20 == 0) {
      of.store.wait_durable();
      durable = record.history.size() - 1;
    }
    if (random() % 7 == 0) of.store.collect();
    if (random() % 15 == 0)
      record.snapshots.push_back({disk.after_power_failure(failures), durable});
  }
}

// Opens a database on the disk, checks what it recovers, and runs transactions beside checkpoints.
// The first life begins with one table, a later one with all. Fails fatally if a later life does
// not recover the last state of the history.
template <class Store>
void live(bool first, faulty_disk& disk, life_record& record, std::mt19937_64& random,
          random_numbers& failures) {
  numbered_tables<Store> one;
  const std::size_t begin_with = first ? 1 : tables;
  while (one.all.size() < begin_with) one.create_next();
  one.store.open(disk.directory(),
                 {.level = db::durability::async, .group_time = 100us, .segment_bytes = 3000});
  if (!first) {
    ASSERT_EQ(one.content(), record.history.back());
  }
  std::atomic<bool> over{false};
  std::thread checkpoints([&] { write_checkpoints_until(over, one.store); });
  commit_and_take_snapshots(one, disk, record, random, failures);
  over = true;
  checkpoints.join();
}

// Recovers a snapshot and expects a state of the history that is not before what was durable.
template <class Store>
void expect_recovery_to_the_history(snapshot& from, const std::vector<model>& history, int life,
                                    std::mt19937_64& random) {
  numbered_tables<Store> two;
  while (two.all.size() < tables) two.create_next();
  try {
    two.store.open(from.disk.directory(),
                   {.level = random() % 2 == 0 ? db::durability::none : db::durability::async});
  } catch (const std::exception& e) {
    ADD_FAILURE() << "life " << life << ": " << e.what();
    return;
  }
  const model found = two.content();
  bool is_one = false;
  for (std::size_t i = from.at_least; i < history.size(); ++i)
    is_one = is_one || history[i] == found;
  EXPECT_TRUE(is_one) << "life " << life << ", of " << history.size() << ", at least "
                      << from.at_least;
}

template <class Db>
class Prefixes : public ::testing::Test {};
using databases = ::testing::Types<elidex::basic_database<db::silo_commit>,
                                   elidex::basic_database<db::dbx_commit<>>>;
TYPED_TEST_SUITE(Prefixes, databases);

TYPED_TEST(Prefixes, WhatIsRecoveredIsOne) {
  std::mt19937_64 random(elidex::testing::seed_or(1));
  random_numbers failures(random());
  const int rounds = elidex::testing::repetitions(30);
  std::size_t samples = 0;
  for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    faulty_disk disk;
    model now;
    for (int life = 0; life < 3; ++life) {
      life_record record{.history = {now}, .snapshots = {}};
      live<TypeParam>(life == 0, disk, record, random, failures);
      if (::testing::Test::HasFatalFailure()) return;
      for (snapshot& one : record.snapshots) {
        ++samples;
        expect_recovery_to_the_history<TypeParam>(one, record.history, life, random);
      }
      now = record.history.back();
    }
  }
  EXPECT_GT(samples, 0u);
}

}  // namespace
