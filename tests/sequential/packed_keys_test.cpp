// Keys in a frame of reference: what goes in comes out, whatever the frame.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "elidex/internal/tree/separated_leaf.hpp"

namespace elidex::testing {
namespace {

template <class Key>
class PackedKeys : public ::testing::Test {};
using key_types = ::testing::Types<std::uint64_t, std::int64_t, std::uint32_t, std::int32_t,
                                   std::uint16_t, std::int8_t>;
TYPED_TEST_SUITE(PackedKeys, key_types);

// Random keys of so many bits somewhere in the type's range, or around its end: then they are of
// both ends.
template <class Key>
std::vector<Key> keys_within(unsigned bits, std::size_t count, std::mt19937_64& random) {
  using limits = std::numeric_limits<Key>;
  const auto some = [&] { return static_cast<Key>(random() >> (64 - bits)); };
  const auto before_the_end = static_cast<Key>(
      static_cast<std::make_unsigned_t<Key>>(limits::max()) - (std::uint64_t{1} << (bits - 1)));
  const std::array froms{limits::min(), before_the_end, static_cast<Key>(random()),
                         static_cast<Key>(random())};
  const Key from = froms[random() % froms.size()];
  std::set<Key> keys;
  for (std::size_t tries = 0; keys.size() < count && tries < 20 * count; ++tries) {
    const auto key = static_cast<Key>(static_cast<std::make_unsigned_t<Key>>(from) +
                                      static_cast<std::make_unsigned_t<Key>>(some()));
    keys.insert(key);
  }
  std::vector<Key> all(keys.begin(), keys.end());
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

TYPED_TEST(PackedKeys, AddedOneByOneAreFoundAndOthersAreNot) {
  using key = TypeParam;
  using store = internal::packed_keys<key, false, 20, 14>;
  std::mt19937_64 random(1);
  for (unsigned repeat = 0; repeat < 64 * sizeof(key); ++repeat) {
    const unsigned bits = 1 + repeat % (8 * sizeof(key));
    const auto keys = keys_within<key>(bits, 20, random);
    store packed;
    unsigned count = 0;
    for (const key k : keys) {
      if (!packed.make_room_for(count, k, k, 1)) break;
      packed.set(count++, k);
      const auto [first, last] = std::minmax_element(keys.begin(), keys.begin() + count);
      ASSERT_LE(count, store::room_between(*first, *last))
          << "what is here could not be encoded anew";
    }
    // All at least when the frame for which there is room holds them; otherwise as many as it says.
    const auto [lowest, highest] = std::minmax_element(keys.begin(), keys.end());
    if (keys.size() <= store::room_between(*lowest, *highest)) {
      ASSERT_EQ(count, keys.size());
    }
    ASSERT_GE(count, std::min<std::size_t>(keys.size(), 14 * 64 / 56));
    for (unsigned i = 0; i < count; ++i) {
      ASSERT_EQ(packed.key(i), keys[i]) << bits << " bits";
      ASSERT_EQ(packed.find(keys[i], count), i);
      ASSERT_EQ(packed.find(keys[i], i), internal::no_slot);
    }
    for (int i = 0; i < 100; ++i) {
      const auto k = static_cast<key>(random());
      const auto there = std::find(keys.begin(), keys.begin() + count, k);
      ASSERT_EQ(packed.find(k, count) == internal::no_slot, there == keys.begin() + count);
    }
  }
}

TYPED_TEST(PackedKeys, FilledAtOnceAreTheSame) {
  using key = TypeParam;
  using store = internal::packed_keys<key, true, 20, 14>;
  std::mt19937_64 random(2);
  for (unsigned bits = 1; bits <= 8 * sizeof(key); ++bits) {
    auto keys = keys_within<key>(bits, 20, random);
    std::sort(keys.begin(), keys.end());
    while (keys.size() > store::room_between(keys.front(), keys.back())) keys.pop_back();
    store packed;
    const auto count = static_cast<unsigned>(keys.size());
    packed.fill(count, keys.front(), keys.back(), [&](unsigned i) { return keys[i]; });
    unsigned seen = 0;
    packed.for_each(0, count, [&](unsigned slot, key k) {
      ASSERT_EQ(slot, seen++);
      ASSERT_EQ(k, keys[slot]) << bits << " bits";
    });
    ASSERT_EQ(seen, count);
    for (unsigned first = 0; first <= count; ++first) {
      packed.for_each(first, count, [&](unsigned slot, key k) { ASSERT_EQ(k, keys[slot]); });
    }
  }
}

// Keys that differ in their high bits only still have different fingerprints: few are compared in
// vain.
TEST(PackedKeysFingerprints, DifferForMultiplesOfAPowerOfTwo) {
  using store = internal::packed_keys<std::uint64_t, false, 75, 47>;
  for (unsigned shift = 0; shift <= 32; shift += 8) {
    store packed;
    for (unsigned i = 0; i < 75; ++i) {
      const std::uint64_t key = std::uint64_t{i} << shift;
      ASSERT_TRUE(packed.make_room_for(i, key, key, 1));
      packed.set(i, key);
    }
    unsigned right = 0;
    for (unsigned i = 0; i < 75; ++i)
      right += packed.approach(std::uint64_t{i} << shift, 75) == i ? 1U : 0U;
    EXPECT_GT(right, 50u) << "keys apart by 2^" << shift;
  }
}

}  // namespace
}  // namespace elidex::testing
