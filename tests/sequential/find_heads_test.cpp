// The search for a head: all instructions agree with a search that looks at every key, whatever
// lies behind the last key.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "elidex/internal/tree/key_search.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

template <unsigned Words>
using head = std::array<std::uint64_t, Words>;

std::vector<vector_instructions> all_instructions() {
  std::vector<vector_instructions> all{vector_instructions::none};
  for (const auto one : {vector_instructions::avx2, vector_instructions::avx512}) {
    if (vectors_of_this_cpu >= one) all.push_back(one);
  }
  return all;
}

template <unsigned Words>
equal_heads look_at_all(const std::vector<head<Words>>& sorted, const head<Words>& wanted) {
  const auto found = std::equal_range(sorted.begin(), sorted.end(), wanted);
  return {static_cast<unsigned>(found.first - sorted.begin()),
          static_cast<unsigned>(found.second - sorted.begin())};
}

// Returns in how many of the random rounds find(heads, count, wanted) was wrong. Few different
// words make equal heads. Shifted to the top, they differ in the bit that is a sign elsewhere.
template <unsigned Words, unsigned Stride, class Find>
int wrong_results(std::uint64_t seed, Find&& find) {
  std::mt19937_64 random(seed);
  int wrong = 0;
  for (int round = 0; round < 200; ++round) {
    const unsigned shift = round % 2 == 0 ? 61 : 0;
    const std::uint64_t words = round % 3 == 0 ? 2 : round % 3 == 1 ? 7 : ~std::uint64_t{0};
    const auto some_word = [&] { return (random() % words) << shift; };
    const auto some_head = [&] {
      head<Words> made;
      for (std::uint64_t& word : made) word = some_word();
      return made;
    };
    for (unsigned count = 0; count <= Stride; ++count) {
      std::vector<head<Words>> sorted;
      for (unsigned i = 0; i < count; ++i) sorted.push_back(some_head());
      std::sort(sorted.begin(), sorted.end());
      std::vector<field<std::uint64_t>> heads(std::size_t{Words} * Stride);
      for (auto& left_behind : heads) left_behind.template store<true>(some_word());
      for (unsigned i = 0; i < count; ++i) {
        for (unsigned word = 0; word < Words; ++word)
          heads[word * Stride + i].template store<true>(sorted[i][word]);
      }
      const head<Words> wanted =
          count != 0 && random() % 2 == 0 ? sorted[random() % count] : some_head();
      const equal_heads right = look_at_all<Words>(sorted, wanted);
      const equal_heads found = find(heads.data(), count, wanted);
      wrong += static_cast<int>(found.first != right.first || found.last != right.last);
    }
  }
  return wrong;
}

template <unsigned Words, unsigned Stride>
void expect_right_heads() {
  for (const vector_instructions with : all_instructions()) {
    const auto find = [&](const field<std::uint64_t>* heads, unsigned count,
                          const head<Words>& wanted) {
      return find_heads<Words, Stride, true>(heads, count, wanted, with);
    };
    EXPECT_EQ((wrong_results<Words, Stride>(Stride, find)), 0) << int(with);
  }
}

TEST(FindHeads, AllInstructionsAgree) {
  expect_right_heads<1, 8>();
  expect_right_heads<1, 56>();
  expect_right_heads<1, 64>();
  expect_right_heads<2, 8>();
  expect_right_heads<2, 48>();
  expect_right_heads<2, 64>();
}

// A racing reader may see heads in no order. The result must stay inside the node.
TEST(FindHeads, StayInsideTheNodeWhateverTheyRead) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 10'000; ++round) {
    std::array<field<std::uint64_t>, 96> heads;
    for (auto& word : heads) word.store<true>(random() % 3);
    const auto count = static_cast<unsigned>(random() % 49);
    for (const vector_instructions with : all_instructions()) {
      const equal_heads found =
          find_heads<2, 48, true>(heads.data(), count, {random() % 3, random() % 3}, with);
      ASSERT_LE(found.first, found.last);
      ASSERT_LE(found.last, count);
    }
  }
}

// A planted bug: words are compared as signed numbers.
TEST(FindHeadsCanary, ASignedCompareIsFound) {
  const auto signed_find = [](const field<std::uint64_t>* heads, unsigned count,
                              const head<1>& wanted) {
    const auto at = [&](unsigned i) { return static_cast<std::int64_t>(heads[i].load<true>()); };
    const auto sought = static_cast<std::int64_t>(wanted[0]);
    return equal_heads{branchless_lower_bound<false>(at, count, sought),
                       branchless_lower_bound<true>(at, count, sought)};
  };
  EXPECT_GT((wrong_results<1, 56>(56, signed_find)), 0);
}

}  // namespace
}  // namespace elidex::testing
