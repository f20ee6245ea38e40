// Old versions of rows that nobody writes again: collections free them once no snapshot needs them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/databases.hpp"
#include "support/varying_rows.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

// How many records of a table have old versions.
template <class Table>
std::size_t rows_with_versions(const Table& table) {
  const epoch_pin pinned;
  std::size_t many = 0;
  table.for_each_record([&](const record& one) { many += one.has_versions() ? 1U : 0U; });
  return many;
}

// Runs `inside` while a snapshot of another thread exists.
template <class Database, class Fn>
void during_a_snapshot(Database& db, const Fn& inside) {
  std::atomic<bool> reads{false};
  std::atomic<bool> end{false};
  std::thread reader([&] {
    db.read_only([&](auto&) {
      reads.store(true);
      reads.notify_one();
      end.wait(false);
    });
  });
  reads.wait(false);
  inside();
  end.store(true);
  end.notify_one();
  reader.join();
}

template <class Database>
class OldVersions : public ::testing::Test {};
using Protocols = ::testing::Types<silo_database, dbx_database, two_phase_database>;
TYPED_TEST_SUITE(OldVersions, Protocols);

constexpr u64 many_rows = 10'000;
constexpr u64 rows_per_transaction = 100;

template <class Database, class Table, class MakeRow>
void write_all(Database& db, Table& table, const MakeRow& row) {
  for (u64 first = 0; first < many_rows; first += rows_per_transaction) {
    db.transact([&](auto& t) {
      for (u64 key = first; key < first + rows_per_transaction; ++key)
        t.upsert(table, key, row(key));
    });
  }
}

TYPED_TEST(OldVersions, GoAfterTheSnapshotThatNeededThem) {
  TypeParam db;
  auto& table = db.template create_table<u64, account>("accounts");
  write_all(db, table, [](u64) { return account{1}; });
  during_a_snapshot(db, [&] {
    write_all(db, table, [](u64) { return account{2}; });
    EXPECT_EQ(rows_with_versions(table), many_rows);
  });
  // The ends of snapshots go on with it.
  for (int i = 0; i < 10; ++i) db.read_only([](auto&) {});
  EXPECT_EQ(rows_with_versions(table), 0U);
  EXPECT_EQ(db.read_only([&](auto& t) { return t.get(table, 7)->balance; }), 2);
}

TYPED_TEST(OldVersions, AreNotKeptWithoutASnapshot) {
  TypeParam db;
  auto& table = db.template create_table<u64, account>("accounts");
  for (int i = 0; i < 3; ++i) {
    write_all(db, table, [&](u64) { return account{i}; });
    db.read_only([](auto&) {});  // a new group
  }
  EXPECT_EQ(rows_with_versions(table), 0U);
}

TYPED_TEST(OldVersions, CollectFreesThoseOfFewRowsToo) {
  TypeParam db;
  auto& table = db.template create_table<u64, document>("documents");
  const auto write = [&](std::size_t length) {
    db.transact([&](auto& t) {
      for (u64 key = 0; key < 10; ++key) t.upsert(table, key, document::of(key, length));
    });
  };
  write(5000);  // in a body
  during_a_snapshot(db, [&] {
    write(5);
    db.collect();
    EXPECT_EQ(rows_with_versions(table), 10U);
  });
  db.collect();
  EXPECT_EQ(rows_with_versions(table), 0U);
}

// Readers whose snapshots are long, writers, and a thread that collects all the time.
TYPED_TEST(OldVersions, SnapshotsStayWholeWhileTheyAreFreed) {
  constexpr u64 accounts = 64;
  TypeParam db;
  auto& table = db.template create_table<u64, account>("accounts");
  db.transact([&](auto& t) {
    for (u64 key = 0; key < accounts; ++key) t.insert(table, key, account{100});
  });
  std::atomic<bool> end{false};
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (u64 seed = 1; seed <= 2; ++seed) {
    threads.emplace_back([&, seed] {
      u64 random = seed;
      while (!end.load()) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        const u64 from = (random >> 33U) % accounts;
        const u64 to = (random >> 43U) % accounts;
        if (from == to) continue;
        db.transact([&](auto& t) {
          t.update(table, from, [](account& a) { --a.balance; });
          t.update(table, to, [](account& a) { ++a.balance; });
        });
      }
    });
  }
  threads.emplace_back([&] {
    while (!end.load()) db.collect();
  });
  for (int round = 0; round < 300; ++round) {
    db.read_only([&](auto& t) {
      for (int look = 0; look < 3; ++look) {
        std::int64_t sum = 0;
        for (u64 key = 0; key < accounts; ++key) sum += t.get(table, key)->balance;
        if (sum != static_cast<std::int64_t>(accounts) * 100) wrong.fetch_add(1);
      }
    });
  }
  end.store(true);
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(wrong.load(), 0U);
  db.collect();
  EXPECT_EQ(rows_with_versions(table), 0U);
}

}  // namespace
}  // namespace elidex::testing
