// Rows with a schema: columns by name, errors, in transactions and in directories.
#include "elidex/internal/txn/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/databases.hpp"
#include "support/faulty_directory.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using db::column_type;
using db::row_too_large;
using db::schema;
using db::schema_mismatch;
using ::testing::HasSubstr;

schema account_columns(std::size_t owner_bytes = 10) {
  return schema({{"owner", column_type::text, owner_bytes},
                 {"balance", column_type::integer},
                 {"rate", column_type::real}});
}

template <class Error, class Action>
std::string text_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Schema, RowsHaveColumnsByName) {
  const schema columns = account_columns();
  EXPECT_EQ(columns.row_bytes(), 32u);
  db::row row(columns);
  EXPECT_EQ(row.text("owner"), "");
  EXPECT_EQ(row.integer("balance"), 0);
  EXPECT_EQ(row.real("rate"), 0);
  row.set("owner", "Ada").set("balance", -70).set("rate", 0.5);
  EXPECT_EQ(row.text("owner"), "Ada");
  EXPECT_EQ(row.integer("balance"), -70);
  EXPECT_EQ(row.real("rate"), 0.5);
  const db::row copy(columns, row.words());
  EXPECT_EQ(copy, row);
  row.set("owner", std::string_view("0123\0"
                                    "56789",
                                    10));
  EXPECT_EQ(row.text("owner").size(), 10u);
  EXPECT_NE(copy, row);
  row.set("owner", "Ada");  // nothing is left of the longer one
  EXPECT_EQ(copy, row);
}

TEST(Schema, RefusesWhatItCannotHold) {
  const schema columns = account_columns();
  db::row row(columns);
  EXPECT_THAT(text_of<row_too_large>([&] { row.set("owner", "01234567890"); }),
              HasSubstr("owner: a text of 11 bytes; it takes at most 10"));
  EXPECT_THAT(text_of<schema_mismatch>([&] { row.set("street", 1); }),
              HasSubstr("street: there is no column"));
  EXPECT_THAT(text_of<schema_mismatch>([&] { row.set("owner", 1); }),
              HasSubstr("owner: the column is of type text"));
  EXPECT_THROW(static_cast<void>(row.real("balance")), schema_mismatch);
  EXPECT_EQ(row, db::row(columns));
  EXPECT_THROW(schema({}), schema_mismatch);
  EXPECT_THROW(schema({{"a"}, {"a"}}), schema_mismatch);
  EXPECT_THROW(schema({{"a", column_type::text}}), schema_mismatch);
  EXPECT_THROW(schema({{"a", column_type::integer, 3}}), schema_mismatch);
  EXPECT_THROW(schema({{"a", column_type::text, db::row_bytes_max}}), row_too_large);
  EXPECT_NO_THROW(schema({{"a", column_type::text, db::row_bytes_max - 4}}));
  EXPECT_THROW(schema({{"a", column_type::text, db::row_bytes_max - 4}, {"b"}}), row_too_large);
  // Names with any bytes: these are two schemas.
  EXPECT_FALSE(schema({{"a integer, 1:b"}}) == schema({{"a"}, {"b"}}));
  EXPECT_TRUE(account_columns() == account_columns());
}

TEST(Schema, TablesOfIt) {
  silo_database db;
  auto& accounts = db.create_table<std::uint64_t>("accounts", account_columns());
  auto& typed = db.create_table<std::uint64_t, account>("typed");
  EXPECT_THROW(db.create_table<std::uint64_t>("typed", account_columns()), schema_mismatch);
  EXPECT_EQ(&db.find_table<std::uint64_t>("accounts"), &accounts);
  EXPECT_THROW(db.find_table<std::string>("accounts"), schema_mismatch);
  EXPECT_THROW(db.find_table<std::uint64_t>("typed"), schema_mismatch);
  db.transact([&](auto& t) {
    for (std::uint64_t i = 0; i < 5; ++i) {
      t.insert(accounts, i,
               accounts.make_row().set("owner", "owner " + std::to_string(i)).set("balance", 100));
      t.insert(typed, i, account{100});
    }
  });
  const db::row other{account_columns(11)};
  EXPECT_THROW(db.transact([&](auto& t) {
    t.erase(accounts, 1);
    t.upsert(accounts, 2, other);
  }),
               schema_mismatch);
  EXPECT_TRUE(db.transact([&](auto& t) { return t.get(accounts, 1).has_value(); }));  // rolled back
  db.transact([&](auto& t) {
    t.update(accounts, 1, [](db::row& r) { r.set("balance", r.integer("balance") - 30); });
    EXPECT_EQ(t.get(accounts, 1)->integer("balance"), 70);
    EXPECT_THROW(t.update(accounts, 2, [](db::row& r) { r.set("owner", std::string(11, 'x')); }),
                 row_too_large);
  });
  std::string seen;
  db.read_only([&](auto& t) {
    t.scan(accounts, std::uint64_t{0}, std::uint64_t{3}, [&](std::uint64_t, const db::row& r) {
      seen += std::string(r.text("owner")) + " " + std::to_string(r.integer("balance")) + ", ";
      return true;
    });
  });
  EXPECT_EQ(seen, "owner 0 100, owner 1 70, owner 2 100, ");
}

TEST(Schema, ADirectoryRemembersIt) {
  faulty_disk disk;
  {
    silo_database db;
    auto& accounts = db.create_table<std::uint64_t>("accounts", account_columns());
    db.open(disk.directory());
    db.transact([&](auto& t) { t.insert(accounts, 7, accounts.make_row().set("owner", "Ada")); });
    db.checkpoint();
    db.transact([&](auto& t) { t.insert(accounts, 8, accounts.make_row().set("owner", "Bob")); });
  }
  {
    silo_database db;
    auto& accounts = db.create_table<std::uint64_t>("accounts", account_columns());
    db.open(disk.directory());
    EXPECT_EQ(db.transact([&](auto& t) { return std::string(t.get(accounts, 7)->text("owner")); }),
              "Ada");
    EXPECT_EQ(db.transact([&](auto& t) { return std::string(t.get(accounts, 8)->text("owner")); }),
              "Bob");
  }
  silo_database db;
  // As long, but another column.
  db.create_table<std::uint64_t>("accounts", schema({{"owner", column_type::text, 12},
                                                     {"balance", column_type::integer},
                                                     {"rate", column_type::real}}));
  EXPECT_THAT(text_of<schema_mismatch>([&] { db.open(disk.directory()); }),
              HasSubstr("5:owner text 10"));
}

}  // namespace
}  // namespace elidex::testing
