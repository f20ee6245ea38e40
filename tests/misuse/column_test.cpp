// What a column does when it is misused.
#include "elidex/column.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "elidex/internal/memory/epoch.hpp"
#include "misuse/rows.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

struct thrown_by_callback {};

template <class T>
T value_of(unsigned n) {
  if constexpr (std::is_same_v<T, std::string>) {
    return "value " + std::to_string(n);
  } else {
    return static_cast<T>(n);
  }
}

template <class T>
class ColumnMisuse : public ::testing::Test {
 protected:
  // Two rows in the main, one in the delta.
  ColumnMisuse() : subject(column_options{.merge_ratio = 0.1, .merge_rows_min = 1}) {
    subject.insert(value_of<T>(1));
    subject.insert(value_of<T>(2));
    subject.merge();
    subject.insert(value_of<T>(3));
  }

  // So many that a merge calls its progress function.
  static constexpr std::size_t many = 110'000;
  void insert_many() {
    for (std::size_t n = 0; n < many; ++n) subject.insert(value_of<T>(4));
  }

  void expect_usable(std::size_t rows) {
    EXPECT_EQ(subject.size(), rows);
    for (unsigned n = 1; n <= 3; ++n) EXPECT_EQ(subject.get(n - 1), value_of<T>(n));
    subject.insert(value_of<T>(9));
    subject.merge();
    EXPECT_EQ(subject.count(value_of<T>(9)), 1U);
    EXPECT_EQ(subject.stats().main.rows, rows + 1);
  }

  column<T> subject;
};

using ValueTypes = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(ColumnMisuse, ValueTypes);

TYPED_TEST(ColumnMisuse, ScansFunctionThrows) {
  const auto throws = [](auto&&...) { throw thrown_by_callback(); };
  EXPECT_THROW(this->subject.scan_n(value_of<TypeParam>(1), 10, throws), thrown_by_callback);
  EXPECT_THROW(this->subject.scan(all, throws), thrown_by_callback);
  this->expect_usable(3);
  for (const char* const function : {"column::scan", "column::scan_n"}) {
    misuse_row(function, misuse::callback_throws,
               "the exception comes out; the column is usable and merges");
  }
}

TYPED_TEST(ColumnMisuse, ProgressThrows) {
  this->insert_many();
  const auto throws = [](std::size_t, std::size_t) { throw thrown_by_callback(); };
  EXPECT_THROW(this->subject.merge(throws), thrown_by_callback);
  EXPECT_TRUE(this->subject.merge_is_due());
  EXPECT_THROW(this->subject.merge_if_due(throws), thrown_by_callback);
  this->expect_usable(3 + this->many);
  for (const char* const function : {"column::merge", "column::merge_if_due"}) {
    misuse_row(function, misuse::callback_throws,
               "the exception comes out; all rows stay, the column is usable, and the next merge "
               "continues");
  }
}

TYPED_TEST(ColumnMisuse, ProgressMerges) {
  auto& values = this->subject;
  this->insert_many();
  EXPECT_THROW(values.merge([&](std::size_t, std::size_t) { values.merge(); }), std::logic_error);
  EXPECT_THROW(values.merge([&](std::size_t, std::size_t) { values.merge_if_due(); }),
               std::logic_error);
  this->expect_usable(3 + this->many);
  for (const char* const function : {"column::merge", "column::merge_if_due"}) {
    misuse_row(function, misuse::reentrance,
               "from its own progress function: throws std::logic_error; all rows stay, and the "
               "next merge continues");
  }
}

TYPED_TEST(ColumnMisuse, ProgressMergesAnotherColumn) {
  column<TypeParam> other;
  other.insert(value_of<TypeParam>(1));
  this->insert_many();
  this->subject.merge([&](std::size_t, std::size_t) { other.merge(); });
  EXPECT_EQ(other.stats().main.rows, 1U);
  this->expect_usable(3 + this->many);
  misuse_row("column::merge", misuse::reentrance,
             "from another column's progress function: merges");
}

TYPED_TEST(ColumnMisuse, MergesFromScansFunction) {
  auto& values = this->subject;
  EXPECT_THROW(values.scan(all, [&](auto&&...) { values.merge(); }), std::logic_error);
  EXPECT_THROW(values.scan(all, [&](auto&&...) { values.merge_if_due(); }), std::logic_error);
  {
    const epoch_pin pinned;
    EXPECT_THROW(values.merge(), std::logic_error);
  }
  this->expect_usable(3);
  for (const char* const function : {"column::merge", "column::merge_if_due"}) {
    misuse_row(
        function, misuse::reentrance,
        "from scan()'s function, of any column, or under an epoch_pin: throws std::logic_error");
  }
}

template <class Column>
void call_all_but_merge(Column& values, bool first_call) {
  using T = typename Column::value_type;
  if (!first_call) return;
  const auto row = values.insert(value_of<T>(7));
  EXPECT_EQ(values.get(row), value_of<T>(7));
  EXPECT_EQ(values.find(value_of<T>(7)).size(), 1U);
  EXPECT_EQ(values.range(value_of<T>(1), value_of<T>(2)).size(), 1U);
  EXPECT_EQ(values.count(value_of<T>(7)), 1U);
  EXPECT_EQ(values.distinct(), values.scan(all, [](auto&&...) {}));
  EXPECT_EQ(values.scan_n(value_of<T>(1), 2, [](auto&&...) {}), 2U);
  EXPECT_EQ(values.multi_insert({value_of<T>(8), value_of<T>(8)}), row + 1);
  EXPECT_TRUE(values.erase(row + 1) && values.erase(row + 2));
  const std::size_t before = values.size();
  EXPECT_TRUE(values.erase(row));
  EXPECT_EQ(values.size(), before - 1);
  EXPECT_FALSE(values.empty());
  EXPECT_GT(values.memory_bytes(), 0U);
  EXPECT_GE(values.stats().deleted, 1U);
  EXPECT_TRUE(values.merge_is_due());
}

TYPED_TEST(ColumnMisuse, AllFunctionsFromScansFunction) {
  auto& values = this->subject;
  bool first = true;
  values.scan(all, [&](auto&&...) { call_all_but_merge(values, std::exchange(first, false)); });
  EXPECT_FALSE(first);
  first = true;
  this->insert_many();
  values.merge(
      [&](std::size_t, std::size_t) { call_all_but_merge(values, std::exchange(first, false)); });
  EXPECT_FALSE(first);
  for (const char* const function :
       {"insert", "multi_insert", "erase", "get", "find", "range", "count", "distinct", "scan",
        "scan_n", "size", "empty", "memory_bytes", "stats", "merge_is_due"}) {
    misuse_row("column::" + std::string(function), misuse::reentrance,
               "from a callback of scan() or merge(): works as usual");
  }
}

TYPED_TEST(ColumnMisuse, RowsThatAreNotThere) {
  auto& values = this->subject;
  EXPECT_TRUE(values.erase(0));
  for (const std::uint64_t row : {std::uint64_t{0}, std::uint64_t{3}, ~std::uint64_t{0}}) {
    EXPECT_EQ(values.get(row), std::nullopt);
    EXPECT_FALSE(values.erase(row));
  }
  EXPECT_EQ(values.size(), 2U);
  misuse_row("column::get", misuse::bad_argument, "a row that was erased or never there: empty");
  misuse_row("column::erase", misuse::bad_argument, "a row that was erased or never there: false");
}

TEST(ColumnOfStringsMisuse, ValuesThatAreTooLong) {
  column<std::string> values;
  values.insert("a");
  const std::string text((std::size_t{64} << 10) + 1, 'v');
  EXPECT_THROW(values.insert(text), std::invalid_argument);
  EXPECT_THROW(values.multi_insert({"b", text}), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(values.find(text)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(values.count(text)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(values.range("a", text)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(values.count(up_to(text))), std::invalid_argument);
  EXPECT_THROW(values.scan(below(text).descending(), [](auto&&...) {}), std::invalid_argument);
  EXPECT_THROW(values.scan_n(text, 1, [](auto&&...) {}), std::invalid_argument);
  EXPECT_EQ(values.size(), 1U);
  for (const char* const function :
       {"insert", "multi_insert", "find", "count", "range", "scan", "scan_n"}) {
    misuse_row("column::" + std::string(function), misuse::bad_argument,
               "a string over 64 KiB: throws std::invalid_argument; the column is unchanged");
  }
}

TEST(ColumnOfStringsMisuse, MoreValuesThanIdsAllow) {
  column<std::uint64_t, std::uint8_t> values;
  EXPECT_THROW(
      {
        for (std::uint64_t n = 0; n < 1000; ++n) values.insert(n);
      },
      std::length_error);
  const std::size_t rows = values.size();
  EXPECT_EQ(values.get(0), 0U);
  EXPECT_THROW(values.multi_insert({0, 1'000}), std::length_error);
  values.insert(0);
  EXPECT_EQ(values.size(), rows + 1);
  for (const char* const function : {"column::insert", "column::multi_insert"}) {
    misuse_row(function, misuse::bad_argument,
               "more distinct values than Id can number: throws std::length_error; the rows are "
               "unchanged");
  }
}

}  // namespace
}  // namespace elidex::testing
