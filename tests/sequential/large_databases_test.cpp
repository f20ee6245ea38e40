// A transaction of many rows, and many tables: 10 million rows in long runs.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "support/databases.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;
namespace fs = std::filesystem;
using accounts_table = database::table<u64, account>;

class LargeDatabases : public ::testing::Test {
 protected:
  LargeDatabases() {
    std::string name = (fs::temp_directory_path() / "elidex-large-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) root_ = name;
  }
  ~LargeDatabases() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  std::string path() const { return (root_ / "db").string(); }

 private:
  fs::path root_;
};

struct contents {
  u64 rows = 0;
  std::int64_t sum = 0;
  friend bool operator==(const contents&, const contents&) = default;
};
contents contents_of(database& db, accounts_table& accounts) {
  return db.read_only([&](auto& t) {
    contents all;
    t.scan(accounts, u64{0}, UINT64_MAX, [&](u64, const account& a) {
      ++all.rows;
      all.sum += a.balance;
    });
    return all;
  });
}

TEST_F(LargeDatabases, ATransactionOfManyRowsIsThereWholeOrNotAtAll) {
  const u64 rows = effort() > 1 ? 10'000'000 : 100'000;
  const contents loaded{rows, static_cast<std::int64_t>(rows)};
  const contents changed{rows, static_cast<std::int64_t>(2 * rows)};
  {
    database db;
    auto& accounts = db.create_table<u64, account>("accounts");
    db.open(path(), {.level = db::durability::sync});
    db.transact([&](auto& t) {
      for (u64 key = 0; key < rows; ++key) t.insert(accounts, key, account{1});
    });
    EXPECT_EQ(contents_of(db, accounts), loaded);
    const auto change_all = [&](auto& t) {
      for (u64 key = 0; key < rows; ++key) t.update(accounts, key, [](account& a) { ++a.balance; });
    };
    // One that throws at its end leaves nothing.
    EXPECT_THROW(db.transact([&](auto& t) {
      change_all(t);
      throw std::runtime_error("no");
    }),
                 std::runtime_error);
    EXPECT_EQ(contents_of(db, accounts), loaded);
    db.transact(change_all);
    EXPECT_EQ(contents_of(db, accounts), changed);
    db.close();
  }
  {
    database db;
    auto& accounts = db.create_table<u64, account>("accounts");
    db.open(path(), {.level = db::durability::sync});
    EXPECT_EQ(contents_of(db, accounts), changed);
    db.checkpoint();
    db.transact([&](auto& t) { t.erase(accounts, elidex::all); });
    EXPECT_EQ(contents_of(db, accounts), contents());
  }
  database db;
  auto& accounts = db.create_table<u64, account>("accounts");
  db.open(path(), {.level = db::durability::none});
  EXPECT_EQ(contents_of(db, accounts), contents());
}

TEST_F(LargeDatabases, AThousandTables) {
  constexpr u64 tables = 1000;
  const auto create_all = [](database& db) {
    std::vector<accounts_table*> made;
    for (u64 i = 0; i < tables; ++i)
      made.push_back(&db.create_table<u64, account>("table " + std::to_string(i)));
    return made;
  };
  {
    database db;
    const std::vector<accounts_table*> all = create_all(db);
    db.open(path(), {.level = db::durability::sync});
    // One transaction in all of them.
    db.transact([&](auto& t) {
      for (u64 i = 0; i < tables; ++i) t.insert(*all[i], i, account{static_cast<std::int64_t>(i)});
    });
    db.checkpoint();
    db.transact([&](auto& t) {
      for (u64 i = 0; i < tables; i += 2)
        t.update(*all[i], i, [](account& a) { a.balance = -a.balance; });
    });
  }
  database db;
  const std::vector<accounts_table*> all = create_all(db);
  db.open(path(), {.level = db::durability::sync});
  for (u64 i = 0; i < tables; ++i) {
    const auto wanted = static_cast<std::int64_t>(i) * (i % 2 == 0 ? -1 : 1);
    ASSERT_EQ(contents_of(db, *all[i]), (contents{1, wanted})) << i;
  }
}

}  // namespace
}  // namespace elidex::testing
