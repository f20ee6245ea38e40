// Exceptions inside of a two-phase transaction, from a change, a scan's function, the transaction's
// own: which rows and locks are left.
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <thread>

#include "support/databases.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

class TwoPhaseExceptions : public ::testing::TestWithParam<isolation> {
 protected:
  TwoPhaseExceptions() {
    db_.transact([&](auto& t) {
      for (u64 key = 0; key < 20; ++key) t.insert(rows_, key, account{100});
    });
  }
  // What another thread finds, which must not have to wait for anything.
  std::int64_t sum() {
    std::int64_t total = 0;
    std::thread([&] {
      const std::uint64_t waits = db_.protocol().counts().waits;
      db_.transact([&](auto& t) {
        total = 0;
        for (u64 key = 0; key < 30; ++key)
          t.update(rows_, key, [&](account& row) { total += row.balance; });
      });
      EXPECT_EQ(db_.protocol().counts().waits, waits);
    }).join();
    return total;
  }

  two_phase_database db_;
  two_phase_database::table<u64, account>& rows_ = db_.create_table<u64, account>("rows");
};
INSTANTIATE_TEST_SUITE_P(Levels, TwoPhaseExceptions,
                         ::testing::Values(isolation::read_committed, isolation::repeatable_read,
                                           isolation::serializable));

TEST_P(TwoPhaseExceptions, RollBackAndGiveLocksBack) {
  const auto change_that_throws = [&](auto& t) {
    t.upsert(rows_, 25, account{1});
    t.erase(rows_, 3);
    t.update(rows_, 4, [](account& row) {
      row.balance = 0;
      throw std::runtime_error("change");
    });
  };
  EXPECT_THROW(db_.transact(GetParam(), change_that_throws), std::runtime_error);
  EXPECT_EQ(sum(), 2'000);
  const auto scan_that_throws = [&](auto& t) {
    t.scan(rows_, u64{0}, u64{30}, [&](u64 key, const account&) {
      t.insert(rows_, key + 20, account{1});
      if (key == 7) throw std::runtime_error("scan");
      return true;
    });
  };
  EXPECT_THROW(db_.transact(GetParam(), scan_that_throws), std::runtime_error);
  EXPECT_EQ(sum(), 2'000);
}

TEST_P(TwoPhaseExceptions, ATransactionThatCatchesThemGoesOn) {
  db_.transact(GetParam(), [&](auto& t) {
    EXPECT_THROW(t.update(rows_, 4,
                          [](account& row) {
                            row.balance = 0;
                            throw std::runtime_error("change");
                          }),
                 std::runtime_error);
    EXPECT_THROW(t.scan(rows_, u64{0}, u64{30},
                        [&](u64, const account&) -> bool {
                          t.scan(rows_, u64{0}, u64{5}, [](u64, const account&) { return true; });
                          throw std::runtime_error("scan");
                        }),
                 std::runtime_error);
    EXPECT_THROW(t.insert(rows_, 5, account{1}), db::duplicate_key);
    t.upsert(rows_, 25, account{10});
  });
  EXPECT_EQ(sum(), 2'010);
}

// As a transaction inside of one: the outer one goes on.
TEST_P(TwoPhaseExceptions, ATransactionInsideOfOneIsRefused) {
  db_.transact(GetParam(), [&](auto& t) {
    t.upsert(rows_, 25, account{10});
    EXPECT_THROW(db_.transact([](auto&) {}), std::logic_error);
    t.upsert(rows_, 26, account{10});
  });
  EXPECT_EQ(sum(), 2'020);
}

TEST_P(TwoPhaseExceptions, ATransactionInsideOfASnapshotCommitsOrIsRefused) {
  const auto move = [&](auto& t) {
    t.get(rows_, 1);
    t.upsert(rows_, 25, account{10});
    t.erase(rows_, 2);
  };
  db_.read_only([&](auto& snapshot) {
    if (GetParam() == isolation::repeatable_read) {
      EXPECT_THROW(db_.transact(GetParam(), move), std::logic_error) << "a view of its own";
    } else {
      db_.transact(GetParam(), move);
    }
    db_.collect();
    EXPECT_FALSE(snapshot.get(rows_, 25));
    EXPECT_TRUE(snapshot.get(rows_, 2));
  });
  EXPECT_EQ(sum(), GetParam() == isolation::repeatable_read ? 2'000 : 1'910);
}

}  // namespace
}  // namespace elidex::testing
