// Savepoints: what rollback_to() undoes, compared with a model.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/databases.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {
namespace {

using model = std::map<std::uint64_t, std::int64_t>;

template <class Database>
class Savepoints : public ::testing::Test {
 protected:
  using table = typename Database::template table<std::uint64_t, account>;

  template <class Transaction>
  static model rows(Transaction& t, table& of) {
    model found;
    t.scan(of, all, [&](std::uint64_t key, const account& a) { found[key] = a.balance; });
    return found;
  }
  model committed() {
    return db_.read_only([&](auto& t) { return rows(t, accounts_); });
  }

  Database db_;
  table& accounts_ = db_.template create_table<std::uint64_t, account>("accounts");
};
using databases =
    ::testing::Types<silo_database, locking_dbx_database, small_nodes_database, two_phase_database>;
TYPED_TEST_SUITE(Savepoints, databases);

TYPED_TEST(Savepoints, WhatWasWrittenSinceIsUndone) {
  auto& accounts = this->accounts_;
  this->db_.transact([&](auto& t) {
    for (std::uint64_t key = 1; key <= 4; ++key) t.insert(accounts, key, account{10});
  });
  this->db_.transact([&](auto& t) {
    t.upsert(accounts, 1, account{11});
    const auto before = t.set_savepoint();
    t.upsert(accounts, 1, account{12});
    t.update(accounts, 2, [](account& a) { a.balance = 22; });
    t.erase(accounts, 3);
    t.upsert(accounts, 4, account{44});
    t.insert(accounts, 5, account{55});
    EXPECT_EQ((this->rows(t, accounts)), (model{{1, 12}, {2, 22}, {4, 44}, {5, 55}}));
    t.rollback_to(before);
    EXPECT_EQ((this->rows(t, accounts)), (model{{1, 11}, {2, 10}, {3, 10}, {4, 10}}));
    t.insert(accounts, 5, account{5});  // no longer there
    t.rollback_to(before);              // it stays valid
    EXPECT_FALSE(t.get(accounts, 5));
    t.update(accounts, 4, [](account& a) { ++a.balance; });
  });
  EXPECT_EQ(this->committed(), (model{{1, 11}, {2, 10}, {3, 10}, {4, 11}}));
}

// Random transactions with nested savepoints, over a log.
TYPED_TEST(Savepoints, AgreeWithAModel) {
  faulty_disk disk;
  random_numbers random(seed_or(31));
  model expected;
  {
    this->db_.open(disk.directory());
    for (int round = repetitions(200); round > 0; --round) {
      const std::uint64_t seed = random();
      model state;
      this->db_.transact([&](auto& t) {
        random_numbers again(seed);
        state = expected;
        std::vector<std::pair<typename std::remove_reference_t<decltype(t)>::savepoint, model>>
            marks;
        const std::uint64_t keys = 5 + again.below(30);
        for (std::uint64_t step = again.below(60); step > 0; --step) {
          const std::uint64_t key = again.below(keys);
          const auto value = static_cast<std::int64_t>(again.below(1000));
          switch (again.below(7)) {
            case 0:
              marks.emplace_back(t.set_savepoint(), state);
              break;
            case 1:
              if (!marks.empty()) {
                const auto at = static_cast<std::ptrdiff_t>(again.below(marks.size()));
                t.rollback_to(marks[static_cast<std::size_t>(at)].first);
                state = marks[static_cast<std::size_t>(at)].second;
                for (std::size_t i = static_cast<std::size_t>(at) + 1; i < marks.size(); ++i)
                  EXPECT_THROW(t.rollback_to(marks[i].first), std::logic_error);
                marks.erase(marks.begin() + at + 1, marks.end());
              }
              break;
            case 2:
              EXPECT_EQ(t.erase(this->accounts_, key), state.erase(key) == 1);
              break;
            case 3:
              if (state.contains(key)) {
                EXPECT_THROW(t.insert(this->accounts_, key, account{value}), db::duplicate_key);
              } else {
                t.insert(this->accounts_, key, account{value});
                state[key] = value;
              }
              break;
            case 4:
              if (t.update(this->accounts_, key, [&](account& a) { a.balance += value; }))
                state.at(key) += value;
              break;
            default:
              t.upsert(this->accounts_, key, account{value});
              state[key] = value;
          }
          if (again.below(8) == 0) {
            EXPECT_EQ(this->rows(t, this->accounts_), state);
          }
        }
        EXPECT_EQ(this->rows(t, this->accounts_), state);
      });
      expected = state;
      ASSERT_EQ(this->committed(), expected);
    }
    this->db_.close();
  }
  faulty_disk left = disk.copy();
  TypeParam restored;
  auto& rows = restored.template create_table<std::uint64_t, account>("accounts");
  restored.open(left.directory());
  EXPECT_EQ(restored.read_only([&](auto& t) { return this->rows(t, rows); }), expected);
}

// The record of an undone insert stays in the index for a while, also that of a row that was erased
// before. A scan that met it does not make the transaction fail.
TYPED_TEST(Savepoints, AnUndoneInsertIsNoPhantom) {
  auto& accounts = this->accounts_;
  this->db_.transact([&](auto& t) { t.insert(accounts, 7, account{7}); });
  this->db_.transact([&](auto& t) { t.erase(accounts, 7); });
  int attempts = 0;
  this->db_.transact([&](auto& t) {
    ++attempts;
    EXPECT_TRUE((this->rows(t, accounts)).empty());
    const auto before = t.set_savepoint();
    t.insert(accounts, 7, account{8});
    t.insert(accounts, 9, account{9});
    EXPECT_EQ((this->rows(t, accounts)), (model{{7, 8}, {9, 9}}));
    t.rollback_to(before);
    EXPECT_TRUE((this->rows(t, accounts)).empty());
    t.insert(accounts, 1, account{1});
  });
  EXPECT_EQ(attempts, 1);
  EXPECT_EQ(this->committed(), (model{{1, 1}}));
}

// What the transaction has read counts, also if it was read behind the savepoint.
TEST(SavepointsOfOptimisticTransactions, ReadsStayNoted) {
  silo_database db;
  auto& accounts = db.create_table<std::uint64_t, account>("accounts");
  db.transact([&](auto& t) { t.insert(accounts, 1, account{1}); });
  int attempts = 0;
  db.transact([&](auto& t) {
    const auto before = t.set_savepoint();
    const std::int64_t seen = t.get(accounts, 1)->balance;
    t.rollback_to(before);
    if (++attempts == 1)
      std::thread([&] { db.transact([&](auto& u) { u.upsert(accounts, 1, account{2}); }); }).join();
    t.upsert(accounts, 2, account{seen});
  });
  EXPECT_EQ(attempts, 2);
  EXPECT_EQ(db.read_only([&](auto& t) { return t.get(accounts, 2)->balance; }), 2);
}

TYPED_TEST(Savepoints, ThoseOfAnotherTransactionAreRefused) {
  using transaction = typename TypeParam::transaction;
  std::optional<typename transaction::savepoint> earlier;
  TypeParam other;
  other.transact([&](auto& t) { earlier.emplace(t.set_savepoint()); });
  this->db_.transact([&](auto& t) {
    t.upsert(this->accounts_, 1, account{1});
    t.set_savepoint();
    EXPECT_THROW(t.rollback_to(*earlier), std::logic_error);
  });
  this->db_.transact([&](auto& t) { earlier.emplace(t.set_savepoint()); });
  this->db_.transact([&](auto& t) {
    t.upsert(this->accounts_, 1, account{1});
    EXPECT_THROW(t.rollback_to(*earlier), std::logic_error);
    t.set_savepoint();
    EXPECT_THROW(t.rollback_to(*earlier), std::logic_error);
  });
  EXPECT_EQ(this->committed(), (model{{1, 1}}));
}

TYPED_TEST(Savepoints, IndexesAreUndoneToo) {
  auto& indexed = this->db_.template create_table<std::uint64_t, account>("indexed");
  db::indexed_table by(this->db_, indexed);
  const auto balance = by.template add_unique_index<std::int64_t>(
      "by balance", [](std::uint64_t, const account& a) { return a.balance; });
  const auto found = [&](auto& t, std::int64_t value) {
    std::vector<std::uint64_t> keys;
    by.find(t, balance, value, [&](std::uint64_t key, const account&) { keys.push_back(key); });
    return keys;
  };
  using keys = std::vector<std::uint64_t>;
  this->db_.transact([&](auto& t) {
    by.insert(t, 1, account{100});
    const auto before = t.set_savepoint();
    by.update(t, 1, [](account& a) { a.balance = 200; });
    by.insert(t, 2, account{100});
    EXPECT_EQ(found(t, 100), keys{2});
    t.rollback_to(before);
    EXPECT_EQ(found(t, 100), keys{1});
    EXPECT_EQ(found(t, 200), keys{});
    EXPECT_THROW(by.insert(t, 3, account{100}), db::duplicate_key);
    by.insert(t, 3, account{200});
  });
  this->db_.read_only([&](auto& t) {
    EXPECT_EQ(found(t, 100), keys{1});
    EXPECT_EQ(found(t, 200), keys{3});
  });
}

}  // namespace
}  // namespace elidex::testing
