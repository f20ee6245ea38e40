// Columns beside a vector of values: all functions, before, between and after merges.
#include "elidex/column.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/column_model.hpp"
#include "support/random_seed.hpp"
#include "support/samples.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

template <class T>
class Column : public ::testing::Test {};
using value_types = ::testing::Types<u64, std::int64_t, std::int32_t, std::uint16_t, std::int8_t,
                                     float, double, std::string>;
TYPED_TEST_SUITE(Column, value_types);

// Few values and many, so that there are rows of the same value in all parts and values in one of
// them only.
TYPED_TEST(Column, DoesWhatAVectorDoes) {
  for (const u64 values : {u64{5}, u64{400}}) {
    SCOPED_TRACE(values);
    const auto some = [&](random_numbers& random) {
      return sample<TypeParam>::of(random.below(values));
    };
    random_numbers random(seed_or(values));
    column<TypeParam> real;
    column_model<TypeParam> model;
    const int operations = repetitions(4'000);
    for (int i = 0; i < operations; ++i) {
      if (random.below(4) == 0 && !model.rows.empty()) {
        const u64 row = random.below(model.rows.size());
        ASSERT_EQ(real.erase(row), model.rows[row].has_value());
        model.rows[row].reset();
      } else {
        const TypeParam value = some(random);
        ASSERT_EQ(real.insert(value), model.rows.size());
        model.rows.emplace_back(value);
      }
      if (i % (operations / 8) == operations / 16) real.merge();
      if (i % (operations / 8) == 0) {
        ASSERT_EQ(difference(real, model, random, some), "");
      }
    }
    ASSERT_EQ(difference(real, model, random, some), "");
    real.merge();
    ASSERT_EQ(difference(real, model, random, some), "");
    EXPECT_EQ(real.stats().main.rows, model.rows.size());
    EXPECT_EQ(real.stats().delta.rows, 0U);
    EXPECT_EQ(real.stats().main.distinct, model.rows_by_value().size());
  }
}

struct column_that_includes_the_upper_bound : column<u64> {
  using column::count;
  std::size_t count(u64 lower, u64 upper) const { return column::count(closed(lower, upper)); }
};
struct column_that_never_descends : column<u64> {
  template <class Bounds, class Fn>
  std::size_t scan(const Bounds& which, Fn&& fn) const {
    return column::scan(which.descends() ? which.descending() : which, fn);
  }
};
template <class Broken>
std::string difference_of_broken() {
  random_numbers random(1);
  Broken real;
  column_model<u64> model;
  for (u64 value = 0; value < 20; ++value) {
    real.insert(value);
    model.rows.emplace_back(value);
  }
  return difference(real, model, random, [](random_numbers& from) { return from.below(20); });
}
TEST(ColumnCanary, WrongRangesAreFound) {
  EXPECT_EQ(difference_of_broken<column<u64>>(), "");
  EXPECT_EQ(difference_of_broken<column_that_includes_the_upper_bound>(), "count(lower, upper)");
  EXPECT_EQ(difference_of_broken<column_that_never_descends>(), "scan");
}

TYPED_TEST(Column, WithoutRowsIsEmpty) {
  column<TypeParam> real;
  const column_model<TypeParam> model;
  random_numbers random(seed_or(1));
  const auto some = [](random_numbers& r) { return sample<TypeParam>::of(r.below(9)); };
  EXPECT_EQ(difference(real, model, random, some), "");
  EXPECT_FALSE(real.erase(0));
  real.merge();
  EXPECT_EQ(real.stats().merges, 0U);
  EXPECT_EQ(difference(real, model, random, some), "");
}

TYPED_TEST(Column, ForgetsValuesWhoseRowsAreDeleted) {
  column<TypeParam> real;
  for (u64 n = 0; n < 100; ++n) real.insert(sample<TypeParam>::of(n % 10));
  real.merge();
  EXPECT_EQ(real.stats().main.distinct, 10U);
  for (u64 row = 0; row < 100; ++row) {
    if (row % 10 != 3) {
      EXPECT_TRUE(real.erase(row));
      EXPECT_FALSE(real.erase(row));
    }
  }
  EXPECT_EQ(real.distinct(), 1U);
  real.merge();  // without a row in the delta
  EXPECT_EQ(real.stats().main.distinct, 1U);
  EXPECT_EQ(real.stats().merges, 2U);
  EXPECT_EQ(real.find(sample<TypeParam>::of(3)).size(), 10U);
  for (u64 row = 0; row < 100; ++row) {
    if (row % 10 == 3) real.erase(row);
  }
  real.merge();
  EXPECT_EQ(real.stats().main.distinct, 0U);
  EXPECT_EQ(real.size(), 0U);
  EXPECT_EQ(real.insert(sample<TypeParam>::of(1)), 100U);
  EXPECT_TRUE(real.get(100).has_value());
  real.merge();  // from a main that has rows but no values
  EXPECT_TRUE(real.get(100).has_value());
  EXPECT_EQ(real.find(sample<TypeParam>::of(1)), std::vector<u64>{100});
}

TYPED_TEST(Column, ForgetsValuesThatCameAndWentBetweenMerges) {
  column<TypeParam> real;
  for (u64 n = 0; n < 10; ++n) real.insert(sample<TypeParam>::of(n));
  for (u64 row = 0; row < 9; ++row) real.erase(row);
  real.merge();
  EXPECT_EQ(real.stats().main.rows, 10U);
  EXPECT_EQ(real.stats().main.distinct, 1U);
  EXPECT_EQ(real.find(sample<TypeParam>::of(9)), std::vector<u64>{9});
}

template <class T>
void keeps(const std::vector<T>& ascending) {
  column<T> real;
  for (auto v = ascending.rbegin(); v != ascending.rend(); ++v) real.insert(*v);
  for (int merged = 0; merged < 2; ++merged) {
    for (std::size_t i = 0; i < ascending.size(); ++i) {
      EXPECT_EQ(real.find(ascending[i]), std::vector<u64>{ascending.size() - 1 - i});
      EXPECT_EQ(real.count(ascending.front(), ascending[i]), i);
      EXPECT_EQ(real.count(closed(ascending.front(), ascending[i])), i + 1);
      EXPECT_TRUE(equal_in_columns(real.get(ascending.size() - 1 - i).value(), ascending[i]));
    }
    EXPECT_EQ(real.count(ascending.back(), ascending.front()), 0U);
    real.merge();
  }
}

TEST(ColumnOfExtremes, KeepsThem) {
  keeps<u64>({0, 1, ~u64{0} - 1, ~u64{0}});
  keeps<std::int64_t>({std::numeric_limits<std::int64_t>::min(), -1, 0, 1,
                       std::numeric_limits<std::int64_t>::max()});
  keeps<std::int8_t>({-128, -1, 0, 127});
  using limits = std::numeric_limits<double>;
  keeps<double>({-limits::infinity(), limits::lowest(), -limits::denorm_min(), 0.0,
                 limits::denorm_min(), 1, limits::max(), limits::infinity(), limits::quiet_NaN()});
  keeps<std::string>({"", std::string(1, '\0'), "a", std::string("a\0", 2), "aa",
                      std::string(65'536, 'x'), "\x80", "\xff"});
}

TEST(ColumnOfDoubles, TakesBothZerosAndAllNaNsForOne) {
  column<double> real;
  real.insert(-0.0);
  real.insert(0.0);
  real.insert(std::numeric_limits<double>::signaling_NaN());
  real.insert(-std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(real.distinct(), 2U);
  EXPECT_EQ(real.find(0.0).size(), 2U);
  EXPECT_FALSE(std::signbit(real.get(0).value()));
  EXPECT_EQ(real.find(std::numeric_limits<double>::quiet_NaN()).size(), 2U);
}

// With 255 IDs: the delta's run out first, then the main's; both stay readable.
TEST(ColumnWithFewIds, SaysSo) {
  column<u64, std::uint8_t> real;
  column_model<u64> model;
  random_numbers random(seed_or(1));
  const auto some = [](random_numbers& r) { return r.below(400); };
  for (u64 v = 0; v < 255; ++v) {
    ASSERT_EQ(real.insert(v), v);
    model.rows.emplace_back(v);
  }
  EXPECT_THROW(real.insert(255), std::length_error);
  ASSERT_EQ(real.insert(7), 255U);  // no new value
  model.rows.emplace_back(7);
  ASSERT_EQ(difference(real, model, random, some), "");
  real.merge();
  ASSERT_EQ(difference(real, model, random, some), "");

  ASSERT_EQ(real.insert(300), 256U);
  model.rows.emplace_back(300);
  EXPECT_THROW(real.merge(), std::length_error);
  ASSERT_EQ(difference(real, model, random, some), "");
  ASSERT_EQ(real.insert(8), 257U);  // beside what the merge has left
  model.rows.emplace_back(8);
  EXPECT_THROW(real.merge(), std::length_error);
  ASSERT_EQ(difference(real, model, random, some), "");
  EXPECT_GT(real.stats().frozen.rows, 0U);

  EXPECT_TRUE(real.erase(9));
  model.rows[9].reset();
  real.merge();  // 9 has made room
  ASSERT_EQ(difference(real, model, random, some), "");
  EXPECT_EQ(real.stats().frozen.rows, 0U);
  EXPECT_EQ(real.stats().delta.rows, 0U);
  EXPECT_EQ(real.stats().main.rows, model.rows.size());
}

TEST(ColumnMerge, TellsHowFarItIs) {
  column<u64> real;
  for (u64 i = 0; i < 1'000'000; ++i) real.insert(i % 1000);
  std::size_t before = 0;
  int calls = 0;
  real.merge([&](std::size_t done, std::size_t rows) {
    EXPECT_EQ(rows, 1'000'000U);
    EXPECT_LE(before, done);
    EXPECT_LE(done, rows);
    before = done;
    ++calls;
  });
  EXPECT_GE(calls, 5);
}

TEST(ColumnMerge, ThatIsStoppedLosesNothing) {
  column<u64> real;
  column_model<u64> model;
  const auto insert = [&](u64 v) {
    real.insert(v);
    model.rows.emplace_back(v);
  };
  for (u64 i = 0; i < 300'000; ++i) insert(i % 1000);
  EXPECT_THROW(real.merge([](std::size_t, std::size_t) { throw std::runtime_error("stop"); }),
               std::runtime_error);
  EXPECT_EQ(real.stats().frozen.rows, 300'000U);
  insert(1'050);
  EXPECT_EQ(real.distinct(), 1'001U);
  EXPECT_EQ(real.find(1'050), model.rows_with(1'050));
  EXPECT_EQ(real.find(3), model.rows_with(3));
  real.merge();
  EXPECT_EQ(real.stats().main.rows, 300'001U);
  EXPECT_EQ(real.stats().merges, 2U);
  EXPECT_EQ(real.find(1'050), model.rows_with(1'050));
  EXPECT_EQ(real.find(3), model.rows_with(3));
}

// At every step that it tells of, once; what is erased in between is as gone as ever.
TEST(ColumnMerge, ThatIsStoppedAtAnyStepGoesOn) {
  constexpr u64 values = 1'000;
  column<u64> real;
  column_model<u64> model;
  const auto add = [&](u64 rows) {
    for (u64 i = 0; i < rows; ++i) {
      real.insert(i % values);
      model.rows.emplace_back(i % values);
    }
  };
  add(450'000);
  real.merge();
  add(450'000);
  int stopped = 0;
  for (bool ended = false; !ended; ++stopped) {
    int told = 0;
    try {
      real.merge([&](std::size_t, std::size_t) {
        if (told++ == stopped) throw std::runtime_error("stop");
      });
      ended = true;
    } catch (const std::runtime_error&) {
      add(1);
      const u64 row = static_cast<u64>(stopped) * 40'001;
      ASSERT_TRUE(real.erase(row));
      model.rows[row].reset();
    }
    const u64 some = 10 + static_cast<u64>(stopped);
    ASSERT_EQ(real.find(some), model.rows_with(some));
    ASSERT_EQ(real.count(0, values), model.rows_between(0, values).size());
    ASSERT_EQ(real.size(), model.rows_between(0, values).size());
  }
  EXPECT_GE(stopped, 8);
  EXPECT_EQ(real.stats().frozen.rows, 0U);
  EXPECT_EQ(real.stats().main.rows, model.rows.size());
}

// Behind the marking of what rows have: this main keeps the value, the next one must not.
TEST(ColumnMerge, ForgetsNextTimeWhatWasErasedMeanwhile) {
  constexpr u64 rows = 200'000;
  column<u64> real;
  for (u64 row = 0; row < rows; ++row) real.insert(row % 2);
  real.merge([&](std::size_t, std::size_t) {
    for (u64 row = 1; row < rows; row += 2) real.erase(row);
  });
  EXPECT_EQ(real.stats().main.distinct, 2U);
  EXPECT_EQ(real.distinct(), 1U);
  real.merge();
  EXPECT_EQ(real.stats().merges, 2U);
  EXPECT_EQ(real.stats().main.distinct, 1U);
  EXPECT_EQ(real.count(0, 2), rows / 2);
  EXPECT_EQ(real.count(1, 2), 0U);
}

TEST(ColumnMerge, StaysDueWhenItWasStopped) {
  constexpr u64 rows = 200'000;
  column<u64> real({.merge_rows_min = rows});
  for (u64 row = 0; row < rows; ++row) real.insert(row);
  EXPECT_THROW(real.merge([](std::size_t, std::size_t) { throw std::runtime_error("stop"); }),
               std::runtime_error);
  EXPECT_TRUE(real.merge_is_due());
  EXPECT_EQ(real.stats().frozen.rows, rows);
  EXPECT_EQ(real.stats().delta.rows, 0U);
  real.merge();
  EXPECT_FALSE(real.merge_is_due());
}

TEST(ColumnMerge, IfDueIsForOneThreadAtATime) {
  column<u64> real({.merge_ratio = 0.1, .merge_rows_min = 100'000});
  EXPECT_FALSE(real.merge_if_due());
  for (u64 i = 0; i < 200'000; ++i) real.insert(i);
  bool other_merged = true;
  EXPECT_TRUE(real.merge_if_due([&](std::size_t, std::size_t) {
    EXPECT_TRUE(real.merge_is_due());
    std::jthread([&] { other_merged = real.merge_if_due(); });  // comes back at once
  }));
  EXPECT_FALSE(other_merged);
  EXPECT_EQ(real.stats().merges, 1U);
  EXPECT_FALSE(real.merge_if_due());
  EXPECT_EQ(real.stats().merges, 1U);
  EXPECT_THROW(real.scan(all, [&](u64, std::size_t) { real.merge_if_due(); }), std::logic_error);
}

TEST(ColumnMerge, IsRefusedWithinAScan) {
  column<u64> real;
  real.insert(1);
  EXPECT_THROW(real.scan(all, [&](u64, std::size_t) { real.merge(); }), std::logic_error);
  real.merge();
}

TEST(ColumnMerge, IsDueByShareAndNumber) {
  column<u64> real({.merge_ratio = 0.5, .merge_rows_min = 10});
  for (u64 i = 0; i < 9; ++i) real.insert(i);
  EXPECT_FALSE(real.merge_is_due());
  real.insert(9);
  EXPECT_TRUE(real.merge_is_due());
  real.merge();
  for (u64 i = 0; i < 100; ++i) real.insert(i);
  real.merge();
  for (u64 i = 0; i < 54; ++i) real.insert(i);
  EXPECT_FALSE(real.merge_is_due());
  real.insert(1);
  EXPECT_TRUE(real.merge_is_due());
}

// The delta's values are asked for in batches of 1024: numbers of values around where these end.
template <class T>
void keeps_many_values(u64 values) {
  SCOPED_TRACE(values);
  column<T> real;
  std::vector<T> ascending;
  for (u64 n = 0; n < values; ++n) ascending.push_back(sample<T>::of(n * 7919 % values));
  for (const T& value : ascending) real.insert(value);
  std::ranges::sort(ascending);
  for (int merged = 0; merged < 2; ++merged) {
    std::size_t n = 0;
    bool equal = true;
    EXPECT_EQ(real.scan(all,
                        [&](const auto& value, std::size_t rows) {
                          equal =
                              equal && n < ascending.size() && value == ascending[n] && rows == 1;
                          ++n;
                        }),
              values);
    EXPECT_TRUE(equal);
    EXPECT_EQ(real.count(closed(ascending.front(), ascending.back())), values);
    EXPECT_EQ(real.range(ascending[1], ascending[values - 2]).size(), values - 3);
    EXPECT_EQ(real.scan_n(ascending[values - 3], 10, [](const auto&, std::size_t) {}), 3U);
    real.merge();
    EXPECT_EQ(real.stats().main.distinct, values);
  }
}
TEST(ColumnWithManyValues, HasThemAllOnce) {
  for (const u64 values :
       std::array<u64, 9>{1'022, 1'023, 1'024, 1'025, 2'046, 2'047, 2'048, 2'049, 5'000}) {
    keeps_many_values<u64>(values);
    keeps_many_values<std::string>(values);
  }
}

// The delta guesses a value's ID by half of its hash: these two are equal in it, and in the place
// in the table.
TEST(ColumnOfNumbers, TellsValuesWithLikeHashesApart) {
  constexpr u64 golden = 0x9E3779B97F4A7C15ULL;
  u64 inverse = golden;
  for (int i = 0; i < 6; ++i) inverse *= 2 - golden * inverse;
  const auto value_with = [&](u64 hash) {
    const u64 mixed = hash * inverse;
    return (mixed ^ mixed >> 32) * inverse;
  };
  const u64 one = value_with(0x1234'5678'0000'0042);
  const u64 other = value_with(0x1234'5678'4000'0042);
  ASSERT_EQ(internal::hash_of(one) ^ internal::hash_of(other), u64{1} << 30);
  column<u64> real;
  for (int i = 0; i < 4; ++i) real.insert(one);
  const u64 row = real.insert(other);
  EXPECT_EQ(real.get(row), other);
  EXPECT_EQ(real.count(one), 4U);
  EXPECT_EQ(real.count(other), 1U);
}

TEST(ColumnOfStrings, RefusesLongOnes) {
  column<std::string> real;
  EXPECT_THROW(real.insert(std::string(65'537, 'x')), std::invalid_argument);
  EXPECT_EQ(real.insert("short"), 0U);
}

}  // namespace
}  // namespace elidex::testing
