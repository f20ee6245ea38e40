// Packed IDs are those that were packed, for every number of bits and around the ends of blocks;
// and the code for each kind of CPU does the same as a loop over a vector.
#include "elidex/internal/column/packed_ids.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using id_vector = std::vector<std::uint32_t>;

id_vector random_ids(std::size_t rows, unsigned bits, random_numbers& random) {
  id_vector ids(rows);
  for (std::uint32_t& id : ids)
    id = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << bits));
  return ids;
}

class PackedIds : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Bits, PackedIds, ::testing::Range(0U, packed_ids::bits_max + 1));

TEST_P(PackedIds, AreThoseThatWerePacked) {
  random_numbers random(seed_or(GetParam()));
  for (const std::size_t rows : {0U, 1U, 15U, 16U, 17U, 511U, 512U, 513U, 1024U, 3000U}) {
    const id_vector ids = random_ids(rows, GetParam(), random);
    const packed_ids packed = packed_ids::pack(ids, GetParam());
    ASSERT_EQ(packed.size(), rows);
    for (std::size_t row = 0; row < rows; ++row)
      ASSERT_EQ(packed.get(row), ids[row]) << row << " of " << rows;
    for (int i = 0; i < 10; ++i) {
      const std::size_t from = random.below(rows + 1);
      const std::size_t count = random.below(rows - from + 1);
      constexpr std::uint32_t untouched = 0xABCD'EF01;
      id_vector out(count + 1, untouched);
      packed.unpack(from, count, out.data());
      ASSERT_TRUE(
          std::equal(out.begin(), out.end() - 1, ids.begin() + static_cast<std::ptrdiff_t>(from)));
      ASSERT_EQ(out.back(), untouched);
    }
  }
}

TEST_P(PackedIds, AreFoundByTheirRange) {
  random_numbers random(seed_or(GetParam()));
  for (const std::size_t rows : {0U, 1U, 63U, 64U, 65U, 449U, 511U, 512U, 577U, 3000U}) {
    const id_vector ids = random_ids(rows, GetParam(), random);
    const packed_ids packed = packed_ids::pack(ids, GetParam());
    for (int i = 0; i < 20; ++i) {
      // At the ends, too: all, none, zero alone, the greatest alone.
      const std::uint64_t bound = std::uint64_t{1} << GetParam();
      auto first = static_cast<std::uint32_t>(i % 4 == 0 ? 0 : random.below(bound));
      auto last = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(i % 3 == 0 ? bound : random.below(bound + 1), ~0U));
      const auto is_in = [&](std::uint32_t id) { return first <= id && id < last; };
      std::vector<std::size_t> expected;
      for (std::size_t row = 0; row < rows; ++row) {
        if (is_in(ids[row])) expected.push_back(row);
      }
      EXPECT_EQ(packed.count(first, last), expected.size());
      std::vector<std::size_t> found;
      packed.for_each(first, last, [&](std::size_t row) { found.push_back(row); });
      ASSERT_EQ(found, expected) << first << " to " << last;
      std::vector<std::size_t> of_words;
      packed.for_each_word(first, last, [&](std::size_t row, std::uint64_t these) {
        ASSERT_EQ(row % 64, 0U);
        ASSERT_NE(these, 0U);
        for (std::size_t bit = 0; bit < 64; ++bit) {
          if ((these >> bit & 1) != 0) of_words.push_back(row + bit);
        }
      });
      ASSERT_EQ(of_words, expected) << first << " to " << last;
    }
  }
}

TEST_P(PackedIds, AreTheSameHoweverTheyCome) {
  random_numbers random(seed_or(GetParam()));
  for (const std::size_t rows : {0U, 1U, 15U, 511U, 512U, 513U, 1025U, 4099U}) {
    const id_vector ids = random_ids(rows, GetParam(), random);
    for (const std::size_t most : {1U, 7U, 600U, 2000U}) {
      packed_ids::writer made(rows, GetParam());
      for (std::size_t at = 0; at < rows;) {
        const std::size_t count = std::min(rows - at, random.below(most + 1));
        made.append(std::span(ids).subspan(at, count));
        at += count;
      }
      made.append({});
      const packed_ids packed = std::move(made).finish();
      ASSERT_EQ(packed.size(), rows);
      ASSERT_EQ(packed.bits(), GetParam());
      id_vector out(rows);
      packed.unpack(0, rows, out.data());
      ASSERT_EQ(out, ids) << most << " at most";
      for (std::size_t row = 0; row < rows; row += 17) ASSERT_EQ(packed.get(row), ids[row]);
    }
  }
}

TEST_P(PackedIds, AreRefusedIfOneIsTooGreatWhereverItIs) {
  if (GetParam() == packed_ids::bits_max) return;  // none is
  for (const std::size_t at : {0U, 1U, 300U, 511U, 512U, 530U, 699U}) {
    id_vector ids(700, 0);
    ids[at] = std::uint32_t{1} << GetParam();
    EXPECT_THROW(packed_ids::pack(ids, GetParam()), std::invalid_argument) << at;
    ids[at] = GetParam() == 0 ? 0 : ids[at] - 1;
    EXPECT_EQ(packed_ids::pack(ids, GetParam()).get(at), ids[at]);
  }
}

TEST(PackedIdsOf, AWriterTakesAsManyAsThereAreRows) {
  for (const std::size_t rows : {0U, 1U, 512U, 513U}) {
    packed_ids::writer made(rows, 5);
    made.append(id_vector(rows, 21));
    EXPECT_THROW(made.append(id_vector(1, 0)), std::logic_error) << rows;
    const packed_ids packed = std::move(made).finish();  // what was refused changed nothing
    EXPECT_EQ(packed.count(21, 22), rows);
    packed_ids::writer too_few(rows + 1, 5);
    too_few.append(id_vector(rows, 21));
    EXPECT_THROW(std::move(too_few).finish(), std::logic_error) << rows;
  }
  EXPECT_THROW(packed_ids::writer(1, 33), std::invalid_argument);
}

TEST(PackedIdsOf, SoManyBitsTakeThatMuchMemory) {
  const packed_ids packed = packed_ids::pack(id_vector(10'240, 3), 17);
  EXPECT_EQ(packed.memory_bytes() - sizeof(packed), 10'240 * 17 / 8);
  EXPECT_EQ(packed_ids::pack(id_vector(10'000, 0), 0).memory_bytes(), sizeof(packed_ids));
  EXPECT_EQ(packed_ids::bits_for(0), 0U);
  EXPECT_EQ(packed_ids::bits_for(1), 1U);
  EXPECT_EQ(packed_ids::bits_for(255), 8U);
  EXPECT_EQ(packed_ids::bits_for(~0U), 32U);
}

TEST(PackedIdsOf, TooFewBitsAreRefused) {
  EXPECT_THROW(packed_ids::pack(id_vector{1, 8}, 3), std::invalid_argument);
  EXPECT_THROW(packed_ids::pack(id_vector{1}, 0), std::invalid_argument);
  EXPECT_THROW(packed_ids::pack(id_vector{1}, 33), std::invalid_argument);
}

}  // namespace
}  // namespace elidex::testing
