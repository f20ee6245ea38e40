// Columns of a table with indexes change while transactions run: each row has one entry in each
// index, before, after, and when the power fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "elidex/internal/txn/column_change.hpp"
#include "support/databases.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

namespace {

using db::column_type;
using db::duplicate_key;
using db::schema;
using db::schema_change;
using db::schema_mismatch;
using ::testing::HasSubstr;

const schema former_columns({{.name = "value", .type = column_type::integer},
                             {.name = "tag", .type = column_type::integer}});
const schema later_columns({{.name = "country", .type = column_type::text},
                            {.name = "tag", .type = column_type::integer},
                            {.name = "amount", .type = column_type::integer}});

std::string amount_of(const schema& columns) {
  return columns == former_columns ? "value" : "amount";
}
std::int64_t value_of(std::uint64_t, const db::row& row) {
  return row.integer(amount_of(row.columns()));
}
std::int64_t tag_of(std::uint64_t, const db::row& row) {
  return row.integer("tag");
}

// Rows whose tags differ. An index orders them by value, and a unique one by tag.
template <class Database>
struct tagged_rows {
  using table = typename Database::template schema_table<std::uint64_t>;
  using indexed = db::indexed_table<Database, table>;
  using index = typename indexed::template index_of<std::int64_t>;
  static constexpr std::uint64_t keys = 120;

  struct view {
    std::unique_ptr<indexed> by;
    std::optional<index> value;
    std::optional<index> tag;
  };

  explicit tagged_rows(const schema& columns = former_columns) {
    if (columns == former_columns) {
      begin(db.template create_table<std::uint64_t>("rows", columns));
    } else {
      begin(db.template create_table<std::uint64_t>("rows", columns, to_later()));
    }
  }
  static schema_change to_later() {
    return schema_change().rename("value", "amount").add("country", "FI");
  }
  static schema_change to_former() {
    return schema_change().rename("amount", "value").drop("country");
  }

  indexed& define(table& rows) {
    view& made = views.emplace_back();
    made.by = std::make_unique<indexed>(db, rows);
    made.value.emplace(made.by->template add_index<std::int64_t>("by value", value_of));
    made.tag.emplace(made.by->template add_unique_index<std::int64_t>("by tag", tag_of));
    return *made.by;
  }
  void begin(table& rows) {
    define(rows);
    now = &views.back();
  }
  void fill() {
    db.transact([&](auto& t) {
      for (std::uint64_t key = 0; key < keys; ++key) {
        const auto tag = static_cast<std::int64_t>(key);
        db::row row = rows().make_row();
        now.load()->by->insert(t, key, row.set(amount(), tag % 7).set("tag", tag));
      }
    });
  }
  table& rows() { return now.load()->by->table(); }
  std::string amount() { return amount_of(rows().columns()); }

  void change() {
    const auto indexes = [&](table& next) -> indexed& { return define(next); };
    if (rows().columns() == former_columns) {
      db.change_table(rows(), later_columns, to_later(), indexes);
    } else {
      db.change_table(rows(), former_columns, to_former(), indexes);
    }
    now = &views.back();
  }

  // Changes a value, or exchanges the tags of two rows, or moves a row to another key.
  template <class Transaction>
  void write(Transaction& t, view& all_of, random_numbers& random) {
    indexed& by = *all_of.by;
    const std::uint64_t a = random.below(2 * keys);
    const std::uint64_t b = random.below(2 * keys);
    const std::optional<db::row> row = by.get(t, a);
    if (!row || a == b) return;
    const std::optional<db::row> other = by.get(t, b);
    if (!other) {
      by.erase(t, a);
      by.insert(t, b, *row);
    } else if (random.below(2) == 0) {
      const std::string name = amount_of(row->columns());
      by.update(t, a, [&](db::row& one) { one.set(name, (one.integer(name) + 1) % 7); });
    } else {
      const std::int64_t mine = row->integer("tag");
      const std::int64_t its = other->integer("tag");
      by.update(t, a, [&](db::row& one) { one.set("tag", -1 - mine); });
      by.update(t, b, [&](db::row& one) { one.set("tag", mine); });
      by.update(t, a, [&](db::row& one) { one.set("tag", its); });
    }
  }
  // Writes until `stop`, or an error of the system. Returns how many transactions ended because a
  // unique value was there.
  int write_until(const std::atomic<bool>& stop, std::uint64_t seed) {
    random_numbers random(seed);
    int refused = 0;
    while (!stop) {
      try {
        view& all_of = *now.load();
        db.transact([&](auto& t) { write(t, all_of, random); });
      } catch (const schema_mismatch&) {  // the change is complete
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      } catch (const duplicate_key&) {
        ++refused;
      } catch (const std::system_error&) {
        break;
      }
    }
    return refused;
  }
  // What differs between the rows and an index, or "".
  template <class Transaction>
  std::string difference(Transaction& t, const view& of, const index& in,
                         std::int64_t (*order)(std::uint64_t, const db::row&)) {
    std::vector<std::uint64_t> there;
    t.scan(of.by->table(), all, [&](std::uint64_t key, const db::row&) { there.push_back(key); });
    std::vector<std::uint64_t> found;
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    bool ascends = true;
    of.by->scan(t, in, all, [&](std::uint64_t key, const db::row& row) {
      ascends &= last <= order(key, row);
      last = order(key, row);
      found.push_back(key);
    });
    std::sort(found.begin(), found.end());
    if (!ascends) return "an entry of another value";
    if (found != there)
      return std::to_string(there.size()) + " rows, " + std::to_string(found.size()) + " entries";
    return "";
  }
  // A snapshot, because a transaction that reads all might never commit beside writers.
  std::string difference() {
    return db.read_only([&](auto& t) {
      const view& of = *now.load();
      std::string found = difference(t, of, *of.value, value_of);
      found += difference(t, of, *of.tag, tag_of);
      return found;
    });
  }
  std::size_t count() {
    std::size_t many = 0;
    db.read_only([&](auto& t) {
      many = 0;
      t.scan(rows(), all, [&](std::uint64_t, const db::row&) { ++many; });
    });
    return many;
  }

  Database db;
  std::deque<view> views;
  std::atomic<view*> now{nullptr};
};

// Ends threads also if the test throws.
class stop_at_end {
 public:
  explicit stop_at_end(std::atomic<bool>& stop) : stop_(stop) {}
  ~stop_at_end() { stop_ = true; }
  stop_at_end(const stop_at_end&) = delete;
  stop_at_end& operator=(const stop_at_end&) = delete;

 private:
  std::atomic<bool>& stop_;
};

template <class Database>
class IndexedColumnChange : public ::testing::Test {};
using databases = ::testing::Types<dbx_database, small_nodes_database, two_phase_database>;
TYPED_TEST_SUITE(IndexedColumnChange, databases);

TYPED_TEST(IndexedColumnChange, BringsTheIndexesAlong) {
  tagged_rows<TypeParam> book;
  book.fill();
  auto& former = *book.now.load();
  for (int round = 0; round < 2; ++round) {
    book.change();
    EXPECT_EQ(book.difference(), "");
    EXPECT_EQ(book.count(), book.keys);
    auto& now = *book.now.load();
    book.db.transact([&](auto& t) {
      std::vector<std::uint64_t> found;
      now.by->find(t, *now.tag, 42,
                   [&](std::uint64_t key, const db::row&) { found.push_back(key); });
      EXPECT_EQ(found, std::vector<std::uint64_t>{42});
      db::row same_tag = now.by->table().make_row();
      same_tag.set("tag", 42);
      EXPECT_THROW(now.by->insert(t, 5000, same_tag), duplicate_key);
    });
  }
  EXPECT_THROW(book.db.transact([&](auto& t) { former.by->erase(t, 1); }), schema_mismatch);
  EXPECT_THROW(former.by->template add_index<std::int64_t>("more", value_of), schema_mismatch);
  book.now.load()->by->template add_index<std::int64_t>("more", value_of);
}

TYPED_TEST(IndexedColumnChange, WhileOthersReadAndWrite) {
  tagged_rows<TypeParam> book;
  book.fill();
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  for (std::uint64_t me = 0; me < 3; ++me) {
    // Some may be refused: they have seen two states, and would not have committed.
    threads.emplace_back([&, me] { book.write_until(stop, seed_or(71) + me); });
  }
  {
    const stop_at_end ends(stop);
    for (int round = 0; round < repetitions(10); ++round) {
      book.change();
      EXPECT_EQ(book.difference(), "") << round;
    }
  }
  threads.clear();
  EXPECT_EQ(book.difference(), "");
  EXPECT_EQ(book.count(), book.keys);
}

// Two rows exchange values of a unique index in one transaction. With one writer no value is ever
// there twice.
TYPED_TEST(IndexedColumnChange, RowsExchangeUniqueValues) {
  tagged_rows<TypeParam> book;
  book.fill();
  std::atomic<bool> stop{false};
  std::atomic<int> twice{0};
  {
    std::jthread writer([&] { twice = book.write_until(stop, seed_or(75)); });
    const stop_at_end ends(stop);
    for (int round = 0; round < repetitions(5); ++round) book.change();
  }
  EXPECT_EQ(twice, 0);
  EXPECT_EQ(book.difference(), "");
}

// The canary: a write that bypasses the indexes.
TEST(IndexedColumnChangeCanary, RowsWithoutEntriesAreFound) {
  tagged_rows<dbx_database> book;
  book.fill();
  book.db.transact(
      [&](auto& t) { t.update(book.rows(), 3, [](db::row& row) { row.set("value", 900); }); });
  EXPECT_NE(book.difference(), "");
}

TYPED_TEST(IndexedColumnChange, IsUndoneIfTwoRowsHaveOneValue) {
  tagged_rows<TypeParam> book;
  book.fill();
  auto& before = book.rows();
  using book_type = tagged_rows<TypeParam>;
  std::optional<typename book_type::indexed> by;
  const auto unique_values = [&](auto& next) -> auto& {
    by.emplace(book.db, next);
    by->template add_unique_index<std::int64_t>("by value", value_of);
    return *by;
  };
  EXPECT_THROW(book.db.change_table(before, later_columns, book.to_later(), unique_values),
               duplicate_key);
  EXPECT_EQ(book.difference(), "");
  book.db.transact([&](auto& t) { EXPECT_TRUE(book.now.load()->by->erase(t, 5)); });
  book.change();
  EXPECT_EQ(book.difference(), "");
  EXPECT_EQ(book.count(), book.keys - 1);
}

TYPED_TEST(IndexedColumnChange, RefusesWhatItCannotDo) {
  tagged_rows<TypeParam> book;
  book.fill();
  auto& rows = book.rows();
  auto& other = book.db.template create_table<std::uint64_t>("other", later_columns);
  using indexed = typename tagged_rows<TypeParam>::indexed;
  std::deque<indexed> made;
  const auto change = [&](const auto& define) {
    book.db.change_table(rows, later_columns, book.to_later(), define);
  };
  // Neither a function, nor one that keeps its promise.
  EXPECT_THROW(book.db.change_table(rows, later_columns, book.to_later()), std::logic_error);
  EXPECT_THROW(change([&](auto&) -> auto& { return made.emplace_back(book.db, other); }),
               std::logic_error);
  EXPECT_THROW(change([&](auto& next) -> auto& {
                 made.emplace_back(book.db, next);
                 throw std::runtime_error("no");
                 return made.back();
               }),
               std::runtime_error);
  for (const std::string& name : {std::string("other"), std::string("rows")}) {
    const auto takes_a_name = [&](auto& next) -> auto& {
      made.emplace_back(book.db, next).template add_index<std::int64_t>(name, value_of);
      return made.back();
    };
    try {
      change(takes_a_name);
      ADD_FAILURE() << "expected schema_mismatch";
    } catch (const schema_mismatch& why) {
      EXPECT_THAT(why.what(), HasSubstr(name + ": table exists"));
    }
  }
  const auto twice = [&](auto& next) -> auto& {
    made.emplace_back(book.db, next).template add_index<std::int64_t>("by x", value_of);
    made.back().template add_index<std::int64_t>("by x", value_of);
    return made.back();
  };
  EXPECT_THROW(change(twice), schema_mismatch);
  const auto two_tables = [&](auto& next) -> auto& {
    made.emplace_back(book.db, next).template add_index<std::int64_t>("by y", value_of);
    return made.emplace_back(book.db, next);
  };
  EXPECT_THROW(change(two_tables), std::logic_error);
  // While an index is added.
  std::atomic<int> phase{0};
  std::jthread adder([&] {
    book.now.load()->by->template add_index<std::int64_t>(
        "slow", [&](std::uint64_t key, const db::row& row) {
          if (phase == 0) phase = 1;
          while (phase == 1) std::this_thread::yield();
          return value_of(key, row);
        });
  });
  while (phase == 0) std::this_thread::yield();
  EXPECT_THROW(book.change(), std::logic_error);
  phase = 2;
  adder.join();
  EXPECT_EQ(book.difference(), "");
  book.change();
  EXPECT_EQ(book.difference(), "");
}

// A name that was dropped, and one of a change that failed, can be used again.
TYPED_TEST(IndexedColumnChange, NamesCanBeUsedAgain) {
  tagged_rows<TypeParam> book;
  book.fill();
  using indexed = typename tagged_rows<TypeParam>::indexed;
  std::deque<indexed> made;
  const auto adds_twice = [&](auto& next) -> auto& {
    indexed& by = made.emplace_back(book.db, next);
    by.drop_index(by.template add_index<std::int64_t>("by value", tag_of));
    by.template add_index<std::int64_t>("by value", value_of);
    by.template add_index<std::int64_t>("more", value_of);
    return by;
  };
  const auto fails = [&](auto& next) -> auto& {
    adds_twice(next);
    throw std::runtime_error("no");
    return made.back();
  };
  auto& rows = book.rows();
  EXPECT_THROW(book.db.change_table(rows, later_columns, book.to_later(), fails),
               std::runtime_error);
  book.now.load()->by->drop_index(
      book.now.load()->by->template add_index<std::int64_t>("more", value_of));
  auto& now = book.db.change_table(rows, later_columns, book.to_later(), adds_twice);
  EXPECT_EQ(made.back().index_count(), 2U);
  book.db.transact([&](auto& t) { made.back().insert(t, 900, now.make_row().set("amount", 5)); });
}

TYPED_TEST(IndexedColumnChange, FreesTheFormerEntries) {
  tagged_rows<TypeParam> book;
  book.fill();
  auto& former = book.rows();
  book.change();
  EXPECT_FALSE(former.has_rows());
  EXPECT_EQ(former.absent_records(), 0U);
}

// --- in a directory

const db::storage_options synchronous{.level = db::durability::sync, .checkpoint_bytes = 0};

TYPED_TEST(IndexedColumnChange, StaysInTheDirectory) {
  faulty_disk disk;
  {
    tagged_rows<TypeParam> book;
    book.db.open(disk.directory(), synchronous);
    book.fill();
    book.change();
    book.db.transact([&](auto& t) {
      book.now.load()->by->update(t, 9, [](db::row& row) { row.set("amount", 500); });
    });
    book.db.close();
  }
  for (int start = 0; start < 2; ++start) {
    tagged_rows<TypeParam> later(later_columns);
    later.db.open(disk.directory(), synchronous);
    EXPECT_EQ(later.difference(), "");
    EXPECT_EQ(later.count(), later.keys);
    random_numbers random(seed_or(72));
    later.db.transact([&](auto& t) { later.write(t, *later.now.load(), random); });
  }
  TypeParam without;
  without.template create_table<std::uint64_t>("rows", later_columns);
  EXPECT_THROW(without.open(disk.directory(), synchronous), db::unknown_table);
}

// The power fails at each operation of the disk while columns change and another thread writes.
TYPED_TEST(IndexedColumnChange, APowerFailureLeavesOneEntryForEachRow) {
  random_numbers random(seed_or(73));
  bool survives = false;
  for (std::uint64_t last = 0; !survives; last += 1 + random.below(spacing(6))) {
    faulty_disk disk;
    {
      tagged_rows<TypeParam> book;
      book.db.open(disk.directory(), synchronous);
      book.fill();
      disk.change_faults(
          [now = disk.operations(), last](auto& faults) { faults.power_off_at = now + last; });
      std::atomic<bool> stop{false};
      std::jthread writer([&] { book.write_until(stop, seed_or(74) + last); });
      const stop_at_end ends(stop);
      try {
        book.change();
        survives = true;
      } catch (const std::system_error&) {
      }
    }
    faulty_disk after = disk.after_power_failure(random);
    for (int start = 0; start < 2; ++start) {
      tagged_rows<TypeParam> later(later_columns);
      later.db.open(after.directory(), synchronous);
      EXPECT_EQ(later.difference(), "") << last;
      EXPECT_EQ(later.count(), later.keys) << last;
      later.db.transact([&](auto& t) { later.write(t, *later.now.load(), random); });
    }
  }
}

}  // namespace
}  // namespace elidex::testing
