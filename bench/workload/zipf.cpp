#include "bench/workload/zipf.hpp"

#include <algorithm>
#include <cmath>

namespace elidex::bench {
namespace {

// (exp(t) - 1) / t and log(1 + t) / t, continued over t = 0, so that theta near 1 loses no digits.
double expm1_ratio(double t) {
  return std::fabs(t) > 1e-8 ? std::expm1(t) / t : 1 + t / 2;
}
double log1p_ratio(double t) {
  return std::fabs(t) > 1e-8 ? std::log1p(t) / t : 1 - t / 2;
}

}  // namespace

zipf_ranks::zipf_ranks(std::uint64_t count, double theta)
    : count_(std::max<std::uint64_t>(count, 1)), theta_(theta) {
  area_low_ = area(1.5) - 1;
  area_high_ = area(static_cast<double>(count_) + 0.5);
  accept_gap_ = 2 - inverse_area(area(2.5) - density(2));
}

double zipf_ranks::area(double x) const {
  const double log_x = std::log(x);
  return expm1_ratio((1 - theta_) * log_x) * log_x;
}

double zipf_ranks::inverse_area(double a) const {
  // Below -1 the logarithm has no value; rounding can push the argument there when theta > 1.
  const double t = std::max(a * (1 - theta_), -1.0);
  return std::exp(log1p_ratio(t) * a);
}

double zipf_ranks::density(double x) const {
  return std::exp(-theta_ * std::log(x));
}

std::uint64_t zipf_ranks::draw(random_bits& bits) const {
  if (theta_ == 0) return bits.below(count_);
  for (;;) {
    // A point under the curve x^-theta, rounded to the nearest rank. Because the curve is convex
    // the column of a rank holds at least the rank's weight; what is too much is rejected.
    const double a = area_high_ + bits.unit() * (area_low_ - area_high_);
    const double x = inverse_area(a);
    const double nearest = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(count_));
    if (nearest - x <= accept_gap_ || a >= area(nearest + 0.5) - density(nearest)) {
      return static_cast<std::uint64_t>(nearest) - 1;
    }
  }
}

}  // namespace elidex::bench
