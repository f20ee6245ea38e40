#pragma once
// Ranks drawn with Zipf's law: P(rank k) is proportional to 1 / (k + 1)^theta for k = 0..count-1;
// theta 0 is uniform.
//
//   zipf_ranks ranks(10'000'000, 0.99);
//   std::uint64_t hot = ranks.draw(bits);   // 0 is the hottest
//
// Invariants: exact for every theta >= 0, theta 1 included; constant set-up time and memory,
// whatever the count.
//
// Thread-safety: draw() is const, one zipf_ranks may serve many threads, each with its own
// random_bits.
//
// The distribution is the one of YCSB and of paper 003, section 6.1. DEVIATION: the generator
// usually quoted for it (Gray et al., "Quickly generating billion-record synthetic databases") is
// exact only for the two hottest ranks, needs theta below 1 and a sum over all ranks. This one is
// rejection-inversion (Hoermann and Derflinger, "Rejection-inversion to generate variates from
// monotone discrete distributions"): the same law, drawn exactly, for 0..1.2 and beyond.

#include <cstdint>

#include "bench/workload/random.hpp"

namespace elidex::bench {

class zipf_ranks {
 public:
  /// count >= 1, theta >= 0.
  zipf_ranks(std::uint64_t count, double theta);

  [[nodiscard]] std::uint64_t draw(random_bits& bits) const;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] double theta() const noexcept { return theta_; }

 private:
  [[nodiscard]] double area(double x) const;          // integral of x^-theta from 1 to x
  [[nodiscard]] double inverse_area(double a) const;  // the x whose area is a
  [[nodiscard]] double density(double x) const;       // x^-theta

  std::uint64_t count_;
  double theta_;
  // area(1.5) - density(1): the first rank's column is cut to its exact weight
  double area_low_ = 0;
  double area_high_ = 0;   // area(count + 0.5)
  double accept_gap_ = 0;  // a candidate this close above its x needs no further test
};

}  // namespace elidex::bench
