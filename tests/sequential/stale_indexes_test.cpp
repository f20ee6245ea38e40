// A program that does not have a table's indexes writes its rows: the next program makes the
// entries again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "elidex/database.hpp"

namespace elidex::testing {

struct guest {
  std::string name;
  std::int64_t age = 0;
};
ELIDEX_ROW(guest, name, age);

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StaleIndexes : public ::testing::Test {
 protected:
  StaleIndexes() {
    std::string pattern = (std::filesystem::temp_directory_path() / "elidex-stale-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~StaleIndexes() override { std::filesystem::remove_all(path_); }

  struct program {
    explicit program(const std::string& path) { db.open(path); }
    std::vector<std::uint64_t> aged(std::int64_t age) {
      std::vector<std::uint64_t> found;
      db.read_only([&](auto& t) {
        by.find(t, by_age, age, [&](std::uint64_t key, const guest&) { found.push_back(key); });
      });
      return found;
    }
    std::size_t entries() {
      std::size_t rows = 0;
      db.read_only(
          [&](auto& t) { by.scan(t, by_age, all, [&](std::uint64_t, const guest&) { ++rows; }); });
      return rows;
    }

    database db;
    database::table<std::uint64_t, guest>& other = db.create_table<std::uint64_t, guest>("others");
    database::table<std::uint64_t, guest>& guests = db.create_table<std::uint64_t, guest>("guests");
    db::indexed_table<database, database::table<std::uint64_t, guest>> by{db, guests};
    db::indexed_table<database, database::table<std::uint64_t, guest>> by_other{db, other};
    decltype(by.add_index<std::int64_t>(
        "", [](std::uint64_t, const guest& g) { return g.age; })) by_age =
        by.add_index<std::int64_t>("guests by age",
                                   [](std::uint64_t, const guest& g) { return g.age; });
    decltype(by_age) others_by_age = by_other.add_index<std::int64_t>(
        "others by age", [](std::uint64_t, const guest& g) { return g.age; });
  };
  // Erases guest 1, makes guest 2 a year older, and adds guest 9, as `elidex db` does.
  std::size_t change_without_indexes(bool marks) const {
    database db;
    db.open_all(path_);
    std::size_t indexes = 0;
    db.for_each_schema_table([&](auto& table) {
      using key = typename std::remove_reference_t<decltype(table)>::key_type;
      if constexpr (std::is_same_v<key, std::uint64_t>) {
        if (table.name() != "guests") return;
        if (marks) indexes = db.mark_indexes_stale(table);
        db.transact([&](auto& t) {
          t.erase(table, 1);
          t.update(table, 2, [](db::row& row) { row.set("age", row.integer("age") + 1); });
          t.upsert(table, 9, table.make_row().set("name", "Eve").set("age", std::int64_t{20}));
        });
      }
    });
    return indexes;
  }

  std::string path_;
};

// Nor can such a program bring the indexes along when it changes the columns.
TEST_F(StaleIndexes, ColumnsOfTheirTableDoNotChange) {
  {
    program first(path_);
    first.db.transact([&](auto& t) { first.by.upsert(t, 1, guest{"Ada", 36}); });
    first.db.checkpoint();
  }
  {
    database db;
    db.open_all(path_);
    auto& guests = db.find_table<std::uint64_t>("guests");
    const db::schema more({{.name = "name", .type = db::column_type::text},
                           {.name = "age", .type = db::column_type::integer},
                           {.name = "note", .type = db::column_type::text, .nullable = true}});
    EXPECT_THROW(db.change_table(guests, more), std::logic_error);
    EXPECT_EQ(db.mark_indexes_stale(guests), 1U);
  }
  program next(path_);
  EXPECT_THAT(next.aged(36), ElementsAre(1));
}

TEST_F(StaleIndexes, AreMadeAgain) {
  for (const bool with_checkpoint : {false, true}) {
    {
      program first(path_);
      first.db.transact([&](auto& t) {
        first.by.upsert(t, 1, guest{"Ada", 36});
        first.by.upsert(t, 2, guest{"Bob", 19});
        first.by.erase(t, 9);
        first.by_other.upsert(t, 5, guest{"Cy", 36});
      });
      EXPECT_THAT(first.aged(36), ElementsAre(1));
      if (with_checkpoint) first.db.checkpoint();
    }
    EXPECT_EQ(change_without_indexes(true), 1U);
    program next(path_);
    EXPECT_THAT(next.aged(36), IsEmpty());
    EXPECT_THAT(next.aged(20), ElementsAre(2, 9));
    EXPECT_EQ(next.entries(), 2U);
    next.db.transact([&](auto& t) { next.by.update(t, 9, [](guest& g) { g.age = 21; }); });
    EXPECT_THAT(next.aged(20), ElementsAre(2));
    EXPECT_THAT(next.aged(21), ElementsAre(9));
  }
}

// The canary: what would be found if the index were not marked.
TEST_F(StaleIndexes, AreWrongIfNobodySaysSo) {
  {
    program first(path_);
    first.db.transact([&](auto& t) { first.by.insert(t, 1, guest{"Ada", 36}); });
    first.db.transact([&](auto& t) { first.by.insert(t, 2, guest{"Bob", 19}); });
  }
  EXPECT_EQ(change_without_indexes(false), 0U);
  program next(path_);
  EXPECT_EQ(next.entries(), 1U);  // of two rows: guest 9 has none, and the one of guest 2 is old
}

// A program that only reads in between changes nothing, nor does one that writes again.
TEST_F(StaleIndexes, StayMarked) {
  {
    program first(path_);
    first.db.transact([&](auto& t) { first.by.insert(t, 1, guest{"Ada", 36}); });
    first.db.transact([&](auto& t) { first.by.insert(t, 2, guest{"Bob", 19}); });
  }
  EXPECT_EQ(change_without_indexes(true), 1U);
  {
    database reader;
    reader.open_all(path_, {.level = db::durability::none});
    reader.for_each_schema_table([&](auto& table) { reader.mark_indexes_stale(table); });
  }
  change_without_indexes(true);
  program next(path_);
  EXPECT_THAT(next.aged(20), ElementsAre(9));
  EXPECT_THAT(next.aged(21), ElementsAre(2));
  EXPECT_EQ(next.entries(), 2U);
}

TEST_F(StaleIndexes, AreNotMarkedAfterClose) {
  {
    const program first(path_);
  }
  database db;
  db.open_all(path_);
  db.close();
  db.for_each_schema_table([&](auto& table) {
    if (table.name() != "guests") return;
    EXPECT_THROW(db.mark_indexes_stale(table), std::system_error);
    EXPECT_THROW(db.mark_indexes_stale(table), std::system_error);
  });
}

TEST_F(StaleIndexes, OfTheProgramAreNotMarked) {
  program one(path_);
  EXPECT_EQ(one.db.mark_indexes_stale(one.guests), 0U);
  database another;
  EXPECT_THROW(another.mark_indexes_stale(one.guests), std::logic_error);
}

}  // namespace
}  // namespace elidex::testing
