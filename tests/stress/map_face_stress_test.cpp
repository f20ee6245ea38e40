// compute(), extract() and bounded scans while threads work on one map.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "elidex/hash_map.hpp"
#include "elidex/ordered_map.hpp"
#include "support/fixed_key_trees.hpp"
#include "support/hash_maps.hpp"
#include "support/policies_under_test.hpp"
#include "support/random_seed.hpp"
#include "support/spread_threads.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

template <class Body>
void run_threads(unsigned threads, Body body) {
  spinning_meeting all_threads(static_cast<int>(threads));
  std::vector<std::jthread> running;
  for (unsigned t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      stay_on_nth_core(static_cast<int>(t));
      all_threads.meet(0);
      random_numbers random(seed_or(t + 1));
      body(t, random);
    });
  }
}

template <class Value>
struct coins {
  static Value of(u64 n) { return static_cast<Value>(n); }
  static u64 in(const Value& v) { return v; }
};
template <>
struct coins<std::string> {
  static std::string of(u64 n) { return std::string(n, '.'); }
  static u64 in(const std::string& v) { return v.size(); }
};
template <>
struct coins<std::vector<char>> {
  static std::vector<char> of(u64 n) { return std::vector<char>(n); }
  static u64 in(const std::vector<char>& v) { return v.size(); }
};

template <class Key>
Key purse(u64 n) {
  if constexpr (std::same_as<Key, std::string>) {
    return "a purse of which there are some " + std::to_string(n);
  } else {
    return static_cast<Key>(n);
  }
}

// Threads put coins into purses, take some out, and take whole purses away. An empty purse is
// absent. Returns how many coins were lost or found; the canary loses some.
template <class Map>
std::int64_t coins_lost(unsigned threads, int rounds, bool loses = false) {
  using key_type = typename Map::key_type;
  using value = coins<typename Map::mapped_type>;
  using slot = std::optional<typename Map::mapped_type>;
  Map map;
  std::atomic<std::int64_t> outside{0};
  run_threads(threads, [&](unsigned, random_numbers& random) {
    std::int64_t mine = 0;
    for (int i = 0; i < rounds; ++i) {
      const key_type key = purse<key_type>(random.below(12));
      u64 taken = 0;
      if (loses && i % 64 == 0) {
        if (const auto seen = map.get(key)) map.upsert(key, *seen);
      }
      switch (random.below(3)) {
        case 0:
          map.compute(key, [](slot& v) { v = value::of((v ? value::in(*v) : 0) + 3); });
          mine -= 3;
          break;
        case 1:
          map.compute(key, [&](slot& v) {
            taken = v ? 1 : 0;
            if (!v) return;
            const u64 left = value::in(*v) - 1;
            if (left == 0) {
              v.reset();
            } else {
              v = value::of(left);
            }
          });
          break;
        default:
          map.compute(key, [&](slot& v) {
            taken = v ? value::in(*v) : 0;
            v.reset();
          });
      }
      mine += static_cast<std::int64_t>(taken);
    }
    outside += mine;
  });
  std::int64_t inside = 0;
  for (u64 n = 0; n < 12; ++n) {
    if (const auto v = map.get(purse<key_type>(n)))
      inside += static_cast<std::int64_t>(value::in(*v));
  }
  return outside + inside;
}

template <class Map>
class MapFaceStress : public ::testing::Test {};
using maps =
    ::testing::Types<ordered_map<u64, u64>, ordered_map<std::string, u64>,
                     ordered_map<std::string, std::string>, ordered_map<u64, std::vector<char>>,
                     hash_map<u64, u64>, hash_map<std::string, std::string>,
                     hash_map<u64, std::vector<char>>, btree<u64, u64, optimistic, fan_out<2, 3>>,
                     btree<std::string, std::string, optimistic, fan_out<2, 3>>,
                     fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>,
                     fixed_key_btree<u64, u64, optimistic, tiny_bucketed, no_control>,
                     fixed_key_btree<u64, u64, elided_regions, tiny_partitioned, always_control>,
                     fixed_key_btree<u64, u64, locked_regions, separated_fan_out<3, 3>, no_control>,
                     hash_index<u64, u64, default_hash<u64>, tiny_buckets>>;
TYPED_TEST_SUITE(MapFaceStress, maps);

TYPED_TEST(MapFaceStress, ComputeIsAtomic) {
  EXPECT_EQ((coins_lost<TypeParam>(2, repetitions(20'000))), 0);
  EXPECT_EQ((coins_lost<TypeParam>(4, repetitions(5'000))), 0);
}

TEST(MapFaceStressCanary, AReadAndAWriteAreNotAtomic) {
  std::int64_t lost = 0;
  for (int i = 0; i < 100 && lost == 0; ++i)
    lost = coins_lost<ordered_map<u64, u64>>(4, repetitions(20'000), true);
  EXPECT_NE(lost, 0);
}

// Threads insert objects with a number, and remove some: even ones by erase_if(), any by extract().
// Returns how much the numbers that were put in and taken out differ. With `apart` a thread looks
// at the object and erases it in two steps, and may count another one than it erases.
template <class Map>
std::int64_t numbers_lost(int rounds, bool apart = false) {
  using key_type = typename Map::key_type;
  constexpr u64 keys = 6;
  Map map;
  std::atomic<std::int64_t> outside{0};
  run_threads(3, [&](unsigned, random_numbers& random) {
    std::int64_t mine = 0;
    for (int i = 0; i < rounds; ++i) {
      const key_type key = purse<key_type>(random.below(keys));
      u64 number = 1 + random.below(1'000);
      const u64 chosen = random.below(16);
      if (chosen < 8) {
        if (map.insert(key, std::make_unique<u64>(number)))
          mine -= static_cast<std::int64_t>(number);
      } else if (chosen < 15) {
        const auto is_even = [&](const std::unique_ptr<u64>& p) {
          number = *p;
          return number % 2 == 0;
        };
        const bool erased =
            apart ? map.visit(key, is_even) && map.erase(key) : map.erase_if(key, is_even);
        if (erased) mine += static_cast<std::int64_t>(number);
      } else if (const auto taken = map.extract(key)) {
        mine += static_cast<std::int64_t>(**taken);
      }
    }
    outside += mine;
  });
  std::int64_t inside = 0;
  for (u64 n = 0; n < keys; ++n) {
    map.visit(purse<key_type>(n),
              [&](const std::unique_ptr<u64>& p) { inside += static_cast<std::int64_t>(*p); });
  }
  return outside + inside;
}
template <class Map>
class EraseIfStress : public ::testing::Test {};
using maps_of_objects = ::testing::Types<
    ordered_map<u64, std::unique_ptr<u64>>, ordered_map<std::string, std::unique_ptr<u64>>,
    hash_map<u64, std::unique_ptr<u64>>, hash_map<std::string, std::unique_ptr<u64>>>;
TYPED_TEST_SUITE(EraseIfStress, maps_of_objects);
TYPED_TEST(EraseIfStress, RemovesTheObjectThatItSaw) {
  EXPECT_EQ(numbers_lost<TypeParam>(repetitions(5'000)), 0);
}
TEST(EraseIfStressCanary, ALookAndAnErasureAreNotAtomic) {
  std::int64_t lost = 0;
  for (int i = 0; i < 100 && lost == 0; ++i)
    lost = numbers_lost<hash_map<u64, std::unique_ptr<u64>>>(repetitions(5'000), true);
  EXPECT_NE(lost, 0);
}

// One thread adds keys at the end and erases them at the front, so that at each moment the map has
// `length` keys in a row, or one more. Others scan in both directions.
// Between two steps the first thread waits up to `pauses_max` times.
template <class Map>
u64 broken_windows(u64 steps, u64 length = 40, u64 pauses_max = 0) {
  Map map;
  for (u64 key = 0; key < length; ++key) map.insert(key, key);
  std::atomic<bool> done{false};
  std::atomic<u64> broken{0};
  run_threads(3, [&](unsigned t, random_numbers& random) {
    if (t == 0) {
      for (u64 key = length; key < length + steps; ++key) {
        map.insert(key, key);
        map.erase(key - length);
        for (u64 pauses = random.below(pauses_max + 1); pauses > 0; --pauses) cpu_pause();
      }
      done = true;
      return;
    }
    while (!done) {
      std::vector<u64> seen;
      const bool descends = random.below(2) == 0;
      const bool bounded = random.below(2) == 0;
      const std::size_t limit = random.below(2) == 0 ? SIZE_MAX : 1 + random.below(30);
      tree_range<u64> which{};
      which.descends = descends;
      if (bounded) {
        which.lower.emplace(0);
        which.upper.emplace(u64{1} << 40);
      }
      map.scan(which, limit, [&](u64 key, u64) { seen.push_back(key); });
      bool good = seen.size() == limit || seen.size() == length || seen.size() == length + 1;
      for (std::size_t i = 1; i < seen.size(); ++i)
        good = good && seen[i] == (descends ? seen[i - 1] - 1 : seen[i - 1] + 1);
      if (!good) ++broken;
    }
  });
  return broken;
}
template <class Tree>
class BoundedScanStress : public ::testing::Test {};
using trees =
    ::testing::Types<ordered_tree<u64, u64>, btree<u64, u64, optimistic, fan_out<2, 3>>,
                     fixed_key_btree<u64, u64, optimistic, packed_fan_out<6, 4>, no_control>,
                     fixed_key_btree<u64, u64, optimistic, tiny_bucketed, no_control>,
                     fixed_key_btree<u64, u64, elided_regions, tiny_partitioned, always_control>>;
TYPED_TEST_SUITE(BoundedScanStress, trees);
TYPED_TEST(BoundedScanStress, ScansInBothDirectionsAreSnapshots) {
  EXPECT_EQ(broken_windows<TypeParam>(static_cast<u64>(repetitions(5'000))), 0U);
}

// Longer than a scan's first buffer, so that the scan stops for more memory on its way. At some
// steps it ends before the next change.
TYPED_TEST(BoundedScanStress, LongScansAreSnapshots) {
  EXPECT_EQ(broken_windows<TypeParam>(static_cast<u64>(repetitions(2'000)), 1'000, 2'000), 0U);
}

// A scan by a cursor is no snapshot.
class scanned_by_cursor {
 public:
  bool insert(u64 key, u64 value) { return map_.insert(key, value); }
  bool erase(u64 key) { return map_.erase(key); }
  template <class Fn>
  void scan(const tree_range<u64>& which, std::size_t limit, Fn&& fn) const {
    auto at = map_.cursor();
    if (which.descends) {
      at.seek_last();
    } else {
      at.seek_first();
    }
    for (; at.valid() && limit > 0; --limit) {
      fn(at.key(), at.value());
      if (which.descends) {
        at.prev();
      } else {
        at.next();
      }
    }
  }

 private:
  btree<u64, u64, optimistic, fan_out<2, 3>> map_;
};
TEST(BoundedScanStressCanary, AWalkIsNoSnapshot) {
  u64 broken = 0;
  for (int i = 0; i < 100 && broken == 0; ++i)
    broken = broken_windows<scanned_by_cursor>(static_cast<u64>(repetitions(5'000)));
  EXPECT_NE(broken, 0U);
}

// compute() gives back the chained blocks of keys that it erases.
// Loads strings while one thread scans and another one inserts a key. What a scan or the outcome
// shows that no single moment can have, in words.
template <class Tree>
std::string partial_load(int rounds) {
  constexpr std::size_t many = 300;
  std::vector<std::string> keys;
  for (std::size_t n = 0; n < many; ++n) keys.push_back("https://a.b/" + std::to_string(1'000 + n));
  for (int round = 0; round < rounds; ++round) {
    Tree tree;
    std::atomic<bool> partial{false};
    std::atomic<bool> has_ended{false};
    bool loaded = true;
    bool inserted = false;
    run_threads(3, [&](unsigned thread, random_numbers& random) {
      if (thread == 0) {
        try {
          tree.bulk_fill([&](auto& loader) {
            for (const std::string& key : keys) loader.add(key, 1);
          });
        } catch (const std::logic_error&) {
          loaded = false;
        }
        has_ended = true;
      } else if (thread == 1) {
        for (bool last = false; !last;) {
          last = has_ended;
          const std::size_t seen = tree.scan("", many + 1, [](auto&&...) {});
          if (seen > 1 && seen < many) partial = true;
        }
      } else {
        for (u64 pause = random.below(40); pause > 0; --pause) static_cast<void>(tree.size());
        inserted = tree.insert("z", 1);
      }
    });
    if (partial) return "a part of the records";
    if (!inserted) return "the inserted key was there";
    if (tree.size() != (loaded ? many + 1 : 1)) return "size";
    if (tree.get("z") != 1) return "the inserted key is lost";
    for (const std::string& key : keys) {
      if (tree.contains(key) != loaded) return "a loaded key";
    }
  }
  return "";
}
using text_tree = btree<std::string, u64, optimistic, fan_out<8, 8>>;
TEST(BulkLoadStress, RecordsAppearAtOneMoment) {
  EXPECT_EQ(partial_load<text_tree>(20 * effort()), "");
}
struct loads_piecemeal : text_tree {
  template <class Fill>
  void bulk_fill(Fill&& fill) {
    struct {
      text_tree& to;
      void add(const std::string& key, u64 value) {
        to.insert(key, value);
        std::this_thread::yield();
      }
    } loader{*this};
    fill(loader);
  }
};
TEST(BulkLoadStressCanary, ALoadInPiecesIsFound) {
  EXPECT_EQ(partial_load<loads_piecemeal>(200), "a part of the records");
}

TEST(ComputeStress, KeepsNoChainedBlocks) {
  hash_index<u64, u64, same_for_all> map;
  run_threads(3, [&](unsigned, random_numbers& random) {
    for (int i = 0; i < repetitions(20'000); ++i) {
      map.compute(random.below(9),
                  [](std::optional<u64>& v) { v = v ? std::nullopt : std::optional<u64>(1); });
    }
  });
  for (u64 key = 0; key < 9; ++key) map.erase(key);
  EXPECT_EQ(map.size(), 0U);
  EXPECT_EQ(map.stats().chained_blocks, 0U);
}

// Each object comes out of the map once, alive, while visitors look at it.
template <class Map>
void extract_each_once() {
  Map map;
  std::atomic<u64> extracted{0};
  static constexpr u64 keys = 2'000;
  run_threads(3, [&](unsigned t, random_numbers& random) {
    for (u64 n = 0; n < keys; ++n) {
      if (t == 0) {
        map.insert(n, std::make_unique<u64>(n));
      } else if (t == 1) {
        map.visit(random.below(n + 1), [](const std::unique_ptr<u64>& p) { EXPECT_LT(*p, keys); });
      } else if (const auto p = map.extract(n)) {
        EXPECT_EQ(**p, n);
        ++extracted;
      }
    }
  });
  EXPECT_EQ(map.size() + extracted, keys);
}
TEST(ExtractStress, GivesEachObjectOnce) {
  extract_each_once<ordered_map<u64, std::unique_ptr<u64>>>();
  extract_each_once<hash_map<u64, std::unique_ptr<u64>>>();
}

}  // namespace
}  // namespace elidex::testing
