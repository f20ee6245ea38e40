// memory_options, and what small maps take.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/hash_map.hpp"
#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/made_on_demand.hpp"
#include "elidex/internal/memory/memory_source.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/ordered_map.hpp"

namespace elidex {
namespace {

// Counts what it hands out. Safe for threads.
class counting_resource : public std::pmr::memory_resource {
 public:
  std::size_t bytes() const { return bytes_.load(); }
  std::size_t most() const { return most_.load(); }
  void refuse() { refuses_ = true; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (refuses_) throw std::bad_alloc();
    void* const memory = ::operator new(bytes, std::align_val_t{alignment});
    const std::size_t now = bytes_ += bytes;
    std::size_t most = most_.load();
    while (most < now && !most_.compare_exchange_weak(most, now)) {
    }
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    bytes_ -= bytes;
    ::operator delete(memory, std::align_val_t{alignment});
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::size_t> most_{0};
  std::atomic<bool> refuses_{false};
};

template <class Map>
struct sample;
template <template <class, class, class...> class Map, class... Hash>
struct sample<Map<std::uint64_t, std::uint64_t, Hash...>> {
  static std::uint64_t key(std::uint64_t i) { return i * 7919; }
  static std::uint64_t value(std::uint64_t i) { return i; }
};
template <template <class, class, class...> class Map, class... Hash>
struct sample<Map<std::string, std::string, Hash...>> {
  static std::string key(std::uint64_t i) { return "key number " + std::to_string(i * 7919); }
  static std::string value(std::uint64_t i) { return std::string(i % 200, 'v'); }
};
template <template <class, class, class...> class Map, class... Hash>
struct sample<Map<std::pair<int, int>, std::uint64_t, Hash...>> {
  static std::pair<int, int> key(std::uint64_t i) { return {static_cast<int>(i * 7919), 1}; }
  static std::uint64_t value(std::uint64_t i) { return i; }
};

template <class Map>
void upsert(Map& map, std::uint64_t i) {
  map.upsert(sample<Map>::key(i), sample<Map>::value(i));
}
template <class Map>
bool has(const Map& map, std::uint64_t i) {
  return map.get(sample<Map>::key(i)) == sample<Map>::value(i);
}

template <class Map>
class MapMemory : public testing::Test {};
using maps =
    testing::Types<ordered_map<std::uint64_t, std::uint64_t>, ordered_map<std::string, std::string>,
                   ordered_map<std::pair<int, int>, std::uint64_t>,
                   hash_map<std::uint64_t, std::uint64_t>, hash_map<std::string, std::string>>;
TYPED_TEST_SUITE(MapMemory, maps);

// The texts of ten string keys and values take 640 bytes.
TYPED_TEST(MapMemory, OfTenKeysIsSmall) {
  counting_resource resource;
  TypeParam map(memory_options{.resource = &resource});
  EXPECT_LE(sizeof(map), 64u);
  EXPECT_EQ(resource.bytes(), 0u);
  for (std::uint64_t i = 0; i < 10; ++i) upsert(map, i);
  const bool has_texts = std::is_same_v<typename TypeParam::key_type, std::string>;
  EXPECT_LE(map.memory_bytes(), has_texts ? 2300u : 2000u);
  EXPECT_GT(resource.bytes(), 0u);
}

TYPED_TEST(MapMemory, ComesFromTheResourceAndGoesBack) {
  counting_resource resource;
  {
    TypeParam map(memory_options{.resource = &resource});
    for (std::uint64_t i = 0; i < 20'000; ++i) upsert(map, i);
    EXPECT_GT(resource.bytes(), 20'000u * 16);
    EXPECT_LT(map.memory_bytes(), 2 * resource.bytes());
    TypeParam other(std::move(map));
    for (std::uint64_t i = 0; i < 20'000; ++i) ASSERT_TRUE(has(other, i)) << i;
    map.clear();
    const std::size_t before = resource.bytes();
    upsert(map, 1);  // a map that was moved from keeps its options
    EXPECT_GT(resource.bytes(), before);
    for (std::uint64_t i = 0; i < 20'000; i += 2) other.erase(sample<TypeParam>::key(i));
  }
  EXPECT_EQ(resource.bytes(), 0u);
}

TYPED_TEST(MapMemory, BeyondTheLimitIsBadAlloc) {
  constexpr std::size_t limit = 200'000;
  counting_resource resource;
  TypeParam map(memory_options{.resource = &resource, .bytes_max = limit});
  std::uint64_t added = 0;
  try {
    for (; added < 1'000'000; ++added) upsert(map, added);
  } catch (const std::bad_alloc&) {
  }
  ASSERT_LT(added, 20'000u);
  EXPECT_GT(added, 1'000u);
  EXPECT_LE(resource.most(), limit);
  EXPECT_EQ(map.size(), added);
  for (std::uint64_t i = 0; i < added; ++i) ASSERT_TRUE(has(map, i)) << i;
  EXPECT_FALSE(map.contains(sample<TypeParam>::key(added)));

  // There is room again after erasures.
  for (std::uint64_t i = 0; i < added; i += 2) map.erase(sample<TypeParam>::key(i));
  map.reclaim();
  map.reclaim();
  for (std::uint64_t i = 0; i < added / 4; i += 2) upsert(map, i);
  for (std::uint64_t i = 0; i < added / 4; ++i) ASSERT_TRUE(has(map, i)) << i;
}

TYPED_TEST(MapMemory, BeyondTheLimitOfSeveralThreads) {
  constexpr std::size_t limit = 300'000;
  counting_resource resource;
  TypeParam map(memory_options{.resource = &resource, .bytes_max = limit});
  std::vector<std::vector<std::uint64_t>> added(4);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = t; i < 40'000; i += 4) {
          try {
            upsert(map, i);
            added[t].push_back(i);
          } catch (const std::bad_alloc&) {
          }
        }
      });
    }
  }
  std::size_t all = 0;
  for (const auto& mine : added) {
    all += mine.size();
    for (const std::uint64_t i : mine) ASSERT_TRUE(has(map, i)) << i;
  }
  EXPECT_EQ(map.size(), all);
  EXPECT_LT(all, 40'000u);
  EXPECT_LE(resource.most(), limit);
}

TYPED_TEST(MapMemory, IsTheSameWithSmallPages) {
  TypeParam map(memory_options{.huge_pages = false});
  for (std::uint64_t i = 0; i < 200'000; ++i) upsert(map, i);
  for (std::uint64_t i = 0; i < 200'000; ++i) ASSERT_TRUE(has(map, i)) << i;
}

TYPED_TEST(MapMemory, AResourceThatRefusesLeavesTheMapAsItWas) {
  counting_resource resource;
  TypeParam map(memory_options{.resource = &resource});
  for (std::uint64_t i = 0; i < 100; ++i) upsert(map, i);
  resource.refuse();
  std::uint64_t added = 100;
  try {
    for (; added < 10'000; ++added) upsert(map, added);
  } catch (const std::bad_alloc&) {
  }
  EXPECT_EQ(map.size(), added);
  for (std::uint64_t i = 0; i < added; ++i) ASSERT_TRUE(has(map, i)) << i;
}

TEST(HashMapMemory, ReserveBeyondTheLimitIsBadAlloc) {
  hash_map<std::uint64_t, std::uint64_t> map(memory_options{.bytes_max = 1'000'000});
  EXPECT_THROW(map.reserve(100'000), std::bad_alloc);
  map.reserve(10'000);
  EXPECT_LE(map.memory_bytes(), 1'000'000u);
  map.upsert(1, 2);
  EXPECT_EQ(map.get(1), 2u);
}

template <class Map>
class OrderedMapReserve : public testing::Test {};
using reserving_maps =
    testing::Types<ordered_map<std::uint64_t, std::uint64_t>, ordered_map<std::string, std::string>,
                   ordered_map<std::pair<int, int>, int>>;
TYPED_TEST_SUITE(OrderedMapReserve, reserving_maps);

template <>
struct sample<ordered_map<std::pair<int, int>, int>> {
  static std::pair<int, int> key(std::uint64_t i) {
    return {static_cast<int>(i * 7919 % 100'003), static_cast<int>(i)};
  }
  static int value(std::uint64_t i) { return static_cast<int>(i); }
};

TYPED_TEST(OrderedMapReserve, InsertionsTakeNodesThatAreThere) {
  constexpr std::uint64_t keys = 30'000;
  counting_resource resource;
  TypeParam map(memory_options{.resource = &resource});
  map.reserve(keys);
  const std::size_t reserved = resource.bytes();
  EXPECT_GT(reserved, keys * 8);
  map.reserve(keys);
  map.reserve(0);
  EXPECT_EQ(resource.bytes(), reserved);

  // The bytes of strings come from the resource too. One more chunk of nodes is a sixteenth.
  const std::uint64_t bytes_of_strings =
      std::is_same_v<typename TypeParam::record, std::pair<std::string, std::string>> ? 200 : 0;
  for (std::uint64_t i = 0; i < keys; ++i) upsert(map, i);
  EXPECT_LE(resource.bytes(), reserved + reserved / 8 + keys * bytes_of_strings);
  for (std::uint64_t i = 0; i < keys; ++i) ASSERT_TRUE(has(map, i)) << i;
}

TYPED_TEST(OrderedMapReserve, BeyondTheLimitKeepsTheKeys) {
  TypeParam map(memory_options{.bytes_max = 1'000'000});
  for (std::uint64_t i = 0; i < 100; ++i) upsert(map, i);
  EXPECT_THROW(map.reserve(1'000'000), std::bad_alloc);
  EXPECT_THROW(map.reserve(static_cast<std::size_t>(-1)), std::bad_alloc);
  for (std::uint64_t i = 0; i < 200; ++i) upsert(map, i);
  EXPECT_EQ(map.size(), 200u);
}

TYPED_TEST(OrderedMapReserve, WhileOthersInsert) {
  constexpr std::uint64_t keys_each = 3'000;
  TypeParam map;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < keys_each; ++i) upsert(map, 2 * i + t);
      });
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 1; i < 8; ++i) map.reserve(1'000 * (2 * i + t));
      });
    }
  }
  EXPECT_EQ(map.size(), 2 * keys_each);
  for (std::uint64_t i = 0; i < 2 * keys_each; ++i) ASSERT_TRUE(has(map, i)) << i;
}

// --- the parts of it ---

// Threads that meet at its first use make one object in all. A maker that throws leaves none, and
// the next thread tries again.
TEST(MadeOnDemand, NoSecondObjectIsEverMade) {
  static std::atomic<int> made;
  static std::atomic<int> calls;
  made = 0;
  struct object {
    object() { EXPECT_EQ(made++, 0); }
  };
  struct maker {
    std::unique_ptr<object> operator()() const {
      const bool fails = calls++ % 3 == 0;
      std::this_thread::yield();
      if (fails) throw std::bad_alloc();
      return std::make_unique<object>();
    }
  };
  constexpr int threads = 4;
  for (int round = 0; round < 200; ++round) {
    made = 0;
    calls = 0;
    internal::made_on_demand<object, maker> one;
    EXPECT_EQ(one.if_made(), nullptr);
    std::atomic<int> refused{0};
    {
      std::barrier start(threads);
      std::vector<std::jthread> all;
      for (int t = 0; t < threads; ++t) {
        all.emplace_back([&] {
          start.arrive_and_wait();
          try {
            const object* const mine = &one.get();
            EXPECT_EQ(mine, one.if_made());
          } catch (const std::bad_alloc&) {
            ++refused;
          }
        });
      }
    }
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(made, 1);
  }
}

TEST(BlockPool, ReservedBlocksHavePagesAndNoneIsLost) {
  constexpr std::size_t block_bytes = 1024;
  constexpr std::size_t wanted = 3'000;
  internal::block_pool pool(block_bytes);
  std::set<std::byte*> blocks;
  const auto allocate = [&] { return static_cast<std::byte*>(pool.allocate()); };
  for (int i = 0; i < 100; ++i) blocks.insert(allocate());
  pool.reserve(wanted);
  const std::size_t reserved = pool.reserved_bytes();
  while (blocks.size() < wanted) {
    std::byte* const block = allocate();
    ASSERT_TRUE(blocks.insert(block).second);
    std::byte* const page = block - reinterpret_cast<std::uintptr_t>(block) % 4096;
    unsigned char is_resident = 0;
    ASSERT_EQ(::mincore(page, 1, &is_resident), 0);
    ASSERT_TRUE((is_resident & 1) != 0) << blocks.size();
  }
  EXPECT_EQ(pool.reserved_bytes(), reserved);
  for (std::byte* const one : blocks) pool.deallocate(one);
  EXPECT_EQ(pool.blocks_in_use(), 0u);
}

TEST(MemorySource, CountsUpToItsLimit) {
  internal::memory_source source(memory_options{.bytes_max = 1000});
  void* const a = source.obtain(600, 8);
  EXPECT_THROW(static_cast<void>(source.obtain(401, 8)), std::bad_alloc);
  void* const b = source.obtain(400, 64);
  EXPECT_FALSE(source.may_obtain(1));
  source.give_back(a, 600, 8);
  EXPECT_TRUE(source.may_obtain(600));
  EXPECT_FALSE(source.may_obtain(static_cast<std::size_t>(-1)));
  EXPECT_THROW(static_cast<void>(source.obtain_large(static_cast<std::size_t>(-64))),
               std::bad_alloc);
  EXPECT_THROW(static_cast<void>(source.obtain_zeroed(601)), std::bad_alloc);
  source.give_back(b, 400, 64);
}

TEST(Counter, IsExactWhenThreadsMeet) {
  internal::busy_counter busy;
  internal::rare_counter rare;
  busy.add(1);
  EXPECT_EQ(busy.memory_bytes(), 0u);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200'000; ++i) {
          busy.add(i % 2 == 0 ? 3 : -2);
          rare.add(1);
        }
      });
    }
  }
  EXPECT_EQ(busy.sum(), 1 + 4 * 100'000);
  EXPECT_EQ(rare.count(), 800'000u);
}

// One thread after the other counts alone, and finds its predecessor's slot.
TEST(Counter, StaysSmallWhileNoThreadsMeet) {
  internal::busy_counter busy;
  for (int t = 0; t < 100; ++t) {
    std::jthread([&] {
      static_cast<void>(internal::this_thread_slot());
      for (int i = 0; i < 100; ++i) busy.add(1);
    });
  }
  EXPECT_EQ(busy.sum(), 100 * 100);
  EXPECT_EQ(busy.memory_bytes(), 0u);
}

// More threads than parts, some of them not registered.
TEST(Counter, IsExactWithOwnersAndGuests) {
  internal::busy_counter busy;
  static_cast<void>(internal::this_thread_slot());
  // Another thread adds between two additions of the owner.
  constexpr int meetings = 20;
  for (int i = 0; i < meetings; ++i) {
    busy.add(1);
    std::jthread([&] {
      static_cast<void>(internal::this_thread_slot());
      busy.add(1);
    });
  }
  EXPECT_GT(busy.memory_bytes(), 0u);
  EXPECT_EQ(busy.sum(), 2 * meetings);
  std::atomic<bool> goes{false};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 100; ++t) {
      threads.emplace_back([&, t] {
        if (t % 10 != 0) static_cast<void>(internal::this_thread_slot());
        goes.wait(false);
        for (int i = 0; i < 10'000; ++i) busy.add(1);
      });
    }
    goes = true;
    goes.notify_all();
  }
  EXPECT_EQ(busy.sum(), 2 * meetings + 100 * 10'000);
}

TEST(ThreadParts, KeepTheFirstPartWhenTheySpread) {
  internal::thread_parts<int, 4> parts;
  int& first = parts.mine();
  first = 5;
  parts.spread();
  parts.spread();
  EXPECT_NE(&parts.mine(), &first);
  parts.mine() = 3;
  int sum = 0;
  parts.for_each([&](const int& part) { sum += part; });
  EXPECT_EQ(sum, 8);
}

// Blocks that were freed before the pool had several parts are used again.
TEST(BlockPool, UsesBlocksOfTheFirstPartAgain) {
  internal::memory_source source(memory_options{.bytes_max = 1'000'000});
  internal::block_pool pool(1024, "block", 0, source);
  constexpr int blocks_each = 100;
  std::vector<void*> blocks;
  for (int i = 0; i < blocks_each; ++i) blocks.push_back(pool.allocate());
  const std::size_t before = pool.reserved_bytes();
  for (void* const b : blocks) pool.deallocate(b);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        std::vector<void*> mine;
        for (int i = 0; i < blocks_each / 8; ++i) mine.push_back(pool.allocate());
        for (void* const b : mine) pool.deallocate(b);
      });
    }
  }
  EXPECT_EQ(pool.blocks_in_use(), 0u);
  // With 32 parts that hold up to 64 free blocks each. No round needs new ones for ever.
  EXPECT_LT(pool.reserved_bytes(), before + 400'000);
}

TEST(BlockPool, GivesBackItsMemoryIfNoBlockIsInUse) {
  internal::memory_source source(memory_options{});
  internal::block_pool pool(1024, "block", 0, source);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<void*>> blocks(4);
    {
      std::vector<std::jthread> threads;
      for (std::vector<void*>& mine : blocks) {
        threads.emplace_back([&] {
          for (int i = 0; i < 500; ++i) {
            void* const block = pool.allocate();
            std::memset(block, 1, 1024);
            mine.push_back(block);
          }
        });
      }
    }
    const std::size_t whole = pool.reserved_bytes();
    EXPECT_GT(whole, 4 * 500 * 1024u);
    EXPECT_FALSE(pool.give_back_unused());
    void* const last = blocks[0].back();
    blocks[0].pop_back();
    for (const std::vector<void*>& some : blocks) {
      for (void* const one : some) pool.deallocate(one);
    }
    EXPECT_FALSE(pool.give_back_unused());
    EXPECT_EQ(pool.reserved_bytes(), whole);
    pool.deallocate(last);
    EXPECT_TRUE(pool.give_back_unused());
    EXPECT_LT(pool.reserved_bytes(), 10'000u);  // of its parts
    EXPECT_TRUE(pool.give_back_unused());
  }
}

TEST(RetireList, TakesNothingBeforeItsFirstUse) {
  internal::retire_list list(nullptr);
  EXPECT_EQ(list.reserved_bytes(), 0u);
  EXPECT_EQ(list.pending(), 0u);
  list.sweep_all();
  list.reserve();
  EXPECT_GT(list.reserved_bytes(), 0u);
  list.unreserve();
}

}  // namespace
}  // namespace elidex
