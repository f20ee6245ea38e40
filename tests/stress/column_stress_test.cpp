// Threads that insert, erase and look while others merge: each sees its own rows at once, counts of
// rows that nobody erases never fall, and nothing is lost at the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "elidex/column.hpp"
#include "support/random_seed.hpp"
#include "support/spread_threads.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

template <class T>
T nth_value(u64 n) {
  if constexpr (std::is_same_v<T, std::string>) {
    return "some value " + std::to_string(n);
  } else {
    return static_cast<T>(n);
  }
}

struct own_row {
  u64 row;
  u64 value;
  bool erased;
};

// A column under writers, each of which inserts values of its own and one that all have, and erases
// some of its own.
template <class Column>
class column_under_stress {
 public:
  using value_type = typename Column::value_type;

  column_under_stress(int writers, u64 rows_each)
      : writers_(writers),
        rows_each_(rows_each),
        running_(writers),
        own_(static_cast<std::size_t>(writers)) {}

  // What goes wrong; empty if nothing.
  std::string first_harm() {
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < writers_; ++t) threads.emplace_back([this, t] { write(t); });
      threads.emplace_back([this] {
        while (running_ > 0) column_.merge();
      });
      look();
    }
    check_the_end();
    return harm_;
  }

 private:
  static constexpr u64 values_each = 200;
  static constexpr u64 new_values = 2'000'000;  // from here on values that come once each

  void say(const std::string& what) {
    const std::lock_guard guard(saying_);
    if (harm_.empty()) harm_ = what;
  }

  // The t-th writer.
  void write(int t) {
    stay_on_nth_core(t);
    random_numbers random(seed_or(1) + static_cast<u64>(t));
    std::vector<own_row>& mine = own_[static_cast<std::size_t>(t)];
    for (u64 i = 0; i < rows_each_; ++i) {
      const u64 value = static_cast<u64>(t) * values_each + random.below(values_each);
      mine.push_back({column_.insert(nth_value<value_type>(value)), value, false});
      if (i % 4 == 0) column_.insert(shared_);
      if (i % 16 == 0)
        column_.insert(nth_value<value_type>(new_values + i * static_cast<u64>(writers_) +
                                             static_cast<u64>(t)));
      if (i % 32 == 0) insert_batch(t, 1 + random.below(100), random, mine);
      const own_row& some = mine[random.below(mine.size())];
      const auto got = column_.get(some.row);
      if (got.has_value() == some.erased)
        say(some.erased ? "get: an erased row" : "get: a row is missing");
      if (got && *got != nth_value<value_type>(some.value)) say("get: another value");
      if (i % 8 == 0) {
        own_row& victim = mine[random.below(mine.size())];
        if (column_.erase(victim.row) == victim.erased) say("erase");
        victim.erased = true;
      }
      if (i % 64 == 0) {
        u64 expected = 0;
        for (const own_row& one : mine) expected += one.value == value && !one.erased ? 1 : 0;
        if (column_.find(nth_value<value_type>(value)).size() != expected) say("find");
      }
    }
    --running_;
  }

  // Inserts own values, some of them repeated, in one call. All rows are there when it returns.
  void insert_batch(int t, u64 rows, random_numbers& random, std::vector<own_row>& mine) {
    std::vector<u64> numbers;
    std::vector<value_type> values;
    for (u64 i = 0; i < rows; ++i) {
      numbers.push_back(static_cast<u64>(t) * values_each + random.below(values_each));
      values.push_back(nth_value<value_type>(numbers.back()));
    }
    const u64 first = column_.multi_insert(values);
    for (u64 i = 0; i < rows; ++i) {
      mine.push_back({first + i, numbers[i], false});
      const auto got = column_.get(first + i);
      if (!got || *got != values[i]) say("a row of a batch");
    }
  }

  // Asks until the last writer is done.
  void look() {
    u64 seen = 0;
    while (running_ > 0) {
      const u64 now = column_.count(shared_);
      if (now < seen) say("a count that falls");
      seen = now;
      u64 rows = 0;
      column_.scan_n(shared_, 1, [&](const auto& /*value*/, std::size_t there) { rows = there; });
      if (rows < seen) say("a scan with fewer rows than a count before it");
      // While values come that are newer than the query.
      if (column_.range(closed(value_type{}, nth_value<value_type>(~u64{0}))).size() < seen)
        say("a range with fewer rows");
      if (column_.distinct() == 0 && seen != 0) say("no values");
    }
  }

  // Looks for each row, when all threads are gone.
  void check_the_end() {
    u64 there = 0;
    u64 inserted = 0;
    for (const auto& of_thread : own_) {
      for (const own_row& one : of_thread) {
        const auto got = column_.get(one.row);
        if (got.has_value() == one.erased) say("at the end: a row");
        there += one.erased ? 0 : 1;
        ++inserted;
      }
    }
    const u64 all_shared = static_cast<u64>(writers_) * ((rows_each_ + 3) / 4);
    const u64 once = static_cast<u64>(writers_) * ((rows_each_ + 15) / 16);
    if (column_.count(shared_) != all_shared) say("at the end: the value of all");
    if (column_.size() != there + all_shared + once) say("at the end: size");
    if (column_.get(inserted + all_shared + once)) say("rows that nobody inserted");
  }

  const int writers_;
  const u64 rows_each_;
  Column column_;
  const value_type shared_ = nth_value<value_type>(1'000'000);
  std::atomic<int> running_;
  std::mutex saying_;
  std::string harm_;
  std::vector<std::vector<own_row>> own_;  // of each writer
};

template <class Column>
std::string first_harm(int writers, u64 rows_each) {
  return column_under_stress<Column>(writers, rows_each).first_harm();
}

// Two columns are merged at once and without end, beside threads that live for a few calls only,
// scans that insert, and questions of all kinds. Each short-lived thread erases what it inserts but
// for one row.
std::string harm_of_two_columns(u64 rounds) {
  std::array<column<std::string>, 2> columns;
  std::atomic<bool> running{true};
  std::atomic<u64> harms{0};
  const auto expect = [&](bool right) { harms += right ? 0 : 1; };
  {
    std::vector<std::jthread> threads;
    for (auto& column : columns) {
      threads.emplace_back([&] {
        while (running) column.merge();
      });
    }
    threads.emplace_back([&] {
      while (running) {
        for (auto& column : columns) {
          const u64 most = 4 * rounds;
          expect(column.size() <= most);
          expect(column.distinct() <= most);
          expect(column.stats().main.rows <= most && column.memory_bytes() > 0);
          column.merge_is_due();
          std::string before;
          column.scan(all, [&](std::string_view value, std::size_t rows) {
            expect((before.empty() || before < value) && rows > 0);
            before = value;
          });
          expect(column.count("a", "z") <= most);
        }
      }
    });
    for (u64 round = 0; round < rounds; ++round) {
      const std::jthread short_lived([&] {
        for (auto& column : columns) {
          const std::string value = nth_value<std::string>(round % 100);
          const u64 kept = column.insert(value);
          const u64 gone = column.insert("gone " + std::to_string(round));
          u64 other = 0;
          column.scan_n(value, 1, [&](std::string_view, std::size_t) {
            other = column.insert("from a scan");
          });
          expect(column.get(gone).has_value());
          expect(column.erase(gone) && column.erase(other) && !column.erase(gone));
          expect(!column.get(gone) && column.get(kept) == value);
          expect(column.find("gone " + std::to_string(round)).empty());
        }
      });
    }
    running = false;
  }
  for (auto& column : columns) {
    column.merge();
    expect(column.size() == rounds && column.stats().main.rows == 3 * rounds);
    expect(column.distinct() == std::min<u64>(rounds, 100) &&
           column.stats().main.distinct == column.distinct());
  }
  return harms == 0 ? "" : std::to_string(harms) + " wrong answers";
}
TEST(ColumnStress, OfTwoColumnsLosesNothing) {
  EXPECT_EQ(harm_of_two_columns(static_cast<u64>(repetitions(600))), "");
}

TEST(ColumnStress, OfNumbersLosesNothing) {
  EXPECT_EQ(first_harm<column<u64>>(2, static_cast<u64>(repetitions(8'000))), "");
}
TEST(ColumnStress, OfStringsLosesNothing) {
  EXPECT_EQ(first_harm<column<std::string>>(3, static_cast<u64>(repetitions(4'000))), "");
}

}  // namespace
}  // namespace elidex::testing
