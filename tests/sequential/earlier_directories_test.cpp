// Directories that earlier versions wrote (tests/data): this version reads them and continues them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "elidex/database.hpp"
#include "elidex/internal/log/log_compression.hpp"

namespace elidex {
namespace {

namespace fs = std::filesystem;

// As the program of commit b9e5752 had it.
struct account {
  std::int64_t balance;
  std::uint32_t branch;
  std::array<char, 12> owner;
};

class copied_directory {
 public:
  explicit copied_directory(const char* name)
      : path_(fs::temp_directory_path() /
              (std::string("elidex-") + name + std::to_string(getpid()))) {
    fs::copy(fs::path(ELIDEX_TEST_DATA) / name, path_, fs::copy_options::recursive);
  }
  ~copied_directory() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

struct first_store {
  explicit first_store(const std::string& path, db::durability level) {
    balance = by.add_index<std::int64_t>("branches by balance",
                                         [](std::uint16_t, const account& a) { return a.balance; });
    db.open(path, {.level = level});
  }

  database db;
  database::table<std::uint64_t, account>& accounts =
      db.create_table<std::uint64_t, account>("accounts");
  database::table<std::string, std::int32_t>& names =
      db.create_table<std::string, std::int32_t>("names");
  database::schema_table<std::uint64_t>& customers =
      db.create_table<std::uint64_t>("customers", db::schema({{"owner", db::column_type::text, 20},
                                                              {"balance", db::column_type::integer},
                                                              {"rate", db::column_type::real}}));
  database::table<std::uint16_t, account>& branches =
      db.create_table<std::uint16_t, account>("branches");
  db::indexed_table<database, database::table<std::uint16_t, account>> by{db, branches};
  std::optional<decltype(by)::index_of<std::int64_t>> balance;
};

// What the program wrote: 40 rows and a checkpoint, then changes of every fourth.
void check(first_store& in) {
  in.db.read_only([&](auto& t) {
    for (std::uint64_t k = 0; k < 40; ++k) {
      const auto one = t.get(in.accounts, k);
      ASSERT_EQ(one.has_value(), k % 4 != 1) << k;
      if (one) {
        EXPECT_EQ(one->balance, static_cast<std::int64_t>(k) - 20 + (k % 4 == 0 ? 1'000 : 0));
        EXPECT_EQ(one->branch, k % 7);
        EXPECT_EQ(one->owner[0], static_cast<char>('A' + k % 26));
      }
      EXPECT_EQ(t.get(in.names, "name " + std::to_string(k)), static_cast<std::int32_t>(k));
      EXPECT_EQ(t.get(in.names, "new " + std::to_string(k)).has_value(), k % 4 == 0);
      const auto row = t.get(in.customers, k);
      ASSERT_EQ(row.has_value(), k % 4 != 2) << k;
      if (row) {
        EXPECT_EQ(row->text("owner"), std::string(k % 20, static_cast<char>('a' + k % 26)));
        EXPECT_EQ(row->integer("balance"), static_cast<std::int64_t>(k) * -3);
        EXPECT_EQ(row->real("rate"), k % 4 == 0 ? 0.5 : static_cast<double>(k) / 8);
      }
    }
    std::uint64_t found = 0;
    in.by.find(t, *in.balance, 500, [&](std::uint16_t key, const account&) {
      EXPECT_EQ(key % 4, 0);
      ++found;
    });
    EXPECT_EQ(found, 10u);
  });
}

class EarlierDirectories : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Formats, EarlierDirectories,
                         ::testing::Values("directory-b9e5752", "directory-39323e7",
                                           "directory-39323e7-zstd"));

TEST_P(EarlierDirectories, AreReadAndContinued) {
  const copied_directory files(GetParam());
  if (std::string(GetParam()).ends_with("-zstd") &&
      !internal::is_built_with(db::compression::zstd)) {
    try {
      first_store in(files.path(), db::durability::none);
      FAIL();
    } catch (const db::log_error& error) {
      EXPECT_EQ(error.problem(), db::log_problem::other_compression);
    }
    return;
  }
  {
    first_store in(files.path(), db::durability::none);
    check(in);
  }
  {
    first_store in(files.path(), db::durability::sync);
    check(in);
    in.db.transact([&](auto& t) {
      t.update(in.accounts, 0, [](account& a) { a.balance += 5; });
      auto row = in.customers.make_row();
      row.set("owner", "new");
      t.insert(in.customers, 100, row);
    });
    in.db.close();
  }
  {
    first_store in(files.path(), db::durability::sync);
    in.db.transact([&](auto& t) {
      EXPECT_EQ(t.get(in.accounts, 0)->balance, 985);
      t.update(in.accounts, 0, [](account& a) { a.balance -= 5; });
    });
    in.db.checkpoint();
  }
  first_store in(files.path(), db::durability::none);
  check(in);
  EXPECT_EQ(in.db.read_only([&](auto& t) { return t.get(in.customers, 100); })->text("owner"),
            "new");
}

}  // namespace
}  // namespace elidex
