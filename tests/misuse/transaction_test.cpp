// What a transaction does when it is misused: optimistic, two-phase, and snapshots.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "elidex/database.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"
#include "misuse/rows.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

struct thrown_by_callback {};
struct account {
  std::int64_t balance = 0;
};

// A database and how its transactions are called in the table.
struct optimistic {
  using database_type = database;
  static constexpr const char* name = "transaction";
  static constexpr const char* header = "elidex/internal/txn/transaction.hpp";
};
struct two_phase {
  using database_type = basic_database<db::two_phase_locking<>>;
  static constexpr const char* name = "two_phase_transaction";
  static constexpr const char* header = "elidex/internal/txn/two_phase_transaction.hpp";
};

template <class Kind>
class TransactionMisuse : public ::testing::Test {
 protected:
  TransactionMisuse() { reset(); }

  static std::string named(const std::string& function) {
    return std::string(Kind::name) + "::" + function;
  }
  // 1, 2 and 3 with 10 each.
  void reset() {
    store.transact([&](auto& t) {
      for (std::uint64_t key = 1; key <= 3; ++key) t.upsert(accounts, key, account{10});
      t.erase(accounts, 9);
    });
  }
  std::int64_t balance(std::uint64_t key) {
    return store.read_only([&](auto& t) {
      const auto row = t.get(accounts, key);
      return row ? row->balance : -1;
    });
  }

  typename Kind::database_type store;
  typename Kind::database_type::template table<std::uint64_t, account>& accounts =
      store.template create_table<std::uint64_t, account>("accounts");
};

using Kinds = ::testing::Types<optimistic, two_phase>;
TYPED_TEST_SUITE(TransactionMisuse, Kinds);

// --- exceptions ---

TYPED_TEST(TransactionMisuse, UpdatesFunctionThrows) {
  this->store.transact([&](auto& t) {
    EXPECT_THROW(t.update(this->accounts, 1,
                          [](account& row) {
                            row.balance = 99;
                            throw thrown_by_callback();
                          }),
                 thrown_by_callback);
    EXPECT_EQ(t.get(this->accounts, 1)->balance, 10);
    t.upsert(this->accounts, 2, account{20});
  });
  EXPECT_EQ(this->balance(1), 10);
  EXPECT_EQ(this->balance(2), 20);
  misuse_row(
      this->named("update"), misuse::callback_throws,
      "the exception comes out and the row stays; a transaction that catches it may continue "
      "and commit");
}

TYPED_TEST(TransactionMisuse, FunctionsForSeveralKeysThrow) {
  this->store.transact([&](auto& t) {
    EXPECT_THROW(t.multi_update(this->accounts, std::array{1, 2, 3},
                                [](std::size_t i, account& row) {
                                  row.balance = 99;
                                  if (i == 1) throw thrown_by_callback();
                                }),
                 thrown_by_callback);
    EXPECT_THROW(t.multi_get(this->accounts, std::array{1, 2},
                             [](std::size_t, const account&) { throw thrown_by_callback(); }),
                 thrown_by_callback);
    EXPECT_EQ(t.get(this->accounts, 1)->balance, 99);
  });
  EXPECT_EQ(this->balance(1), 99);
  EXPECT_EQ(this->balance(2), 10);
  EXPECT_EQ(this->balance(3), 10);
  misuse_row(this->named("multi_update"), misuse::callback_throws,
             "the exception comes out; earlier rows stay changed, this row and later ones do not "
             "change; a transaction that catches it may continue and commit");
  misuse_row(this->named("multi_get"), misuse::callback_throws,
             "the exception comes out; a transaction that catches it may continue and commit");
  this->store.read_only([&](auto& t) {
    EXPECT_THROW(t.multi_get(this->accounts, std::array{1, 2},
                             [](std::size_t, const account&) { throw thrown_by_callback(); }),
                 thrown_by_callback);
    EXPECT_EQ(t.get(this->accounts, 3)->balance, 10);
  });
  misuse_row("snapshot_transaction::multi_get", misuse::callback_throws,
             "the exception comes out; a transaction that catches it may continue");
}

TYPED_TEST(TransactionMisuse, ScansFunctionThrows) {
  for (const isolation level :
       {isolation::read_committed, isolation::repeatable_read, isolation::serializable}) {
    this->reset();
    this->store.transact(level, [&](auto& t) {
      const auto throws = [](std::uint64_t, const account&) { throw thrown_by_callback(); };
      EXPECT_THROW(t.scan(this->accounts, 1, throws), thrown_by_callback);
      EXPECT_THROW(t.scan(this->accounts, 1, 3, throws), thrown_by_callback);
      EXPECT_THROW(t.scan(this->accounts, all.descending(), throws), thrown_by_callback);
      t.upsert(this->accounts, 2, account{20});
    });
    EXPECT_EQ(this->balance(2), 20);
  }
  misuse_row(this->named("scan"), misuse::callback_throws,
             "the exception comes out; a transaction that catches it may continue and commit");
}

TYPED_TEST(TransactionMisuse, SnapshotsScanThrows) {
  this->store.read_only([&](auto& t) {
    const auto throws = [](std::uint64_t, const account&) { throw thrown_by_callback(); };
    EXPECT_THROW(t.scan(this->accounts, 1, throws), thrown_by_callback);
    EXPECT_EQ(t.get(this->accounts, 1)->balance, 10);
  });
  this->store.collect();
  misuse_row("snapshot_transaction::scan", misuse::callback_throws,
             "the exception comes out; a transaction that catches it may continue");
}

// --- re-entrance ---

TYPED_TEST(TransactionMisuse, UpdatesFunctionUsesTheTransaction) {
  this->store.transact([&](auto& t) {
    EXPECT_TRUE(t.update(this->accounts, 1, [&](account& row) {
      row.balance += t.multi_get(this->accounts, std::array{2, 3})[0]->balance;
      EXPECT_EQ(t.get(this->accounts, 3)->balance, 10);
      t.insert(this->accounts, 9, account{90});
      t.upsert(this->accounts, 2, account{20});
      EXPECT_EQ(t.multi_update(this->accounts, std::array{3, 4},
                               [](std::size_t, account& other) { other.balance = 30; }),
                1U);
      std::int64_t sum = 0;
      t.scan(this->accounts, 0, [&](std::uint64_t, const account& one) { sum += one.balance; });
      EXPECT_EQ(sum, 10 + 20 + 30 + 90);
      EXPECT_TRUE(t.erase(this->accounts, 2));
    }));
  });
  EXPECT_EQ(this->balance(1), 20);
  EXPECT_EQ(this->balance(2), -1);
  EXPECT_EQ(this->balance(3), 30);
  EXPECT_EQ(this->balance(9), 90);
  for (const char* const function :
       {"get", "multi_get", "insert", "upsert", "erase", "scan", "update", "multi_update"}) {
    misuse_row(this->named(function), misuse::reentrance,
               "from update()'s function, for other rows: works as usual");
  }
}

TYPED_TEST(TransactionMisuse, UpdatesFunctionWritesTheSameRow) {
  this->store.transact([&](auto& t) {
    EXPECT_TRUE(t.update(this->accounts, 1, [&](account& row) {
      t.upsert(this->accounts, 1, account{77});
      ++row.balance;
    }));
    EXPECT_TRUE(t.update(this->accounts, 2, [&](account& row) {
      EXPECT_TRUE(t.erase(this->accounts, 2));
      ++row.balance;
    }));
    EXPECT_TRUE(t.update(this->accounts, 3, [&](account& row) {
      EXPECT_TRUE(t.update(this->accounts, 3, [](account& inner) { inner.balance = 77; }));
      ++row.balance;
    }));
  });
  for (std::uint64_t key = 1; key <= 3; ++key) EXPECT_EQ(this->balance(key), 11);
  misuse_row(
      this->named("update"), misuse::reentrance,
      "its function writes or erases the same row: the outer update() wins, from the row as it "
      "was before");
}

TYPED_TEST(TransactionMisuse, ScansFunctionChangesTheTable) {
  for (const isolation level :
       {isolation::read_committed, isolation::repeatable_read, isolation::serializable}) {
    this->reset();
    std::vector<std::uint64_t> seen;
    this->store.transact(level, [&](auto& t) {
      seen.clear();
      t.scan(this->accounts, 0, 100, [&](std::uint64_t key, const account&) {
        seen.push_back(key);
        EXPECT_TRUE(t.get(this->accounts, key));
        EXPECT_TRUE(t.multi_get(this->accounts, std::array{key})[0]);
        if (key == 9) return;
        if (key == 1) t.erase(this->accounts, 2);
        if (key == 1) t.insert(this->accounts, 9, account{90});
        EXPECT_TRUE(t.erase(this->accounts, key));
        t.scan(this->accounts, 0, [](std::uint64_t, const account&) { return false; });
      });
      EXPECT_FALSE(t.get(this->accounts, 1));
    });
    ASSERT_GE(seen.size(), 2U);
    EXPECT_EQ(seen[0], 1U);
    EXPECT_EQ(seen[1], 3U) << "the scan showed a row that the transaction had erased";
    for (std::uint64_t key = 1; key <= 3; ++key) EXPECT_EQ(this->balance(key), -1);
    EXPECT_EQ(this->balance(9), 90);
  }
  misuse_row(
      this->named("scan"), misuse::reentrance,
      "its function may use the transaction: a row that it has erased no longer comes, one that "
      "it inserts ahead may come or not");
  for (const char* const function : {"get", "multi_get", "insert", "erase"}) {
    misuse_row(this->named(function), misuse::reentrance, "from scan()'s function: works as usual");
  }
}

TYPED_TEST(TransactionMisuse, SnapshotFromItsScansFunction) {
  std::vector<std::uint64_t> seen;
  this->store.read_only([&](auto& t) {
    t.scan(this->accounts, 0, [&](std::uint64_t key, const account&) {
      seen.push_back(key);
      EXPECT_EQ(t.get(this->accounts, 3)->balance, 10);
      EXPECT_EQ(t.multi_get(this->accounts, std::array{3})[0]->balance, 10);
      t.scan(this->accounts, 0, 2, [](std::uint64_t, const account&) {});
      this->store.transact([&](auto& u) { u.erase(this->accounts, 3); });
      this->store.collect();
    });
  });
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(this->balance(3), -1);
  for (const char* const function : {"get", "multi_get", "scan"}) {
    misuse_row("snapshot_transaction::" + std::string(function), misuse::reentrance,
               "from scan()'s function: works as usual and reads the same snapshot, without later "
               "commits");
  }
}

// --- after the end, and on other threads ---

TYPED_TEST(TransactionMisuse, AfterItsFunctionOrOnAnotherThread) {
  for (const char* const function :
       {"get", "multi_get", "insert", "upsert", "update", "multi_update", "erase", "scan",
        "set_savepoint", "rollback_to"}) {
    undefined_row(this->named(function), misuse::closed_object,
                  "used after the function that received the transaction has returned",
                  "elidex/database.hpp",
                  "A transaction lives until the function that received it returns.");
    undefined_row(this->named(function), misuse::other_thread,
                  "called on another thread's transaction", TypeParam::header,
                  "Thread-safety: belongs to one thread");
  }
  for (const char* const function : {"get", "multi_get", "scan"}) {
    const std::string snapshot = "snapshot_transaction::";
    constexpr std::string_view header = "elidex/internal/txn/snapshot_transaction.hpp";
    undefined_row(snapshot + function, misuse::closed_object,
                  "used after the function that received the transaction has returned",
                  "elidex/database.hpp",
                  "A transaction lives until the function that received it returns.");
    undefined_row(snapshot + function, misuse::other_thread,
                  "called on another thread's transaction", header,
                  "Thread-safety: belongs to one thread");
  }
}

// --- savepoints ---

TYPED_TEST(TransactionMisuse, SavepointsThatAreNotValid) {
  using savepoint = typename TypeParam::database_type::transaction::savepoint;
  std::vector<savepoint> kept;
  this->store.transact([&](auto& t) { kept.push_back(t.set_savepoint()); });
  this->store.transact([&](auto& t) {
    t.upsert(this->accounts, 1, account{11});
    EXPECT_THROW(t.rollback_to(kept[0]), std::logic_error);
    const auto first = t.set_savepoint();
    const auto second = t.set_savepoint();
    t.rollback_to(first);
    EXPECT_THROW(t.rollback_to(second), std::logic_error);
    t.rollback_to(first);
  });
  EXPECT_EQ(this->balance(1), 11);
  misuse_row(this->named("rollback_to"), misuse::wrong_handle,
             "a savepoint of another transaction: throws std::logic_error and undoes nothing");
  misuse_row(this->named("set_savepoint"), misuse::wrong_handle,
             "its savepoint, passed to another transaction: rollback_to() throws std::logic_error");
  misuse_row(this->named("rollback_to"), misuse::wrong_handle,
             "a savepoint behind one that it has returned to: throws std::logic_error and undoes "
             "nothing");
}

TYPED_TEST(TransactionMisuse, UpdatesFunctionRollsBack) {
  this->store.transact([&](auto& t) {
    const auto before = t.set_savepoint();
    t.upsert(this->accounts, 2, account{20});
    EXPECT_TRUE(t.update(this->accounts, 1, [&](account& row) {
      t.upsert(this->accounts, 3, account{30});
      t.set_savepoint();
      EXPECT_THROW(t.rollback_to(before), std::logic_error);
      row.balance = 11;
    }));
  });
  EXPECT_EQ(this->balance(1), 11);
  EXPECT_EQ(this->balance(2), 20);
  EXPECT_EQ(this->balance(3), 30);
  misuse_row(this->named("set_savepoint"), misuse::reentrance,
             "from update()'s function: works as usual");
  misuse_row(this->named("rollback_to"), misuse::reentrance,
             "from update()'s function: throws std::logic_error and undoes nothing");
}

// --- tables of another database ---

TYPED_TEST(TransactionMisuse, TablesOfAnotherDatabase) {
  typename TypeParam::database_type other;
  auto& others = other.template create_table<std::uint64_t, account>("accounts");
  const db::schema columns({{"balance", db::column_type::integer}});
  auto& rows = other.template create_table<std::uint64_t>("rows", columns);
  const auto nothing = [](auto&&...) {};
  const auto expect_refused = [&](auto& t, auto& table, const auto& row) {
    EXPECT_THROW(t.get(table, 1), std::logic_error);
    EXPECT_THROW(t.multi_get(table, std::array{1}), std::logic_error);
    EXPECT_THROW(t.erase(table, all), std::logic_error);
    EXPECT_THROW(t.scan(table, 1, nothing), std::logic_error);
    EXPECT_THROW(t.scan(table, 1, 2, nothing), std::logic_error);
    EXPECT_THROW(t.insert(table, 1, row), std::logic_error);
    EXPECT_THROW(t.upsert(table, 1, row), std::logic_error);
    EXPECT_THROW(t.update(table, 1, [](auto&) {}), std::logic_error);
    EXPECT_THROW(t.multi_update(table, std::array{1}, [](std::size_t, auto&) {}), std::logic_error);
    EXPECT_THROW(t.erase(table, 1), std::logic_error);
  };
  this->store.transact([&](auto& t) {
    expect_refused(t, others, account{5});
    expect_refused(t, rows, rows.make_row());
    t.upsert(this->accounts, 1, account{11});
  });
  EXPECT_EQ(this->balance(1), 11);
  this->store.read_only([&](auto& t) {
    EXPECT_THROW(t.get(others, 1), std::logic_error);
    EXPECT_THROW(t.multi_get(others, std::array{1}), std::logic_error);
    EXPECT_THROW(t.scan(others, 1, nothing), std::logic_error);
    EXPECT_THROW(t.scan(rows, 1, 2, nothing), std::logic_error);
    EXPECT_EQ(t.get(this->accounts, 1)->balance, 11);
  });
  other.read_only([&](auto& t) { EXPECT_FALSE(t.get(others, 1)); });
  constexpr std::string_view refused =
      "a table of another database: throws std::logic_error; the transaction may continue";
  for (const char* const function :
       {"get", "multi_get", "insert", "upsert", "update", "multi_update", "erase", "scan"}) {
    misuse_row(this->named(function), misuse::wrong_handle, refused);
  }
  for (const char* const function : {"get", "multi_get", "scan"}) {
    misuse_row("snapshot_transaction::" + std::string(function), misuse::wrong_handle, refused);
  }
}

// --- errors that leave the transaction as it was ---

TYPED_TEST(TransactionMisuse, KeysThatAreThereOrCannotBe) {
  auto& small = this->store.template create_table<std::uint8_t, account>("small keys");
  this->store.transact([&](auto& t) {
    EXPECT_THROW(t.insert(this->accounts, 1, account{5}), db::duplicate_key);
    t.insert(this->accounts, 9, account{90});
    EXPECT_THROW(t.insert(this->accounts, 9, account{5}), db::duplicate_key);
    EXPECT_THROW(t.insert(small, 256, account{}), std::out_of_range);
    EXPECT_THROW(t.upsert(small, -1, account{}), std::out_of_range);
    EXPECT_THROW(t.get(small, 256), std::out_of_range);
    EXPECT_THROW(t.multi_get(small, std::array{1, 256}), std::out_of_range);
    EXPECT_THROW(t.update(small, 256, [](account&) {}), std::out_of_range);
    EXPECT_THROW(t.multi_update(small, std::array{1, 256}, [](std::size_t, account&) {}),
                 std::out_of_range);
    EXPECT_THROW(t.erase(small, 256), std::out_of_range);
    EXPECT_THROW(t.scan(small, 256, [](auto&&...) {}), std::out_of_range);
    EXPECT_THROW(t.scan(small, 0, 256, [](auto&&...) {}), std::out_of_range);
  });
  EXPECT_EQ(this->balance(1), 10);
  EXPECT_EQ(this->balance(9), 90);
  misuse_row(this->named("insert"), misuse::bad_argument,
             "a key that is there: throws db::duplicate_key; the transaction may continue");
  this->store.read_only([&](auto& t) {
    EXPECT_THROW(t.get(small, 256), std::out_of_range);
    EXPECT_THROW(t.multi_get(small, std::array{1, 256}), std::out_of_range);
    EXPECT_THROW(t.scan(small, 256, [](auto&&...) {}), std::out_of_range);
  });
  constexpr std::string_view out_of_range =
      "a number outside the range of the table's key type: throws std::out_of_range; the "
      "transaction may continue";
  for (const char* const function :
       {"get", "multi_get", "insert", "upsert", "update", "multi_update", "erase", "scan"}) {
    misuse_row(this->named(function), misuse::bad_argument, out_of_range);
  }
  misuse_row("snapshot_transaction::get", misuse::bad_argument, out_of_range);
  misuse_row("snapshot_transaction::multi_get", misuse::bad_argument, out_of_range);
  misuse_row("snapshot_transaction::scan", misuse::bad_argument, out_of_range);
}

TYPED_TEST(TransactionMisuse, BoundsThatLeaveNothing) {
  const auto look = [&](auto& t) {
    const auto fails = [](auto&&...) { ADD_FAILURE(); };
    t.scan(this->accounts, between(3, 1), fails);
    t.scan(this->accounts, between(3, 1).descending(), fails);
    t.scan(this->accounts, 3, 1, fails);
    t.scan(this->accounts, below(-1), fails);
  };
  this->store.transact(look);
  EXPECT_EQ(this->store.transact([&](auto& t) { return t.erase(this->accounts, between(3, 1)); }),
            0U);
  this->store.read_only(look);
  for (const std::string& function :
       {this->named("scan"), this->named("erase"), std::string("snapshot_transaction::scan")}) {
    misuse_row(function, misuse::bad_argument,
               "an upper bound that is less than the lower one: an empty range");
  }
}

TYPED_TEST(TransactionMisuse, KeysThatAreTooLong) {
  auto& named = this->store.template create_table<std::string, account>("named");
  const std::string key((std::size_t{64} << 10) + 1, 'k');
  this->store.transact([&](auto& t) {
    EXPECT_THROW(t.get(named, key), std::invalid_argument);
    EXPECT_THROW(t.multi_get(named, std::array{std::string("short"), key}), std::invalid_argument);
    EXPECT_THROW(t.upsert(named, key, account{}), std::invalid_argument);
    EXPECT_THROW(t.insert(named, key, account{}), std::invalid_argument);
    EXPECT_THROW(t.erase(named, key), std::invalid_argument);
    EXPECT_THROW(t.update(named, key, [](account&) {}), std::invalid_argument);
    EXPECT_THROW(
        t.multi_update(named, std::array{std::string("short"), key}, [](std::size_t, account&) {}),
        std::invalid_argument);
    EXPECT_THROW(t.scan(named, key, [](auto&&...) {}), std::invalid_argument);
    EXPECT_THROW(t.scan(named, below(key).descending(), [](auto&&...) {}), std::invalid_argument);
    t.upsert(named, "short", account{7});
  });
  this->store.read_only([&](auto& t) {
    EXPECT_THROW(t.get(named, key), std::invalid_argument);
    EXPECT_THROW(t.multi_get(named, std::array{std::string("short"), key}), std::invalid_argument);
    EXPECT_EQ(t.get(named, "short")->balance, 7);
  });
  for (const char* const function :
       {"get", "multi_get", "insert", "upsert", "update", "multi_update", "erase", "scan"}) {
    misuse_row(
        this->named(function), misuse::bad_argument,
        "a string key over 64 KiB: throws std::invalid_argument; the transaction may continue");
  }
}

}  // namespace
}  // namespace elidex::testing
