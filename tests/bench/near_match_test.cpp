// What a mistyped name was meant to be.
#include "bench/support/near_match.hpp"

#include <gtest/gtest.h>

namespace {

using elidex::bench::did_you_mean;
using elidex::bench::edit_distance;
using elidex::bench::near_match;

TEST(near_match, counts_insertions_removals_replacements_and_swaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("bench", "bnech"), 1U);
  EXPECT_EQ(edit_distance("bench", "bunch"), 1U);
  EXPECT_EQ(edit_distance("bench", "benches"), 2U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("TBB", "tbb"), 0U);
}

TEST(near_match, is_the_nearest_and_the_first_of_several) {
  EXPECT_EQ(near_match("ordred_map", {"ordered_map", "hash_map"}), "ordered_map");
  EXPECT_EQ(near_match("bat", {"cat", "hat"}), "cat");
  EXPECT_EQ(near_match("hash_mop", {"cash_mop1", "hash_map"}), "hash_map");
}

TEST(near_match, is_nothing_where_too_much_differs) {
  EXPECT_EQ(near_match("nonsense", {"ordered_map", "tbb", "a"}), "");
  EXPECT_EQ(near_match("x", {"a", "b"}), "") << "a letter is not near another one";
  EXPECT_EQ(near_match("", {"a"}), "");
  EXPECT_EQ(near_match("a", {}), "");
}

TEST(near_match, is_a_sentence) {
  EXPECT_EQ(did_you_mean("tbbb", {"tbb"}), " Did you mean 'tbb'?");
  EXPECT_EQ(did_you_mean("nonsense", {"tbb"}), "");
  EXPECT_EQ(did_you_mean("tbb", {"tbb"}), "") << "something else is wrong with it";
}

}  // namespace
