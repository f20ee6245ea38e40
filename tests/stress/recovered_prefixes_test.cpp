// One thread commits random transactions over tables that come into being meanwhile, another one
// writes checkpoints, power fails at random moments: what is recovered must be what was there
// behind some transaction, and not before one that was said to be durable.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "elidex/database.hpp"
#include "support/faulty_folder.hpp"
#include "support/random_seed.hpp"

using namespace std::chrono_literals;
using elidex::testing::faulty_disk;
namespace db = elidex::db;

namespace {

struct account {
  std::int64_t balance;
};
template <class Db>
class Prefixes : public ::testing::Test {};
using databases = ::testing::Types<elidex::basic_database<db::silo_commit>,
                                   elidex::basic_database<db::dbx_commit<>>>;
TYPED_TEST_SUITE(Prefixes, databases);

TYPED_TEST(Prefixes, WhatIsRecoveredIsOne) {
  using store = TypeParam;
  using table = typename store::template table<std::string, account>;
  using model = std::map<std::pair<int, std::string>, std::int64_t>;
  constexpr int tables = 4;
  std::mt19937_64 random(elidex::testing::seed_or(1));
  elidex::testing::random_numbers failures(random());
  const int rounds = elidex::testing::repetitions(30);
  std::size_t samples = 0;
  for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    faulty_disk disk;
    model now;
    for (int life = 0; life < 3; ++life) {
      std::vector<std::pair<faulty_disk, std::uint64_t>>
          snapshots;  // what a failure leaves, and what was durable for sure
      std::vector<model> history{now};
      {
        store one;
        std::vector<table*> all(tables);
        const int begin_with = life == 0 ? 1 : tables;
        for (int i = 0; i < begin_with; ++i)
          all[std::size_t(i)] = &one.template create_table<std::string, account>(
              std::string("t").append(std::to_string(i)));
        one.open(disk.folder(),
                 {.level = db::durability::async, .epoch_time = 100us, .segment_bytes = 3000});
        if (life > 0) {
          model found;
          for (int i = 0; i < tables; ++i)
            one.read_only([&](auto& t) {
              t.scan(*all[std::size_t(i)], std::string(), std::string("z"),
                     [&](auto key, const account& a) {
                       found[{i, std::string(key)}] = a.balance;
                       return true;
                     });
            });
          ASSERT_EQ(found, now);
        }
        std::atomic<bool> over{false};
        std::thread checkpoints([&] {
          while (!over) {
            try {
              one.checkpoint();
            } catch (const std::system_error& e) {
              ADD_FAILURE() << e.what();
            }
          }
        });
        int made = begin_with;
        std::uint64_t durable = 0;
        for (int i = 0; i < 300; ++i) {
          if (made < tables && random() % 40 == 0) {
            all[std::size_t(made)] = &one.template create_table<std::string, account>(
                std::string("t").append(std::to_string(made)));
            ++made;
          }
          const std::uint64_t seed = random();
          one.transact([&](auto& t) {
            std::mt19937_64 own(seed);
            now = history.back();
            for (std::uint64_t n = 1 + own() % 4; n > 0; --n) {
              const int at = int(own() % std::uint64_t(made));
              const std::string key = std::string("k").append(std::to_string(own() % 6));
              if (own() % 2 == 0) {
                t.erase(*all[std::size_t(at)], key);
                now.erase({at, key});
              } else {
                const auto value = std::int64_t(own() % 1000);
                t.upsert(*all[std::size_t(at)], key, {value});
                now[{at, key}] = value;
              }
            }
          });
          history.push_back(now);
          if (random() % 20 == 0) {
            one.wait_durable();
            durable = history.size() - 1;
          }
          if (random() % 7 == 0) one.collect();
          if (random() % 15 == 0)
            snapshots.emplace_back(disk.after_power_failure(failures), durable);
        }
        over = true;
        checkpoints.join();
      }
      for (auto& [after, at_least] : snapshots) {
        ++samples;
        store two;
        std::vector<table*> all;
        for (int i = 0; i < tables; ++i)
          all.push_back(&two.template create_table<std::string, account>(
              std::string("t").append(std::to_string(i))));
        try {
          two.open(after.folder(),
                   {.level = random() % 2 == 0 ? db::durability::none : db::durability::async});
        } catch (const std::exception& e) {
          ADD_FAILURE() << "life " << life << ": " << e.what();
          continue;
        }
        model found;
        for (int i = 0; i < tables; ++i)
          two.read_only([&](auto& t) {
            t.scan(*all[std::size_t(i)], std::string(), std::string("z"),
                   [&](auto key, const account& a) {
                     found[{i, std::string(key)}] = a.balance;
                     return true;
                   });
          });
        bool is_one = false;
        for (std::size_t i = at_least; i < history.size(); ++i)
          is_one = is_one || history[i] == found;
        EXPECT_TRUE(is_one) << "life " << life << ", of " << history.size() << ", at least "
                            << at_least;
      }
    }
  }
  EXPECT_GT(samples, 0u);
}

}  // namespace
