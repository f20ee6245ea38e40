// Records in hash buckets: all small states against a std::map, long random runs, and planted bugs.
#include "elidex/internal/tree/hashed_bucket.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/internal/sync/split_regions.hpp"

namespace elidex::testing {
namespace {

using internal::bucket_rules;
using internal::hashed_bucket;
using internal::hashed_buckets;
using internal::no_slot;
using internal::optimistic;
using u64 = std::uint64_t;
using regions = internal::split_regions<internal::ttas_lock>;

struct frames_without_encoding : bucket_rules {
  static constexpr bool encodes_again = false;
};
struct unnoted_away_keys : bucket_rules {
  static constexpr bool notes_away_keys = false;
};

// What differs between buckets and the records that they should hold, or "".
template <class Buckets, class Model>
std::string difference(const Buckets& buckets, const Model& model) {
  unsigned seen = 0;
  std::string what;
  buckets.for_each_key([&](unsigned slot, auto k) {
    ++seen;
    const auto there = model.find(k);
    if (there == model.end()) {
      what = "a key that was never there";
    } else if (buckets.value(slot) != there->second || buckets.key(slot) != k) {
      what = "another value";
    }
  });
  if (seen != model.size() || buckets.used() != seen) return "another number of keys";
  for (const auto& [k, v] : model) {
    const unsigned slot = buckets.find(k);
    if (slot == no_slot) return "a key is not found";
    if (buckets.value(slot) != v) return "another value is found";
  }
  return what;
}

// --- all small states ---

// A policy whose buckets can be copied, and have the layout of `optimistic`.
struct copied {
  struct node_lock {
    struct token {};
    token read() const { return {}; }
    bool validate(token /*seen*/) const { return true; }
    u64 word = 0;
  };
  static constexpr bool readers_race = true;
};

// Every sequence of inserts, erases and halvings of a few keys, up to a length. The keys are chosen
// so that frames change and homes overflow.
template <class Buckets, class Key>
class all_sequences {
 public:
  explicit all_sequences(std::vector<Key> keys) : keys_(std::move(keys)) {}

  std::string run(unsigned length) {
    explore(Buckets(), {}, length);
    return found_;
  }
  unsigned long states() const { return states_; }

 private:
  using model = std::map<Key, u64>;
  void explore(const Buckets& buckets, const model& expected, unsigned length) {
    ++states_;
    if (found_.empty()) found_ = difference(buckets, expected);
    if (length == 0 || !found_.empty()) return;
    for (const Key k : keys_) {
      Buckets next = buckets;
      model after = expected;
      if (const unsigned slot = buckets.find(k); expected.contains(k) && slot != no_slot) {
        next.erase(slot);
        after.erase(k);
      } else if (const bool fits = buckets.has_room_for(k); fits != next.insert(k, length)) {
        found_ = "the room for a key is not what it was said to be";
      } else if (fits) {
        after.emplace(k, length);
      } else if (expected.size() < Buckets::certain_capacity) {
        found_ = "no room before the certain capacity";
      }
      explore(next, after, length - 1);
    }
    Buckets half = buckets;
    model kept = expected;
    half.keep_if([&](Key k) { return k < keys_[keys_.size() / 2]; });
    std::erase_if(kept, [&](const auto& r) { return r.first >= keys_[keys_.size() / 2]; });
    if (kept.size() != expected.size()) explore(half, kept, length - 1);
  }

  std::vector<Key> keys_;
  std::string found_;
  unsigned long states_ = 0;
};

// A few keys of one home, near each other and far apart, and one of another home.
template <class Buckets>
std::vector<u64> keys_of_few_homes() {
  std::vector<u64> keys;
  for (const u64 from : {u64{0}, u64{1} << 51U, u64{1} << 55U, u64{1} << 60U,
                         std::numeric_limits<u64>::max() - 10'000}) {
    u64 k = from;
    while (Buckets::home_of(k) != 0) ++k;
    keys.push_back(k);
  }
  u64 other = 1;
  while (Buckets::home_of(other) == 0) ++other;
  keys.push_back(other);
  std::sort(keys.begin(), keys.end());
  return keys;
}

template <class Rules>
std::string all_small_states() {
  using buckets = hashed_buckets<u64, u64, copied, 2, 64, Rules>;
  static_assert(buckets::slots_each == 3);
  all_sequences<buckets, u64> all(keys_of_few_homes<buckets>());
  const std::string found = all.run(7);
  EXPECT_TRUE(!found.empty() || all.states() > 100'000) << all.states();
  return found;
}

TEST(HashedBuckets, AllSmallStatesAgreeWithAMap) {
  EXPECT_EQ(all_small_states<bucket_rules>(), "");
}
TEST(HashedBucketsCanary, AFrameThatChangesWithoutTheKeysIsFound) {
  EXPECT_NE(all_small_states<frames_without_encoding>(), "");
}
TEST(HashedBucketsCanary, AnAwayKeyThatIsNotNotedIsFound) {
  EXPECT_NE(all_small_states<unnoted_away_keys>(), "");
}

// --- random runs ---

template <class Buckets>
class RandomBuckets : public ::testing::Test {};
using kinds = ::testing::Types<hashed_buckets<u64, u64, optimistic, 16>,
                               hashed_buckets<u64, u64, regions, 16>,
                               hashed_buckets<std::int64_t, u64, optimistic, 16>,
                               hashed_buckets<u64, std::uint8_t, optimistic, 16>,
                               hashed_buckets<std::uint32_t, std::uint32_t, optimistic, 8>,
                               hashed_buckets<std::int32_t, std::uint16_t, regions, 4>,
                               hashed_buckets<std::int16_t, u64, optimistic, 2>,
                               hashed_buckets<std::int8_t, std::uint16_t, optimistic, 2>,
                               hashed_buckets<std::uint8_t, std::uint8_t, regions, 2, 64>>;
TYPED_TEST_SUITE(RandomBuckets, kinds);

// Keys of so many bits somewhere in the type's range, or around its ends.
template <class Key>
Key some_key(unsigned bits, u64 from, std::mt19937_64& random) {
  return static_cast<Key>(from + (random() >> (64 - bits)));
}

template <class Buckets>
struct key_type;
template <class Key, class Value, class Sync, unsigned N, std::size_t Bytes, class Rules>
struct key_type<hashed_buckets<Key, Value, Sync, N, Bytes, Rules>> {
  using key = Key;
  using value = Value;
};

TYPED_TEST(RandomBuckets, AgreeWithAMap) {
  using key = typename key_type<TypeParam>::key;
  using value = typename key_type<TypeParam>::value;
  std::mt19937_64 random(3);
  for (unsigned round = 0; round < 60 * sizeof(key); ++round) {
    TypeParam buckets;
    std::map<key, value> model;
    const u64 froms[] = {0, random(), ~u64{0},
                         static_cast<u64>(std::numeric_limits<key>::max()) - 5};
    const u64 from = froms[round % 4];
    for (unsigned step = 0; step < 600; ++step) {
      const unsigned bits = 1 + round % (8 * sizeof(key));
      const auto k = some_key<key>(step % 16 == 0 ? 8 * sizeof(key) : bits, from, random);
      const auto v = static_cast<value>(random());
      const unsigned slot = buckets.find(k);
      ASSERT_EQ(slot != no_slot, model.contains(k));
      if (slot == no_slot) {
        const bool surely = buckets.has_room_for(k, k, 1);
        const bool exactly = buckets.has_room_for(k);
        const bool added = buckets.insert(k, v);
        ASSERT_EQ(added, exactly);
        ASSERT_TRUE(added || !surely);
        ASSERT_TRUE(added || model.size() >= TypeParam::certain_capacity);
        if (added) model.emplace(k, v);
      } else if (random() % 4 != 0) {
        buckets.erase(slot);
        model.erase(k);
      } else {
        buckets.set_value(slot, v);
        model[k] = v;
      }
      if (random() % 128 == 0) {
        const auto bound = some_key<key>(bits, from, random);
        buckets.keep_if([&](key one) { return one < bound; });
        std::erase_if(model, [&](const auto& r) { return r.first >= bound; });
      }
      if (step % 16 == 0) {
        ASSERT_EQ(difference(buckets, model), "") << round << " " << step;
      }
    }
  }
}

// As many keys as room_between() promises always fit into empty buckets.
TYPED_TEST(RandomBuckets, HoldAsManyAsPromised) {
  using key = typename key_type<TypeParam>::key;
  using value = typename key_type<TypeParam>::value;
  std::mt19937_64 random(4);
  for (unsigned round = 0; round < 40 * sizeof(key); ++round) {
    const unsigned bits = 1 + round % (8 * sizeof(key));
    const u64 from = round % 2 == 0 ? random() : 0;
    TypeParam buckets;
    std::map<key, value> model;
    key lowest = some_key<key>(bits, from, random);
    key highest = lowest;
    for (unsigned tries = 0; tries < 4 * TypeParam::capacity; ++tries) {
      const auto k = some_key<key>(bits, from, random);
      if (model.contains(k)) continue;
      lowest = std::min(lowest, k);
      highest = std::max(highest, k);
      if (model.size() >= TypeParam::room_between(lowest, highest)) break;
      ASSERT_EQ(buckets.has_room_for(k, k, 1), true);
      ASSERT_TRUE(buckets.insert(k, value{}));
      model.emplace(k, value{});
    }
    ASSERT_EQ(difference(buckets, model), "");
  }
}

// --- shapes ---

TEST(HashedBuckets, EightRecordsOfEightByteKeysLieOnTwoLines) {
  using bucket = hashed_bucket<u64, u64, optimistic>;
  EXPECT_EQ(sizeof(bucket), 128u);
  EXPECT_EQ(bucket::capacity, 8u);
  EXPECT_EQ(bucket::certain_capacity, 6u);
  EXPECT_EQ(bucket::room_between(0, u64{1} << 51U), 8u);
  EXPECT_EQ(bucket::room_between(0, u64{1} << 57U), 7u);
}

TEST(HashedBuckets, DenseKeysAreSpreadEvenly) {
  using buckets = hashed_buckets<u64, u64, optimistic, 16>;
  buckets all;
  u64 k = 123'456'789;
  while (all.insert(k, k)) ++k;
  EXPECT_EQ(all.used(), buckets::capacity);
}

}  // namespace
}  // namespace elidex::testing
