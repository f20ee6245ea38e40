// Secondary indexes: keys of several parts, and indexes that follow their table.
#include "elidex/internal/txn/indexed_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <compare>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "support/databases.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using db::duplicate_key;
using db::ordered_key;
using ::testing::ElementsAre;

TEST(OrderedKey, OrdersAsItsPartsDo) {
  using parts = std::tuple<std::int64_t, std::string, std::uint32_t>;
  random_numbers random(seed_or(31));
  const std::string bytes(
      "\0\1\xFE\xFF"
      "a",
      5);
  std::map<std::string, parts> sorted;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(4); n > 0; --n)
      text.push_back(bytes[random.below(bytes.size())]);
    constexpr std::array<std::int64_t, 6> numbers{
        std::numeric_limits<std::int64_t>::min(), -256, -1, 0, 255,
        std::numeric_limits<std::int64_t>::max()};
    const parts one{numbers[random.below(numbers.size())], text, random.below(2) == 0 ? 0U : ~0U};
    sorted[ordered_key().add(std::get<0>(one)).add(std::get<1>(one)).add(std::get<2>(one)).take()] =
        one;
  }
  const parts* before = nullptr;
  for (const auto& [key, one] : sorted) {
    if (before != nullptr) {
      ASSERT_LT(*before, one);
    }
    before = &one;
    // A part's keys, and no others, are its range.
    const std::string from = ordered_key().add(std::get<0>(one)).add(std::get<1>(one)).take();
    const std::string end = db::end_of_prefix(from);
    for (auto at = sorted.begin(); at != sorted.end(); ++at) {
      const bool inside = from <= at->first && at->first < end;
      ASSERT_EQ(inside, std::get<0>(at->second) == std::get<0>(one) &&
                            std::get<1>(at->second) == std::get<1>(one));
    }
    ASSERT_EQ(internal::string_of_image(ordered_key().add(std::get<1>(one)).bytes()),
              std::get<1>(one));
  }
}

TEST(OrderedKey, DescendingPartsComeInTheOppositeOrder) {
  struct parts {
    std::string text;
    double number;
    std::uint16_t small;
    std::string last;
    std::string key() const {
      return ordered_key()
          .add_descending(text)
          .add_descending(number)
          .add_descending(small)
          .add(last)
          .take();
    }
    // Greater if it comes earlier.
    auto order() const { return std::tuple(text, number, small); }
  };
  random_numbers random(seed_or(32));
  const std::string bytes("\0\xFF\1a", 4);
  constexpr std::array<double, 7> numbers{
      -std::numeric_limits<double>::infinity(), -1.5, -0.0, 0.0, 1e-300, 2.5,
      std::numeric_limits<double>::infinity()};
  std::vector<parts> all;
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(4); n > 0; --n)
      text.push_back(bytes[random.below(bytes.size())]);
    all.push_back({text, numbers[random.below(numbers.size())],
                   static_cast<std::uint16_t>(random.below(2) * 65535),
                   std::to_string(random.below(3))});
  }
  for (const parts& a : all) {
    const std::string prefix = ordered_key().add_descending(a.text).take();
    const std::string end = db::end_of_prefix(prefix);
    for (const parts& b : all) {
      const auto expected = a.order() == b.order()  ? a.last <=> b.last
                            : a.order() > b.order() ? std::strong_ordering::less
                                                    : std::strong_ordering::greater;
      ASSERT_EQ(a.key() <=> b.key(), expected);
      ASSERT_EQ(prefix <= b.key() && b.key() < end, a.text == b.text);
    }
  }
  EXPECT_LT(ordered_key().add(-1.5).take(), ordered_key().add(-0.0).take());
  EXPECT_EQ(ordered_key().add(-0.0).take(), ordered_key().add(0.0).take());
  EXPECT_LT(ordered_key().add(1e300).take(), ordered_key().add(std::nan("")).take());
}

// --- numbers for new rows ---

TEST(Sequence, GivesEachNumberOnce) {
  database db;
  auto& rows = db.create_table<std::uint64_t, std::uint64_t>("rows");
  db.transact([&](auto& t) { t.insert(rows, 1000, 0); });
  db::sequence numbers(rows);
  constexpr std::size_t threads = 4;
  constexpr std::size_t each = 1000;
  std::array<std::vector<std::uint64_t>, threads> given;
  std::vector<std::thread> all;
  for (auto& mine : given) {
    all.emplace_back([&] {
      for (std::size_t i = 0; i < each; ++i) mine.push_back(numbers.next());
    });
  }
  for (std::thread& one : all) one.join();
  std::set<std::uint64_t> seen;
  for (const auto& mine : given) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    seen.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(seen.size(), threads * each);
  EXPECT_GT(*seen.begin(), 1000U);
  EXPECT_LT(*seen.rbegin(), 1000 + 2 * threads * each + 64 * 64);
}

TEST(Sequence, ContinuesBehindTheGreatestKey) {
  database db;
  auto& rows = db.create_table<std::int32_t, std::uint64_t>("rows");
  EXPECT_EQ(db::sequence(rows).next(), 0);
  db.transact([&](auto& t) { t.insert(rows, -7, 0); });
  EXPECT_EQ(db::sequence(rows).next(), 0);
  db.transact([&](auto& t) { t.insert(rows, 70, 0); });
  EXPECT_EQ(db::sequence(rows).next(), 128);
}

TEST(Sequence, EndsWithItsType) {
  database db;
  auto& rows = db.create_table<std::uint8_t, std::uint64_t>("rows");
  db::sequence numbers(rows);
  for (unsigned i = 0; i < 256; ++i) EXPECT_EQ(numbers.next(), i);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(numbers.next(), std::length_error);
  auto& wide = db.create_table<std::uint64_t, std::uint64_t>("wide");
  db.transact([&](auto& t) { t.insert(wide, std::numeric_limits<std::uint64_t>::max(), 0); });
  db::sequence none(wide);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(none.next(), std::length_error);
}

struct person {
  std::array<char, 8> name{};
  std::int32_t age = 0;
  std::int64_t number = 0;
  std::string_view text() const { return {name.data(), strnlen(name.data(), name.size())}; }
};
person make_person(std::string_view name, std::int32_t age, std::int64_t number) {
  person one{.age = age, .number = number};
  name.copy(one.name.data(), one.name.size());
  return one;
}

template <class Database>
struct people {
  Database db;
  typename Database::template table<std::uint64_t, person>& table =
      db.template create_table<std::uint64_t, person>("people");
  db::indexed_table<Database, typename Database::template table<std::uint64_t, person>> by{db,
                                                                                           table};
  decltype(by.template add_index<std::string>(
      "", [](std::uint64_t, const person& p) { return p.text(); })) name =
      by.template add_index<std::string>("people by name",
                                         [](std::uint64_t, const person& p) { return p.text(); });
  decltype(by.template add_index<std::int64_t>(
      "", [](std::uint64_t, const person& p) { return p.age; })) age =
      by.template add_index<std::int64_t>("people by age",
                                          [](std::uint64_t, const person& p) { return p.age; });
  decltype(age) number = by.template add_unique_index<std::int64_t>(
      "people by number", [](std::uint64_t, const person& p) { return p.number; });

  std::vector<std::uint64_t> named(std::string_view text) {
    return db.read_only([&](auto& t) {
      std::vector<std::uint64_t> found;
      by.find(t, name, std::string(text), [&](std::uint64_t key, const person& one) {
        EXPECT_EQ(one.text(), text);
        found.push_back(key);
        return true;
      });
      return found;
    });
  }
  std::vector<std::uint64_t> aged(std::int64_t from, std::int64_t to) {
    return db.transact([&](auto& t) {
      std::vector<std::uint64_t> found;
      by.scan(t, age, from, to, [&](std::uint64_t key, const person&) {
        found.push_back(key);
        return found.size() < 3;
      });
      return found;
    });
  }
};

template <class Database>
class IndexedTable : public ::testing::Test {};
using databases =
    ::testing::Types<silo_database, dbx_database, small_nodes_database, two_phase_database>;
TYPED_TEST_SUITE(IndexedTable, databases);

TYPED_TEST(IndexedTable, IndexesFollowTheTable) {
  people<TypeParam> all;
  all.db.transact([&](auto& t) {
    all.by.insert(t, 1, make_person("Ada", 36, 100));
    all.by.insert(t, 2, make_person("Bob", -1, 200));
    all.by.insert(t, 3, make_person("Ada", 50, -300));
    all.by.upsert(t, 4, make_person("Adam", 36, std::numeric_limits<std::int64_t>::max()));
  });
  EXPECT_THAT(all.named("Ada"), ElementsAre(1, 3));
  EXPECT_THAT(all.named("Adam"), ElementsAre(4));
  EXPECT_THAT(all.named(""), ElementsAre());
  EXPECT_THAT(all.aged(-10, 40), ElementsAre(2, 1, 4));
  EXPECT_THAT(all.aged(-10, 100), ElementsAre(2, 1, 4));  // the function ends it
  all.db.transact([&](auto& t) {
    EXPECT_TRUE(all.by.update(t, 1, [](person& p) { p.age = 99; }));
    EXPECT_FALSE(all.by.update(t, 9, [](person& p) { p.age = 99; }));
    EXPECT_TRUE(all.by.erase(t, 2));
    EXPECT_FALSE(all.by.erase(t, 2));
    all.by.upsert(t, 3, make_person("Eve", 50, 100'000));
    EXPECT_EQ(all.by.get(t, 3)->text(), "Eve");
  });
  EXPECT_THAT(all.named("Ada"), ElementsAre(1));
  EXPECT_THAT(all.named("Eve"), ElementsAre(3));
  EXPECT_THAT(all.aged(-10, 1000), ElementsAre(4, 3, 1));
  // One that is gone may come again.
  all.db.transact([&](auto& t) { all.by.insert(t, 7, make_person("Bob", 7, 200)); });
  EXPECT_THAT(all.named("Bob"), ElementsAre(7));
}

TYPED_TEST(IndexedTable, AUniqueIndexRefusesASecondOneAtEveryLevel) {
  for (const isolation level : {isolation::read_committed, isolation::serializable}) {
    people<TypeParam> all;
    all.db.transact(level, [&](auto& t) { all.by.insert(t, 1, make_person("Ada", 36, 100)); });
    const auto insert = [&](std::uint64_t key, std::int64_t number) {
      all.db.transact(level,
                      [&](auto& t) { all.by.insert(t, key, make_person("Bob", 1, number)); });
    };
    EXPECT_THROW(insert(2, 100), duplicate_key);
    EXPECT_THAT(all.named("Bob"), ElementsAre());  // nothing of it
    insert(2, 101);
    EXPECT_THROW(
        all.db.transact(level,
                        [&](auto& t) { all.by.update(t, 2, [](person& p) { p.number = 100; }); }),
        duplicate_key);
    EXPECT_THROW(insert(1, 7), duplicate_key);
    EXPECT_THAT(all.aged(0, 100), ElementsAre(2, 1));
  }
}

// Who catches the refusal inside the function goes on with row and indexes as they were.
TYPED_TEST(IndexedTable, WhatAUniqueIndexRefusesChangesNothing) {
  for (const isolation level : {isolation::read_committed, isolation::serializable}) {
    people<TypeParam> all;
    all.db.transact(level, [&](auto& t) {
      all.by.insert(t, 1, make_person("Ada", 36, 100));
      all.by.insert(t, 2, make_person("Bob", 40, 200));
    });
    all.db.transact(level, [&](auto& t) {
      EXPECT_THROW(all.by.update(t, 1, [](person& p) { p = make_person("Eve", 1, 200); }),
                   duplicate_key);
      EXPECT_THROW(all.by.insert(t, 3, make_person("Eve", 1, 200)), duplicate_key);
      EXPECT_THROW(all.by.upsert(t, 3, make_person("Eve", 1, 200)), duplicate_key);
      EXPECT_THROW(all.by.upsert(t, 1, make_person("Eve", 1, 200)), duplicate_key);
      EXPECT_THROW(all.by.insert(t, 1, make_person("Eve", 1, 300)), duplicate_key);
      EXPECT_EQ(all.by.get(t, 1)->text(), "Ada");
      EXPECT_FALSE(all.by.get(t, 3));
    });
    EXPECT_THAT(all.named("Eve"), ElementsAre());
    EXPECT_THAT(all.named("Ada"), ElementsAre(1));
    EXPECT_THAT(all.aged(0, 100), ElementsAre(1, 2));
    // Nothing of it stands in the unique index either.
    all.db.transact(level, [&](auto& t) {
      EXPECT_TRUE(all.by.erase(t, 1));
      all.by.insert(t, 3, make_person("Eve", 1, 100));
      EXPECT_THROW(all.by.insert(t, 4, make_person("Eve", 1, 200)), duplicate_key);
      all.by.insert(t, 4, make_person("Eve", 1, 300));
    });
    EXPECT_THAT(all.named("Eve"), ElementsAre(3, 4));
  }
}

TYPED_TEST(IndexedTable, ScansToTheLastAndByFunctionsThatReturnNothing) {
  people<TypeParam> all;
  all.db.transact([&](auto& t) {
    all.by.insert(t, 1, make_person("Ada", 36, 100));
    all.by.insert(t, 2, make_person("Bob", 40, std::numeric_limits<std::int64_t>::max()));
  });
  const auto look = [&](auto& t) {
    std::vector<std::uint64_t> numbers;
    all.by.scan(t, all.number, 0,
                [&](std::uint64_t key, const person&) { numbers.push_back(key); });
    EXPECT_THAT(numbers, ElementsAre(1, 2));
    int named = 0;
    all.by.find(t, all.name, "Bob", [&](std::uint64_t, const person&) { ++named; });
    EXPECT_EQ(named, 1);
    std::vector<std::uint64_t> rows;
    t.scan(all.table, std::uint64_t{0},
           [&](std::uint64_t key, const person&) { rows.push_back(key); });
    EXPECT_THAT(rows, ElementsAre(1, 2));
  };
  all.db.transact(look);
  all.db.transact(isolation::read_committed, look);
  all.db.read_only(look);
}

// --- indexes of tables that have rows ---

TYPED_TEST(IndexedTable, IsMadeByOpen) {
  faulty_disk disk;
  const auto by_age = [](std::uint64_t, const person& p) { return p.age; };
  {
    TypeParam db;
    auto& table = db.template create_table<std::uint64_t, person>("people");
    db.open(disk.directory());
    db.transact([&](auto& t) {
      t.insert(table, 1, make_person("Ada", 36, 100));
      t.insert(table, 2, make_person("Bob", 41, 200));
      t.insert(table, 3, make_person("Eve", 36, 300));
      t.insert(table, 4, make_person("Max", 36, 400));
    });
    db.transact([&](auto& t) { t.erase(table, 4); });
  }
  const auto open = [&](const db::storage_options& options, std::uint64_t checkpoint) {
    TypeParam db;
    auto& table = db.template create_table<std::uint64_t, person>("people");
    std::optional<db::indexed_table<TypeParam, std::remove_reference_t<decltype(table)>>> by;
    by.emplace(db, table);
    const auto age = by->template add_index<std::int64_t>("people by age", by_age);
    const auto& found = db.open(disk.directory(), options);
    EXPECT_EQ(found.checkpoint, checkpoint);
    std::vector<std::uint64_t> keys;
    db.read_only([&](auto& t) {
      by->find(t, age, 36, [&](std::uint64_t key, const person&) { keys.push_back(key); });
    });
    EXPECT_EQ(keys, (std::vector<std::uint64_t>{1, 3}));
  };
  open({.level = db::durability::none}, 0);
  open({.level = db::durability::sync}, 0);  // makes a checkpoint with the index
  open({.level = db::durability::none}, 1);
}

TYPED_TEST(IndexedTable, IsNotMadeUniqueFromRowsThatAreNot) {
  faulty_disk disk;
  const auto by_age = [](std::uint64_t, const person& p) { return p.age; };
  const auto fill = [&](std::initializer_list<std::int32_t> ages) {
    TypeParam db;
    auto& table = db.template create_table<std::uint64_t, person>("people");
    db.open(disk.directory());
    db.transact([&](auto& t) {
      std::uint64_t key = 0;
      for (const std::int32_t age : ages) t.upsert(table, ++key, make_person("Ada", age, 1));
    });
  };
  const auto open = [&] {
    TypeParam db;
    auto& table = db.template create_table<std::uint64_t, person>("people");
    db::indexed_table by(db, table);
    by.template add_unique_index<std::int64_t>("people by age", by_age);
    db.open(disk.directory());
  };
  fill({5, 6, 5});
  EXPECT_THROW(open(), db::duplicate_key);
  fill({5, 6, 7});
  EXPECT_NO_THROW(open());
}

TYPED_TEST(IndexedTable, IsDroppedByOpen) {
  faulty_disk disk;
  const auto by_age = [](std::uint64_t, const person& p) { return p.age; };
  {
    TypeParam db;
    auto& table = db.template create_table<std::uint64_t, person>("people");
    db::indexed_table by(db, table);
    by.template add_index<std::int64_t>("people by age", by_age);
    db.open(disk.directory());
    db.transact([&](auto& t) { by.insert(t, 1, make_person("Ada", 36, 100)); });
  }
  for (const bool drops : {true, false}) {
    TypeParam db;
    auto& table = db.template create_table<std::uint64_t, person>("people");
    if (drops) db.drop_table("people by age");
    EXPECT_THROW(db.drop_table("people"), db::schema_mismatch);
    db.open(disk.directory());
    EXPECT_TRUE(db.transact([&](auto& t) { return t.get(table, 1); }).has_value());
    EXPECT_THROW(db.drop_table("people by age"), std::logic_error);
    db.transact([&](auto& t) { t.upsert(table, 2, make_person("Bob", 1, 1)); });
  }
}

TYPED_TEST(IndexedTable, AgreesWithItsTableAfterManyChangesByThreads) {
  for (const isolation level : {isolation::read_committed, isolation::serializable}) {
    people<TypeParam> all;
    {
      std::vector<std::jthread> threads;
      for (std::uint64_t me = 0; me < 3; ++me) {
        threads.emplace_back([&, me] {
          random_numbers random(seed_or(me));
          for (int i = 0; i < repetitions(400); ++i) {
            const std::uint64_t key = random.below(8);
            const auto age = static_cast<std::int32_t>(random.below(10));
            const std::uint64_t what = random.below(4);
            all.db.transact(level, [&](auto& t) {
              if (what == 0) {
                all.by.erase(t, key);
              } else if (what == 1) {
                all.by.update(t, key, [&](person& p) { p.age = age; });
              } else {
                all.by.upsert(t, key,
                              make_person(age % 2 == 0 ? "even" : "odd", age,
                                          static_cast<std::int64_t>(key)));
              }
            });
          }
        });
      }
    }
    std::vector<std::uint64_t> even;
    std::size_t rows = 0;
    std::size_t entries = 0;
    all.db.read_only([&](auto& t) {
      t.scan(all.table, std::uint64_t{0}, std::uint64_t{100},
             [&](std::uint64_t key, const person& one) {
               if (one.text() == "even") even.push_back(key);
               ++rows;
               return true;
             });
      all.by.scan(t, all.age, 0, 100, [&](std::uint64_t, const person&) {
        ++entries;
        return true;
      });
    });
    EXPECT_EQ(all.named("even"), even);
    EXPECT_EQ(entries, rows);
  }
}

TEST(IndexedTableOfStrings, FindsItsRows) {
  silo_database db;
  auto& table = db.create_table<std::string, account>("accounts");
  db::indexed_table by(db, table);
  const auto balance = by.add_index<std::int64_t>(
      "by balance", [](std::string_view, const account& a) { return a.balance; });
  const std::string zeros("\0\0", 2);
  db.transact([&](auto& t) {
    by.insert(t, "b", account{5});
    by.insert(t, zeros, account{5});
    by.insert(t, "a", account{6});
  });
  std::vector<std::string> found;
  db.read_only([&](auto& t) {
    by.find(t, balance, 5, [&](std::string_view key, const account&) {
      found.emplace_back(key);
      return true;
    });
  });
  EXPECT_THAT(found, ElementsAre(zeros, "b"));
}

// Whether an index has one entry for each row, under the value of its function.
template <class Database, class By, class Index, class ValueOf>
void expect_exact(Database& db, By& by, const Index& index,
                  typename Database::template table<std::uint64_t, person>& table,
                  const ValueOf& value_of) {
  std::set<std::pair<std::int64_t, std::uint64_t>> wanted;
  std::set<std::pair<std::int64_t, std::uint64_t>> found;
  std::size_t many = 0;
  db.read_only([&](auto& t) {
    t.scan(table, all,
           [&](std::uint64_t key, const person& p) { wanted.emplace(value_of(key, p), key); });
    by.scan(t, index, all, [&](std::uint64_t key, const person& p) {
      ++many;
      found.emplace(value_of(key, p), key);
    });
    for (const auto& [value, key] : wanted) {
      std::size_t same = 0;
      by.find(t, index, value, [&](std::uint64_t other, const person&) { same += other == key; });
      EXPECT_EQ(same, 1U) << value << ' ' << key;
    }
  });
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(many, wanted.size());
}

TYPED_TEST(IndexedTable, IsAddedAndDroppedWhileOthersWrite) {
  TypeParam db;
  auto& table = db.template create_table<std::uint64_t, person>("people");
  db::indexed_table by(db, table);
  const auto by_age = [](std::uint64_t, const person& p) { return p.age; };
  const auto by_number = [](std::uint64_t, const person& p) { return p.number; };
  constexpr std::uint64_t keys = 200;
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (std::uint64_t me = 0; me < 3; ++me) {
    writers.emplace_back([&, me] {
      random_numbers random(seed_or(51) + me);
      // No two rows ever have one number.
      std::int64_t number = static_cast<std::int64_t>(me) << 40;
      while (!stop) {
        const std::uint64_t key = random.below(keys);
        const person one = make_person("Ada", static_cast<std::int32_t>(random.below(5)), ++number);
        const isolation level =
            random.below(2) == 0 ? isolation::serializable : isolation::read_committed;
        try {
          db.transact(level, [&](auto& t) {
            switch (random.below(4)) {
              case 0:
                by.erase(t, key);
                break;
              case 1:
                by.insert(t, key, one);
                break;
              case 2:
                by.upsert(t, key, one);
                break;
              default:
                by.update(t, key, [&](person& p) {
                  p.age = one.age;
                  if (random.below(2) == 0) p.number = one.number;
                });
            }
          });
        } catch (const duplicate_key&) {
        }
      }
    });
  }
  for (int round = 0; round < repetitions(10); ++round) {
    const auto age = by.template add_index<std::int64_t>("people by age", by_age);
    const auto number = by.template add_unique_index<std::int64_t>("people by number", by_number);
    expect_exact(db, by, age, table, by_age);
    expect_exact(db, by, number, table, by_number);
    by.drop_index(age);
    by.drop_index(number);
    db.read_only([&](auto& t) {
      EXPECT_THROW(by.find(t, age, 1, [](std::uint64_t, const person&) {}), std::logic_error);
    });
  }
  const auto age = by.template add_index<std::int64_t>("people by age", by_age);
  stop = true;
  for (std::thread& one : writers) one.join();
  expect_exact(db, by, age, table, by_age);
}

// A change below serializable has looked for the entry of the old value, and the builder inserts it
// before the change commits.
TYPED_TEST(IndexedTable, IsBuiltBesideAChangeThatFoundNoEntry) {
  using namespace std::chrono_literals;
  TypeParam db;
  auto& table = db.template create_table<std::uint64_t, person>("people");
  db::indexed_table by(db, table);
  db.transact([&](auto& t) {
    for (std::uint64_t key = 0; key < 10; ++key) by.insert(t, key, make_person("Ada", 5, 1));
  });
  std::atomic<int> phase{0};
  // Under two-phase locking the one waits for the other's locks, so no wait here lasts forever.
  const auto reaches = [&](int wanted) {
    for (int i = 0; i < 300 && phase < wanted; ++i) std::this_thread::sleep_for(1ms);
  };
  std::thread writer;
  const auto by_age = [&](std::uint64_t key, const person& p) {
    if (int none = 0; key == 0 && phase.compare_exchange_strong(none, 1)) {  // the builder has read
      writer = std::thread([&] {
        db.transact(isolation::read_committed, [&](auto& t) {
          by.update(t, 1, [](person& one) { one.age = 6; });
          if (int begun = 1; phase.compare_exchange_strong(begun, 2)) reaches(3);
        });
      });
      reaches(2);
    }
    return p.age;
  };
  const auto age = by.template add_index<std::int64_t>("people by age", by_age);
  phase = 3;
  writer.join();
  expect_exact(db, by, age, table, by_age);
}

TYPED_TEST(IndexedTable, IsNotAddedIfItCannotBe) {
  TypeParam db;
  auto& table = db.template create_table<std::uint64_t, person>("people");
  db::indexed_table by(db, table);
  const auto by_age = [](std::uint64_t, const person& p) { return p.age; };
  db.transact([&](auto& t) {
    EXPECT_THROW(by.template add_index<std::int64_t>("people by age", by_age), std::logic_error);
    for (std::uint64_t key = 0; key < 200; ++key)
      by.insert(t, key, make_person("Ada", static_cast<std::int32_t>(key % 150), 1));
  });
  const auto add = [&] {
    return by.template add_unique_index<std::int64_t>("people by age", by_age);
  };
  EXPECT_THROW(add(), duplicate_key);
  struct no_value {};
  EXPECT_THROW(
      by.template add_index<std::int64_t>("people by age",
                                          [](std::uint64_t key, const person& p) -> std::int64_t {
                                            if (key == 100) throw no_value();
                                            return p.age;
                                          }),
      no_value);
  db.transact([&](auto& t) { EXPECT_EQ(by.erase(t, from(150)), 50U); });  // no entries are left
  expect_exact(db, by, add(), table, by_age);
}

// The power fails at each operation of the disk while an index is added, or dropped.
TYPED_TEST(IndexedTable, IsWholeOrGoneAfterAPowerFailure) {
  const auto by_age = [](std::uint64_t, const person& p) { return p.age; };
  const db::storage_options options{.level = db::durability::sync, .checkpoint_bytes = 0};
  random_numbers random(seed_or(52));
  bool survives = false;
  for (std::uint64_t last = 0; !survives; last += 1 + random.below(3)) {
    faulty_disk disk;
    {
      TypeParam db;
      auto& table = db.template create_table<std::uint64_t, person>("people");
      db::indexed_table by(db, table);
      db.open(disk.directory(), options);
      db.transact([&](auto& t) {
        for (std::uint64_t key = 0; key < 100; ++key)
          by.insert(t, key, make_person("Ada", static_cast<std::int32_t>(key % 7), 1));
      });
      disk.change_faults(
          [now = disk.operations(), last](auto& faults) { faults.power_off_at = now + last; });
      try {
        const auto age = by.template add_index<std::int64_t>("people by age", by_age);
        db.transact([&](auto& t) { by.insert(t, 100, make_person("Bob", 1, 2)); });
        if (last % 2 == 0) db.checkpoint();
        by.drop_index(age);
        survives = true;
      } catch (const std::system_error&) {
      }
    }
    faulty_disk after = disk.after_power_failure(random);
    faulty_disk copy = after.copy();
    {
      TypeParam db;
      auto& table = db.template create_table<std::uint64_t, person>("people");
      db::indexed_table by(db, table);
      const auto age = by.template add_index<std::int64_t>("people by age", by_age);
      db.open(after.directory(), options);
      expect_exact(db, by, age, table, by_age);
    }
    // A program that does not have the index: it may be complete, or is gone.
    try {
      TypeParam db;
      auto& table = db.template create_table<std::uint64_t, person>("people");
      db.open(copy.directory(), options);
      db.read_only([&](auto& t) {
        std::size_t rows = 0;
        t.scan(table, all, [&](std::uint64_t, const person&) { ++rows; });
        EXPECT_GE(rows, 100U);
      });
    } catch (const db::unknown_table&) {
      EXPECT_FALSE(survives);
    }
  }
}

}  // namespace
}  // namespace elidex::testing
