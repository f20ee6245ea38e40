#pragma once
// Small deterministic random numbers for workloads: equal seeds give equal request streams on every
// machine.
//
//   random_bits bits(42);            // a generator
//   bits.below(10); bits.unit();     // 0..9; a double in [0, 1)
//   // order(0), order(1), ... visits 0..999 once each, without a table
//   permutation order(1000, 42);
//   mix(17);  // a bijection of the 64-bit integers: distinct in, distinct out
//
// Invariants: mix() and every permutation are bijections, so keys made through them are distinct.
// Thread-safety: random_bits belongs to one thread; the rest are pure functions.

#include <bit>
#include <cstdint>

namespace elidex::bench {

/// A bijection on 64-bit integers whose output bits all depend on all input bits (xor-shifts and
/// odd multiplications).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// A counter behind `mix`: 2^64 long, any seed is good, one multiplication chain per draw.
class random_bits {
 public:
  explicit constexpr random_bits(std::uint64_t seed) noexcept : state_(mix(seed)) {}

  [[nodiscard]] constexpr std::uint64_t next() noexcept {
    return mix(state_ += 0x9e3779b97f4a7c15U);
  }

  /// Uniform in [0, bound), bound > 0. By the high half of a product; the bias is below bound /
  /// 2^64.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    __extension__ using wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<wide>(next()) * bound) >> 64U);
  }

  /// Uniform in [0, 1), 53 bits.
  [[nodiscard]] constexpr double unit() noexcept {
    return static_cast<double>(next() >> 11U) * 0x1.0p-53;
  }

 private:
  std::uint64_t state_;
};

/// A pseudo-random bijection of 0..size-1 that needs no table: bijective steps on the enclosing
/// power of two, repeated until the value falls below size (at most two repetitions on average).
class permutation {
 public:
  constexpr permutation(std::uint64_t size, std::uint64_t seed) noexcept
      : size_(size),
        bits_(size > 1 ? static_cast<unsigned>(std::bit_width(size - 1)) : 1U),
        mask_(bits_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits_) - 1),
        salt_(mix(seed)) {}

  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t i) const noexcept {
    if (size_ <= 1) return 0;
    do i = scatter(i);
    while (i >= size_);
    return i;
  }

 private:
  [[nodiscard]] constexpr std::uint64_t scatter(std::uint64_t x) const noexcept {
    const unsigned shift = bits_ / 2 + 1 < bits_ ? bits_ / 2 + 1 : 1;
    for (unsigned round = 0; round < 3; ++round) {
      x = (x + (salt_ >> (round * 16U))) & mask_;
      x = (x * 0xd6e8feb86659fd93U) & mask_;
      x ^= x >> shift;
    }
    return x;
  }

  std::uint64_t size_;
  unsigned bits_;
  std::uint64_t mask_;
  std::uint64_t salt_;
};

}  // namespace elidex::bench
