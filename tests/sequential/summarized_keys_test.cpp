// Keys with a summary: every way of searching agrees with the standard library, whatever stands
// behind the last key.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "elidex/internal/tree/key_search.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using internal::vector_instructions;

// What this machine can run.
std::vector<vector_instructions> all_instructions() {
  std::vector<vector_instructions> all{vector_instructions::none};
  for (const auto one : {vector_instructions::avx2, vector_instructions::avx512}) {
    if (internal::vectors_of_this_cpu >= one) all.push_back(one);
  }
  return all;
}

template <class Key, unsigned Capacity>
void expect_right_ranks(std::mt19937_64& random, unsigned count, int key_bits) {
  using limits = std::numeric_limits<Key>;
  const auto some_key = [&] { return static_cast<Key>(random() >> (64 - key_bits)); };
  internal::summarized_keys<Key, true, Capacity> keys{};
  // left behind by keys that are gone
  for (unsigned i = 0; i < Capacity; ++i) keys.set_key(i, some_key());

  std::set<Key> chosen;
  while (chosen.size() < count) chosen.insert(some_key());
  const std::vector<Key> sorted(chosen.begin(), chosen.end());
  for (unsigned i = 0; i < count; ++i) keys.set_key(i, sorted[i]);

  std::vector<Key> asked{limits::min(), limits::max(), Key{0}, some_key(), some_key()};
  for (const Key key : sorted) {
    asked.push_back(key);
    if (key != limits::min()) asked.push_back(static_cast<Key>(key - 1));
    if (key != limits::max()) asked.push_back(static_cast<Key>(key + 1));
  }
  for (const Key key : asked) {
    const auto less = std::lower_bound(sorted.begin(), sorted.end(), key) - sorted.begin();
    const auto not_greater = std::upper_bound(sorted.begin(), sorted.end(), key) - sorted.begin();
    for (const vector_instructions with : all_instructions()) {
      ASSERT_EQ(keys.template rank<false>(count, key, with), less)
          << "of " << count << ", with " << int(with);
      ASSERT_EQ(keys.template rank<true>(count, key, with), not_greater)
          << "of " << count << ", with " << int(with);
    }
  }
}

template <class Key>
class SummarizedKeys : public ::testing::Test {};
using key_types = ::testing::Types<std::uint64_t, std::int64_t, std::uint32_t, std::int16_t>;
TYPED_TEST_SUITE(SummarizedKeys, key_types);

TYPED_TEST(SummarizedKeys, RankAsTheStandardLibrarySays) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    const int bits = std::min<int>(8 + round, 8 * sizeof(TypeParam));
    for (unsigned count = 0; count <= 3; ++count)
      expect_right_ranks<TypeParam, 3>(random, count, bits);
    for (unsigned count = 0; count <= 20; ++count)
      expect_right_ranks<TypeParam, 20>(random, count, bits);
    for (unsigned count = 0; count <= 56; count += 1 + count % 3) {
      expect_right_ranks<TypeParam, 56>(random, count, bits);
    }
    // too many blocks for one line of summary
    expect_right_ranks<TypeParam, 100>(random, 100, std::max(bits, 10));
  }
}

TEST(SummarizedKeys, FillTheFirstLineWithTheHead) {
  EXPECT_EQ(sizeof(internal::summarized_keys<std::uint64_t, true, 56>), (6 + 56) * 8);
}

// CPUs without SSE2 compare fingerprints with this function.
TEST(EqualBytes, AllSetsOfBytesAreFound) {
  std::mt19937_64 random(7);
  for (unsigned equal = 0; equal < 256; ++equal) {
    for (int round = 0; round < 100; ++round) {
      const std::uint64_t a = random();
      std::uint64_t b = a;
      for (unsigned byte = 0; byte < 8; ++byte) {
        if ((equal >> byte & 1U) == 0) b ^= (1 + random() % 255) << 8 * byte;
      }
      ASSERT_EQ(equal_bytes(a, b), equal) << a << ' ' << b;
    }
  }
}

}  // namespace
}  // namespace elidex::testing
