// Scans without an upper bound: they reach the largest key there can be, and nothing comes behind
// what they have seen.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/databases.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;
constexpr u64 largest = std::numeric_limits<u64>::max();

template <class Database>
class ScanToTheLast : public ::testing::Test {
 protected:
  using numbered_table = typename Database::template table<u64, account>;
  using named_table = typename Database::template table<std::string, account>;

  template <class Transaction>
  std::vector<u64> keys(Transaction& t, u64 from) {
    std::vector<u64> found;
    t.scan(numbered_, from, [&](u64 key, const account&) {
      found.push_back(key);
      return true;
    });
    return found;
  }
  void insert(u64 key) {
    db_.transact([&](auto& t) { t.insert(numbered_, key, account{1}); });
  }

  Database db_;
  numbered_table& numbered_ = db_.template create_table<u64, account>("numbered");
  named_table& named_ = db_.template create_table<std::string, account>("named");
};
using databases = ::testing::Types<silo_database, dbx_database, locking_dbx_database,
                                   small_nodes_database, two_phase_database>;
TYPED_TEST_SUITE(ScanToTheLast, databases);

TYPED_TEST(ScanToTheLast, ReachesTheLargestKey) {
  const std::string high(40, '\xFF');
  this->db_.transact([&](auto& t) {
    for (const u64 key : {u64{1}, u64{7}, largest}) t.insert(this->numbered_, key, account{1});
    t.insert(this->named_, std::string("a"), account{1});
    t.insert(this->named_, high, account{2});
  });
  const auto look = [&](auto& t) {
    EXPECT_EQ(this->keys(t, 0), (std::vector<u64>{1, 7, largest}));
    EXPECT_EQ(this->keys(t, 7), (std::vector<u64>{7, largest}));
    EXPECT_EQ(this->keys(t, largest), (std::vector<u64>{largest}));
    std::vector<std::string> names;
    t.scan(this->named_, std::string(), [&](std::string_view name, const account&) {
      names.emplace_back(name);
      return true;
    });
    EXPECT_EQ(names, (std::vector<std::string>{"a", high}));
    int visited = 0;
    t.scan(this->numbered_, u64{0}, [&](u64, const account&) { return ++visited < 2; });
    EXPECT_EQ(visited, 2);
  };
  for (const isolation level : {isolation::read_uncommitted, isolation::read_committed,
                                isolation::repeatable_read, isolation::serializable})
    this->db_.transact(level, look);
  this->db_.read_only(look);
}

// What a caller writes: literals of any type, and a row as `auto&`.
TYPED_TEST(ScanToTheLast, TakesBoundsOfTwoTypesAndPassesReferencesToConst) {
  this->insert(3);
  this->db_.transact([&](auto& t) { t.insert(this->named_, "b", account{2}); });
  const auto look = [&](auto& t) {
    std::vector<u64> found;
    const u64 end = 10;
    t.scan(this->numbered_, 0, end, [&](auto key, auto& row) {
      static_assert(std::is_const_v<std::remove_reference_t<decltype(row)>>);
      found.push_back(key);
    });
    t.scan(this->named_, "a", "bcd", [&](auto, auto& /*row*/) { found.push_back(0); });
    t.scan(this->named_, std::string("a"), "b", [&](auto, auto& /*row*/) { found.push_back(1); });
    EXPECT_EQ(found, (std::vector<u64>{3, 0}));
  };
  this->db_.transact(look);
  this->db_.transact(isolation::read_committed, look);
  this->db_.read_only(look);
}

TYPED_TEST(ScanToTheLast, SeesItsOwnInserts) {
  this->insert(5);
  this->db_.transact([&](auto& t) {
    EXPECT_EQ(this->keys(t, 0), (std::vector<u64>{5}));
    t.insert(this->numbered_, largest, account{1});
    EXPECT_EQ(this->keys(t, 0), (std::vector<u64>{5, largest}));
    t.erase(this->numbered_, u64{5});
    EXPECT_EQ(this->keys(t, 0), (std::vector<u64>{largest}));
  });
  this->db_.read_only([&](auto& t) { EXPECT_EQ(this->keys(t, 0), (std::vector<u64>{largest})); });
}

// Somebody inserts behind the last key that was seen, also into an empty table: the reader runs
// again, or the inserter waits.
TYPED_TEST(ScanToTheLast, NothingComesBehindIt) {
  for (const bool empty : {true, false}) {
    const u64 inserted = empty ? 10 : largest;
    std::vector<std::vector<u64>> seen;  // of the run that committed
    std::jthread inserter;
    int runs = 0;
    this->db_.transact([&](auto& t) {
      seen.clear();
      seen.push_back(this->keys(t, 0));
      if (runs++ == 0) {
        inserter = std::jthread([&] { this->insert(inserted); });
        if constexpr (!std::is_same_v<TypeParam, two_phase_database>) inserter.join();
      }
      seen.push_back(this->keys(t, 0));
      t.upsert(this->named_, std::string("writes as well"), account{1});
    });
    if (inserter.joinable()) inserter.join();
    EXPECT_EQ(seen[0], seen[1]);
    if constexpr (!std::is_same_v<TypeParam, two_phase_database>) {
      EXPECT_EQ(runs, 2);
      EXPECT_EQ(seen[0].back(), inserted);
    }
    this->db_.read_only([&](auto& t) { EXPECT_EQ(this->keys(t, 0).back(), inserted); });
  }
}

// Who stops early has not seen what comes behind.
TYPED_TEST(ScanToTheLast, WhatComesBehindAnEarlyStopIsNoPhantom) {
  if (std::is_same_v<TypeParam, two_phase_database>)
    GTEST_SKIP() << "the inserter would wait, for the gap behind";
  this->insert(5);
  this->insert(7);
  int runs = 0;
  this->db_.transact([&](auto& t) {
    ++runs;
    t.scan(this->numbered_, u64{0}, [](u64, const account&) { return false; });
    if (runs == 1) std::jthread([&] { this->insert(9); });
    t.upsert(this->named_, std::string("writes as well"), account{1});
  });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace elidex::testing
