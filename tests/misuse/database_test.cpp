// What a database does when it is misused: when it is closed or could not be opened, from within a
// transaction, and when a function throws.
#include "elidex/database.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>

#include "elidex/internal/txn/two_phase_locking.hpp"
#include "misuse/rows.hpp"
#include "support/faulty_directory.hpp"
#include "support/thrown_code.hpp"

namespace elidex::testing {
namespace {

struct thrown_by_callback {};
struct account {
  std::int64_t balance = 0;
};

struct few_columns {
  std::int64_t a = 0;
};
ELIDEX_ROW(few_columns, a);
struct more_columns {
  std::int64_t a = 0;
  std::optional<std::int64_t> b;
};
ELIDEX_ROW(more_columns, a, b);
db::schema_change no_more_b() {
  return db::schema_change().drop("b");
}

using optimistic_database = database;
using two_phase_database = basic_database<db::two_phase_locking<>>;

// EXPECT_EQ alone would take std::errc for a number.
::testing::AssertionResult is(std::error_code code, std::errc expected) {
  if (code == expected) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << code.message();
}

template <class Database>
struct bank {
  Database db;
  typename Database::template table<std::uint64_t, account>& accounts =
      db.template create_table<std::uint64_t, account>("accounts");

  static db::storage_options options() {
    return {.level = db::durability::async, .group_time = std::chrono::hours(1)};
  }
  void fill() {
    db.transact([&](auto& t) {
      for (std::uint64_t key = 1; key <= 3; ++key) t.insert(accounts, key, account{10});
    });
  }
  std::int64_t balance(std::uint64_t key) {
    return db.read_only([&](auto& t) {
      const auto row = t.get(accounts, key);
      return row ? row->balance : -1;
    });
  }
  void set(std::uint64_t key, std::int64_t balance) {
    db.transact([&](auto& t) { t.upsert(accounts, key, account{balance}); });
  }
};

template <class Database>
class DatabaseMisuse : public ::testing::Test {
 protected:
  // A bank with a directory, and an account with 10.
  std::unique_ptr<bank<Database>> opened() {
    auto made = std::make_unique<bank<Database>>();
    made->db.open(disk_.directory(), made->options());
    made->fill();
    return made;
  }
  faulty_disk disk_;
};

using Databases = ::testing::Types<optimistic_database, two_phase_database>;
TYPED_TEST_SUITE(DatabaseMisuse, Databases);

// --- closed, never opened, not opened for an error ---

TYPED_TEST(DatabaseMisuse, AfterClose) {
  const auto closed = this->opened();
  auto& db = closed->db;
  db.close();
  EXPECT_TRUE(is(code_thrown_by([&] { closed->set(1, 5); }), std::errc::operation_canceled));
  EXPECT_EQ(closed->balance(1), 10);
  db.transact([&](auto& t) { EXPECT_EQ(t.get(closed->accounts, 1)->balance, 10); });
  misuse_row("database::transact", misuse::closed_object,
             "after close(): one that writes throws std::system_error (operation_canceled) and "
             "changes nothing; one that "
             "reads works");
  misuse_row("database::read_only", misuse::closed_object, "after close(): works");
  EXPECT_TRUE(is(code_thrown_by([&] { db.template create_table<std::uint64_t, account>("more"); }),
                 std::errc::operation_canceled));
  EXPECT_THROW((db.template find_table<std::uint64_t, account>("more")), db::unknown_table);
  misuse_row("database::create_table", misuse::closed_object,
             "after close(): throws std::system_error (operation_canceled) and makes no table");
  EXPECT_EQ((&db.template find_table<std::uint64_t, account>("accounts")), &closed->accounts);
  misuse_row("database::find_table", misuse::closed_object, "after close(): works");
  EXPECT_TRUE(is(code_thrown_by([&] { db.checkpoint(); }), std::errc::operation_canceled));
  misuse_row("database::checkpoint", misuse::closed_object,
             "after close(): throws std::system_error (operation_canceled)");
  faulty_disk copy;
  EXPECT_TRUE(is(code_thrown_by([&] { db.backup(copy.private_directory()); }),
                 std::errc::operation_canceled));
  EXPECT_TRUE(copy.names().empty());
  misuse_row("database::backup", misuse::closed_object,
             "after close(): throws std::system_error (operation_canceled); the directory stays "
             "empty");
  EXPECT_TRUE(is(code_thrown_by([&] { db.update_backup(copy.private_directory()); }),
                 std::errc::operation_canceled));
  misuse_row("database::update_backup", misuse::closed_object,
             "after close(): throws std::system_error (operation_canceled); the copy stays as it "
             "is");
  db.wait_durable();
  misuse_row("database::wait_durable", misuse::closed_object,
             "after close(): returns; all is durable");
  db.close();
  misuse_row("database::close", misuse::closed_object, "a second time: nothing happens");
  EXPECT_THROW(db.open(this->disk_.directory()), std::logic_error);
  misuse_row("database::open", misuse::closed_object,
             "a second time, after close() too: throws std::logic_error");
  db.collect();
  EXPECT_GT(db.stats().commits, 0U);
  static_cast<void>(db.protocol());
  EXPECT_EQ(db.automatic_checkpoints().failed, 0U);
  for (const char* const function : {"automatic_checkpoints", "collect", "stats", "protocol"}) {
    misuse_row("database::" + std::string(function), misuse::closed_object,
               "after close(): works as before");
  }
}

TYPED_TEST(DatabaseMisuse, WithoutADirectory) {
  bank<TypeParam> memory;
  memory.fill();
  memory.db.wait_durable();
  memory.db.close();
  memory.set(1, 5);
  EXPECT_EQ(memory.balance(1), 5);
  misuse_row("database::wait_durable", misuse::closed_object,
             "without a directory: returns at once");
  misuse_row("database::close", misuse::closed_object,
             "without a directory: nothing happens; the database stays usable");
  EXPECT_TRUE(
      is(code_thrown_by([&] { memory.db.checkpoint(); }), std::errc::operation_not_supported));
  misuse_row("database::checkpoint", misuse::closed_object,
             "without a directory, or with level none: throws std::system_error "
             "(operation_not_supported)");
  faulty_disk copy;
  EXPECT_TRUE(is(code_thrown_by([&] { memory.db.backup(copy.private_directory()); }),
                 std::errc::operation_not_supported));
  EXPECT_TRUE(copy.names().empty());
  misuse_row("database::backup", misuse::closed_object,
             "without a directory, or with level none: throws std::system_error "
             "(operation_not_supported)");
  EXPECT_TRUE(is(code_thrown_by([&] { memory.db.update_backup(copy.private_directory()); }),
                 std::errc::operation_not_supported));
  misuse_row("database::update_backup", misuse::closed_object,
             "without a directory, or with level none: throws std::system_error "
             "(operation_not_supported)");
  EXPECT_EQ(memory.db.automatic_checkpoints().written, 0U);
  misuse_row("database::automatic_checkpoints", misuse::closed_object,
             "without a directory, or with level none: returns counts of 0");
  EXPECT_THROW(memory.db.open(this->disk_.directory()), std::logic_error);
  EXPECT_EQ(memory.balance(1), 5);
  misuse_row("database::open", misuse::bad_argument,
             "after a transaction that committed: throws std::logic_error");
}

TYPED_TEST(DatabaseMisuse, AfterOpenHasFailed) {
  this->opened()->db.close();
  TypeParam db;  // lacks the table that the directory has
  EXPECT_THROW(db.open(this->disk_.directory()), db::unknown_table);
  EXPECT_THROW(db.transact([](auto&) {}), std::logic_error);
  EXPECT_THROW(db.read_only([](auto&) {}), std::logic_error);
  EXPECT_THROW(db.open(this->disk_.directory()), std::logic_error);
  for (const char* const function : {"transact", "read_only", "open"}) {
    misuse_row("database::" + std::string(function), misuse::closed_object,
               "after open() has thrown: throws std::logic_error");
  }
  EXPECT_TRUE(is(code_thrown_by([&] { db.checkpoint(); }), std::errc::operation_not_supported));
  db.wait_durable();
  db.close();
  db.collect();
  bank<TypeParam> again;
  again.db.open(this->disk_.directory());
  EXPECT_EQ(again.balance(3), 10);
  misuse_row("database::checkpoint", misuse::closed_object,
             "after open() has thrown: throws std::system_error (operation_not_supported); the "
             "directory is unchanged");
}

// --- from within a transaction ---

TYPED_TEST(DatabaseMisuse, ATransactionInATransaction) {
  bank<TypeParam> a;
  bank<TypeParam> b;
  a.fill();
  b.fill();
  a.db.transact([&](auto& t) {
    t.upsert(a.accounts, 1, account{11});
    EXPECT_THROW(a.db.transact([](auto&) {}), std::logic_error);
    b.db.transact(
        [&](auto& u) { u.upsert(b.accounts, 1, account{t.get(a.accounts, 1)->balance + 1}); });
    EXPECT_EQ(b.balance(1), 12);
    EXPECT_EQ(a.balance(1), 10);
  });
  EXPECT_EQ(a.balance(1), 11);
  misuse_row("database::transact", misuse::reentrance,
             "from within transact() of the same database: throws std::logic_error; the outer one "
             "continues");
  misuse_row("database::transact", misuse::reentrance,
             "from within transact() of another database: commits, independently of the outer one");
  misuse_row(
      "database::read_only", misuse::reentrance,
      "from within transact(): shows what was committed before, not what the outer one writes");
}

TYPED_TEST(DatabaseMisuse, TransactionsInAReadOnlyOne) {
  bank<TypeParam> a;
  bank<TypeParam> b;
  a.fill();
  b.fill();
  a.db.read_only([&](auto& t) {
    EXPECT_THROW(a.db.read_only([](auto&) {}), std::logic_error);
    EXPECT_EQ(b.balance(1), 10);
    a.set(1, 11);
    EXPECT_EQ(t.get(a.accounts, 1)->balance, 10);
  });
  EXPECT_EQ(a.balance(1), 11);
  misuse_row("database::read_only", misuse::reentrance,
             "from within read_only() of the same database: throws std::logic_error; the outer one "
             "continues");
  misuse_row("database::read_only", misuse::reentrance,
             "from within read_only() of another database: works");
  misuse_row("database::transact", misuse::reentrance,
             "from within read_only(): commits; the outer one keeps its own snapshot");
}

TEST(TwoPhaseDatabaseMisuse, ReadOnlyInATransactionThatReadsOneMoment) {
  bank<two_phase_database> a;
  a.fill();
  a.db.transact(isolation::repeatable_read, [&](auto& t) {
    EXPECT_EQ(t.get(a.accounts, 1)->balance, 10);
    EXPECT_THROW(a.db.read_only([](auto&) {}), std::logic_error);
    EXPECT_EQ(t.get(a.accounts, 1)->balance, 10);
  });
  misuse_row("database::read_only", misuse::reentrance,
             "from within a two-phase transaction that reads a snapshot (repeatable_read): throws "
             "std::logic_error");
}

TYPED_TEST(DatabaseMisuse, OpenInATransaction) {
  bank<TypeParam> fresh;
  fresh.db.transact(
      [&](auto&) { EXPECT_THROW(fresh.db.open(this->disk_.directory()), std::logic_error); });
  bank<TypeParam> read;
  read.db.read_only(
      [&](auto&) { EXPECT_THROW(read.db.open(this->disk_.directory()), std::logic_error); });
  read.db.open(this->disk_.directory(), read.options());
  read.fill();
  EXPECT_EQ(read.balance(1), 10);
  misuse_row("database::open", misuse::reentrance,
             "from within a transaction of the same database, read_only() too: throws "
             "std::logic_error and opens nothing");
}

TYPED_TEST(DatabaseMisuse, OpenOfAnotherDatabaseInATransaction) {
  bank<TypeParam> a;
  bank<TypeParam> b;
  a.db.transact([&](auto& t) {
    b.db.open(this->disk_.directory(), b.options());
    t.upsert(a.accounts, 1, account{1});
  });
  b.fill();
  EXPECT_EQ(a.balance(1), 1);
  EXPECT_EQ(b.balance(1), 10);
  misuse_row("database::open", misuse::reentrance,
             "from within a transaction of another database: works");
}

TYPED_TEST(DatabaseMisuse, CloseInATransaction) {
  const auto open = this->opened();
  open->db.transact([&](auto& t) {
    t.upsert(open->accounts, 1, account{11});
    EXPECT_THROW(open->db.close(), std::logic_error);
  });
  open->db.read_only([&](auto&) { EXPECT_THROW(open->db.close(), std::logic_error); });
  EXPECT_EQ(open->balance(1), 11);
  open->set(2, 22);
  misuse_row("database::close", misuse::reentrance,
             "from within a transaction, read_only() too: throws std::logic_error; the database "
             "stays open");
}

TYPED_TEST(DatabaseMisuse, AllOthersInATransaction) {
  const auto open = this->opened();
  auto& db = open->db;
  const auto all = [&](const std::string& where) {
    static_cast<void>(db.checkpoint());
    faulty_disk copy;
    EXPECT_GT(db.backup(copy.private_directory()).bytes, 0U);
    static_cast<void>(db.update_backup(copy.private_directory()));
    EXPECT_EQ(db.automatic_checkpoints().failed, 0U);
    db.wait_durable();
    db.collect();
    EXPECT_GT(db.stats().commits, 0U);
    static_cast<void>(db.protocol());
    EXPECT_EQ((&db.template find_table<std::uint64_t, account>("accounts")), &open->accounts);
    return &db.template create_table<std::uint64_t, account>("made in " + where);
  };
  db.transact([&](auto& t) {
    t.upsert(open->accounts, 1, account{11});
    t.erase(open->accounts, 2);
    auto& made = *all("transact");
    t.upsert(made, 1, account{12});
    EXPECT_EQ(t.get(open->accounts, 1)->balance, 11);
  });
  db.read_only([&](auto& t) {
    EXPECT_EQ(t.get(open->accounts, 1)->balance, 11);
    auto& made = *all("read_only");
    EXPECT_FALSE(t.get(made, 1));
    EXPECT_EQ(t.get(open->accounts, 1)->balance, 11);
  });
  db.close();

  bank<TypeParam> again;
  auto& in_transact = again.db.template create_table<std::uint64_t, account>("made in transact");
  again.db.template create_table<std::uint64_t, account>("made in read_only");
  again.db.open(this->disk_.directory());
  EXPECT_EQ(again.balance(1), 11);
  EXPECT_EQ(again.balance(2), -1);
  again.db.read_only([&](auto& t) { EXPECT_EQ(t.get(in_transact, 1)->balance, 12); });
  misuse_row("database::create_table", misuse::reentrance,
             "from within a transaction: makes the table at once, which stays if the transaction "
             "rolls back; it may be used");
  misuse_row("database::checkpoint", misuse::reentrance,
             "from within a transaction: writes what is committed, without that transaction");
  misuse_row("database::backup", misuse::reentrance,
             "from within a transaction: writes what is committed, without that transaction");
  misuse_row("database::update_backup", misuse::reentrance,
             "from within a transaction: adds what is committed, without that transaction");
  misuse_row("database::wait_durable", misuse::reentrance,
             "from within a transaction: waits for what is committed, without that transaction");
  for (const char* const function :
       {"automatic_checkpoints", "find_table", "collect", "stats", "protocol"}) {
    misuse_row("database::" + std::string(function), misuse::reentrance,
               "from within a transaction: works as usual");
  }
}

TYPED_TEST(DatabaseMisuse, TheDatabaseDestroyedInATransaction) {
  undefined_row("database::~database", misuse::reentrance, "while a transaction runs",
                "elidex/database.hpp",
                "No transaction may be running when a database is destroyed");
}

TYPED_TEST(DatabaseMisuse, ABackupIntoADirectoryWithFiles) {
  const auto open = this->opened();
  faulty_disk other;  // its directory has a file of somebody else
  EXPECT_TRUE(is(code_thrown_by([&] { open->db.backup(other.directory()); }),
                 std::errc::directory_not_empty));
  EXPECT_TRUE(other.names().empty());
  misuse_row("database::backup", misuse::bad_argument,
             "a directory with files: throws std::system_error (directory_not_empty) and changes "
             "nothing");
  EXPECT_TRUE(is(code_thrown_by([&] { open->db.update_backup(other.directory()); }),
                 std::errc::invalid_argument));
  EXPECT_TRUE(other.names().empty());
  misuse_row("database::update_backup", misuse::bad_argument,
             "a directory that is not a backup of this database: throws std::system_error "
             "(invalid_argument) and changes nothing");
}

TYPED_TEST(DatabaseMisuse, ATransactionThatMayNotRun) {
  const auto open = this->opened();
  const auto never = [](auto&) { ADD_FAILURE(); };
  EXPECT_THROW(open->db.transact({.deadline = std::chrono::steady_clock::now()}, never),
               db::timed_out);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(open->db.transact({.stop = stop.get_token()}, never), db::canceled);
  misuse_row("database::transact", misuse::bad_argument,
             "a deadline that has passed, or a request to stop: throws db::timed_out or "
             "db::canceled without running the function");
}

// --- exceptions ---

TYPED_TEST(DatabaseMisuse, TransactionsFunctionThrows) {
  bank<TypeParam> a;
  a.fill();
  for (const isolation level :
       {isolation::read_committed, isolation::repeatable_read, isolation::serializable}) {
    EXPECT_THROW(a.db.transact(level,
                               [&](auto& t) {
                                 t.upsert(a.accounts, 1, account{99});
                                 t.insert(a.accounts, 9, account{99});
                                 t.erase(a.accounts, 2);
                                 throw thrown_by_callback();
                               }),
                 thrown_by_callback);
    EXPECT_EQ(a.balance(1), 10);
    EXPECT_EQ(a.balance(2), 10);
    EXPECT_EQ(a.balance(9), -1);
  }
  a.set(1, 11);
  EXPECT_EQ(a.balance(1), 11);
  misuse_row("database::transact", misuse::callback_throws,
             "rolls back, and the exception comes out (if what the function had read still holds; "
             "else it is run again)");

  EXPECT_THROW(a.db.read_only([&](auto&) { throw thrown_by_callback(); }), thrown_by_callback);
  EXPECT_EQ(a.balance(1), 11);
  misuse_row("database::read_only", misuse::callback_throws,
             "the exception comes out; the database is usable");
}

// --- names of tables ---

TYPED_TEST(DatabaseMisuse, ColumnsThatCannotChange) {
  TypeParam db;
  auto& rows = db.template create_table<std::uint64_t, few_columns>("rows");
  auto& unregistered = db.template create_table<std::uint64_t, account>("unregistered");
  db.open(this->disk_.directory());
  const auto change = [&] { db.template change_table<more_columns>(rows); };
  db.transact([&](auto& t) {
    EXPECT_THROW(change(), std::logic_error);
    t.insert(rows, 1, few_columns{5});
  });
  db.read_only([&](auto& t) {
    EXPECT_THROW(change(), std::logic_error);
    EXPECT_EQ(t.get(rows, 1)->a, 5);
  });
  misuse_row("database::change_table", misuse::reentrance,
             "from within a transaction or snapshot: throws std::logic_error; the table is as it "
             "was");
  TypeParam other;
  EXPECT_THROW(other.template change_table<more_columns>(rows), std::logic_error);
  misuse_row("database::change_table", misuse::wrong_handle,
             "a table of another database: throws std::logic_error; the table is as it was");
  EXPECT_THROW(db.template change_table<more_columns>(unregistered), db::schema_mismatch);
  misuse_row("database::change_table", misuse::bad_argument,
             "rows without registered members, or a difference that the schema_change does not "
             "explain: throws schema_mismatch; the table is as it was");
  {
    db::indexed_table by(db, rows);
    const auto index = by.template add_index<std::int64_t>(
        "by a", [](std::uint64_t, const few_columns& row) { return row.a; });
    EXPECT_THROW(change(), std::logic_error);
    misuse_row("database::change_table", misuse::bad_argument,
               "a table with indexes, without a function that adds the new ones: throws "
               "std::logic_error; the table is as it was");
    by.drop_index(index);
  }
  auto& now = db.template change_table<more_columns>(rows);
  EXPECT_THROW(change(), db::schema_mismatch);
  EXPECT_THROW(db.transact([&](auto& t) { return t.get(rows, 1); }), db::schema_mismatch);
  misuse_row(
      "database::change_table", misuse::closed_object,
      "the former table, after the change: throws schema_mismatch, as transactions and later "
      "snapshots do");
  db.close();
  EXPECT_TRUE(is(code_thrown_by([&] { db.template change_table<few_columns>(now, no_more_b()); }),
                 std::errc::operation_canceled));
  db.read_only([&](auto& t) { EXPECT_EQ(t.get(now, 1)->a, 5); });
  misuse_row(
      "database::change_table", misuse::closed_object,
      "after close(): throws std::system_error (operation_canceled); the table is as it was");
}

TYPED_TEST(DatabaseMisuse, NamesOfTables) {
  bank<TypeParam> a;
  EXPECT_THROW((a.db.template create_table<std::uint64_t, account>("accounts")),
               db::schema_mismatch);
  misuse_row("database::create_table", misuse::bad_argument,
             "a name that is taken: throws db::schema_mismatch");
  EXPECT_THROW((a.db.template find_table<std::uint64_t, account>("none")), db::unknown_table);
  misuse_row("database::find_table", misuse::bad_argument,
             "no such table: throws db::unknown_table");
  EXPECT_THROW((a.db.template find_table<std::uint32_t, account>("accounts")), db::schema_mismatch);
  EXPECT_THROW((a.db.template find_table<std::uint64_t>("accounts")), db::schema_mismatch);
  misuse_row("database::find_table", misuse::wrong_handle,
             "a table of other keys or rows: throws db::schema_mismatch");
}

// --- directories without the program that wrote them ---

TEST(DatabaseMisuseOfDirectories, TablesThatAreNoMore) {
  faulty_disk disk;
  database db;
  db.create_table<std::uint64_t, account>("accounts");
  EXPECT_THROW(db.drop_table("accounts"), db::schema_mismatch);
  misuse_row("database::drop_table", misuse::bad_argument,
             "a table that the program has created: throws db::schema_mismatch");
  db.transact([&](auto&) { db.drop_table("older"); });
  misuse_row("database::drop_table", misuse::reentrance,
             "from within a transaction: works as usual");
  database opened;
  opened.drop_table("older");
  opened.open(disk.directory());
  EXPECT_THROW(opened.drop_table("old"), std::logic_error);
  misuse_row("database::drop_table", misuse::closed_object,
             "after open(): throws std::logic_error");
}

class directory_of_database : public ::testing::Test {
 protected:
  directory_of_database() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "elidex-misuse-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    database db;
    auto& accounts = db.create_table<std::uint64_t, account>("accounts");
    db.open(path_);
    db.transact([&](auto& t) { t.insert(accounts, 1, account{5}); });
    db.close();
  }
  ~directory_of_database() override { std::filesystem::remove_all(path_); }
  std::string path_;
};

TEST_F(directory_of_database, MarkIndexesStale) {
  {
    database program;
    auto& accounts = program.create_table<std::uint64_t, account>("accounts");
    db::indexed_table by(program, accounts);
    by.add_index<std::int64_t>("by balance",
                               [](std::uint64_t, const account& a) { return a.balance; });
    program.open(path_);
  }
  {
    database db;
    db.open_all(path_);
    db.close();
    const auto& accounts = db.find_table<std::uint64_t>("accounts");
    EXPECT_THROW(db.mark_indexes_stale(accounts), std::system_error);
  }
  misuse_row("database::mark_indexes_stale", misuse::closed_object,
             "after close(): throws std::system_error if the table has indexes");
  database db;
  db.open_all(path_);
  const auto& accounts = db.find_table<std::uint64_t>("accounts");
  database another;
  EXPECT_THROW(another.mark_indexes_stale(accounts), std::logic_error);
  misuse_row("database::mark_indexes_stale", misuse::wrong_handle,
             "a table of another database: throws std::logic_error");
  db.transact([&](auto&) { EXPECT_EQ(db.mark_indexes_stale(accounts), 1U); });
  misuse_row("database::mark_indexes_stale", misuse::reentrance,
             "from within a transaction: works as usual");
}

TEST_F(directory_of_database, OpenAll) {
  database db;
  db.transact([&](auto&) { EXPECT_THROW(db.open_all(path_), std::logic_error); });
  misuse_row("database::open_all", misuse::reentrance,
             "from within a transaction of the same database, read_only() too: throws "
             "std::logic_error and opens nothing");
  database reader;
  reader.open_all(path_, {.level = db::durability::none});
  EXPECT_THROW(reader.open_all(path_), std::logic_error);
  misuse_row("database::open_all", misuse::closed_object,
             "a second time, after close() too: throws std::logic_error");

  const auto count = [](database& in) {
    std::size_t tables = 0;
    in.for_each_schema_table([&](auto& one) {
      ++tables;
      EXPECT_EQ(one.name(), "accounts");
      EXPECT_EQ(&in.find_table<std::uint64_t>("accounts"), static_cast<void*>(&one));
    });
    return tables;
  };
  reader.read_only([&](auto&) { EXPECT_EQ(count(reader), 1U); });
  misuse_row("database::for_each_schema_table", misuse::reentrance,
             "from within a transaction, or from its own function: works as usual");
  EXPECT_THROW(reader.for_each_schema_table([](auto&) { throw thrown_by_callback(); }),
               thrown_by_callback);
  EXPECT_EQ(count(reader), 1U);
  misuse_row("database::for_each_schema_table", misuse::callback_throws,
             "the exception comes out; the database is usable");
  reader.close();
  EXPECT_EQ(count(reader), 1U);
  misuse_row("database::for_each_schema_table", misuse::closed_object, "after close(): works");
}

TEST_F(directory_of_database, Restore) {
  {
    database with_checkpoint;  // whose earlier states are gone
    with_checkpoint.create_table<std::uint64_t, account>("accounts");
    with_checkpoint.open(path_);
    static_cast<void>(with_checkpoint.checkpoint());
    with_checkpoint.close();
  }
  const std::string copy = path_ + "/copy";
  const auto restored = [&](const std::string& from, const std::string& to, std::uint64_t group) {
    return code_thrown_by([&] { db::restore(from, to, group); });
  };
  EXPECT_TRUE(is(restored(path_, copy, 0), std::errc::invalid_argument));
  EXPECT_TRUE(std::filesystem::is_empty(copy));
  misuse_row("restore", misuse::bad_argument,
             "a state that the directory does not have: throws std::system_error "
             "(invalid_argument); the copy is empty");
  EXPECT_TRUE(is(restored(path_, path_, 1), std::errc::directory_not_empty));
  misuse_row("restore", misuse::bad_argument,
             "a copy with files, or the directory itself: throws std::system_error "
             "(directory_not_empty) and changes nothing");
  database again;
  const auto& accounts = again.create_table<std::uint64_t, account>("accounts");
  again.open(path_);
  again.read_only([&](auto& t) { EXPECT_EQ(t.get(accounts, 1)->balance, 5); });
}

TEST_F(directory_of_database, Follow) {
  database writer;
  auto& written = writer.create_table<std::uint64_t, account>("accounts");
  writer.open(path_);

  database copy;
  auto& accounts = copy.create_table<std::uint64_t, account>("accounts");
  EXPECT_THROW(copy.catch_up(), std::logic_error);
  misuse_row("database::catch_up", misuse::closed_object,
             "without follow(): throws std::logic_error");
  database busy;
  busy.transact([&](auto&) { EXPECT_THROW(busy.follow(path_), std::logic_error); });
  misuse_row("database::follow", misuse::reentrance,
             "from within a transaction of the same database, read_only() too: throws "
             "std::logic_error and follows nothing");
  copy.follow(path_);
  EXPECT_THROW(copy.follow(path_), std::logic_error);
  misuse_row("database::follow", misuse::closed_object,
             "a second time, or after open(): throws std::logic_error");
  EXPECT_THROW(copy.transact([](auto&) {}), std::logic_error);
  misuse_row("database::transact", misuse::closed_object,
             "after follow(): throws std::logic_error");
  EXPECT_THROW((copy.create_table<std::uint64_t, account>("more")), std::logic_error);
  misuse_row("database::create_table", misuse::closed_object,
             "after follow(): throws std::logic_error");

  writer.transact([&](auto& t) { t.upsert(written, 1, account{6}); });
  writer.close();
  copy.read_only([&](auto& t) {
    EXPECT_EQ(copy.catch_up(), 1U);
    EXPECT_EQ(t.get(accounts, 1)->balance, 5);
  });
  copy.read_only([&](auto& t) { EXPECT_EQ(t.get(accounts, 1)->balance, 6); });
  misuse_row("database::catch_up", misuse::reentrance,
             "from within read_only(): works, and the snapshot stays as it is");
}

TEST_F(directory_of_database, FollowAll) {
  database writer;
  auto& written = writer.create_table<std::uint64_t, account>("accounts");
  writer.open(path_);
  database copy;
  database busy;
  busy.transact([&](auto&) { EXPECT_THROW(busy.follow_all(path_), std::logic_error); });
  misuse_row("database::follow_all", misuse::reentrance,
             "from within a transaction of the same database, read_only() too: throws "
             "std::logic_error and follows nothing");
  copy.follow_all(path_);
  EXPECT_THROW(copy.follow_all(path_), std::logic_error);
  misuse_row("database::follow_all", misuse::closed_object,
             "a second time, or after open(): throws std::logic_error");

  // A table that the writer creates now.
  auto& later = writer.create_table<std::string, account>("later");
  writer.transact([&](auto& t) {
    t.insert(later, "key", account{7});
    t.insert(written, 2, account{8});
  });
  writer.close();
  EXPECT_EQ(copy.catch_up(), 2U);
  std::size_t rows = 0;
  copy.for_each_schema_table([&](auto& table) {
    copy.read_only([&](auto& t) { t.scan(table, all, [&](auto&&, const db::row&) { ++rows; }); });
  });
  EXPECT_EQ(rows, 3U);
}

}  // namespace
}  // namespace elidex::testing
