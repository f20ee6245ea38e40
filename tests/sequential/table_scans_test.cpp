// Scans of tables and indexes with all bounds, in both directions, under every protocol: beside a
// std::map, and beside transactions that insert into what a scan has read.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/bounds.hpp"
#include "elidex/database.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

struct account {
  std::int64_t balance;
};
struct person {
  std::int32_t age;
  std::uint32_t name;  // a number of names[]
};
const std::array<std::string, 9> names{
    "", "a", std::string("a\0", 2), "aa", "ab", "a\xff", "b", "\xff", "\xff\xff"};

template <class T>
struct kind_of_bounds {
  const char* name;
  bounds<T> (*make)(T, T);
  bool (*has)(const T& value, const T& a, const T& b);
};
template <class T>
const std::array<kind_of_bounds<T>, 7> kinds_of_bounds{{
    {"between", &between<T, T>, [](const T& v, const T& a, const T& b) { return a <= v && v < b; }},
    {"closed", &closed<T, T>, [](const T& v, const T& a, const T& b) { return a <= v && v <= b; }},
    {"from", [](T a, T) { return from(a); },
     [](const T& v, const T& a, const T&) { return a <= v; }},
    {"above", [](T a, T) { return above(a); },
     [](const T& v, const T& a, const T&) { return a < v; }},
    {"below", [](T, T b) { return below(b); },
     [](const T& v, const T&, const T& b) { return v < b; }},
    {"up_to", [](T, T b) { return up_to(b); },
     [](const T& v, const T&, const T& b) { return v <= b; }},
    {"above and up_to", [](T a, T b) { return bounds<T>(a, true, b, true); },
     [](const T& v, const T& a, const T& b) { return a < v && v <= b; }},
}};

// A record of a table, and the value by which a scan orders it.
template <class Value, class Key>
struct entry {
  Value value;
  Key key;
  std::int64_t row;
};

// Few types, so that few scans are compiled.
template <class Value>
using any_bounds = internal::map_bounds<Value>;
template <class Key>
using visitor = std::function<bool(const Key&, std::int64_t)>;
template <class Value, class Key>
using any_scan = std::function<void(const any_bounds<Value>&, const visitor<Key>&)>;

// A scan of a range in both directions, whole and ended early, beside the entries in ascending
// order. Empty if they agree.
template <class Value, class Key, class Bounds>
std::string difference(std::vector<entry<Value, Key>> expected, const std::string& name,
                       const Bounds& which, const any_scan<Value, Key>& scan,
                       const std::type_identity_t<std::function<bool(const Value&)>>& has) {
  std::erase_if(expected, [&](const auto& one) { return !has(one.value); });
  for (const bool descends : {false, true}) {
    if (descends) std::reverse(expected.begin(), expected.end());
    for (const std::size_t limit : {std::size_t{1000}, std::size_t{1}, std::size_t{9}}) {
      std::size_t seen = 0;
      bool same = true;
      const any_bounds<Value> range(descends ? which.descending() : which);
      scan(range, [&](const Key& key, std::int64_t row) {
        same = same && seen < expected.size() && key == expected[seen].key &&
               row == expected[seen].row;
        return ++seen < limit;
      });
      if (!same || seen != std::min(limit, expected.size()))
        return name + (descends ? " descending" : "") + ", at most " + std::to_string(limit);
    }
  }
  return "";
}
template <class Value, class Key>
std::string difference(const std::vector<entry<Value, Key>>& expected, const Value& a,
                       const Value& b, const any_scan<Value, Key>& scan) {
  for (const auto& kind : kinds_of_bounds<Value>) {
    const std::string found = difference(expected, kind.name, kind.make(a, b), scan,
                                         [&](const Value& value) { return kind.has(value, a, b); });
    if (!found.empty()) return found;
  }
  if constexpr (std::is_same_v<Value, std::string>) {
    const std::string found =
        difference(expected, "prefix", prefix(a), scan,
                   [&](const std::string& value) { return value.starts_with(a); });
    if (!found.empty()) return found;
  }
  return difference(expected, "all", all, scan, [](const Value&) { return true; });
}

template <class Database>
class table_beside_model {
 public:
  explicit table_beside_model(u64 seed) : random_(seed) {}

  // Transactions at all levels, and snapshots. Returns the first difference.
  std::string run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (const isolation level :
           {isolation::read_committed, isolation::repeatable_read, isolation::serializable}) {
        std::string found;
        const model before = model_;
        db_.transact(level, [&](auto& t) {
          model_ = before;
          found = difference_in(t);
          for (int i = 0; i < 20; ++i) write(t);  // not all of them have been scanned
          if (found.empty()) found = difference_in(t);
          if (!found.empty()) found += " in a transaction";
        });
        if (!found.empty()) return found;
      }
      std::string found = db_.read_only([&](auto& t) { return difference_in(t); });
      if (!found.empty()) return found + " in a snapshot";
      db_.collect();
    }
    return "";
  }

 private:
  using numbered_table = typename Database::template table<u64, person>;
  using named_table = typename Database::template table<std::string, std::int64_t>;
  struct model {
    std::map<u64, person> numbered;
    std::map<std::string, std::int64_t> named;
  };
  static constexpr u64 keys = 200;

  std::string random_name() {
    std::string name;
    for (u64 i = random_.below(4); i > 0; --i)
      name.push_back(std::string_view("\0a\xff", 3)[random_.below(3)]);
    return name;
  }
  person random_person() {
    return {static_cast<std::int32_t>(random_.below(20)) - 10,
            static_cast<std::uint32_t>(random_.below(names.size()))};
  }
  template <class Transaction>
  void write(Transaction& t) {
    const u64 number = random_.below(keys);
    const std::string name = random_name();
    if (random_.below(3) == 0) {
      by_.erase(t, number);
      model_.numbered.erase(number);
      t.erase(named_, name);
      model_.named.erase(name);
    } else {
      const person row = random_person();
      by_.upsert(t, number, row);
      model_.numbered[number] = row;
      const auto value = static_cast<std::int64_t>(random_.below(1000));
      t.upsert(named_, name, value);
      model_.named[name] = value;
    }
  }

  template <class Transaction>
  std::string difference_in(Transaction& t) {
    const auto passing_age = [](const visitor<u64>& fn) {
      return [&fn](u64 key, const person& row) { return fn(key, row.age); };
    };
    std::vector<entry<u64, u64>> by_number;
    std::vector<entry<std::int32_t, u64>> by_age;
    std::vector<entry<std::string, u64>> by_name;
    for (const auto& [key, row] : model_.numbered) {
      by_number.push_back({key, key, row.age});
      by_age.push_back({row.age, key, row.age});
      by_name.push_back({names[row.name], key, row.age});
    }
    const auto in_order_of_values = [](auto& entries) {
      std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
        return std::tie(a.value, a.key) < std::tie(b.value, b.key);
      });
    };
    in_order_of_values(by_age);
    in_order_of_values(by_name);
    std::vector<entry<std::string, std::string>> by_key;
    for (const auto& [key, row] : model_.named) by_key.push_back({key, key, row});

    const u64 from = random_.below(keys);
    std::string found =
        difference<u64, u64>(by_number, from, from + random_.below(60) - 10,
                             [&](const any_bounds<u64>& which, const visitor<u64>& fn) {
                               t.scan(numbered_, which, passing_age(fn));
                             });
    if (!found.empty()) return found + " of numbers";
    found = difference<std::string, std::string>(
        by_key, random_name(), random_name(),
        [&](const any_bounds<std::string>& which, const visitor<std::string>& fn) {
          t.scan(named_, which,
                 [&](std::string_view key, std::int64_t row) { return fn(std::string(key), row); });
        });
    if (!found.empty()) return found + " of strings";
    const person low = random_person();
    const person high = random_person();
    found = difference<std::int32_t, u64>(
        by_age, low.age, high.age,
        [&](const any_bounds<std::int32_t>& which, const visitor<u64>& fn) {
          by_.scan(t, age_, which, passing_age(fn));
        });
    if (!found.empty()) return found + " of an index of numbers";
    found = difference<std::string, u64>(
        by_name, names[low.name], names[high.name],
        [&](const any_bounds<std::string>& which, const visitor<u64>& fn) {
          by_.scan(t, name_, which, passing_age(fn));
        });
    return found.empty() ? "" : found + " of an index of strings";
  }

  Database db_;
  numbered_table& numbered_ = db_.template create_table<u64, person>("numbered");
  named_table& named_ = db_.template create_table<std::string, std::int64_t>("named");
  db::indexed_table<Database, numbered_table> by_{db_, numbered_};
  using by_type = db::indexed_table<Database, numbered_table>;
  typename by_type::template index_of<std::int32_t> age_ =
      by_.template add_index<std::int32_t>("ages", [](u64, const person& row) { return row.age; });
  typename by_type::template index_of<std::string> name_ = by_.template add_index<std::string>(
      "names", [](u64, const person& row) { return names[row.name]; });
  model model_;
  random_numbers random_;
};

template <class Database>
class TableScans : public ::testing::Test {};
struct indexes_that_ascend_only {
  template <class Key>
  struct map : internal::ordered_tree<Key, internal::record*> {
    template <class Fn>
    std::size_t scan(typename internal::key_words<Key>::argument first, std::size_t limit,
                     Fn&& fn) const {
      return internal::ordered_tree<Key, internal::record*>::scan(first, limit, fn);
    }
  };
};
using silo_database = basic_database<db::silo_commit>;
using databases = ::testing::Types<silo_database, basic_database<db::two_phase_locking<>>,
                                   basic_database<db::silo_commit, indexes_that_ascend_only>>;
TYPED_TEST_SUITE(TableScans, databases);

TYPED_TEST(TableScans, AgreeWithAModel) {
  const u64 seed = seed_or(1);
  EXPECT_EQ(table_beside_model<TypeParam>(seed).run(repetitions(20)), "") << "seed " << seed;
}

struct indexes_that_include_upper_bounds {
  template <class Key>
  struct map : internal::ordered_tree<Key, internal::record*> {
    using tree = internal::ordered_tree<Key, internal::record*>;
    using range = internal::tree_range<typename tree::key_argument>;
    using tree::scan;
    template <class Fn>
    std::size_t scan(const range& which, std::size_t limit, Fn&& fn) const {
      range wrong = which;
      wrong.with_upper = true;
      return tree::scan(wrong, limit, fn);
    }
  };
};
TEST(TableScansCanary, ABoundTooFarIsFound) {
  using database = basic_database<db::silo_commit, indexes_that_include_upper_bounds>;
  EXPECT_NE(table_beside_model<database>(1).run(40), "");
}

// Bounds need not be keys. The keys that scan(table, from, to, fn) takes must be.
TEST(TableScansOfBytes, TakeAnyInteger) {
  silo_database db;
  auto& table = db.create_table<std::int8_t, account>("bytes");
  db.transact([&](auto& t) {
    for (int key = -128; key < 128; ++key) t.insert(table, key, account{key});
  });
  db.read_only([&](auto& t) {
    const auto rows = [&](const auto& which) {
      int found = 0;
      t.scan(table, which, [&](auto, const account&) { ++found; });
      return found;
    };
    EXPECT_EQ(rows(below(300)), 256);
    EXPECT_EQ(rows(from(-1'000).descending()), 256);
    EXPECT_EQ(rows(from(128)), 0);
    EXPECT_EQ(rows(closed(-1, 5'000'000'000)), 129);
    EXPECT_EQ(rows(up_to(u64{0}).descending()), 129);
    EXPECT_THROW(rows(128), std::out_of_range);
  });
}

// --- phantoms

// Under optimistic protocols. Two-phase locking: two_phase_test.cpp.
template <class Database>
class TableScansAndPhantoms : public ::testing::Test {
 protected:
  TableScansAndPhantoms() {
    for (const u64 key : {20U, 40U, 60U}) insert(key);
  }
  void insert(u64 key) {
    db_.transact([&](auto& t) { t.insert(rows_, key, account{1}); });
  }
  // How often a transaction runs that scans and writes, if another one inserts the key behind the
  // scan of its first run. The function makes the scan.
  template <class Scan>
  int runs_beside_insert(u64 key, const Scan& scan) {
    int runs = 0;
    db_.transact([&](auto& t) {
      scan(t);
      if (runs++ == 0) std::jthread([&] { insert(key); }).join();
      t.upsert(written_, 1, account{1});
    });
    db_.transact([&](auto& t) { t.erase(rows_, key); });
    return runs;
  }

  Database db_;
  typename Database::template table<u64, account>& rows_ =
      db_.template create_table<u64, account>("rows");
  typename Database::template table<u64, account>& written_ =
      db_.template create_table<u64, account>("written");
};
using optimistic_databases = ::testing::Types<silo_database, basic_database<db::dbx_commit<>>>;
TYPED_TEST_SUITE(TableScansAndPhantoms, optimistic_databases);

TYPED_TEST(TableScansAndPhantoms, TheWholeRangeIsProtected) {
  const auto whole = [&](auto& t) {
    t.scan(this->rows_, bounds<u64>(20, true, 60, false).descending(), [](u64, const account&) {});
  };
  for (const u64 inside : {21U, 39U, 41U, 59U}) {
    EXPECT_EQ(this->runs_beside_insert(inside, whole), 2) << inside;
  }
  for (const u64 outside : {0U, 19U, 61U}) {
    EXPECT_EQ(this->runs_beside_insert(outside, whole), 1) << outside;
  }
  const auto none = [&](auto& t) {
    t.scan(this->rows_, between(45, 50).descending(), [](u64, const account&) {});
  };
  EXPECT_EQ(this->runs_beside_insert(45, none), 2);
  EXPECT_EQ(this->runs_beside_insert(50, none), 1);
  const auto to_the_ends = [&](auto& t) {
    t.scan(this->rows_, all.descending(), [](u64, const account&) {});
  };
  EXPECT_EQ(this->runs_beside_insert(std::numeric_limits<u64>::max(), to_the_ends), 2);
  EXPECT_EQ(this->runs_beside_insert(0, to_the_ends), 2);
}

TYPED_TEST(TableScansAndPhantoms, AnEarlyEndProtectsWhatWasRead) {
  const auto top = [&](auto& t) {
    u64 found = 0;
    t.scan(this->rows_, all.descending(), [&](u64 key, const account&) {
      found = key;
      return false;
    });
    EXPECT_GE(found, 60U);
  };
  EXPECT_EQ(this->runs_beside_insert(61, top), 2);
  EXPECT_EQ(this->runs_beside_insert(59, top), 1);
}

TYPED_TEST(TableScansAndPhantoms, AnEarlyEndAtAnInsertOfItsOwn) {
  const auto two = [&](auto& t) {
    t.upsert(this->rows_, 50, account{2});
    std::vector<u64> found;
    t.scan(this->rows_, below(70).descending(), [&](u64 key, const account&) {
      found.push_back(key);
      return key > 50;
    });
    EXPECT_EQ(found.back(), 50U);
  };
  EXPECT_EQ(this->runs_beside_insert(65, two), 2);
  this->db_.transact([&](auto& t) { t.erase(this->rows_, 50); });
  EXPECT_EQ(this->runs_beside_insert(55, two), 2);
  this->db_.transact([&](auto& t) { t.erase(this->rows_, 50); });
  EXPECT_EQ(this->runs_beside_insert(45, two), 1);
}

}  // namespace
}  // namespace elidex::testing
