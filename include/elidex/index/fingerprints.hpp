// One byte of a hash for each key of a leaf: whoever looks for a key reads these first, and then only the few keys that have
// the same. From: Oukid et al., "FPTree", SIGMOD 2016, section 4.2, where it saves reads of slow memory.
//
// Eight lie in a word, and all of a word are compared at once. Of n keys that are not the wanted one, n / 256 are looked at
// in vain.
//
// Thread-safety: as the leaf's fields; what a racing reader makes of a word is worth something only if the leaf's version
// stayed.
#pragma once

#ifdef __SSE2__
#  include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>

#include "elidex/index/field.hpp"

namespace elidex::detail {

template <bool Racing, unsigned Capacity>
class fingerprints {
 public:
  // A multiplicative hash: neighbours differ.
  template <std::integral Key>
  static std::uint8_t of(Key key) noexcept {
    return static_cast<std::uint8_t>((static_cast<std::uint64_t>(key) * 0x9E37'79B9'7F4A'7C15u) >> 56U);
  }

  void set(unsigned slot, std::uint8_t print) noexcept {
    const unsigned shift = slot % 8 * 8;
    put(slot / 8, (word(slot / 8) & ~(byte_mask << shift)) | std::uint64_t{print} << shift);
  }

  // Those behind move up.
  void erase(unsigned slot) noexcept {
    unsigned at = slot / 8;
    const std::uint64_t kept = (std::uint64_t{1} << (slot % 8 * 8)) - 1;
    std::uint64_t w = word(at);
    w = (w & kept) | (w >> 8U & ~kept);
    for (; at + 1 < words; ++at) {
      const std::uint64_t next = word(at + 1);
      constexpr std::uint64_t without_last = ~std::uint64_t{0} >> 8U;
      put(at, (w & without_last) | next << 56U);
      w = next >> 8U;
    }
    put(at, w);
  }

  // The first slot from 0 to count - 1 with this fingerprint for which is_wanted(slot), or Capacity.
  template <class IsWanted>
  unsigned find(std::uint8_t print, unsigned count, IsWanted&& is_wanted) const noexcept {
    for (unsigned first = 0; first < words; first += words_at_once) {
      for (std::uint64_t equal = equal_slots(first, print); equal != 0; equal &= equal - 1) {
        const unsigned slot = first * 8 + static_cast<unsigned>(std::countr_zero(equal));
        if (slot >= count) return Capacity;
        if (is_wanted(slot)) return slot;
      }
    }
    return Capacity;
  }

 private:
  static constexpr unsigned words = (Capacity + 7) / 8;
  static constexpr std::uint64_t byte_mask = 0xFF;
  static constexpr std::uint64_t ones = 0x0101'0101'0101'0101u;

  static constexpr unsigned words_at_once = 8;

  // One bit for each of the 64 slots from word `first` on: whether it has this fingerprint.
  std::uint64_t equal_slots(unsigned first, std::uint8_t print) const noexcept {
    std::uint64_t equal = 0;
    const unsigned last = std::min(first + words_at_once, words);
#ifdef __SSE2__
    const __m128i wanted = _mm_set1_epi8(static_cast<char>(print));
    for (unsigned i = first; i < last; i += 2) {
      const std::uint64_t high = i + 1 < last ? word(i + 1) : 0;
      const __m128i pair = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(word(i)));
      const auto bits = static_cast<std::uint64_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(pair, wanted)));
      equal |= bits << ((i - first) * 8);
    }
#else
    for (unsigned i = first; i < last; ++i) equal |= equal_bytes(word(i), print * ones) << ((i - first) * 8);
#endif
    return equal;
  }

  // One bit for each byte in which the words are equal. No byte's sum carries into the next.
  static std::uint64_t equal_bytes(std::uint64_t a, std::uint64_t b) noexcept {
    constexpr std::uint64_t low_bits = 0x7F * ones;
    const std::uint64_t different = a ^ b;
    const std::uint64_t highest = ~(((different & low_bits) + low_bits) | different | low_bits);
    return ((highest >> 7U) * 0x0102'0408'1020'4081u) >> 56U;  // gathers the bits, the first byte's as the lowest
  }
  std::uint64_t word(unsigned i) const noexcept { return words_[i].template load<Racing>(); }
  void put(unsigned i, std::uint64_t w) noexcept { words_[i].template store<Racing>(w); }

  std::array<field<std::uint64_t>, words> words_{};
};

// Of a leaf that does without.
struct no_fingerprints {};

}  // namespace elidex::detail
