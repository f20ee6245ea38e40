// Batches of rows beside a vector of values: ranges of all kinds, repeated and new values, merges
// between batches, and errors in the middle of one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <ranges>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "elidex/column.hpp"
#include "support/column_model.hpp"
#include "support/random_seed.hpp"
#include "support/samples.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

template <class T>
class ColumnBatches : public ::testing::Test {
 protected:
  // Inserts sample values with these numbers, and expects consecutive rows.
  void insert(const std::vector<u64>& numbers) {
    std::vector<T> values;
    for (const u64 n : numbers) values.push_back(sample<T>::of(n));
    ASSERT_EQ(real_.multi_insert(values), model_.rows.size());
    model_.rows.insert(model_.rows.end(), values.begin(), values.end());
  }
  std::string difference() {
    return testing::difference(real_, model_, random_,
                               [](random_numbers& r) { return sample<T>::of(r.below(400)); });
  }

  column<T> real_;
  column_model<T> model_;
  random_numbers random_{seed_or(1)};
};
using value_types = ::testing::Types<u64, std::int64_t, std::int32_t, std::uint16_t, std::int8_t,
                                     float, double, std::string>;
TYPED_TEST_SUITE(ColumnBatches, value_types);

TYPED_TEST(ColumnBatches, WithoutValuesReturnsTheNextRow) {
  this->insert({});
  EXPECT_EQ(this->real_.size(), 0U);
  this->insert({1, 2, 1});
  this->insert({});
  EXPECT_EQ(this->real_.size(), 3U);
  this->real_.merge();
  this->insert({});
  EXPECT_EQ(this->difference(), "");
}

TYPED_TEST(ColumnBatches, OfOneValueAreInsertions) {
  for (u64 n = 0; n < 100; ++n) this->insert({n % 7});
  EXPECT_EQ(this->difference(), "");
}

// Groups of values that end before, at and behind 64, with values that come more than once in one.
TYPED_TEST(ColumnBatches, OfManySizesBesideInsertionsAndMerges) {
  for (const u64 size : std::array<u64, 9>{2, 63, 64, 65, 127, 128, 129, 1'000, 3'000}) {
    SCOPED_TRACE(size);
    std::vector<u64> numbers;
    for (u64 i = 0; i < size; ++i) numbers.push_back(this->random_.below(size < 500 ? 20 : 400));
    this->insert(numbers);
    const TypeParam one = sample<TypeParam>::of(size % 400);
    ASSERT_EQ(this->real_.insert(one), this->model_.rows.size());
    this->model_.rows.emplace_back(one);
    const u64 row = this->random_.below(this->model_.rows.size());
    EXPECT_EQ(this->real_.erase(row), this->model_.rows[row].has_value());
    this->model_.rows[row].reset();
    if (size % 2 == 0) this->real_.merge();
    ASSERT_EQ(this->difference(), "");
  }
}

// So many different values that a group looks for them in the tree together. Half of each batch is
// new, and some of the new values come twice.
template <class T>
void keeps_batches_of_many_values(bool ascending) {
  constexpr u64 values = 120'000;
  column<T> real;
  std::vector<T> expected;
  random_numbers random(seed_or(1));
  u64 next = 0;
  while (next < values) {
    std::vector<T> batch;
    for (u64 i = 0; i < 500; ++i) {
      const u64 n = i % 2 == 0 ? next++ : random.below(next);
      batch.push_back(sample<T>::of(ascending ? n : n * 7'919 % values));
    }
    ASSERT_EQ(real.multi_insert(batch), expected.size());
    expected.insert(expected.end(), batch.begin(), batch.end());
  }
  for (int merged = 0; merged < 2; ++merged) {
    EXPECT_EQ(real.size(), expected.size());
    EXPECT_EQ(real.distinct(), values);
    std::size_t wrong = 0;
    for (u64 row = 0; row < expected.size(); ++row)
      wrong += real.get(row) == expected[row] ? 0U : 1U;
    EXPECT_EQ(wrong, 0U);
    real.merge();
  }
}
TEST(ColumnBatchesOfManyValues, AreAllThere) {
  keeps_batches_of_many_values<u64>(false);
  keeps_batches_of_many_values<u64>(true);
  keeps_batches_of_many_values<std::string>(false);
}

TEST(ColumnBatchesOfStrings, ComeFromAnyRange) {
  column<std::string> real;
  std::vector<std::string> expected;
  const auto add = [&](auto&& range, const std::vector<std::string>& values) {
    EXPECT_EQ(real.multi_insert(range), expected.size());
    expected.insert(expected.end(), values.begin(), values.end());
  };
  const std::vector<std::string> some{"a", "a string that has memory of its own", "", "a"};
  add(some, some);
  add(std::list<std::string>(some.begin(), some.end()), some);
  add(std::vector<std::string_view>(some.begin(), some.end()), some);
  add(std::vector<const char*>{"b", "c"}, {"b", "c"});
  const std::array<const char*, 2> pointers{"b", "d"};
  add(std::span(pointers), {"b", "d"});
  // Strings that the range makes, or overwrites.
  const auto numbers = std::views::iota(0, 200);
  const auto text = [](int n) { return "the value with the number " + std::to_string(n % 150); };
  std::vector<std::string> texts;
  for (const int n : numbers) texts.push_back(text(n));
  add(numbers | std::views::transform(text), texts);
  std::istringstream words("some words that come from a stream which overwrites each of them");
  EXPECT_EQ(real.multi_insert(std::ranges::istream_view<std::string>(words)), expected.size());
  for (const char* const word : {"some", "words", "that", "come", "from", "a", "stream", "which",
                                 "overwrites", "each", "of", "them"})
    expected.emplace_back(word);
  EXPECT_EQ(real.multi_insert({"x", "y"}), expected.size());
  expected.insert(expected.end(), {"x", "y"});
  ASSERT_EQ(real.size(), expected.size());
  for (u64 row = 0; row < expected.size(); ++row) EXPECT_EQ(real.get(row), expected[row]);
}

TEST(ColumnBatchesOfNumbers, ComeFromAnyRange) {
  column<std::int64_t> real;
  EXPECT_EQ(real.multi_insert({-1, 2, -1}), 0U);
  EXPECT_EQ(real.multi_insert(std::list<int>{3, 4}), 3U);
  EXPECT_EQ(real.multi_insert(std::views::iota(10, 20)), 5U);
  std::istringstream numbers("7 8");
  EXPECT_EQ(real.multi_insert(std::ranges::istream_view<long>(numbers)), 15U);
  EXPECT_EQ(real.size(), 17U);
  EXPECT_EQ(real.get(2), -1);
  EXPECT_EQ(real.get(4), 4);
  EXPECT_EQ(real.get(14), 19);
  EXPECT_EQ(real.get(16), 8);
}

TEST(ColumnBatchesThatFail, WithALongStringChangeNothing) {
  column<std::string> real;
  real.insert("a");
  EXPECT_THROW(real.multi_insert({"b", std::string(65'537, 'x'), "c"}), std::invalid_argument);
  EXPECT_EQ(real.size(), 1U);
  EXPECT_EQ(real.stats().delta.distinct, 1U);
  EXPECT_EQ(real.multi_insert({"b", std::string(65'536, 'x')}), 1U);
}

TEST(ColumnBatchesThatFail, InTheirRangeChangeNothing) {
  column<u64> real;
  const auto throws_at_70 = [](u64 n) { return n < 70 ? n : throw std::runtime_error("stop"); };
  EXPECT_THROW(
      real.multi_insert(std::views::iota(u64{0}, u64{100}) | std::views::transform(throws_at_70)),
      std::runtime_error);
  EXPECT_EQ(real.size(), 0U);
  EXPECT_EQ(real.stats().delta.distinct, 0U);
}

// The rows stay as they were. The values that have taken IDs are gone after a merge, even if the
// delta has no rows.
TEST(ColumnBatchesThatFail, WithoutIdsInsertNoRow) {
  column<u64, std::uint8_t> real;
  for (const u64 rows : {u64{0}, u64{3}}) {
    EXPECT_THROW(real.multi_insert(std::views::iota(u64{0}, u64{300})), std::length_error);
    EXPECT_EQ(real.size(), rows);
    EXPECT_EQ(real.stats().delta.rows, 0U);
    EXPECT_EQ(real.distinct(), rows == 0 ? 0U : 2U);
    EXPECT_THROW(real.insert(1'000), std::length_error);
    real.merge();
    EXPECT_EQ(real.stats().delta.distinct, 0U);
    EXPECT_EQ(real.multi_insert({1'000, 1'001, 1'000}), rows);
    EXPECT_EQ(real.get(rows + 1), 1'001U);
    real.merge();
    EXPECT_EQ(real.stats().main.distinct, 2U);
    EXPECT_EQ(real.size(), rows + 3);
  }
}
TEST(ColumnBatchesThatFail, LeaveEarlierRowsOfTheDelta) {
  column<u64, std::uint8_t> real;
  real.multi_insert({5, 6, 5});
  EXPECT_THROW(real.multi_insert(std::views::iota(u64{0}, u64{300})), std::length_error);
  EXPECT_EQ(real.find(5), (std::vector<u64>{0, 2}));
  EXPECT_EQ(real.size(), 3U);
  EXPECT_EQ(real.multi_insert({6, 5}), 3U);  // no new values
  real.merge();
  EXPECT_EQ(real.stats().main.distinct, 2U);
  EXPECT_EQ(real.find(5), (std::vector<u64>{0, 2, 4}));
}

}  // namespace
}  // namespace elidex::testing
