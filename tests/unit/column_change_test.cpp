// Columns that change while transactions run: no row is lost or torn, a transaction and a snapshot
// see one of the tables, and a power failure leaves the former or the new columns.
#include "elidex/internal/txn/column_change.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/databases.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

// `mirror` is always `value` times 3, so that a row that is not one version's is seen.
struct narrow {
  std::int32_t value = 0;
  std::int64_t mirror = 0;
};
ELIDEX_ROW(narrow, value, mirror);
struct wide {
  std::int64_t amount = 0;
  std::string country;
  std::int64_t mirror = 0;
};
ELIDEX_ROW(wide, amount, country, mirror);

namespace {

using db::column_type;
using db::schema;
using db::schema_change;
using db::schema_mismatch;
using ::testing::HasSubstr;

schema_change narrow_to_wide() {
  return schema_change().rename("value", "amount").add("country", "FI");
}
narrow narrow_of(std::int32_t value) {
  return {.value = value, .mirror = std::int64_t{3} * value};
}

template <class Database>
class ColumnChange : public ::testing::Test {};
using databases = ::testing::Types<dbx_database, small_nodes_database, two_phase_database>;
TYPED_TEST_SUITE(ColumnChange, databases);

TYPED_TEST(ColumnChange, GivesATableWithTheNewColumns) {
  TypeParam db;
  auto& before = db.template create_table<std::uint64_t, narrow>("rows");
  db.transact([&](auto& t) {
    for (std::uint64_t key = 0; key < 500; ++key)
      t.insert(before, key, narrow_of(static_cast<std::int32_t>(key)));
    t.erase(before, 7);
  });
  auto& now = db.template change_table<wide>(before, narrow_to_wide());
  db.transact([&](auto& t) {
    std::size_t rows = 0;
    t.scan(now, all, [&](std::uint64_t key, const wide& row) {
      EXPECT_EQ(row.amount, static_cast<std::int64_t>(key));
      EXPECT_EQ(row.mirror, 3 * row.amount);
      EXPECT_EQ(row.country, "FI");
      ++rows;
    });
    EXPECT_EQ(rows, 499U);
    t.update(now, 8, [](wide& row) { row.country = "SE"; });
  });
  EXPECT_EQ(&(db.template find_table<std::uint64_t, wide>("rows")), &now);
  EXPECT_THROW((db.template find_table<std::uint64_t, narrow>("rows")), schema_mismatch);
  EXPECT_THROW(db.transact([&](auto& t) { return t.get(before, 1); }), schema_mismatch);
  EXPECT_THROW(db.transact([&](auto& t) { t.upsert(before, 1, narrow()); }), schema_mismatch);
  EXPECT_THROW(db.read_only([&](auto& t) { return t.get(before, 1); }), schema_mismatch);
  EXPECT_THROW(db.template change_table<wide>(before, narrow_to_wide()), schema_mismatch);
  // Once more, to columns that are known only at run time.
  const schema columns({{.name = "country", .type = column_type::text},
                        {.name = "amount", .type = column_type::integer},
                        {.name = "note", .type = column_type::text, .nullable = true}});
  auto& last = db.change_table(now, columns, schema_change().drop("mirror"));
  const auto row = db.read_only([&](auto& t) { return t.get(last, 8); });
  ASSERT_TRUE(row);
  EXPECT_EQ(row->text("country"), "SE");
  EXPECT_EQ(row->integer("amount"), 8);
  EXPECT_TRUE(row->is_null("note"));
  int tables = 0;
  db.for_each_schema_table([&](auto& table) {
    EXPECT_EQ(static_cast<const void*>(&table), &last);
    ++tables;
  });
  EXPECT_EQ(tables, 1);
}

// All that is left is the index.
TYPED_TEST(ColumnChange, FreesTheFormerRows) {
  TypeParam db;
  constexpr std::uint64_t keys = 20'000;
  const schema before({{.name = "a", .type = column_type::text}});
  const schema now(
      {{.name = "a", .type = column_type::text}, {.name = "b", .type = column_type::text}});
  auto& rows = db.template create_table<std::uint64_t>("rows", before);
  for (std::uint64_t key = 0; key < keys; ++key) {
    db.transact([&](auto& t) {
      t.insert(rows, key, rows.make_row().set("a", std::string(50 + key % 300, 'x')));
    });
  }
  const std::size_t whole = rows.memory_bytes();
  auto& after = db.change_table(rows, now, schema_change().add("b", "y"));
  EXPECT_LT(rows.memory_bytes() + keys * 200, whole);  // the row's bytes, on average
  EXPECT_EQ(rows.absent_records(), 0U);
  EXPECT_FALSE(rows.has_rows());
  EXPECT_GT(after.memory_bytes(), keys * 200);
  EXPECT_EQ(db.read_only([&](auto& t) { return t.get(after, keys - 1); })->text("b"), "y");
}

// A thread that is reading a map keeps the memory until a later collection.
TYPED_TEST(ColumnChange, FreesTheFormerRowsLaterBesideALongRead) {
  TypeParam db;
  constexpr std::uint64_t keys = 20'000;
  auto& rows = db.template create_table<std::uint64_t, narrow>("rows");
  for (std::uint64_t key = 0; key < keys; ++key)
    db.transact([&](auto& t) { t.insert(rows, key, narrow_of(1)); });
  const std::size_t whole = rows.memory_bytes();
  {
    const internal::epoch_pin pinned;
    db.template change_table<wide>(rows, narrow_to_wide());
    EXPECT_EQ(rows.memory_bytes(), whole);
  }
  const auto is_freed = [&] { return rows.memory_bytes() + keys * 60 < whole; };  // of 64 each
  for (int i = 0; i < 100 && !is_freed(); ++i) db.collect();
  EXPECT_TRUE(is_freed());
}

TYPED_TEST(ColumnChange, RefusesWhatItCannotDo) {
  TypeParam db;
  auto& rows = db.template create_table<std::uint64_t, narrow>("rows");
  db.transact([&](auto& t) { t.insert(rows, 1, narrow_of(1)); });
  EXPECT_THROW(db.template change_table<wide>(rows), schema_mismatch);
  EXPECT_THROW(db.transact([&](auto&) { db.template change_table<wide>(rows, narrow_to_wide()); }),
               std::logic_error);
  EXPECT_THROW(db.read_only([&](auto&) { db.template change_table<wide>(rows, narrow_to_wide()); }),
               std::logic_error);
  TypeParam other;
  EXPECT_THROW(other.template change_table<wide>(rows, narrow_to_wide()), std::logic_error);
  auto& plain = db.template create_table<std::uint64_t, account>("plain");
  EXPECT_THROW(db.template change_table<wide>(plain, narrow_to_wide()), schema_mismatch);
  const schema small({{.name = "value", .type = column_type::int32},
                      {.name = "mirror", .type = column_type::integer},
                      {.name = "tag", .type = column_type::text, .text_bytes_max = 2}});
  EXPECT_THROW(db.change_table(rows, small, schema_change().add("tag", "long")), db::row_too_large);
  db::indexed_table by(db, rows);
  const auto index = by.template add_index<std::int64_t>(
      "by value", [](std::uint64_t, const narrow& row) { return row.value; });
  EXPECT_THROW(db.template change_table<wide>(rows, narrow_to_wide()), std::logic_error);
  db.transact([&](auto& t) { EXPECT_EQ(t.get(rows, 1)->value, 1); });  // as before
  by.drop_index(index);
  auto& now = db.template change_table<wide>(rows, narrow_to_wide());
  db::indexed_table by_now(db, now);
  by_now.template add_index<std::int64_t>(
      "by amount", [](std::uint64_t, const wide& row) { return row.amount; });
}

// A row that the new columns cannot have: the change ends, and the table is as before.
TYPED_TEST(ColumnChange, EndsAtARowThatDoesNotFit) {
  TypeParam db;
  const schema before({{.name = "a", .type = column_type::text}});
  const schema now(
      {{.name = "a", .type = column_type::text}, {.name = "b", .type = column_type::text}});
  auto& rows = db.template create_table<std::uint64_t>("rows", before);
  db.transact([&](auto& t) {
    for (std::uint64_t key = 0; key < 100; ++key) t.insert(rows, key, rows.make_row());
    t.insert(rows, 100, rows.make_row().set("a", std::string((16 << 20) - 16, 'x')));
  });
  try {
    db.change_table(rows, now, schema_change().add("b", "a value of many letters"));
    ADD_FAILURE() << "expected row_too_large";
  } catch (const db::row_too_large& why) {
    EXPECT_THAT(why.what(), HasSubstr("rows: key 100: "));
  }
  db.transact([&](auto& t) {
    EXPECT_TRUE(t.erase(rows, 100));
    std::size_t count = 0;
    t.scan(rows, all, [&](std::uint64_t, const db::row&) { ++count; });
    EXPECT_EQ(count, 100U);
  });
  auto& after = db.change_table(rows, now, schema_change().add("b", "a value of many letters"));
  EXPECT_EQ(db.read_only([&](auto& t) { return t.get(after, 99); })->text("b"),
            "a value of many letters");
}

// Rows that are known only at run time, so that the table has one type before and after.
const schema by_value({{.name = "value", .type = column_type::integer},
                       {.name = "mirror", .type = column_type::integer}});
const schema by_amount({{.name = "country", .type = column_type::text},
                        {.name = "mirror", .type = column_type::integer},
                        {.name = "amount", .type = column_type::integer}});
std::string number_of(const db::row& row) {
  return row.columns() == by_value ? "value" : "amount";
}
void add(db::row& row, std::int64_t more) {
  const std::int64_t now = row.integer(number_of(row)) + more;
  row.set(number_of(row), now).set("mirror", 3 * now);
}

template <class Transaction, class Table>
void add_to(Transaction& t, Table& rows, std::uint64_t key, std::int64_t more) {
  t.update(rows, key, [&](db::row& row) { add(row, more); });
}

template <class Database>
struct ledger {
  static constexpr std::uint64_t keys = 300;
  static constexpr std::int64_t each = 100;

  ledger() { db.template create_table<std::uint64_t>("rows", by_value); }
  void fill() {
    db.transact([&](auto& t) {
      auto& rows = now();
      for (std::uint64_t key = 0; key < keys; ++key) {
        db::row row = rows.make_row();
        add(row, each);
        t.insert(rows, key, row);
      }
    });
  }
  auto& now() { return db.template find_table<std::uint64_t>("rows"); }
  void change() {
    auto& rows = now();
    if (rows.columns() == by_value) {
      db.change_table(rows, by_amount,
                      schema_change().rename("value", "amount").add("country", "FI"));
    } else {
      db.change_table(rows, by_value, schema_change().rename("amount", "value").drop("country"));
    }
  }
  // Moves a row to another key, or an amount from one row to another.
  template <class Transaction>
  void write(Transaction& t, random_numbers& random) {
    auto& rows = now();
    const std::uint64_t from = random.below(2 * keys);
    const std::uint64_t to = random.below(2 * keys);
    const auto amount = static_cast<std::int64_t>(random.below(5));
    const std::optional<db::row> row = t.get(rows, from);
    if (!row || from == to) return;
    // One read, because a second one may find no row, in a transaction that will not commit.
    const std::optional<db::row> other = t.get(rows, to);
    if (!other) {
      t.erase(rows, from);
      t.insert(rows, to, *row);
    } else if (amount == 0) {
      t.upsert(rows, to, *other);
    } else {
      t.update(rows, from, [&](db::row& one) { add(one, -amount); });
      t.update(rows, to, [&](db::row& one) { add(one, amount); });
    }
  }
  // What a transaction sees is checked after its commit, because it may see an inconsistent state.
  struct seen {
    std::size_t count = 0;
    std::int64_t sum = 0;
    std::size_t torn = 0;
    friend bool operator==(const seen&, const seen&) = default;
  };
  static constexpr seen whole{.count = keys, .sum = each * static_cast<std::int64_t>(keys)};
  template <class Transaction>
  seen look(Transaction& t) {
    seen all_rows;
    t.scan(now(), all, [&](std::uint64_t, const db::row& row) {
      const std::int64_t value = row.integer(number_of(row));
      if (row.integer("mirror") != 3 * value) ++all_rows.torn;
      all_rows.sum += value;
      ++all_rows.count;
    });
    return all_rows;
  }
  void check() {
    EXPECT_TRUE(db.transact([&](auto& t) { return look(t); }) == whole);
  }

  Database db;
};

TYPED_TEST(ColumnChange, WhileOthersReadAndWrite) {
  ledger<TypeParam> book;
  book.fill();
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  for (std::uint64_t me = 0; me < 3; ++me) {
    threads.emplace_back([&, me] {
      random_numbers random(seed_or(61) + me);
      while (!stop) book.db.transact([&](auto& t) { book.write(t, random); });
    });
  }
  threads.emplace_back([&] {
    while (!stop) {
      try {
        EXPECT_TRUE(book.db.read_only([&](auto& t) { return book.look(t); }) == book.whole);
      } catch (const schema_mismatch&) {
        // the change was completed after this snapshot began
      }
    }
  });
  for (int round = 0; round < repetitions(10); ++round) {
    book.change();
    book.check();
  }
  stop = true;
  threads.clear();
  EXPECT_TRUE(book.db.read_only([&](auto& t) { return book.look(t); }) == book.whole);
}

// Changes the columns `rounds` times beside threads that insert and erase their own keys below
// serializable. Returns how many rows there are too many or too few in the end.
template <class Database>
std::int64_t rows_apart(int rounds) {
  ledger<Database> book;
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  std::array<std::atomic<std::int64_t>, 3> rows_of{};
  for (std::uint64_t me = 0; me < rows_of.size(); ++me) {
    threads.emplace_back([&, me] {
      random_numbers random(seed_or(62) + me);
      std::vector<bool> mine(100);
      while (!stop) {
        const std::uint64_t at = random.below(mine.size());
        const std::uint64_t key = rows_of.size() * at + me;
        book.db.transact(isolation::read_committed, [&](auto& t) {
          auto& rows = book.now();
          if (mine[at]) {
            t.erase(rows, key);
          } else {
            t.upsert(rows, key, rows.make_row());
          }
        });
        mine[at] = !mine[at];
      }
      rows_of[me] = std::count(mine.begin(), mine.end(), true);
    });
  }
  for (int round = 0; round < rounds; ++round) book.change();
  stop = true;
  threads.clear();
  std::int64_t rows = -(rows_of[0] + rows_of[1] + rows_of[2]);
  book.db.read_only(
      [&](auto& t) { t.scan(book.now(), all, [&](std::uint64_t, const db::row&) { ++rows; }); });
  return rows;
}

TYPED_TEST(ColumnChange, BesideErasesBelowSerializable) {
  for (int round = 0; round < repetitions(10); ++round) EXPECT_EQ(rows_apart<TypeParam>(3), 0);
}

// A transaction that is running at the end of a change: it completes with the former table. One
// that waits for another transaction to begin does not stop the change, or itself.
TYPED_TEST(ColumnChange, WaitsForTransactionsAndLetsThemWaitForOthers) {
  using namespace std::chrono_literals;
  ledger<TypeParam> book;
  book.fill();
  auto& other = book.db.template create_table<std::uint64_t, account>("other");
  std::atomic<bool> begun{false};
  std::atomic<bool> changed{false};
  std::jthread slow([&] {
    book.db.transact([&](auto& t) {
      auto& rows = book.now();
      t.update(rows, 1, [](db::row& row) { add(row, 5); });
      begun = true;
      std::this_thread::sleep_for(30ms);
      std::jthread([&] {
        book.db.transact([&](auto& inner) { inner.upsert(other, 1, account{.balance = 7}); });
      }).join();
      EXPECT_FALSE(changed);
      t.update(rows, 2, [](db::row& row) { add(row, -5); });
    });
  });
  while (!begun) std::this_thread::yield();
  book.change();
  changed = true;
  slow.join();
  book.check();
  book.db.transact([&](auto& t) {
    EXPECT_EQ(t.get(book.now(), 1)->integer("amount"), 105);
    EXPECT_EQ(t.get(other, 1)->balance, 7);
  });
}

// --- schedules that the proof of column_change.hpp excludes

// Calls a function of the test before each commit.
template <class Base>
struct hooked : Base {
  static inline std::function<void()> before;
  internal::commit_result operator()(internal::transaction_context& t,
                                     internal::commit_clock& clock) {
    if (before) before();
    return Base::operator()(t, clock);
  }
};

// A change of columns, and a transaction beside it that changes key 100 by 7 or erases it.
template <class Commit>
class change_beside_writer {
 public:
  using hooked_commit = hooked<Commit>;
  using ledger_type = ledger<basic_database<hooked_commit>>;
  static constexpr std::uint64_t key = 100;  // of the copier's second step

  change_beside_writer() { book_.fill(); }
  ~change_beside_writer() { hooked_commit::before = {}; }
  change_beside_writer(const change_beside_writer&) = delete;
  change_beside_writer& operator=(const change_beside_writer&) = delete;

  // Waits, but not forever: a schedule that cannot be shows that by never reaching it.
  static void reach(const std::atomic<int>& phase, int wanted) {
    for (int i = 0; i < 200 && phase < wanted; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // `before_commit` runs in this thread before the commit.
  template <class Write>
  void begin_writer(Write write, std::function<void()> before_commit) {
    writer_ = std::jthread([this, write, before_commit] {
      bool first = true;
      on_writer_ = [&] {
        if (std::exchange(first, false)) before_commit();
      };
      book_.db.transact(isolation::read_committed, [&](auto& t) { write(t, book_.now()); });
    });
  }
  // `at(n)` runs before the n-th commit of the changing thread, from 1 on.
  void change_with(const std::function<void(int)>& at) {
    int commits = 0;
    const std::thread::id me = std::this_thread::get_id();
    hooked_commit::before = [&, me] {
      if (std::this_thread::get_id() == me) {
        at(++commits);
      } else if (on_writer_) {
        on_writer_();
      }
    };
    book_.change();
    if (writer_.joinable()) writer_.join();
    hooked_commit::before = {};
  }
  std::optional<std::int64_t> found() {
    const auto row = book_.db.read_only([&](auto& t) { return t.get(book_.now(), key); });
    return row ? std::optional(row->integer("amount")) : std::nullopt;
  }

  static constexpr auto change_it = [](auto& t, auto& rows) {
    t.update(rows, key, [](db::row& row) { add(row, 7); });
  };
  static constexpr auto erase_it = [](auto& t, auto& rows) { t.erase(rows, key); };

  ledger_type book_;
  std::jthread writer_;
  static inline thread_local std::function<void()> on_writer_;
};

class ColumnChangeSchedule : public ::testing::Test,
                             public change_beside_writer<db::silo_commit> {};

// The eraser finds no copy, the copier makes one, and the eraser commits.
TEST_F(ColumnChangeSchedule, ACopyIsMadeAfterItsEraserLooked) {
  std::atomic<int> phase{0};
  change_with([&](int commit) {
    if (commit == 1) {
      begin_writer(erase_it, [&] {
        phase = 1;
        reach(phase, 2);
      });
      reach(phase, 1);
    } else if (commit == 3) {
      phase = 2;
    }
  });
  EXPECT_EQ(found(), std::nullopt);
}

// The copier has read the row, and another transaction changes it.
template <class Commit>
std::optional<std::int64_t> found_after_a_change_behind_the_copier() {
  change_beside_writer<Commit> both;
  both.change_with([&](int commit) {
    if (commit != 2) return;
    both.begin_writer(both.change_it, [] {});
    both.writer_.join();
  });
  return both.found();
}

TEST(ColumnChangeCopies, AreOfRowsThatHaveNotChanged) {
  EXPECT_EQ(found_after_a_change_behind_the_copier<db::silo_commit>(), 107);
}

// The canary: the copier does not find out that a row has changed since it read it.
TEST(ColumnChangeCopies, CanaryCopiesAnOldRow) {
  EXPECT_EQ(found_after_a_change_behind_the_copier<blind_commit>(), 100);
}

// A transaction that commits has not seen that a change begins.
TEST_F(ColumnChangeSchedule, ACommitBeganBeforeTheChange) {
  std::atomic<int> phase{0};
  const std::thread::id me = std::this_thread::get_id();
  int commits = 0;
  hooked_commit::before = [&, me] {
    if (std::this_thread::get_id() != me) {
      if (on_writer_) on_writer_();
    } else if (++commits == 5) {  // the copier is done with the row
      phase = 2;
    }
  };
  begin_writer(change_it, [&] {
    phase = 1;
    reach(phase, 2);
  });
  reach(phase, 1);
  book_.change();
  writer_.join();
  EXPECT_EQ(found(), 107);
}

// A transaction has written to the former table, and commits when the change is complete.
TEST_F(ColumnChangeSchedule, ATransactionRunsAtTheEnd) {
  std::atomic<int> phase{0};
  std::atomic<int> complete{0};
  const auto slow = [&](auto& t, auto& rows) {
    t.insert(rows, 5000, rows.make_row());  // nothing that the change touches
    phase = 1;
    reach(complete, 1);
  };
  int commits = 0;
  const std::thread::id me = std::this_thread::get_id();
  hooked_commit::before = [&, me] {
    if (std::this_thread::get_id() != me || ++commits != 5) return;
    begin_writer(slow, [] {});
    reach(phase, 1);
  };
  book_.change();
  complete = 1;
  writer_.join();
  EXPECT_TRUE(book_.db.read_only([&](auto& t) { return t.get(book_.now(), 5000); }));
}

// A snapshot that began before the end of a change reads the former table until it ends.
TYPED_TEST(ColumnChange, ASnapshotKeepsTheFormerTable) {
  using namespace std::chrono_literals;
  ledger<TypeParam> book;
  book.fill();
  auto& former = book.now();
  std::atomic<int> phase{0};
  std::jthread reader([&] {
    book.db.read_only([&](auto& t) {
      EXPECT_EQ(t.get(former, 3)->integer("value"), 100);
      phase = 1;
      while (book.now().columns() == by_value) std::this_thread::sleep_for(1ms);
      book.db.template create_table<std::uint64_t, account>("other");  // nothing is locked
      EXPECT_EQ(t.get(former, 3)->integer("value"), 100);
      std::this_thread::sleep_for(20ms);
      std::size_t rows = 0;
      t.scan(former, all, [&](std::uint64_t, const db::row&) { ++rows; });
      EXPECT_EQ(rows, book.keys);
      phase = 2;
    });
  });
  while (phase < 1) std::this_thread::yield();
  book.change();
  EXPECT_EQ(phase, 2);
  reader.join();
  EXPECT_THROW(book.db.read_only([&](auto& t) { return t.get(former, 3); }), schema_mismatch);
}

// --- in a directory

const db::storage_options synchronous{.level = db::durability::sync, .checkpoint_bytes = 0};

template <class Database>
struct kept_ledger : ledger<Database> {
  explicit kept_ledger(faulty_disk& disk, const db::storage_options& options = synchronous) {
    this->db.open(disk.directory(), options);
  }
};

// A program with the new columns, which opens directories with either.
template <class Database>
struct later_program {
  explicit later_program(faulty_disk& disk, const db::storage_options& options = synchronous) {
    db.open(disk.directory(), options);
  }
  Database db;
  typename Database::template schema_table<std::uint64_t>& rows =
      db.template create_table<std::uint64_t>(
          "rows", by_amount, schema_change().rename("value", "amount").add("country", "FI"));
};

template <class Database>
bool has_former_columns(const faulty_disk& disk) {
  faulty_disk copy = disk.copy();
  try {
    ledger<Database> former;
    former.db.open(copy.directory(), {.level = db::durability::none});
    return true;
  } catch (const schema_mismatch&) {
    return false;
  }
}

// Sets or erases random rows until `stop` or an error of the system. Notes in `known` what was
// reported durable, and in `tried` what may be.
template <class Database>
void write_until(const std::atomic<bool>& stop, ledger<Database>& book, std::uint64_t seed,
                 std::map<std::uint64_t, std::int64_t>& known,
                 std::optional<std::uint64_t>& tried) {
  random_numbers drawn(seed);
  try {
    while (!stop) {
      const std::uint64_t key = drawn.below(2 * book.keys);
      const bool erases = drawn.below(3) == 0;
      const auto value = static_cast<std::int64_t>(drawn.below(1000));
      tried = key;
      book.db.transact([&](auto& t) {
        auto& rows = book.now();
        if (erases) {
          t.erase(rows, key);
          return;
        }
        db::row row = rows.make_row();
        add(row, value);
        t.upsert(rows, key, row);
      });
      if (erases) {
        known.erase(key);
      } else {
        known[key] = value;
      }
    }
    tried.reset();
  } catch (const std::system_error&) {
  }
}

// The power fails at each operation of the disk while columns change and others write.
TYPED_TEST(ColumnChange, APowerFailureLeavesEveryCommittedRow) {
  random_numbers random(seed_or(63));
  bool survives = false;
  std::array<int, 2> found{};  // with the former columns, with the new ones
  for (std::uint64_t last = 0; !survives; last += 1 + random.below(spacing(4))) {
    faulty_disk disk;
    std::map<std::uint64_t, std::int64_t> known;  // that were reported durable
    std::optional<std::uint64_t> tried;
    {
      kept_ledger<TypeParam> book(disk);
      book.fill();
      for (std::uint64_t key = 0; key < book.keys; ++key) known[key] = book.each;
      disk.change_faults(
          [now = disk.operations(), last](auto& faults) { faults.power_off_at = now + last; });
      std::atomic<bool> stop{false};
      std::jthread writer([&] { write_until(stop, book, seed_or(64) + last, known, tried); });
      try {
        book.change();
        survives = true;
      } catch (const std::system_error&) {
      }
      stop = true;
    }
    faulty_disk after = disk.after_power_failure(random);
    ++found[has_former_columns<TypeParam>(after) ? 0 : 1];
    for (int start = 0; start < 2; ++start) {
      later_program<TypeParam> later(after);
      later.db.transact([&](auto& t) {
        std::map<std::uint64_t, std::int64_t> rows;
        t.scan(later.rows, all, [&](std::uint64_t key, const db::row& row) {
          EXPECT_EQ(row.integer("mirror"), 3 * row.integer("amount"));
          rows[key] = row.integer("amount");
        });
        if (tried) {  // this one may be there or not
          rows.erase(*tried);
          known.erase(*tried);
        }
        EXPECT_EQ(rows, known) << last;
        t.upsert(later.rows, 2 * ledger<TypeParam>::keys, later.rows.make_row());
      });
      known[2 * ledger<TypeParam>::keys] = 0;
    }
  }
  EXPECT_GT(found[0], 0);
  EXPECT_GT(found[1], 0);
}

TYPED_TEST(ColumnChange, StaysInTheDirectoryWithCheckpointsAndBackups) {
  faulty_disk disk;
  faulty_disk copied;
  {
    kept_ledger<TypeParam> book(disk, {.level = db::durability::sync, .checkpoint_bytes = 4096});
    book.fill();
    TypeParam follower;
    follower.template create_table<std::uint64_t>("rows", by_value);
    follower.follow(disk.directory());
    faulty_disk early;
    book.db.backup(early.private_directory());
    book.change();
    book.db.transact([&](auto& t) { add_to(t, book.now(), 4, 11); });
    book.db.wait_durable();
    EXPECT_THROW(follower.catch_up(), schema_mismatch);
    EXPECT_THROW(book.db.update_backup(early.private_directory()), std::system_error);
    {  // it is as before
      ledger<TypeParam> former;
      former.db.open(early.private_directory(), synchronous);
      former.check();
    }
    book.db.backup(copied.private_directory());
    book.db.transact([&](auto& t) { add_to(t, book.now(), 4, 1); });
    book.db.update_backup(copied.private_directory());
    book.db.checkpoint();
    book.db.transact([&](auto& t) { add_to(t, book.now(), 5, 1); });
    book.db.close();
  }
  for (const auto& [of, last] : {std::pair(&disk, 101), std::pair(&copied, 100)}) {
    for (int start = 0; start < 3; ++start) {
      later_program<TypeParam> later(*of);
      later.db.transact([&](auto& t) {
        EXPECT_EQ(t.get(later.rows, 4)->integer("amount"), 112);
        EXPECT_EQ(t.get(later.rows, 5)->integer("amount"), last);
        EXPECT_EQ(t.get(later.rows, 5)->text("country"), "FI");
      });
    }
  }
}

// A tool, which has no tables of its own, finds one table of each name, also during a change.
TYPED_TEST(ColumnChange, IsOneTableForTools) {
  std::string name = (std::filesystem::temp_directory_path() / "elidex-columns-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const struct remover {
    const std::string& of;
    ~remover() { std::filesystem::remove_all(of); }
  } removes{name};
  const std::string bank = name + "/bank";
  const auto names_in = [](const std::string& directory) {
    TypeParam all_tables;
    all_tables.open_all(directory, {.level = db::durability::none});
    std::vector<std::string> names;
    all_tables.for_each_schema_table([&](auto& table) { names.push_back(table.name()); });
    return names;
  };
  ledger<TypeParam> book;
  book.db.open(bank, synchronous);
  book.fill();
  std::jthread slow;
  std::atomic<int> phase{0};
  slow = std::jthread([&] {
    book.db.transact([&](auto&) {
      phase = 1;
      while (phase < 2) std::this_thread::yield();
    });
  });
  while (phase < 1) std::this_thread::yield();
  std::jthread changer([&] { book.change(); });
  book.db.backup(name + "/during");
  phase = 2;
  slow.join();
  changer.join();
  book.db.backup(name + "/after");
  book.db.close();
  EXPECT_EQ(names_in(name + "/during"), std::vector<std::string>{"rows"});
  EXPECT_EQ(names_in(name + "/after"), std::vector<std::string>{"rows"});
}

// update_backup() of a backup from before the change, in a later process. The log of the change is
// kept.
TYPED_TEST(ColumnChange, AnEarlierBackupIsRefusedLaterToo) {
  faulty_disk disk;
  db::storage_options options = synchronous;
  options.keep_history = true;
  faulty_disk copied;
  const auto refused = [&](later_program<TypeParam>& later) {
    EXPECT_THROW(later.db.update_backup(copied.private_directory()), std::system_error);
    ledger<TypeParam> former;
    faulty_disk copy = copied.copy();
    former.db.open(copy.private_directory(), synchronous);
    former.check();
  };
  faulty_disk by_open;
  {
    kept_ledger<TypeParam> book(disk, options);
    book.fill();
    book.db.backup(copied.private_directory());
    by_open = disk.copy();
    book.change();
    book.db.close();
  }
  for (int start = 0; start < 2; ++start) {
    later_program<TypeParam> later(disk, options);
    later.db.transact([&](auto& t) { add_to(t, later.rows, 1, 1); });
    refused(later);
  }
  later_program<TypeParam> converted(by_open, options);
  refused(converted);
}

// Only the catalog says that a table is not the one of its name, not a name.
TYPED_TEST(ColumnChange, AnIndexMayHaveAnyName) {
  faulty_disk disk;
  const auto value_of = [](std::uint64_t, const narrow& row) { return row.value; };
  for (const bool drops : {true, false}) {
    TypeParam db;
    auto& rows = db.template create_table<std::uint64_t, narrow>("rows");
    db::indexed_table by(db, rows);
    const auto index = by.template add_index<std::int64_t>("by (table 2)", value_of);
    db.open(disk.directory(), synchronous);
    if (drops) by.drop_index(index);
    db.close();
  }
}

// The log of a directory whose checkpoint is older than a change does not have it.
TYPED_TEST(ColumnChange, AnOlderCheckpointIsNotTakenForTheState) {
  faulty_disk disk;
  db::storage_options options = synchronous;
  options.keep_history = true;
  faulty_disk copied;
  {
    kept_ledger<TypeParam> book(disk, options);
    book.fill();
    book.db.backup(copied.private_directory());
    book.change();
    book.db.close();
  }
  {
    const auto from = disk.directory();
    const auto to = copied.private_directory();
    EXPECT_THROW(internal::update_copy(*from, never, internal::log_fingerprint, *to),
                 std::system_error);
  }
  for (const std::string& name : disk.names()) {  // what no function of the library does
    if (name.ends_with(".log")) copied.upsert(name, disk.bytes(name));
  }
  ledger<TypeParam> former;
  try {
    former.db.open(copied.private_directory(), synchronous);
    FAIL() << "opened";
  } catch (const db::log_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rows: its columns were changed after the checkpoint"));
  }
}

}  // namespace
}  // namespace elidex::testing
