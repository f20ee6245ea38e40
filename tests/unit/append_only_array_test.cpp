// Elements stay where they are while others are added, and what nobody has provided has no address.
#include "elidex/internal/column/append_only_array.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "elidex/internal/column/blob_arena.hpp"

namespace elidex::testing {
namespace {

TEST(AppendOnlyArray, ElementsStayWhereTheyAre) {
  internal::append_only_array<std::uint64_t> array;
  std::vector<std::uint64_t*> addresses;
  for (std::size_t i = 0; i < 20'000; ++i) {
    array.provide(i + 1);
    ASSERT_GE(array.provided(), i + 1);
    array[i] = i * 3;
    addresses.push_back(array.at(i));
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    ASSERT_EQ(array.at(i), addresses[i]);
    ASSERT_EQ(*addresses[i], i * 3);
  }
  EXPECT_LE(array.memory_bytes(), 20'000 * sizeof(std::uint64_t) * 5 / 4);
}

TEST(AppendOnlyArray, NothingLiesBehindItsMemory) {
  internal::append_only_array<std::uint32_t> array;
  EXPECT_EQ(array.at(0), nullptr);
  array.provide(100);
  for (std::size_t i = array.provided(); i != 0 && i < ~std::size_t{0} / 3; i = i * 2 + 1)
    EXPECT_EQ(array.at(i), nullptr);
  EXPECT_EQ(array.at(~std::size_t{0}), nullptr);
}

TEST(BlobArena, TakesBackTheLastOneOnly) {
  internal::blob_arena arena;
  internal::blob* const first = arena.make("first");
  internal::blob* const second = arena.make("second");
  arena.destroy(first);  // stays: another one lies behind it
  arena.destroy(second);
  EXPECT_EQ(arena.make("third"), second);
  EXPECT_EQ(first->view(), "first");
  internal::blob* const large = arena.make(std::string(10'000, 'x'));  // a chunk of its own
  arena.destroy(first);
  EXPECT_EQ(large->view(), std::string(10'000, 'x'));
}

}  // namespace
}  // namespace elidex::testing
