// Elements stay where they are while others are added, and what nobody has provided has no address.
#include "elidex/internal/column/append_only_array.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "elidex/internal/column/blob_arena.hpp"
#include "elidex/internal/memory/slot_array.hpp"

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

struct alignas(128) wide {
  std::size_t value = 0;
};

TEST(SlotArray, EachSlotHasAnElementOfItsOwn) {
  internal::slot_array<wide, 4> slots;
  EXPECT_NE(slots.if_provided(3), nullptr);
  EXPECT_EQ(slots.if_provided(4), nullptr);
  std::set<const wide*> seen;
  for (const std::size_t slot : {700U, 3U, 4U, 11U, 12U, 27U, 28U}) {
    wide& mine = slots.provide(slot);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&mine) % alignof(wide), 0U);
    mine.value = slot;
  }
  for (std::size_t slot = 0; slot <= 700; ++slot) {
    ASSERT_NE(slots.if_provided(slot), nullptr) << slot;
    EXPECT_TRUE(seen.insert(&slots[slot]).second) << slot;
  }
  for (const std::size_t slot : {700U, 3U, 4U, 11U, 12U, 27U, 28U})
    EXPECT_EQ(slots[slot].value, slot);
  EXPECT_EQ(slots[5].value, 0U);
  EXPECT_EQ(slots.if_provided(~std::size_t{0}), nullptr);
  EXPECT_THROW(slots.provide(~std::size_t{0}), std::bad_alloc);
}

TEST(SlotArray, ThreadsProvideAtTheSameTime) {
  internal::slot_array<wide, 4> slots;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&slots, t] {
      for (std::size_t slot = t; slot < 2000; slot += 4) slots.provide(slot).value = slot + 1;
    });
  }
  for (std::thread& one : threads) one.join();
  for (std::size_t slot = 0; slot < 2000; ++slot) ASSERT_EQ(slots[slot].value, slot + 1);
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
