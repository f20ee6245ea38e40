// Fingerprints: one byte of a hash for each key of a leaf. A search compares these first, and then
// reads only the few keys with the wanted fingerprint.
//
// Thread-safety: as the leaf's fields. A racing reader's result counts only if the leaf's version
// has not changed.
//
// Implementation notes
// Eight fingerprints lie in a word, and all of a word are compared at once. Of n keys that are not
// the wanted one, a search reads n / 256 in vain.
// From: Oukid et al., "FPTree", SIGMOD 2016, section 4.2, where fingerprints save reads of slow
// memory.
#pragma once

#ifdef __SSE2__
#  include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "elidex/internal/tree/field.hpp"

namespace elidex::internal {

template <bool Racing, unsigned Capacity>
class fingerprints {
 public:
  static constexpr unsigned words = (Capacity + 7) / 8;

  std::uint8_t at(unsigned slot) const noexcept {
    return static_cast<std::uint8_t>(word(slot / 8) >> slot % 8 * 8);
  }

  void set(unsigned slot, std::uint8_t print) noexcept {
    const unsigned shift = slot % 8 * 8;
    set_word(slot / 8, (word(slot / 8) & ~(byte_mask << shift)) | std::uint64_t{print} << shift);
  }

  // The fingerprints of eight slots, the first one's in the lowest byte.
  std::uint64_t word(unsigned i) const noexcept { return words_[i].template load<Racing>(); }
  void set_word(unsigned i, std::uint64_t w) noexcept { words_[i].template store<Racing>(w); }

  // Returns the first slot from 0 to count - 1 that has this fingerprint and for which
  // is_wanted(slot) is true, or Capacity.
  template <class IsWanted>
  unsigned find(std::uint8_t print, unsigned count, IsWanted&& is_wanted) const noexcept {
    return find_from<0>(print, count, is_wanted);
  }

 private:
  static constexpr std::uint64_t byte_mask = 0xFF;
  static constexpr std::uint64_t ones = 0x0101'0101'0101'0101u;

  static constexpr unsigned words_at_once = 8;

  template <unsigned First, class IsWanted>
  unsigned find_from(std::uint8_t print, unsigned count, IsWanted&& is_wanted) const noexcept {
    constexpr unsigned last = std::min(First + words_at_once, words);
    std::uint64_t equal = equal_slots<First>(print, std::make_index_sequence<(last - First) / 2>());
    if constexpr ((last - First) % 2 != 0)
      equal |= equal_pair(print, word(last - 1), 0) << (last - 1 - First) * 8;
    for (; equal != 0; equal &= equal - 1) {
      const unsigned slot = First * 8 + static_cast<unsigned>(std::countr_zero(equal));
      if (slot >= count) return Capacity;
      if (is_wanted(slot)) return slot;
    }
    if constexpr (last < words) {
      if (count > last * 8) return find_from<last>(print, count, is_wanted);
    }
    return Capacity;
  }

  // A bit for each slot in pairs of words from word First on: whether the slot has this
  // fingerprint.
  template <unsigned First, std::size_t... Pairs>
  std::uint64_t equal_slots([[maybe_unused]] std::uint8_t print,
                            std::index_sequence<Pairs...> /*unrolled*/) const noexcept {
    return (
        (equal_pair(print, word(First + 2 * Pairs), word(First + 2 * Pairs + 1)) << 16 * Pairs) |
        ... | std::uint64_t{0});
  }
  static std::uint64_t equal_pair(std::uint8_t print, std::uint64_t low,
                                  std::uint64_t high) noexcept {
#ifdef __SSE2__
    const __m128i pair = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
    const __m128i equal = _mm_cmpeq_epi8(pair, _mm_set1_epi8(static_cast<char>(print)));
    return static_cast<std::uint64_t>(_mm_movemask_epi8(equal));
#else
    return equal_bytes(low, print * ones) | equal_bytes(high, print * ones) << 8U;
#endif
  }

  // A bit for each byte in which the words are equal. No byte's sum carries into the next byte.
  static std::uint64_t equal_bytes(std::uint64_t a, std::uint64_t b) noexcept {
    constexpr std::uint64_t low_bits = 0x7F * ones;
    const std::uint64_t different = a ^ b;
    const std::uint64_t highest = ~(((different & low_bits) + low_bits) | different | low_bits);
    // Gathers the bits, the first byte's as the lowest.
    return ((highest >> 7U) * 0x0102'0408'1020'4081u) >> 56U;
  }

  std::array<field<std::uint64_t>, words> words_{};
};

}  // namespace elidex::internal
