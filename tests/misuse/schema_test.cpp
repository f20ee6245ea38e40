// What schemas, rows, keys of several parts and indexed tables do when they are misused.
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elidex/database.hpp"
#include "elidex/internal/txn/indexed_table.hpp"
#include "misuse/rows.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

struct thrown_by_callback {};

db::schema account_columns() {
  return db::schema({{"owner", db::column_type::text, 8}, {"balance", db::column_type::integer}});
}

// --- schemas and rows ---

TEST(SchemaMisuse, ColumnsThatCannotBe) {
  using db::column_type;
  const auto made_of = [](std::vector<db::column_definition> columns) {
    static_cast<void>(db::schema(std::move(columns)));
  };
  EXPECT_THROW(made_of({}), db::schema_mismatch);
  EXPECT_THROW(made_of({{"a", column_type::integer}, {"a", column_type::real}}),
               db::schema_mismatch);
  EXPECT_THROW(made_of({{"a", column_type::integer, 5}}), db::schema_mismatch);
  EXPECT_THROW(made_of({{"a", static_cast<column_type>(99)}}), db::schema_mismatch);
  EXPECT_THROW(made_of({{"a", column_type::text, db::row_bytes_max}}), db::row_too_large);
  EXPECT_NO_THROW(made_of({{"a", column_type::text}}));  // of any length
  misuse_row("schema::schema", misuse::bad_argument,
             "no columns, two of a name, a number with a length: throws db::schema_mismatch; over "
             "64 KiB: throws db::row_too_large");
}

TEST(SchemaMisuse, TextsThatDescribeNone) {
  for (const char* const text : {"a", "1:a", "1:a none", "1:a text 4, 1:a text 4", "1:a int8 @8"})
    EXPECT_THROW(static_cast<void>(db::schema::of_directory(text, 8)), db::schema_mismatch);
  misuse_row("schema::of_directory", misuse::bad_argument,
             "a text that is no schema's: throws db::schema_mismatch");
}

TEST(SchemaMisuse, MovedFrom) {
  db::schema columns = account_columns();
  const db::schema to = std::move(columns);
  EXPECT_EQ(columns, to);  // NOLINT(bugprone-use-after-move): that is the test
  EXPECT_EQ(columns.columns().size(), 2U);
  EXPECT_EQ(columns.row_bytes(), to.row_bytes());
  EXPECT_EQ(columns.text(), to.text());
  db::schema assigned({{"other", db::column_type::real}});
  assigned = std::move(columns);
  EXPECT_EQ(columns, assigned);  // NOLINT(bugprone-use-after-move): as above
  for (const char* const function : {"columns", "row_bytes", "text"}) {
    misuse_row("schema::" + std::string(function), misuse::closed_object,
               "moved from: unchanged, because a move copies");
  }
}

TEST(RowMisuse, MovedFrom) {
  db::row from(account_columns());
  db::row to = std::move(from);
  to.set("owner", "Ada");
  // NOLINTBEGIN(bugprone-use-after-move): that is the test
  EXPECT_THROW(static_cast<void>(from.integer("balance")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(from.real("balance")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(from.text("owner")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(from.bytes("owner")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(from.unsigned_integer("balance")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(from.is_null("owner")), db::schema_mismatch);
  EXPECT_THROW(from.set("balance", 1), db::schema_mismatch);
  EXPECT_THROW(from.set("balance", 1.5), db::schema_mismatch);
  EXPECT_THROW(from.set("owner", "Eve"), db::schema_mismatch);
  EXPECT_TRUE(from.words().empty());
  EXPECT_EQ(from.columns(), account_columns());
  for (const char* const function :
       {"integer", "unsigned_integer", "real", "text", "bytes", "is_null", "set"}) {
    misuse_row("row::" + std::string(function), misuse::closed_object,
               "moved from: throws db::schema_mismatch");
  }
  misuse_row("row::words", misuse::closed_object, "moved from: empty");
  misuse_row("row::columns", misuse::closed_object, "moved from: its schema");

  database store;
  auto& accounts = store.create_table<std::uint64_t>("accounts", account_columns());
  store.transact([&](auto& t) {
    EXPECT_THROW(t.insert(accounts, 1, from), db::schema_mismatch);
    EXPECT_THROW(t.upsert(accounts, 1, from), db::schema_mismatch);
    t.insert(accounts, 1, to);
    EXPECT_THROW(t.update(accounts, 1, [](db::row& row) { db::row gone = std::move(row); }),
                 db::schema_mismatch);
  });
  // NOLINTEND(bugprone-use-after-move)
  store.read_only([&](auto& t) { EXPECT_EQ(t.get(accounts, 1)->text("owner"), "Ada"); });
  for (const char* const function : {"insert", "upsert"}) {
    misuse_row(
        "transaction::" + std::string(function), misuse::bad_argument,
        "a row that was moved from: throws db::schema_mismatch; the transaction may continue");
  }
  misuse_row("transaction::update", misuse::bad_argument,
             "a function that moves the row away: throws db::schema_mismatch, and the row stays");
  from = to;
  EXPECT_EQ(from.text("owner"), "Ada");
}

TEST(RowMisuse, ColumnsAndValuesThatAreNotThere) {
  db::row row(account_columns());
  row.set("owner", "Ada").set("balance", 7);
  const db::row before = row;
  EXPECT_THROW(static_cast<void>(row.integer("none")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(row.integer("owner")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(row.real("balance")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(row.text("balance")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(row.bytes("owner")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(row.unsigned_integer("owner")), db::schema_mismatch);
  EXPECT_THROW(static_cast<void>(row.is_null("none")), db::schema_mismatch);
  EXPECT_THROW(row.set("owner", std::nullopt), db::schema_mismatch);
  EXPECT_THROW(row.set("none", 1), db::schema_mismatch);
  EXPECT_THROW(row.set("balance", 1.5), db::schema_mismatch);
  EXPECT_THROW(row.set("owner", "longer than 8"), db::row_too_large);
  EXPECT_EQ(row, before);
  misuse_row("row::is_null", misuse::bad_argument,
             "no column of that name: throws db::schema_mismatch");
  for (const char* const function :
       {"integer", "unsigned_integer", "real", "text", "bytes", "set"}) {
    misuse_row("row::" + std::string(function), misuse::bad_argument,
               "no column of that name and type: throws db::schema_mismatch");
  }
  misuse_row("row::set", misuse::bad_argument,
             "a text longer than its column: throws db::row_too_large; the row is unchanged");
  const std::vector<std::uint64_t> words(2);
  EXPECT_THROW(static_cast<void>(db::row(account_columns(), words)), db::schema_mismatch);
  misuse_row("row::row", misuse::bad_argument,
             "fewer or more words than a row has: throws db::schema_mismatch");
}

TEST(RowMisuse, OfAnotherSchema) {
  database store;
  auto& accounts = store.create_table<std::uint64_t>("accounts", account_columns());
  const db::row other(db::schema({{"balance", db::column_type::integer}}));
  store.transact([&](auto& t) {
    EXPECT_THROW(t.insert(accounts, 1, other), db::schema_mismatch);
    EXPECT_THROW(t.upsert(accounts, 1, other), db::schema_mismatch);
    EXPECT_FALSE(t.get(accounts, 1));
  });
  for (const char* const function : {"insert", "upsert"}) {
    misuse_row("transaction::" + std::string(function), misuse::wrong_handle,
               "a row of another schema: throws db::schema_mismatch; the transaction may continue");
  }
}

// --- keys of several parts ---

TEST(OrderedKeyMisuse, AfterTake) {
  db::ordered_key key;
  key.add("Ada").add(7);
  EXPECT_FALSE(key.take().empty());
  EXPECT_TRUE(key.bytes().empty());
  EXPECT_TRUE(key.take().empty());
  EXPECT_EQ(key.add(7).bytes(), db::ordered_key().add(7).take());
  misuse_row("ordered_key::take", misuse::closed_object, "a second time: empty");
  misuse_row("ordered_key::bytes", misuse::closed_object, "after take(): empty");
  EXPECT_EQ(key.take(), db::ordered_key().add(7).take());
  EXPECT_EQ(key.add_descending(7).bytes(), db::ordered_key().add_descending(7).take());
  for (const char* const function : {"add", "add_descending"})
    misuse_row("ordered_key::" + std::string(function), misuse::closed_object,
               "after take(): begins a new key");
}

TEST(OrderedKeyMisuse, WhatIsNoKey) {
  constexpr std::string_view header = "elidex/internal/txn/ordered_key.hpp";
  undefined_row("end_of_prefix", misuse::bad_argument,
                "an empty string, or one that add() did not make", header,
                "The prefix must have at least one part, and whole parts only");
  undefined_row("string_of_image", misuse::bad_argument, "a string that add() did not make", header,
                "Returns the string that add() encoded as these bytes");
}

// --- numbers for new rows ---

TEST(SequenceMisuse, MoreNumbersThanTheTypeHas) {
  database store;
  auto& rows = store.create_table<std::uint8_t, std::int64_t>("rows");
  db::sequence numbers(rows);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(numbers.next(), i);
  EXPECT_THROW(numbers.next(), std::length_error);
  EXPECT_THROW(numbers.next(), std::length_error);
  misuse_row("sequence::next", misuse::bad_argument,
             "more numbers than the table's key type has: throws std::length_error");
  auto& other = store.create_table<std::uint8_t, std::int64_t>("other");
  store.transact([&](auto& t) {
    t.insert(other, 0, 0);
    EXPECT_THROW(t.insert(other, db::sequence(rows).next(), 0), db::duplicate_key);
  });
  misuse_row("sequence::sequence", misuse::wrong_handle,
             "another table than the one that gets the numbers: insert() throws db::duplicate_key "
             "for a number that is present");
  undefined_row("sequence::sequence", misuse::other_thread,
                "while another thread inserts into the table", "elidex/internal/txn/sequence.hpp",
                "The constructor requires that no other thread inserts into the table");
}

// --- indexed tables ---

struct account {
  std::int64_t number = 0;
};

class IndexedTableMisuse : public ::testing::Test {
 protected:
  using accounts_table = database::table<std::uint64_t, account>;
  using indexed = db::indexed_table<database, accounts_table>;

  std::int64_t number_of(std::uint64_t, const account& row) {
    if (index_throws) throw thrown_by_callback();
    return row.number;
  }
  std::vector<std::uint64_t> found(std::int64_t number) {
    std::vector<std::uint64_t> keys;
    store.read_only([&](auto& t) {
      by.find(t, by_number, number,
              [&](std::uint64_t key, const account&) { keys.push_back(key); });
    });
    return keys;
  }

  database store;
  accounts_table& accounts = store.create_table<std::uint64_t, account>("accounts");
  indexed by{store, accounts};
  bool index_throws = false;
  indexed::index_of<std::int64_t> by_number = by.add_index<std::int64_t>(
      "by number", [this](std::uint64_t key, const account& row) { return number_of(key, row); });
};

using keys = std::vector<std::uint64_t>;

TEST_F(IndexedTableMisuse, IndexFunctionThrows) {
  store.transact([&](auto& t) { by.insert(t, 1, account{100}); });
  store.transact([&](auto& t) {
    index_throws = true;
    EXPECT_THROW(by.insert(t, 2, account{200}), thrown_by_callback);
    EXPECT_THROW(by.upsert(t, 2, account{200}), thrown_by_callback);
    EXPECT_THROW(by.upsert(t, 1, account{200}), thrown_by_callback);
    EXPECT_THROW(by.update(t, 1, [](account& row) { row.number = 200; }), thrown_by_callback);
    EXPECT_THROW(by.erase(t, 1), thrown_by_callback);
    index_throws = false;
    EXPECT_FALSE(by.get(t, 2));
    EXPECT_EQ(by.get(t, 1)->number, 100);
  });
  EXPECT_EQ(found(100), keys{1});
  EXPECT_EQ(found(200), keys{});
  store.transact([&](auto& t) { EXPECT_TRUE(by.erase(t, 1)); });
  EXPECT_EQ(found(100), keys{});
  for (const char* const function :
       {"add_index", "add_unique_index", "insert", "upsert", "update", "erase"}) {
    misuse_row("indexed_table::" + std::string(function), misuse::callback_throws,
               "what an index's function throws comes out of insert(), upsert(), update() and "
               "erase(): row "
               "and indexes are as before, and the transaction may continue");
  }
}

TEST_F(IndexedTableMisuse, FunctionsThrow) {
  store.transact([&](auto& t) {
    by.insert(t, 1, account{100});
    const auto throws = [](auto&&...) { throw thrown_by_callback(); };
    EXPECT_THROW(by.update(t, 1,
                           [](account& row) {
                             row.number = 200;
                             throw thrown_by_callback();
                           }),
                 thrown_by_callback);
    EXPECT_THROW(by.find(t, by_number, 100, throws), thrown_by_callback);
    EXPECT_THROW(by.scan(t, by_number, 0, throws), thrown_by_callback);
    EXPECT_THROW(by.scan(t, by_number, 0, 300, throws), thrown_by_callback);
    EXPECT_THROW(by.scan(t, by_number, all.descending(), throws), thrown_by_callback);
  });
  EXPECT_EQ(found(100), keys{1});
  misuse_row(
      "indexed_table::update", misuse::callback_throws,
      "the exception comes out: row and indexes are as before, and the transaction may continue");
  for (const char* const function : {"find", "scan"}) {
    misuse_row("indexed_table::" + std::string(function), misuse::callback_throws,
               "the exception comes out; the transaction may continue");
  }
}

TEST_F(IndexedTableMisuse, BoundsThatLeaveNothing) {
  store.transact([&](auto& t) {
    by.insert(t, 1, account{100});
    const auto fails = [](auto&&...) { ADD_FAILURE(); };
    by.scan(t, by_number, between(200, 0), fails);
    by.scan(t, by_number, closed(200, 0).descending(), fails);
    EXPECT_EQ(by.erase(t, between(2, 1)), 0U);
  });
  for (const char* const function : {"scan", "erase"}) {
    misuse_row("indexed_table::" + std::string(function), misuse::bad_argument,
               "an upper bound that is less than the lower one: an empty range");
  }
}

TEST_F(IndexedTableMisuse, FunctionsUseTheTable) {
  store.transact([&](auto& t) {
    for (std::uint64_t key = 1; key <= 3; ++key) by.insert(t, key, account{100});
    by.find(t, by_number, 100, [&](std::uint64_t key, const account&) {
      if (key == 1) by.erase(t, 2);
      EXPECT_NE(key, 2U);
    });
    by.scan(t, by_number, 0, 300, [&](std::uint64_t key, const account&) {
      EXPECT_TRUE(by.erase(t, key));
      by.upsert(t, 10 + key, account{500});
      EXPECT_TRUE(by.get(t, 10 + key));
    });
    by.insert(t, 5, account{700});
    EXPECT_TRUE(by.update(t, 5, [&](account& row) {
      row.number = 800;
      by.insert(t, 6, account{700});
    }));
  });
  EXPECT_EQ(found(100), keys{});
  EXPECT_EQ(found(500), (keys{11, 13}));
  EXPECT_EQ(found(700), keys{6});
  EXPECT_EQ(found(800), keys{5});
  for (const char* const function : {"find", "scan"}) {
    misuse_row("indexed_table::" + std::string(function), misuse::reentrance,
               "its function may use the indexed table: a row that it has erased no longer comes");
  }
  misuse_row("indexed_table::update", misuse::reentrance,
             "its function may change other rows; both changes are in the indexes");
  for (const char* const function : {"get", "insert", "upsert", "erase"}) {
    misuse_row("indexed_table::" + std::string(function), misuse::reentrance,
               "from a callback of find(), scan() or update(): works as usual");
  }
}

TEST_F(IndexedTableMisuse, UpdatesFunctionUpdatesTheSameRow) {
  store.transact([&](auto& t) {
    by.insert(t, 1, account{100});
    EXPECT_TRUE(by.update(t, 1, [&](account& row) {
      EXPECT_TRUE(by.update(t, 1, [](account& inner) { inner.number = 200; }));
      row.number = 300;
    }));
  });
  store.read_only([&](auto& t) { EXPECT_EQ(by.get(t, 1)->number, 300); });
  undefined_row(
      "indexed_table::update", misuse::reentrance,
      "its function writes or erases the same row: the indexes keep entries of what the row "
      "was in between",
      "elidex/internal/txn/indexed_table.hpp", "`change` must not write the same row");
}

TEST_F(IndexedTableMisuse, IndexFunctionUsesTheTable) {
  for (const char* const function : {"add_index", "add_unique_index"}) {
    undefined_row("indexed_table::" + std::string(function), misuse::reentrance,
                  "an index's function that depends on other rows",
                  "elidex/internal/txn/indexed_table.hpp",
                  "return the same value for the same row");
  }
}

TEST_F(IndexedTableMisuse, IndexesThatCannotBeAdded) {
  const auto value = [](std::uint64_t, const account& row) { return row.number; };
  EXPECT_THROW(by.add_index<std::int64_t>("accounts", value), db::schema_mismatch);
  EXPECT_THROW(by.add_unique_index<std::int64_t>("accounts", value), db::schema_mismatch);
  store.transact([&](auto& t) {
    by.insert(t, 1, account{100});
    EXPECT_THROW(by.add_index<std::int64_t>("late", value), std::logic_error);
    EXPECT_THROW(by.add_unique_index<std::int64_t>("late", value), std::logic_error);
    EXPECT_THROW(by.drop_index(by_number), std::logic_error);
  });
  store.read_only([&](auto&) {
    EXPECT_THROW(by.add_index<std::int64_t>("late", value), std::logic_error);
    EXPECT_THROW(by.drop_index(by_number), std::logic_error);
  });
  EXPECT_EQ(found(100), keys{1});
  for (const char* const function : {"add_index", "add_unique_index"}) {
    misuse_row("indexed_table::" + std::string(function), misuse::bad_argument,
               "a name that is taken: throws db::schema_mismatch");
  }
  for (const char* const function : {"add_index", "add_unique_index", "drop_index"}) {
    misuse_row("indexed_table::" + std::string(function), misuse::reentrance,
               "from within a transaction, read_only() too: throws std::logic_error and changes "
               "nothing");
  }
  const auto same = [](std::uint64_t, const account&) { return 1; };
  store.transact([&](auto& t) { by.insert(t, 2, account{200}); });
  EXPECT_THROW(by.add_unique_index<std::int64_t>("late", same), db::duplicate_key);
  misuse_row("indexed_table::add_unique_index", misuse::bad_argument,
             "rows with one value: throws db::duplicate_key; nothing is added");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(
        by.add_index<std::int64_t>(
            "late", [](std::uint64_t, const account&) -> int { throw thrown_by_callback(); }),
        thrown_by_callback);
  }
  for (const char* const function : {"add_index", "add_unique_index"}) {
    misuse_row("indexed_table::" + std::string(function), misuse::callback_throws,
               "while the index is built: the exception comes out; nothing is added");
  }
  by.drop_index(by_number);
  EXPECT_THROW(by.drop_index(by_number), std::logic_error);
  misuse_row("indexed_table::drop_index", misuse::wrong_handle,
             "an index of another indexed_table, or one that was dropped: throws std::logic_error");
  store.transact([&](auto& t) {
    EXPECT_THROW(by.find(t, by_number, 100, [](auto&&...) {}), std::logic_error);
    EXPECT_THROW(by.scan(t, by_number, 100, [](auto&&...) {}), std::logic_error);
  });
  for (const char* const function : {"find", "scan"}) {
    misuse_row("indexed_table::" + std::string(function), misuse::closed_object,
               "an index that was dropped: throws std::logic_error; the transaction may continue");
  }
}

TEST_F(IndexedTableMisuse, WrongHandles) {
  auto& people = store.create_table<std::uint64_t, account>("people");
  indexed by_people(store, people);
  database other;
  auto& others = other.create_table<std::uint64_t, account>("accounts");
  EXPECT_THROW(indexed(store, others), std::logic_error);
  misuse_row("indexed_table::indexed_table", misuse::wrong_handle,
             "a table of another database: throws std::logic_error");

  const auto nothing = [](auto&&...) {};
  store.transact([&](auto& t) {
    by.insert(t, 1, account{100});
    EXPECT_THROW(by_people.find(t, by_number, 100, nothing), std::logic_error);
    EXPECT_THROW(by_people.scan(t, by_number, 100, nothing), std::logic_error);
    EXPECT_THROW(by_people.scan(t, by_number, 100, 200, nothing), std::logic_error);
    EXPECT_THROW(by_people.scan(t, by_number, all, nothing), std::logic_error);
  });
  for (const char* const function : {"find", "scan"}) {
    misuse_row(
        "indexed_table::" + std::string(function), misuse::wrong_handle,
        "an index of another indexed_table: throws std::logic_error; the transaction may continue");
  }

  const auto expect_refused = [&](auto& t) {
    EXPECT_THROW(by.get(t, 1), std::logic_error);
    EXPECT_THROW(by.find(t, by_number, 100, nothing), std::logic_error);
    EXPECT_THROW(by.scan(t, by_number, 100, nothing), std::logic_error);
  };
  other.read_only(expect_refused);
  other.transact([&](auto& t) {
    expect_refused(t);
    EXPECT_THROW(by.insert(t, 2, account{200}), std::logic_error);
    EXPECT_THROW(by.upsert(t, 1, account{200}), std::logic_error);
    EXPECT_THROW(by.update(t, 1, [](account& row) { row.number = 200; }), std::logic_error);
    EXPECT_THROW(by.erase(t, 1), std::logic_error);
    t.insert(others, 9, account{900});
  });
  EXPECT_EQ(found(100), keys{1});
  EXPECT_EQ(found(200), keys{});
  for (const char* const function :
       {"get", "insert", "upsert", "update", "erase", "find", "scan"}) {
    misuse_row("indexed_table::" + std::string(function), misuse::wrong_handle,
               "a transaction of another database: throws std::logic_error; it may continue");
  }
}

}  // namespace
}  // namespace elidex::testing
