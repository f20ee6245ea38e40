#pragma once
// Latencies in logarithmic buckets: constant memory, a few instructions to record, percentiles
// within 1.6 %.
//
//   latency_histogram latencies;
//   latencies.record(412);                  // nanoseconds
//   double p99 = latencies.percentile(99);
//
// Invariants: values below 64 ns are exact; above, each octave has 64 buckets, and a percentile is
// the middle of its bucket. Values above about 68 s count as that.
//
// Thread-safety: none; each thread has its own, merged afterwards with +=.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace elidex::bench {

class latency_histogram {
 public:
  latency_histogram() : counts_(bucket_count) {}

  void record(std::uint64_t ns) noexcept {
    ++counts_[bucket(std::min(ns, ns_max))];
    ++samples_;
  }

  latency_histogram& operator+=(const latency_histogram& other) {
    std::transform(counts_.begin(), counts_.end(), other.counts_.begin(), counts_.begin(),
                   std::plus<>{});
    samples_ += other.samples_;
    return *this;
  }

  void clear() noexcept {
    std::fill(counts_.begin(), counts_.end(), 0U);
    samples_ = 0;
  }

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }

  /// The smallest latency that at least `percent` of the samples do not exceed; 0 without samples.
  [[nodiscard]] double percentile(double percent) const noexcept {
    const double wanted = static_cast<double>(samples_) * percent / 100;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (counts_[i] > 0 && static_cast<double>(seen) >= wanted) return middle(i);
    }
    return 0;
  }

 private:
  static constexpr unsigned octave_bits = 6;  // 64 buckets for each power of two
  static constexpr unsigned value_bits_max = 36;
  static constexpr std::uint64_t ns_max = (std::uint64_t{1} << value_bits_max) - 1;
  static constexpr std::size_t bucket_count = std::size_t{value_bits_max - octave_bits + 1}
                                              << octave_bits;

  static std::size_t bucket(std::uint64_t ns) noexcept {
    const auto width = static_cast<unsigned>(std::bit_width(ns));
    if (width <= octave_bits) return ns;
    const unsigned shift = width - octave_bits - 1;
    return (std::size_t{shift} << octave_bits) + (ns >> shift);
  }

  static double middle(std::size_t index) noexcept {
    if (index < (std::size_t{2} << octave_bits)) return static_cast<double>(index);
    const std::size_t shift = (index >> octave_bits) - 1;
    const std::uint64_t low = (index - (shift << octave_bits)) << shift;
    return static_cast<double>(low) + static_cast<double>((std::uint64_t{1} << shift) - 1) / 2;
  }

  std::vector<std::uint32_t> counts_;
  std::uint64_t samples_ = 0;
};

}  // namespace elidex::bench
