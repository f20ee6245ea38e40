// The small parts of a column: images of values, remembered IDs, deleted rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "elidex/internal/column/column_delta.hpp"
#include "elidex/internal/column/deleted_rows.hpp"
#include "elidex/internal/column/keyed_delta_index.hpp"
#include "elidex/internal/column/remembered_ids.hpp"
#include "elidex/internal/column/value_image.hpp"
#include "support/random_seed.hpp"

namespace elidex::detail {

using namespace internal;
using testing::random_numbers;
using testing::seed_or;

namespace {

using u64 = std::uint64_t;

template <class T>
void images_order_as(const std::vector<T>& ascending) {
  using images = value_image<T>;
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    EXPECT_EQ(images::value_of(images::of(ascending[i])), ascending[i]);
    if (i > 0) {
      EXPECT_LT(images::of(ascending[i - 1]), images::of(ascending[i]));
    }
  }
}

TEST(ValueImage, OrdersAsTheValuesDo) {
  images_order_as<std::uint8_t>({0, 1, 127, 128, 255});
  images_order_as<std::int8_t>({-128, -1, 0, 1, 127});
  images_order_as<std::int16_t>({-32768, -1, 0, 1, 32767});
  images_order_as<std::int32_t>({std::numeric_limits<std::int32_t>::min(), -1, 0, 1,
                                 std::numeric_limits<std::int32_t>::max()});
  images_order_as<std::int64_t>({std::numeric_limits<std::int64_t>::min(), -1, 0, 1,
                                 std::numeric_limits<std::int64_t>::max()});
  images_order_as<u64>({0, 1, ~u64{0}});
  images_order_as<float>(
      {-std::numeric_limits<float>::infinity(), -1.5F, -std::numeric_limits<float>::denorm_min(), 0,
       std::numeric_limits<float>::denorm_min(), 1.5F, std::numeric_limits<float>::infinity()});
  images_order_as<double>({-std::numeric_limits<double>::infinity(), -1e300, -1e-300, 0, 1e-300,
                           1e300, std::numeric_limits<double>::infinity()});
}

TEST(ValueImage, OfNaNIsTheGreatest) {
  using images = value_image<double>;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_GT(images::of(nan), images::of(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(images::of(nan), images::of(-nan));
  EXPECT_TRUE(std::isnan(images::value_of(images::of(-nan))));
  EXPECT_EQ(images::of(-0.0), images::of(0.0));
}

TEST(RememberedIds, GuessesWhatItWasTold) {
  remembered_ids<std::uint32_t> remembered;
  const auto few = [] { return std::size_t{10}; };
  EXPECT_EQ(remembered.guess(7), std::nullopt);
  remembered.remember(7, 3, few);  // gets its memory
  remembered.remember(7, 3, few);
  EXPECT_EQ(remembered.guess(7), 3U);
  EXPECT_EQ(remembered.guess(7 + (u64{1} << 32)), std::nullopt);  // another hash for the same place
  remembered.remember(0, 0, few);
  EXPECT_EQ(remembered.guess(0), 0U);
}

TEST(RememberedIds, KeepsTheLastTwoOfAPairOfPlaces) {
  remembered_ids<std::uint32_t> remembered;
  const auto few = [] { return std::size_t{10}; };
  const auto hash = [](u64 n) { return n << 32 | 6; };
  remembered.remember(hash(1), 1, few);  // gets its memory
  for (u64 n = 1; n <= 3; ++n) remembered.remember(hash(n), static_cast<std::uint32_t>(n), few);
  EXPECT_EQ(remembered.guess(hash(1)), std::nullopt);
  EXPECT_EQ(remembered.guess(hash(2)), 2U);
  EXPECT_EQ(remembered.guess(hash(3)), 3U);
  EXPECT_EQ(remembered.guess(7), std::nullopt);
}

// In no order, as a column's values come.
TEST(RememberedIds, GuessesMostOfAThousandValues) {
  constexpr std::size_t values = 1'000;
  remembered_ids<std::uint32_t> remembered;
  random_numbers random(seed_or(1));
  std::size_t right = 0;
  constexpr std::size_t warm = 20'000;
  constexpr std::size_t counted = 20'000;
  for (std::size_t i = 0; i < warm + counted; ++i) {
    const u64 value = random.below(values);
    const u64 hash = hash_of(value);
    const auto guess = remembered.guess(hash);
    if (guess) {
      EXPECT_EQ(*guess, value);
    } else {
      remembered.remember(hash, static_cast<std::uint32_t>(value), [] { return values; });
    }
    if (i >= warm) right += guess ? 1U : 0U;
  }
  EXPECT_GT(right, counted * 17 / 20) << right;
}

TEST(RememberedIds, GrowsWithWhatIsThereAndGivesUpWhenItIsTooMuch) {
  for (const std::size_t values :
       {std::size_t{1'000}, std::size_t{100'000}, std::size_t{2'000'000}}) {
    remembered_ids<std::uint32_t> remembered;
    std::size_t right = 0;
    for (int round = 0; round < 20; ++round) {
      right = 0;
      for (std::size_t v = 0; v < values; ++v) {
        const u64 hash = (v + 1) * 0x9E3779B97F4A7C15ULL ^ (v + 1) * 0x9E3779B97F4A7C15ULL >> 32;
        const auto guess = remembered.guess(hash);
        if (guess) {
          EXPECT_EQ(*guess, v);
          ++right;
        }
        remembered.remember(hash, static_cast<std::uint32_t>(v), [&] { return values; });
      }
    }
    if (values < 1'000'000) {
      // in turn: of the values of one place none is there when it comes again
      EXPECT_GT(right, values / 4);
    } else {
      EXPECT_EQ(right, 0U);
    }
    EXPECT_LE(remembered.memory_bytes(), std::max<std::size_t>(4096, 8 * 4 * values));
    EXPECT_LE(remembered.memory_bytes(), std::size_t{3} << 20);
  }
}

// A delta is some 50 KB already without rows: its index must not be counted twice.
TEST(ColumnDelta, CountsItselfOnce) {
  constexpr std::size_t first_nodes_max = 8192;
  const column_delta<u64, std::uint32_t> numbers(synchronization::automatic);
  EXPECT_GE(numbers.memory_bytes(), sizeof(numbers));
  EXPECT_LE(numbers.memory_bytes(), sizeof(numbers) + first_nodes_max);
  const column_delta<std::string, std::uint32_t> strings(synchronization::automatic);
  EXPECT_GE(strings.memory_bytes(), sizeof(strings));
  EXPECT_LE(strings.memory_bytes(), sizeof(strings) + first_nodes_max);
}

TEST(DeletedRows, AreKeptByRow) {
  deleted_rows deleted;
  EXPECT_FALSE(deleted.any());
  EXPECT_FALSE(deleted.contains(1'000'000));
  EXPECT_EQ(deleted.word(3), 0U);
  EXPECT_EQ(deleted.memory_bytes(), 0U);
  EXPECT_TRUE(deleted.add(130));
  EXPECT_FALSE(deleted.add(130));
  EXPECT_TRUE(deleted.add(191));
  EXPECT_TRUE(deleted.any());
  EXPECT_EQ(deleted.count(), 2U);
  EXPECT_EQ(deleted.word(2), u64{1} << 2 | u64{1} << 63);
  EXPECT_TRUE(deleted.contains(130));
  EXPECT_FALSE(deleted.contains(129));
}

}  // namespace
}  // namespace elidex::detail
