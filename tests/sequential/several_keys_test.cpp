// What a transaction does with several keys at once, and transactions with a deadline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/databases.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Database>
class SeveralKeys : public ::testing::Test {
 protected:
  using table = typename Database::template table<std::uint64_t, account>;

  void fill(std::uint64_t rows) {
    db_.transact([&](auto& t) {
      for (std::uint64_t key = 0; key < rows; ++key)
        t.upsert(accounts_, key * 2, account{static_cast<std::int64_t>(key)});
    });
  }
  std::vector<std::uint64_t> keys() {
    std::vector<std::uint64_t> found;
    db_.read_only([&](auto& t) {
      t.scan(accounts_, all, [&](std::uint64_t key, const account&) { found.push_back(key); });
    });
    return found;
  }
  // Runs `others` in another thread between the reads and the commit of the first attempt.
  template <class Read, class Others>
  int attempts_of(Read&& read, Others&& others) {
    int attempts = 0;
    db_.transact([&](auto& t) {
      read(t);
      if (++attempts == 1) std::thread(others).join();
      t.upsert(accounts_, 1'000'001, account{attempts});
    });
    return attempts;
  }

  Database db_;
  table& accounts_ = db_.template create_table<std::uint64_t, account>("accounts");
};
using databases =
    ::testing::Types<silo_database, locking_dbx_database, two_phase_database, silo_over_masstree>;
TYPED_TEST_SUITE(SeveralKeys, databases);

// Without locks that would make the second transaction of a test wait for the first one.
template <class Database>
class OptimisticKeys : public SeveralKeys<Database> {};
using optimistic_databases =
    ::testing::Types<silo_database, locking_dbx_database, silo_over_masstree>;
TYPED_TEST_SUITE(OptimisticKeys, optimistic_databases);

using LockedKeys = SeveralKeys<two_phase_database>;

// --- multi_get ---

TYPED_TEST(SeveralKeys, MultiGetGivesWhatGetGives) {
  this->fill(500);
  auto& accounts = this->accounts_;
  random_numbers random(seed_or(30));
  this->db_.transact([&](auto& t) {
    t.upsert(accounts, 7, account{70});
    t.erase(accounts, 8);
    t.update(accounts, 10, [](account& a) { a.balance = 100; });
    for (int round = 0; round < 50; ++round) {
      std::vector<std::uint64_t> wanted{7, 8, 10, 10, 9};
      for (std::uint64_t i = random.below(40); i > 0; --i) wanted.push_back(random.below(1100));
      const auto rows = t.multi_get(accounts, wanted);
      ASSERT_EQ(rows.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i)
        EXPECT_EQ(rows[i], t.get(accounts, wanted[i])) << wanted[i];
    }
    EXPECT_TRUE(t.multi_get(accounts, std::vector<std::uint64_t>()).empty());
    EXPECT_EQ(t.multi_get(accounts, std::array{2, 4})[1]->balance, 2);
    EXPECT_THROW(t.multi_get(accounts, std::array{2, -4}), std::out_of_range);
  });
  this->db_.read_only([&](auto& t) {
    const auto rows = t.multi_get(accounts, std::array<std::uint64_t, 4>{7, 8, 10, 9999});
    EXPECT_EQ(rows[0]->balance, 70);
    EXPECT_FALSE(rows[1]);
    EXPECT_EQ(rows[2]->balance, 100);
    EXPECT_FALSE(rows[3]);
  });
}

TYPED_TEST(SeveralKeys, MultiGetTakesStrings) {
  auto& named = this->db_.template create_table<std::string, account>("named");
  this->db_.transact([&](auto& t) {
    for (int i = 0; i < 100; ++i) t.upsert(named, "name " + std::to_string(i), account{i});
  });
  const std::vector<std::string> wanted{"name 99", "nobody", "name 0", "", "name 10"};
  const auto balances = [&](auto& t) {
    std::vector<std::int64_t> found;
    for (const auto& row : t.multi_get(named, wanted)) found.push_back(row ? row->balance : -1);
    return found;
  };
  EXPECT_THAT(this->db_.transact(balances), ElementsAre(99, -1, 0, -1, 10));
  EXPECT_THAT(this->db_.read_only(balances), ElementsAre(99, -1, 0, -1, 10));
  this->db_.read_only([&](auto& t) {
    EXPECT_EQ(t.multi_get(named, std::array<std::string_view, 1>{"name 5"})[0]->balance, 5);
  });
}

// A row that changed, or that came, after multi_get() had read it, makes the transaction run again.
TYPED_TEST(OptimisticKeys, WhatMultiGetHasReadIsValidated) {
  this->fill(10);
  auto& accounts = this->accounts_;
  const auto reads = [&](auto& t) { t.multi_get(accounts, std::array{2, 3, 4}); };
  const auto writes = [&](std::uint64_t key) {
    return [this, key] {
      this->db_.transact([&](auto& t) { t.upsert(this->accounts_, key, account{-1}); });
    };
  };
  EXPECT_EQ(this->attempts_of(reads, writes(4)), 2);   // changed
  EXPECT_EQ(this->attempts_of(reads, writes(3)), 2);   // a phantom
  EXPECT_EQ(this->attempts_of(reads, writes(18)), 1);  // not read
  EXPECT_EQ(
      this->attempts_of(reads, [&] { this->db_.transact([&](auto& t) { t.erase(accounts, 2); }); }),
      2);
}

TYPED_TEST(SeveralKeys, MultiGetCallsAFunction) {
  this->fill(100);
  auto& accounts = this->accounts_;
  const std::vector<std::uint64_t> wanted{4, 3, 198, 4, 200, 7};
  const auto look = [&](auto& t) {
    std::vector<std::pair<std::size_t, std::int64_t>> seen;
    const std::size_t present = t.multi_get(
        accounts, wanted, [&](std::size_t i, const account& a) { seen.push_back({i, a.balance}); });
    EXPECT_EQ(present, seen.size());
    return seen;
  };
  using ::testing::Pair;
  EXPECT_THAT(this->db_.read_only(look), ElementsAre(Pair(0, 2), Pair(2, 99), Pair(3, 2)));
  this->db_.transact([&](auto& t) {
    // The function uses the transaction, and adds a key that comes later.
    EXPECT_EQ(t.multi_get(accounts, wanted,
                          [&](std::size_t i, const account&) {
                            if (i == 0) t.upsert(accounts, 7, account{70});
                            if (i == 0) t.erase(accounts, 198);
                          }),
              3U);
    EXPECT_THAT(look(t), ElementsAre(Pair(0, 2), Pair(3, 2), Pair(5, 70)));
  });
}

// --- multi_update ---

TYPED_TEST(SeveralKeys, MultiUpdateDoesWhatUpdateDoes) {
  this->fill(500);
  auto& accounts = this->accounts_;
  auto& model = this->db_.template create_table<std::uint64_t, account>("model");
  this->db_.transact([&](auto& t) {
    t.scan(accounts, all, [&](std::uint64_t key, const account& a) { t.insert(model, key, a); });
  });
  random_numbers random(seed_or(33));
  for (int round = 0; round < 60; ++round) {
    this->db_.transact([&](auto& t) {
      std::vector<std::uint64_t> keys;
      for (std::uint64_t i = random.below(60); i > 0; --i) keys.push_back(random.below(1100));
      if (!keys.empty()) keys.push_back(keys.front());  // one key twice
      const std::uint64_t erased = random.below(1100);
      EXPECT_EQ(t.erase(accounts, erased), t.erase(model, erased));
      const auto change = [](std::size_t i, account& a) {
        a.balance = a.balance * 3 + static_cast<std::int64_t>(i);
      };
      std::size_t present = 0;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (t.update(model, keys[i], [&](account& a) { change(i, a); })) ++present;
      }
      EXPECT_EQ(t.multi_update(accounts, keys, change), present);
    });
  }
  this->db_.read_only([&](auto& t) {
    std::map<std::uint64_t, std::int64_t> found;
    std::map<std::uint64_t, std::int64_t> expected;
    t.scan(accounts, all, [&](std::uint64_t key, const account& a) { found[key] = a.balance; });
    t.scan(model, all, [&](std::uint64_t key, const account& a) { expected[key] = a.balance; });
    EXPECT_EQ(found, expected);
    EXPECT_GT(found.size(), 400U);
  });
}

TYPED_TEST(SeveralKeys, MultiUpdateTakesStringsAndSchemas) {
  auto& named = this->db_.template create_table<std::string, account>("named");
  const db::schema columns({{"balance", db::column_type::integer}});
  auto& rows = this->db_.template create_table<std::uint64_t>("rows", columns);
  const std::vector<std::string> names{"ann", "nobody", "bob"};
  this->db_.transact([&](auto& t) {
    t.insert(named, "ann", account{1});
    t.insert(named, "bob", account{2});
    t.insert(rows, 5, rows.make_row());
    EXPECT_EQ(t.multi_update(named, names, [](std::size_t, account& a) { a.balance += 10; }), 2U);
    EXPECT_EQ(t.multi_update(rows, std::array{4, 5},
                             [](std::size_t i, auto& row) {
                               row.set("balance", static_cast<std::int64_t>(i));
                             }),
              1U);
  });
  this->db_.read_only([&](auto& t) {
    EXPECT_EQ(t.get(named, "bob")->balance, 12);
    EXPECT_EQ(t.get(rows, 5)->integer("balance"), 1);
  });
}

// What the function does with the transaction stands, and an exception keeps what came before it.
TYPED_TEST(SeveralKeys, MultiUpdatesFunctionUsesTheTransaction) {
  this->fill(5);  // 0, 2, ... 8
  auto& accounts = this->accounts_;
  this->db_.transact([&](auto& t) {
    const auto change = [&](std::size_t i, account& a) {
      if (i == 0) t.erase(accounts, 4);
      if (i == 0) t.upsert(accounts, 5, account{50});
      if (i == 1) t.update(accounts, 6, [](account& other) { other.balance = 60; });
      ++a.balance;
    };
    EXPECT_EQ(t.multi_update(accounts, std::array{0, 2, 4, 5, 6}, change), 4U);
    EXPECT_THROW(t.multi_update(accounts, std::array{0, 8},
                                [](std::size_t i, account& a) {
                                  if (i == 1) throw std::runtime_error("no");
                                  a.balance = 100;
                                }),
                 std::runtime_error);
  });
  this->db_.read_only([&](auto& t) {
    EXPECT_EQ(t.get(accounts, 0)->balance, 100);
    EXPECT_EQ(t.get(accounts, 2)->balance, 2);
    EXPECT_FALSE(t.get(accounts, 4));
    EXPECT_EQ(t.get(accounts, 5)->balance, 51);
    EXPECT_EQ(t.get(accounts, 6)->balance, 61);
    EXPECT_EQ(t.get(accounts, 8)->balance, 4);
  });
}

TYPED_TEST(OptimisticKeys, WhatMultiUpdateHasReadIsValidated) {
  this->fill(10);
  auto& accounts = this->accounts_;
  const auto reads = [&](auto& t) {
    t.multi_update(accounts, std::array{2, 3, 4}, [](std::size_t, account& a) { ++a.balance; });
  };
  const auto writes = [&](std::uint64_t key) {
    return [this, key] {
      this->db_.transact([&](auto& t) { t.upsert(this->accounts_, key, account{-1}); });
    };
  };
  EXPECT_EQ(this->attempts_of(reads, writes(4)), 2);
  EXPECT_EQ(this->attempts_of(reads, writes(3)), 2);
  EXPECT_EQ(this->attempts_of(reads, writes(18)), 1);
}

TYPED_TEST(SeveralKeys, TablesOfOtherDatabasesAreRefused) {
  TypeParam other;
  auto& foreign = other.template create_table<std::uint64_t, account>("foreign");
  this->db_.transact([&](auto& t) {
    EXPECT_THROW(t.multi_get(foreign, std::array{1}), std::logic_error);
    EXPECT_THROW(t.multi_update(foreign, std::array{1}, [](std::size_t, account&) {}),
                 std::logic_error);
    EXPECT_THROW(t.erase(foreign, all), std::logic_error);
  });
  this->db_.read_only(
      [&](auto& t) { EXPECT_THROW(t.multi_get(foreign, std::array{1}), std::logic_error); });
}

// --- erase of a range ---

TYPED_TEST(SeveralKeys, EraseTakesARange) {
  this->fill(6);  // 0, 2, ... 10
  auto& accounts = this->accounts_;
  const std::size_t erased = this->db_.transact([&](auto& t) {
    t.upsert(accounts, 5, account{5});
    t.erase(accounts, 2);
    return t.erase(accounts, between(2, 8));  // 4, 5, 6
  });
  EXPECT_EQ(erased, 3U);
  EXPECT_THAT(this->keys(), ElementsAre(0, 8, 10));
  EXPECT_EQ(this->db_.transact([&](auto& t) { return t.erase(accounts, between(1, 3)); }), 0U);
  EXPECT_EQ(this->db_.transact([&](auto& t) { return t.erase(accounts, all); }), 3U);
  EXPECT_TRUE(this->keys().empty());
}

TYPED_TEST(SeveralKeys, AnErasedRangeComesBackWithTheTransaction) {
  this->fill(4);
  EXPECT_THROW(this->db_.transact([&](auto& t) {
    EXPECT_EQ(t.erase(this->accounts_, all), 4U);
    throw std::runtime_error("no");
  }),
               std::runtime_error);
  EXPECT_EQ(this->keys().size(), 4U);
}

TYPED_TEST(SeveralKeys, EraseOfARangeKeepsIndexes) {
  auto& indexed = this->db_.template create_table<std::uint64_t, account>("indexed");
  db::indexed_table by(this->db_, indexed);
  const auto balance = by.template add_index<std::int64_t>(
      "by balance", [](std::uint64_t, const account& a) { return a.balance; });
  this->db_.transact([&](auto& t) {
    for (std::uint64_t key = 0; key < 10; ++key)
      by.insert(t, key, account{static_cast<std::int64_t>(key % 2)});
    EXPECT_EQ(by.erase(t, below(6)), 6U);
  });
  std::vector<std::uint64_t> odd;
  this->db_.read_only([&](auto& t) {
    by.find(t, balance, 1, [&](std::uint64_t key, const account&) { odd.push_back(key); });
  });
  EXPECT_THAT(odd, ElementsAre(7, 9));
}

// --- deadlines ---

TYPED_TEST(SeveralKeys, AFunctionDoesNotRunAfterTheDeadline) {
  this->fill(1);
  int runs = 0;
  const auto count = [&](auto& t) {
    ++runs;
    t.upsert(this->accounts_, 0, account{runs});
  };
  const auto now = std::chrono::steady_clock::now();
  EXPECT_THROW(this->db_.transact({.deadline = now - 1s}, count), db::timed_out);
  EXPECT_EQ(runs, 0);
  this->db_.transact({.deadline = now + 1h}, count);
  EXPECT_EQ(runs, 1);
  std::stop_source stop;
  this->db_.transact({.stop = stop.get_token()}, count);
  stop.request_stop();
  EXPECT_THROW(this->db_.transact({.stop = stop.get_token()}, count), db::canceled);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(this->db_.transact({.level = isolation::read_committed},
                               [&](auto& t) { return t.get(this->accounts_, 0)->balance; }),
            2);
}

// A transaction that fails again and again ends, and leaves nothing.
TYPED_TEST(OptimisticKeys, ATransactionThatNeverCommitsGivesUp) {
  this->fill(2);
  const auto fails = [&](auto& t) {
    t.get(this->accounts_, 0);
    std::thread([&] {
      this->db_.transact(
          [&](auto& other) { other.update(this->accounts_, 0, [](account& a) { ++a.balance; }); });
    }).join();
    t.upsert(this->accounts_, 7, account{7});
  };
  const auto until = std::chrono::steady_clock::now() + 20ms;
  EXPECT_THROW(this->db_.transact({.deadline = until}, fails), db::timed_out);
  EXPECT_GE(std::chrono::steady_clock::now(), until);
  std::stop_source stop;
  int runs = 0;
  EXPECT_THROW(this->db_.transact({.stop = stop.get_token()},
                                  [&](auto& t) {
                                    if (++runs == 3) stop.request_stop();
                                    fails(t);
                                  }),
               db::canceled);
  EXPECT_EQ(runs, 3);
  EXPECT_THAT(this->keys(), ElementsAre(0, 2));
}

TEST_F(LockedKeys, AWaitForALockEndsAtTheDeadline) {
  this->fill(2);
  std::atomic<bool> locked{false};
  std::atomic<bool> release{false};
  std::thread holder([&] {
    this->db_.transact([&](auto& t) {
      t.update(this->accounts_, 0, [](account& a) { ++a.balance; });
      locked = true;
      while (!release) std::this_thread::sleep_for(1ms);
    });
  });
  while (!locked) std::this_thread::sleep_for(1ms);
  const auto until = std::chrono::steady_clock::now() + 500ms;
  EXPECT_THROW(this->db_.transact({.deadline = until},
                                  [&](auto& t) {
                                    std::this_thread::sleep_for(450ms);  // the wait has the rest
                                    t.get(this->accounts_, 0);
                                  }),
               db::timed_out);
  EXPECT_GE(std::chrono::steady_clock::now(), until);
  EXPECT_LT(std::chrono::steady_clock::now(), until + 400ms);
  release = true;
  holder.join();
  EXPECT_EQ(this->db_.read_only([&](auto& t) { return t.get(this->accounts_, 0)->balance; }), 1);
}

}  // namespace
}  // namespace elidex::testing
