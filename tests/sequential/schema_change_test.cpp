// Columns that change between two versions of a program: what open() converts, what it refuses, and
// that a crash leaves the directory as it was or converted.
#include "elidex/internal/txn/schema_change.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "support/databases.hpp"
#include "support/faulty_directory.hpp"

namespace elidex::testing {

namespace first_version {
struct order {
  std::uint64_t customer = 0;
  std::string note;
  std::int32_t lines = 0;
};
ELIDEX_ROW(order, customer, note, lines);

struct price {
  std::int32_t cents = 0;
  float rate = 0;
};
ELIDEX_ROW(price, cents, rate);
}  // namespace first_version

namespace second_version {
struct order {
  std::string country;
  std::int64_t lines = 0;
  std::uint64_t client = 0;
  std::optional<double> discount;
};
ELIDEX_ROW(order, country, lines, client, discount);

struct price {
  double rate = 0;
  std::int64_t cents = 0;
  std::uint8_t digits = 0;
};
ELIDEX_ROW(price, rate, cents, digits);
}  // namespace second_version

namespace {

using db::column_type;
using db::schema;
using db::schema_change;
using db::schema_mismatch;
using ::testing::HasSubstr;

constexpr std::uint64_t rows = 50;

db::storage_options with(db::durability level) {
  return {.level = level};
}

template <class Order, class Price>
struct shop {
  shop(faulty_disk& disk, db::durability level, schema_change orders_since = {},
       schema_change prices_since = {}) {
    orders = &db.create_table<std::uint64_t, Order>("orders", std::move(orders_since));
    prices = &db.create_table<std::string, Price>("prices", std::move(prices_since));
    db.open(disk.directory(), with(level));
  }
  elidex::database db;
  elidex::database::table<std::uint64_t, Order>* orders;
  elidex::database::table<std::string, Price>* prices;
};
using first_shop = shop<first_version::order, first_version::price>;

struct second_shop : shop<second_version::order, second_version::price> {
  second_shop(faulty_disk& disk, db::durability level)
      : shop(disk, level,
             schema_change().rename("customer", "client").drop("note").add("country", "FI"),
             schema_change().add("digits", 2)) {}

  // Throws nothing but failed expectations.
  void check() {
    std::uint64_t seen = 0;
    db.read_only([&](auto& t) {
      t.scan(*orders, elidex::all, [&](std::uint64_t key, const second_version::order& one) {
        ++seen;
        EXPECT_EQ(one.client, key * 3);
        EXPECT_EQ(one.lines, key == 7 ? 1'000 : static_cast<std::int64_t>(key) - 20);
        EXPECT_EQ(one.country, "FI");
        EXPECT_FALSE(one.discount);
      });
      t.scan(*prices, elidex::all, [&](std::string_view, const second_version::price& one) {
        ++seen;
        EXPECT_EQ(one.rate, static_cast<double>(one.cents) / 4);
        EXPECT_EQ(one.digits, 2);
      });
    });
    EXPECT_EQ(seen, 2 * rows - 1);
  }
};

void fill(faulty_disk& disk, bool with_checkpoint) {
  first_shop shop(disk, db::durability::sync);
  for (std::uint64_t key = 0; key < rows; ++key) {
    shop.db.transact([&](auto& t) {
      const auto small = static_cast<std::int32_t>(key);
      t.insert(*shop.orders, key, {key * 3, std::string(key * 10, 'n'), small - 20});
      t.insert(*shop.prices, "price " + std::to_string(key),
               {small, static_cast<float>(small) / 4});
    });
  }
  if (with_checkpoint) shop.db.checkpoint();
  shop.db.transact([&](auto& t) {
    t.update(*shop.orders, 7, [](first_version::order& one) { one.lines = 1'000; });
    t.erase(*shop.orders, 11);
  });
  shop.db.close();
}

TEST(SchemaChange, OpenConvertsRowsOfTheLogAndOfACheckpoint) {
  for (const bool with_checkpoint : {false, true}) {
    faulty_disk disk;
    fill(disk, with_checkpoint);
    second_shop(disk, db::durability::none).check();  // reads, and writes nothing
    second_shop(disk, db::durability::none).check();
    second_shop(disk, db::durability::sync).check();
    second_shop converted(disk, db::durability::sync);  // again, with the same changes
    converted.check();
    converted.db.transact([&](auto& t) {
      t.update(*converted.orders, 8, [](second_version::order& one) { one.discount = 0.5; });
    });
    converted.db.close();
    second_shop last(disk, db::durability::none);
    EXPECT_EQ(last.db.read_only([&](auto& t) { return t.get(*last.orders, 8); })->discount, 0.5);
    EXPECT_THROW(first_shop(disk, db::durability::none), schema_mismatch);
  }
}

// At each operation of the disk.
TEST(SchemaChange, APowerFailureLeavesTheRowsOfOneVersion) {
  faulty_disk before;
  fill(before, true);
  random_numbers random(seed_or(31));
  bool one_was_converted = false;
  bool one_was_not = false;
  for (std::uint64_t at = 0;; ++at) {
    faulty_disk disk = before.copy();
    disk.faults().power_off_at = at;
    bool whole = false;
    try {
      second_shop shop(disk, db::durability::sync);
      shop.db.close();
      whole = true;
    } catch (const std::system_error&) {
    }
    faulty_disk after = disk.after_power_failure(random);
    try {
      first_shop unchanged(after, db::durability::none);
      EXPECT_FALSE(whole);
      one_was_not = true;
    } catch (const schema_mismatch&) {
      one_was_converted = true;
    }
    second_shop(after, db::durability::sync).check();
    if (whole) break;
  }
  EXPECT_TRUE(one_was_converted && one_was_not);
}

template <class Action>
std::string mismatch(Action&& action) {
  try {
    action();
  } catch (const schema_mismatch& error) {
    return error.what();
  }
  return "nothing thrown";
}

schema_change no_change() {
  return {};
}

TEST(SchemaChange, WhatItDoesNotExplainIsRefused) {
  const schema before({{.name = "a", .type = column_type::int32},
                       {.name = "b", .type = column_type::text, .nullable = true}});
  const auto convert = [&](const schema& to, const schema_change& change) {
    static_cast<void>(row_conversion(before, to, change));
  };
  const schema without_b({{.name = "a", .type = column_type::int32}});
  EXPECT_THAT(mismatch([&] { convert(without_b, no_change()); }), HasSubstr("b: the directory"));
  EXPECT_EQ(mismatch([&] { convert(without_b, schema_change().drop("b")); }), "nothing thrown");

  const auto with_c = [](bool nullable) {
    return schema({{.name = "c", .type = column_type::real, .nullable = nullable},
                   {.name = "b", .type = column_type::text, .nullable = true},
                   {.name = "a", .type = column_type::int32}});
  };
  EXPECT_EQ(mismatch([&] { convert(with_c(true), no_change()); }), "nothing thrown");
  EXPECT_THAT(mismatch([&] { convert(with_c(false), no_change()); }), HasSubstr("c: the program"));
  EXPECT_EQ(mismatch([&] { convert(with_c(false), schema_change().add("c", 0.5)); }),
            "nothing thrown");

  const auto with_types = [](column_type a, bool b_nullable, std::size_t b_max = 0) {
    return schema({{.name = "a", .type = a},
                   {.name = "b",
                    .type = column_type::text,
                    .text_bytes_max = b_max,
                    .nullable = b_nullable}});
  };
  for (const column_type wider : {column_type::integer, column_type::real})
    EXPECT_EQ(mismatch([&] { convert(with_types(wider, true), no_change()); }), "nothing thrown");
  for (const column_type other :
       {column_type::int16, column_type::uint32, column_type::uint64, column_type::float32,
        column_type::boolean, column_type::text, column_type::bytes})
    EXPECT_THAT(mismatch([&] { convert(with_types(other, true), no_change()); }),
                HasSubstr("that keep all values"));
  EXPECT_THAT(mismatch([&] { convert(with_types(column_type::int32, false), no_change()); }),
              HasSubstr("b: the column"));
  EXPECT_THAT(mismatch([&] { convert(with_types(column_type::int32, true, 9), no_change()); }),
              HasSubstr("b: the column"));
}

TEST(SchemaChange, ADefaultThatDoesNotFitIsRefused) {
  faulty_disk disk;
  fill(disk, false);
  const auto open = [&](schema_change since) {
    shop<second_version::order, second_version::price>(
        disk, db::durability::sync,
        schema_change().rename("customer", "client").drop("note").add("country", "FI"),
        std::move(since));
  };
  EXPECT_THROW(open(schema_change().add("digits", 256)), std::out_of_range);
  EXPECT_THROW(open(schema_change().add("digits", "two")), schema_mismatch);
  second_shop(disk, db::durability::sync).check();  // nothing was harmed
}

// A new index is made from all rows, or the directory does not have it.
TEST(SchemaChange, APowerFailureLeavesNoUnfinishedIndex) {
  faulty_disk before;
  fill(before, true);
  using orders_table = elidex::database::table<std::uint64_t, first_version::order>;
  const auto count = [](faulty_disk& disk, db::durability level) {
    elidex::database store;
    auto& orders = store.create_table<std::uint64_t, first_version::order>("orders");
    store.create_table<std::string, first_version::price>("prices");
    store.create_table<std::uint64_t, account>("new and empty");
    db::indexed_table<elidex::database, orders_table> by(store, orders);
    const auto lines = by.add_index<std::int64_t>(
        "orders by lines",
        [](std::uint64_t, const first_version::order& one) { return one.lines; });
    store.open(disk.directory(), with(level));
    std::uint64_t found = 0;
    store.read_only([&](auto& t) {
      by.scan(t, lines, elidex::all, [&](std::uint64_t, const first_version::order&) { ++found; });
    });
    store.close();
    return found;
  };
  random_numbers random(seed_or(32));
  bool whole = false;
  for (std::uint64_t at = 0; !whole; ++at) {
    faulty_disk disk = before.copy();
    disk.faults().power_off_at = at;
    try {
      EXPECT_EQ(count(disk, db::durability::sync), rows - 1);
      whole = true;
    } catch (const std::system_error&) {
    }
    faulty_disk after = disk.after_power_failure(random);
    EXPECT_EQ(count(after, db::durability::none), rows - 1);
    EXPECT_EQ(count(after, db::durability::sync), rows - 1);
    EXPECT_EQ(count(after, db::durability::sync), rows - 1);
  }
}

// The bytes stay, and the directory learns the names.
TEST(SchemaChange, MembersMayBeRegisteredLater) {
  struct unregistered {
    std::int32_t cents;
    float rate;
  };
  faulty_disk disk;
  {
    elidex::database store;
    auto& prices = store.create_table<std::string, unregistered>("prices");
    store.open(disk.directory());
    store.transact([&](auto& t) { t.insert(prices, "a", {5, 0.5F}); });
    store.close();
  }
  for (int round = 0; round < 2; ++round) {
    elidex::database store;
    auto& prices = store.create_table<std::string, first_version::price>("prices");
    store.open(disk.directory());
    const auto one = store.read_only([&](auto& t) { return t.get(prices, "a"); });
    EXPECT_EQ(one->cents, 5);
    EXPECT_EQ(one->rate, 0.5F);
  }
  elidex::database store;
  store.create_table<std::string, unregistered>("prices");
  EXPECT_THROW(store.open(disk.directory()), schema_mismatch);
}

TEST(SchemaChange, ARenamedColumnMayTakeADroppedName) {
  const auto columns = [](std::vector<const char*> names) {
    std::vector<db::column_definition> all;
    for (const char* const name : names) all.push_back({.name = name, .type = column_type::int32});
    return schema(std::move(all));
  };
  const schema before = columns({"x", "y"});
  db::row row(before);
  row.set("x", 111).set("y", 222);
  const schema after = columns({"y"});
  const row_conversion both(before, after, schema_change().drop("y").rename("x", "y"));
  EXPECT_EQ(both.converted(row.words()).integer("y"), 111);
  EXPECT_THAT(mismatch([&] { row_conversion(before, after, schema_change().rename("x", "y")); }),
              HasSubstr("y: two columns"));
  const row_conversion dropped(before, after, schema_change().drop("x"));
  EXPECT_EQ(dropped.converted(row.words()).integer("y"), 222);
}

namespace arrays {
struct point {
  std::int32_t x = 0;
  std::int32_t y = 0;
};
struct first {
  std::array<std::int32_t, 4> numbers{};
  point at{};
  std::array<char, 8> name{};
};
ELIDEX_ROW(first, numbers, at, name);
struct second {  // another member, and a longer name
  std::int64_t added = 0;
  std::array<std::int32_t, 4> numbers{};
  point at{};
  std::array<char, 16> name{};
};
ELIDEX_ROW(second, added, numbers, at, name);
struct other_numbers {  // of the same size
  std::array<float, 4> numbers{};
  point at{};
  std::array<char, 8> name{};
};
ELIDEX_ROW(other_numbers, numbers, at, name);
struct other_size {
  std::array<std::int32_t, 5> numbers{};
  point at{};
  std::array<char, 8> name{};
};
ELIDEX_ROW(other_size, numbers, at, name);
}  // namespace arrays

TEST(SchemaChange, ArraysAndObjectsStayAsTheyAre) {
  faulty_disk disk;
  {
    elidex::database store;
    auto& table = store.create_table<std::uint64_t, arrays::first>("rows");
    store.open(disk.directory());
    store.transact([&](auto& t) { t.insert(table, 1, {{1, 2, 3, 4}, {5, 6}, {'a', 'b'}}); });
    store.close();
  }
  const auto open = [&]<class Row>(std::type_identity<Row>) {
    elidex::database store;
    auto& table = store.create_table<std::uint64_t, Row>("rows", schema_change().add("added", 7));
    store.open(disk.directory(), with(db::durability::none));
    return store.read_only([&](auto& t) { return *t.get(table, 1); });
  };
  using std::type_identity;
  EXPECT_THAT(mismatch([&] { open(type_identity<arrays::other_numbers>()); }),
              HasSubstr("numbers: a member of a class or array type"));
  EXPECT_THAT(mismatch([&] { open(type_identity<arrays::other_size>()); }),
              HasSubstr("numbers: a member of a class or array type"));
  const arrays::second row = open(type_identity<arrays::second>());
  EXPECT_EQ(row.added, 7);
  EXPECT_EQ(row.numbers, (std::array<std::int32_t, 4>{1, 2, 3, 4}));
  EXPECT_EQ(row.at.y, 6);
  EXPECT_EQ(row.name[1], 'b');
  EXPECT_EQ(row.name[2], '\0');
}

TEST(SchemaChange, ADroppedNameIsNotUsedAgain) {
  elidex::database store;
  store.drop_table("orders");
  EXPECT_THROW((store.create_table<std::uint64_t, first_version::order>("orders")),
               schema_mismatch);
}

TEST(SchemaChange, IsSetBeforeOpen) {
  faulty_disk disk;
  elidex::database db;
  db.open(disk.directory());
  EXPECT_THROW((db.create_table<std::uint64_t, first_version::order>("orders",
                                                                     schema_change().drop("note"))),
               std::logic_error);
}

TEST(SchemaOfADirectory, IsWhatTheTableSaid) {
  elidex::database db;
  const auto same = [](const auto& table) {
    const schema read = schema::of_directory(table.schema_text(), table.row_bytes());
    EXPECT_EQ(read.text(), table.schema_text());
    EXPECT_EQ(read.row_bytes(), table.row_bytes());
    return read.columns().size();
  };
  EXPECT_EQ(same(db.create_table<std::uint64_t, first_version::order>("packed")), 3u);
  EXPECT_EQ(same(db.create_table<std::uint64_t, first_version::price>("placed")), 2u);
  EXPECT_EQ(same(db.create_table<std::uint64_t, wide_row>("one column")), 1u);
  EXPECT_EQ(same(db.create_table<std::uint64_t>(
                "slots", schema({{"a, b", column_type::text, 9}, {"c", column_type::real}}))),
            2u);
  for (const char* text : {"x", "1", "1:", "1:a", "1:a ", "1:a integer,", "1:a integer @",
                           "9:a integer", "1:a what", "1:a integer @1", "1:a int8 @0, 1:b int8"})
    EXPECT_THROW(static_cast<void>(schema::of_directory(text, 8)), schema_mismatch) << text;
  EXPECT_THROW(static_cast<void>(schema::of_directory("", 0)), schema_mismatch);
  EXPECT_THROW(static_cast<void>(schema::of_directory("1:a integer", 9)), schema_mismatch);
  EXPECT_THROW(static_cast<void>(schema::of_directory("", db::row_bytes_max + 1)),
               db::row_too_large);
}

}  // namespace
}  // namespace elidex::testing
