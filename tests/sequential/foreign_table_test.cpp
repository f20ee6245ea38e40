// Handles of another database in a transaction: each is refused before the transaction notes
// anything, so the function may catch the error and go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "elidex/internal/txn/indexed_table.hpp"
#include "support/databases.hpp"
#include "support/faulty_directory.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;
using ::testing::HasSubstr;

constexpr std::array all_levels{isolation::read_uncommitted, isolation::read_committed,
                                isolation::repeatable_read, isolation::serializable};

template <class Database>
class ForeignTable : public ::testing::Test {
 protected:
  using accounts = typename Database::template table<u64, account>;

  ForeignTable() {
    theirs_.transact([&](auto& t) { t.insert(foreign_, 1, account{100}); });
  }
  std::optional<std::int64_t> foreign_balance(u64 key) {
    const auto found = theirs_.transact([&](auto& t) { return t.get(foreign_, key); });
    return found ? std::optional(found->balance) : std::nullopt;
  }
  std::optional<std::int64_t> balance(u64 key) {
    const auto found = ours_.transact([&](auto& t) { return t.get(mine_, key); });
    return found ? std::optional(found->balance) : std::nullopt;
  }

  Database ours_;
  Database theirs_;
  accounts& mine_ = ours_.template create_table<u64, account>("accounts");
  accounts& foreign_ = theirs_.template create_table<u64, account>("accounts");
};
using databases = ::testing::Types<silo_database, dbx_database, locking_dbx_database,
                                   small_nodes_database, two_phase_database, dbx_over_htm_btree,
                                   locking_dbx_over_euno_btree, silo_over_masstree>;
TYPED_TEST_SUITE(ForeignTable, databases);

TYPED_TEST(ForeignTable, EveryFunctionRefusesItAndTheTransactionGoesOn) {
  auto& foreign = this->foreign_;
  const auto no_rows = [](u64, const account&) { return true; };
  for (const isolation level : all_levels) {
    this->ours_.transact(level, [&](auto& t) {
      t.upsert(this->mine_, 1, account{5});
      EXPECT_THROW(t.get(foreign, 1), std::logic_error);
      EXPECT_THROW(t.insert(foreign, 2, account{1}), std::logic_error);
      EXPECT_THROW(t.upsert(foreign, 1, account{1}), std::logic_error);
      EXPECT_THROW(t.update(foreign, 1, [](account& a) { a.balance = 1; }), std::logic_error);
      EXPECT_THROW(t.erase(foreign, 1), std::logic_error);
      EXPECT_THROW(t.scan(foreign, 0, 9, no_rows), std::logic_error);
      EXPECT_THROW(t.scan(foreign, 0, no_rows), std::logic_error);
      t.upsert(this->mine_, 2, account{6});
    });
  }
  EXPECT_EQ(this->balance(1), 5);
  EXPECT_EQ(this->balance(2), 6);
  EXPECT_EQ(this->foreign_balance(1), 100);
  EXPECT_EQ(this->foreign_balance(2), std::nullopt);
}

TYPED_TEST(ForeignTable, SnapshotsRefuseIt) {
  const auto no_rows = [](u64, const account&) { return true; };
  this->ours_.read_only([&](auto& t) {
    EXPECT_THROW(t.get(this->foreign_, 1), std::logic_error);
    EXPECT_THROW(t.scan(this->foreign_, 0, 9, no_rows), std::logic_error);
    EXPECT_THROW(t.scan(this->foreign_, 0, no_rows), std::logic_error);
    EXPECT_FALSE(t.get(this->mine_, 1));
  });
}

TYPED_TEST(ForeignTable, AnErrorThatLeavesTheFunctionRollsBackAndNamesTheTable) {
  try {
    this->ours_.transact([&](auto& t) {
      t.upsert(this->mine_, 1, account{5});
      t.upsert(this->foreign_, 1, account{5});
    });
    ADD_FAILURE() << "a table of another database was written";
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("accounts: a table of another database"));
  }
  EXPECT_EQ(this->balance(1), std::nullopt);
  EXPECT_EQ(this->foreign_balance(1), 100);
}

// Both transactions run in one thread, each with tables of its own.
TYPED_TEST(ForeignTable, TransactionsOfTwoDatabasesNest) {
  this->ours_.transact([&](auto& outer) {
    this->theirs_.transact([&](auto& inner) {
      EXPECT_THROW(inner.get(this->mine_, 3), std::logic_error);
      EXPECT_THROW(outer.get(this->foreign_, 3), std::logic_error);
      outer.upsert(this->mine_, 1, account{1});
      inner.upsert(this->foreign_, 1, account{2});
    });
  });
  EXPECT_EQ(this->balance(1), 1);
  EXPECT_EQ(this->foreign_balance(1), 2);
}

// Before tables knew their database, the log had rows of a table that its catalog lacked, or
// another table's rows under its own table's number.
TYPED_TEST(ForeignTable, TheDirectoryCanStillBeOpened) {
  for (const bool same_number : {true, false}) {
    faulty_disk disk;
    TypeParam theirs;
    if (!same_number) theirs.template create_table<u64, account>("another");
    auto& foreign = theirs.template create_table<u64, account>("accounts");
    faulty_disk their_disk;
    theirs.open(their_disk.directory(), {.level = db::durability::sync});
    {
      TypeParam ours;
      auto& mine = ours.template create_table<u64, account>("accounts");
      ours.open(disk.directory(), {.level = db::durability::sync});
      ours.transact([&](auto& t) {
        t.upsert(mine, 1, account{5});
        EXPECT_THROW(t.upsert(foreign, 2, account{7}), std::logic_error);
      });
    }
    TypeParam again;
    auto& mine = again.template create_table<u64, account>("accounts");
    ASSERT_NO_THROW(again.open(disk.directory(), {.level = db::durability::none})) << same_number;
    again.read_only([&](auto& t) {
      EXPECT_EQ(t.get(mine, 1)->balance, 5);
      EXPECT_FALSE(t.get(mine, 2)) << "the other database's row";
    });
  }
}

TEST(ForeignTables, OfAnotherPolicyAndOfNoDatabaseAreRefused) {
  two_phase_database locking;
  silo_database validating;
  auto& locked = locking.create_table<u64, account>("locked");
  silo_database::table<u64, account> alone("alone");
  validating.transact([&](auto& t) {
    EXPECT_THROW(t.upsert(locked, 1, account{1}), std::logic_error);
    EXPECT_THROW(t.upsert(alone, 1, account{1}), std::logic_error);
  });
  locking.transact(
      [&](auto& t) { EXPECT_THROW(t.upsert(alone, 1, account{1}), std::logic_error); });
  EXPECT_FALSE(locked.has_rows());
  EXPECT_FALSE(alone.has_rows());
}

TEST(ForeignTables, WithASchemaAreRefused) {
  const db::schema columns({{"balance", db::column_type::integer}});
  silo_database ours;
  silo_database theirs;
  auto& foreign = theirs.create_table<std::string>("accounts", columns);
  ours.transact([&](auto& t) {
    EXPECT_THROW(t.upsert(foreign, "Ada", foreign.make_row().set("balance", 1)), std::logic_error);
    EXPECT_THROW(t.get(foreign, "Ada"), std::logic_error);
  });
  ours.read_only([&](auto& t) { EXPECT_THROW(t.get(foreign, "Ada"), std::logic_error); });
  EXPECT_FALSE(foreign.has_rows());
}

template <class Database>
struct indexed_accounts {
  using accounts = typename Database::template table<u64, account>;
  Database db;
  accounts& table = db.template create_table<u64, account>("accounts");
  db::indexed_table<Database, accounts> by{db, table};
  typename db::indexed_table<Database, accounts>::template index_of<std::int64_t> balance =
      by.template add_index<std::int64_t>("by balance",
                                          [](u64, const account& a) { return a.balance; });
};

template <class Database>
class ForeignIndex : public ::testing::Test {};
using indexed_databases = ::testing::Types<silo_database, two_phase_database>;
TYPED_TEST_SUITE(ForeignIndex, indexed_databases);

TYPED_TEST(ForeignIndex, AnIndexedTableOfAnotherDatabaseIsRefused) {
  indexed_accounts<TypeParam> ours;
  indexed_accounts<TypeParam> theirs;
  theirs.db.transact([&](auto& t) { theirs.by.insert(t, 1, account{100}); });
  const auto no_rows = [](u64, const account&) { return true; };
  ours.db.transact([&](auto& t) {
    ours.by.insert(t, 1, account{5});
    EXPECT_THROW(theirs.by.get(t, 1), std::logic_error);
    EXPECT_THROW(theirs.by.insert(t, 2, account{1}), std::logic_error);
    EXPECT_THROW(theirs.by.upsert(t, 1, account{1}), std::logic_error);
    EXPECT_THROW(theirs.by.update(t, 1, [](account&) {}), std::logic_error);
    EXPECT_THROW(theirs.by.erase(t, 1), std::logic_error);
    EXPECT_THROW(theirs.by.find(t, theirs.balance, 100, no_rows), std::logic_error);
    EXPECT_THROW(theirs.by.scan(t, theirs.balance, 0, 200, no_rows), std::logic_error);
    EXPECT_THROW(theirs.by.scan(t, theirs.balance, 0, no_rows), std::logic_error);
  });
  ours.db.read_only([&](auto& t) {
    EXPECT_THROW(theirs.by.find(t, theirs.balance, 100, no_rows), std::logic_error);
    EXPECT_EQ(ours.by.get(t, 1)->balance, 5);
  });
  theirs.db.read_only([&](auto& t) { EXPECT_EQ(theirs.by.get(t, 1)->balance, 100); });
}

TYPED_TEST(ForeignIndex, AnIndexOfAnotherIndexedTableIsRefused) {
  indexed_accounts<TypeParam> ours;
  indexed_accounts<TypeParam> theirs;
  const auto more = theirs.by.template add_index<std::int64_t>(
      "by more", [](u64, const account& a) { return a.balance; });
  const auto no_rows = [](u64, const account&) { return true; };
  ours.db.transact([&](auto& t) {
    EXPECT_THROW(ours.by.find(t, theirs.balance, 5, no_rows), std::logic_error);
    EXPECT_THROW(ours.by.scan(t, theirs.balance, 0, 9, no_rows), std::logic_error);
    EXPECT_THROW(ours.by.scan(t, theirs.balance, 0, no_rows), std::logic_error);
    // A number that this indexed table does not have, at that.
    EXPECT_THROW(ours.by.find(t, more, 5, no_rows), std::logic_error);
  });
}

TYPED_TEST(ForeignIndex, IndexesAreMadeInTheTablesOwnDatabase) {
  TypeParam ours;
  TypeParam theirs;
  auto& foreign = theirs.template create_table<u64, account>("accounts");
  using indexed = db::indexed_table<TypeParam, std::remove_reference_t<decltype(foreign)>>;
  EXPECT_THROW(indexed(ours, foreign), std::logic_error);
}

// A class with virtual functions begins with their table: its address is not that of its base.
struct derived_database : database {
  virtual ~derived_database() = default;
};

TEST(IndexedTable, OfADerivedDatabaseIsItsOwn) {
  derived_database db;
  auto& accounts = db.create_table<u64, account>("accounts");
  db::indexed_table<derived_database, std::remove_reference_t<decltype(accounts)>> by(db, accounts);
  db.transact([&](auto& t) { by.insert(t, 1, account{100}); });
  EXPECT_EQ(db.transact([&](auto& t) { return by.get(t, 1)->balance; }), 100);
}

}  // namespace
}  // namespace elidex::testing
