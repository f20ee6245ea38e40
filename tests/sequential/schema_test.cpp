// Rows with a schema: columns by name, errors, in transactions and in directories.
#include "elidex/internal/txn/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

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
              HasSubstr("owner: a text of 11 bytes (expected at most 10)"));
  EXPECT_THAT(text_of<schema_mismatch>([&] { row.set("street", 1); }),
              HasSubstr("street: there is no column"));
  EXPECT_THAT(text_of<schema_mismatch>([&] { row.set("owner", 1); }),
              HasSubstr("owner: the column is of type text"));
  EXPECT_THROW(static_cast<void>(row.real("balance")), schema_mismatch);
  EXPECT_EQ(row, db::row(columns));
  EXPECT_THROW(schema({}), schema_mismatch);
  EXPECT_THROW(schema({{"a"}, {"a"}}), schema_mismatch);
  EXPECT_THROW(schema({{"a", column_type::integer, 3}}), schema_mismatch);
  EXPECT_THROW(schema({{"a", column_type::text, db::row_bytes_max}}), row_too_large);
  EXPECT_NO_THROW(schema({{"a", column_type::text, db::row_bytes_max - 4}}));
  EXPECT_THROW(schema({{"a", column_type::text, db::row_bytes_max - 4}, {"b"}}), row_too_large);
  // Names with any bytes: these are two schemas.
  EXPECT_FALSE(schema({{"a integer, 1:b"}}) == schema({{"a"}, {"b"}}));
  EXPECT_TRUE(account_columns() == account_columns());
}

// --- columns of all types ---

schema all_columns() {
  return schema({{.name = "flag", .type = column_type::boolean},
                 {.name = "i8", .type = column_type::int8},
                 {.name = "i16", .type = column_type::int16},
                 {.name = "i32", .type = column_type::int32},
                 {.name = "i64", .type = column_type::integer},
                 {.name = "u8", .type = column_type::uint8},
                 {.name = "u16", .type = column_type::uint16},
                 {.name = "u32", .type = column_type::uint32},
                 {.name = "u64", .type = column_type::uint64},
                 {.name = "f32", .type = column_type::float32},
                 {.name = "f64", .type = column_type::real},
                 {.name = "text", .type = column_type::text},
                 {.name = "short", .type = column_type::text, .text_bytes_max = 4},
                 {.name = "blob", .type = column_type::bytes, .nullable = true},
                 {.name = "count", .type = column_type::int32, .nullable = true}});
}

struct limits {
  const char* column;
  std::int64_t least;
  std::uint64_t most;
};

TEST(Schema, NumbersStayWithinTheirTypes) {
  const schema columns = all_columns();
  EXPECT_EQ(columns.row_bytes(), 0U);
  db::row row(columns);
  for (const auto& [column, least, most] :
       {limits{"flag", 0, 1}, limits{"i8", INT8_MIN, INT8_MAX}, limits{"i16", INT16_MIN, INT16_MAX},
        limits{"i32", INT32_MIN, INT32_MAX}, limits{"i64", INT64_MIN, INT64_MAX},
        limits{"u8", 0, UINT8_MAX}, limits{"u16", 0, UINT16_MAX}, limits{"u32", 0, UINT32_MAX},
        limits{"u64", 0, UINT64_MAX}, limits{"count", INT32_MIN, INT32_MAX}}) {
    EXPECT_EQ(row.set(column, least).integer(column), least) << column;
    EXPECT_EQ(row.set(column, most).unsigned_integer(column), most) << column;
    const db::row before = row;
    if (least != INT64_MIN) {
      EXPECT_THROW(row.set(column, least - 1), std::out_of_range) << column;
    }
    if (most != UINT64_MAX) {
      EXPECT_THROW(row.set(column, most + 1), std::out_of_range) << column;
    }
    EXPECT_THROW(row.set(column, 1.5), schema_mismatch) << column;
    EXPECT_EQ(row, before) << column;
  }
  EXPECT_THROW(static_cast<void>(row.integer("u64")), std::out_of_range);
  row.set("i8", -1);
  EXPECT_THROW(static_cast<void>(row.unsigned_integer("i8")), std::out_of_range);
  row.set("f32", 0.1).set("f64", 0.1);
  EXPECT_EQ(row.real("f32"), static_cast<double>(0.1F));
  EXPECT_EQ(row.real("f64"), 0.1);
  EXPECT_THROW(static_cast<void>(row.real("i8")), schema_mismatch);
}

TEST(Schema, TextsAndBytesOfAnyLength) {
  db::row row(all_columns());
  EXPECT_EQ(row.text("text"), "");
  EXPECT_TRUE(row.is_null("blob"));
  EXPECT_TRUE(row.bytes("blob").empty());
  const std::vector<std::byte> blob(1'000, std::byte{7});
  row.set("i64", -5).set("text", std::string(3'000, 't')).set("short", "1234").set("blob", blob);
  EXPECT_FALSE(row.is_null("blob"));
  // Texts keep their content when a text before them changes its length.
  for (const std::size_t length : {5U, 0U, 70'000U, 8U}) {
    row.set("text", std::string(length, 'u'));
    EXPECT_EQ(row.text("text"), std::string(length, 'u'));
    EXPECT_EQ(row.text("short"), "1234");
    EXPECT_EQ(row.bytes("blob").size(), blob.size());
    EXPECT_EQ(row.integer("i64"), -5);
    EXPECT_EQ(db::row(row.columns(), row.words()), row);
  }
  row.set("text", row.text("short"));  // a view of the row itself
  EXPECT_EQ(row.text("text"), "1234");
  const db::row before = row;
  EXPECT_THROW(row.set("short", "12345"), row_too_large);
  EXPECT_THROW(row.set("blob", "characters"), schema_mismatch);
  EXPECT_THROW(row.set("text", blob), schema_mismatch);
  EXPECT_EQ(row, before);
}

TEST(Schema, Nulls) {
  db::row row(all_columns());
  EXPECT_TRUE(row.is_null("count"));
  EXPECT_EQ(row.integer("count"), 0);
  EXPECT_FALSE(row.is_null("i32"));
  const db::row nulls = row;
  row.set("count", 0);
  EXPECT_FALSE(row.is_null("count"));
  EXPECT_NE(row, nulls);  // 0 is no null
  row.set("blob", std::span<const std::byte>());
  EXPECT_FALSE(row.is_null("blob"));
  row.set("count", 5).set("blob", std::vector<std::byte>(50)).set("text", "t");
  row.set("count", std::nullopt).set("blob", std::nullopt).set("text", "");
  EXPECT_EQ(row, nulls);  // nothing is left of the values
  EXPECT_THROW(row.set("text", std::nullopt), schema_mismatch);
  EXPECT_THROW(row.set("i8", std::nullopt), schema_mismatch);
  EXPECT_EQ(row, nulls);
}

TEST(Schema, NumbersAndNullsHaveOneSize) {
  const schema columns({{.name = "a", .type = column_type::int16},
                        {.name = "b", .type = column_type::float32, .nullable = true}});
  EXPECT_EQ(columns.row_bytes(), 8U);  // 2 + 4 + a byte of nulls, padded
  db::row row(columns);
  row.set("a", -3).set("b", 0.5);
  EXPECT_EQ(db::row(columns, row.words()).integer("a"), -3);
  EXPECT_EQ(row.set("b", std::nullopt).real("b"), 0);
}

// One text of a largest length has two forms; their rows are not the same.
TEST(Schema, AnotherFormIsAnotherSchema) {
  const std::vector<db::column_definition> columns{{"a", column_type::text, 10}};
  const schema in_slots(columns);
  const schema packed(columns, schema::form::packed);
  EXPECT_EQ(in_slots.row_bytes(), 16U);
  EXPECT_EQ(packed.row_bytes(), 0U);
  EXPECT_FALSE(in_slots == packed);
  silo_database db;
  auto& table = db.create_table<std::uint64_t>("slots", in_slots);
  db.transact([&](auto& t) {
    EXPECT_THROW(t.insert(table, 1, db::row(packed).set("a", "x")), schema_mismatch);
  });
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

TEST(Schema, AFloat32TakesNoNumberThatBecomesInfinite) {
  db::row row(schema({{.name = "a", .type = column_type::float32}}));
  EXPECT_THROW(row.set("a", 1e300), std::out_of_range);
  EXPECT_EQ(row.real("a"), 0);
  row.set("a", std::numeric_limits<double>::infinity());
  EXPECT_EQ(row.real("a"), std::numeric_limits<double>::infinity());
}

TEST(Schema, BytesOfAnObjectAreAsManyAsItHas) {
  db::row row(schema::of_directory("", 8));
  const std::array<std::byte, 8> bytes{};
  row.set("row", std::span(bytes));
  EXPECT_THROW(row.set("row", std::span(bytes).first(7)), schema_mismatch);
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
  // Rows are as long, but texts have a smaller limit.
  db.create_table<std::uint64_t>("accounts", schema({{"owner", column_type::text, 9},
                                                     {"balance", column_type::integer},
                                                     {"rate", column_type::real}}));
  EXPECT_THAT(text_of<schema_mismatch>([&] { db.open(disk.directory()); }),
              HasSubstr("owner text 10, balance integer"));
}

}  // namespace
}  // namespace elidex::testing
