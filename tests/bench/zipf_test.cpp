// The generator's frequencies against the exact probabilities, by chi-square; and that this test
// notices a wrong theta.

#include "bench/workload/zipf.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace {

using elidex::bench::random_bits;
using elidex::bench::zipf_ranks;

constexpr std::uint64_t ranks_count = 1000;
constexpr std::uint64_t draws = 1'000'000;

std::vector<double> exact_probabilities(std::uint64_t count, double theta) {
  std::vector<double> weights(count);
  double sum = 0;
  for (std::uint64_t k = count; k-- > 0;)
    sum += weights[k] = std::pow(static_cast<double>(k + 1), -theta);
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Of the ranks drawn with theta_drawn against the law of theta_claimed, in standard deviations from
// what is expected.
double chi_square_deviation(double theta_drawn, double theta_claimed) {
  const zipf_ranks ranks(ranks_count, theta_drawn);
  random_bits bits(20240901);
  std::vector<double> seen(ranks_count);
  for (std::uint64_t i = 0; i < draws; ++i) ++seen.at(ranks.draw(bits));
  const auto expected = exact_probabilities(ranks_count, theta_claimed);
  double chi_square = 0;
  for (std::uint64_t k = 0; k < ranks_count; ++k) {
    const double mean = expected[k] * static_cast<double>(draws);
    chi_square += (seen[k] - mean) * (seen[k] - mean) / mean;
  }
  const double freedom = ranks_count - 1;
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST(zipf, frequencies_follow_the_law) {
  for (const double theta : {0.0, 0.3, 0.5, 0.8, 0.9, 0.99, 1.0, 1.000001, 1.1, 1.2}) {
    EXPECT_LT(std::fabs(chi_square_deviation(theta, theta)), 4) << "theta " << theta;
  }
}

TEST(zipf, a_slightly_wrong_theta_is_noticed) {
  EXPECT_GT(chi_square_deviation(0.97, 0.99), 10);
  EXPECT_GT(chi_square_deviation(1.01, 0.99), 10);
  EXPECT_GT(chi_square_deviation(0.0, 0.1), 10);
}

TEST(zipf, large_counts_keep_the_head_and_the_tail) {
  constexpr std::uint64_t count = 10'000'000;
  for (const double theta : {0.5, 0.99, 1.2}) {
    const auto expected = exact_probabilities(count, theta);
    double head = 0;
    for (std::uint64_t k = 0; k < count / 10; ++k) head += expected[k];
    const zipf_ranks ranks(count, theta);
    random_bits bits(7);
    std::uint64_t hottest = 0;
    std::uint64_t in_head = 0;
    for (std::uint64_t i = 0; i < draws; ++i) {
      const std::uint64_t rank = ranks.draw(bits);
      ASSERT_LT(rank, count);
      hottest += rank == 0 ? 1 : 0;
      in_head += rank < count / 10 ? 1 : 0;
    }
    const auto near = [](std::uint64_t seen, double probability) {
      const double mean = probability * static_cast<double>(draws);
      return std::fabs(static_cast<double>(seen) - mean) < 5 * std::sqrt(mean) + 1;
    };
    EXPECT_TRUE(near(hottest, expected[0])) << "theta " << theta << ": " << hottest;
    EXPECT_TRUE(near(in_head, head)) << "theta " << theta << ": " << in_head;
  }
}

TEST(zipf, one_key_is_always_the_hottest) {
  random_bits bits(1);
  for (const double theta : {0.0, 0.99, 1.2}) EXPECT_EQ(zipf_ranks(1, theta).draw(bits), 0U);
}

TEST(permutation, is_a_bijection) {
  for (const std::uint64_t size : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 100U, 255U, 256U, 257U, 10000U}) {
    const elidex::bench::permutation order(size, size);
    std::vector<bool> seen(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t place = order(i);
      ASSERT_LT(place, size);
      EXPECT_FALSE(seen[place]) << size;
      seen[place] = true;
    }
  }
}

}  // namespace
