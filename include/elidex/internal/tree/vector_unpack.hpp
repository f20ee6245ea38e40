// Decoding of eight packed keys at once, where the CPU can move bytes freely within a register.
//
//   if (vectors_of_this_cpu >= vector_instructions::avx512_vbmi) vector_unpack::unpack(...);
//
// Thread-safety: at each function.
//
// Implementation notes
// The coding of a key as a fingerprint and a rest: packed_keys (separated_leaf.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "elidex/internal/tree/key_search.hpp"

namespace elidex::internal::vector_unpack {

inline constexpr unsigned lane_count = 8;
inline constexpr std::size_t window_bytes = 64;

// Where the line has the fingerprints and the rests.
inline constexpr unsigned line_prints_byte = 8;
inline constexpr unsigned line_rests_byte = 16;

#if defined(ELIDEX_VECTORS)

using eight_words [[gnu::vector_size(64)]] = std::uint64_t;
using eight_bytes [[gnu::vector_size(8)]] = std::uint8_t;

// Decodes `count` keys: key i is base + (rest << 8 | (print ^ the highest byte of rest *
// multiplier)). The rests have `rest_bits` bits each, begin at `first_bit` and have no gaps. Needs
// avx512_vbmi. Reads a window of 64 bytes from the first byte of every eighth rest on. Writes keys
// in groups of eight.
[[gnu::target("avx512f,avx512dq,avx512vl,avx512vbmi"), gnu::noinline]] inline void unpack(
    const std::uint64_t* rests, unsigned first_bit, unsigned rest_bits, const std::uint8_t* prints,
    unsigned count, std::uint64_t base, std::uint64_t multiplier, std::uint64_t* keys) noexcept {
  // In each window the rests begin at the same bits, because eight rests are whole bytes.
  const eight_words bits = eight_words{0, 1, 2, 3, 4, 5, 6, 7} * rest_bits + first_bit % 8;
  const eight_words bytes = (bits >> 3U) * 0x0101'0101'0101'0101u + 0x0706'0504'0302'0100u;
  const eight_words shifts = bits & 7U;
  const std::uint64_t mask = (std::uint64_t{1} << rest_bits) - 1;
  const char* window = reinterpret_cast<const char*>(rests) + first_bit / 8;
  for (unsigned i = 0; i < count; i += lane_count, window += rest_bits) {
    eight_words words;
    std::memcpy(&words, window, sizeof(words));
    words = reinterpret_cast<eight_words>(_mm512_maskz_permutexvar_epi8(
        ~std::uint64_t{0}, reinterpret_cast<__m512i>(bytes), reinterpret_cast<__m512i>(words)));
    eight_bytes print;
    std::memcpy(&print, prints + i, sizeof(print));
    const eight_words rest = (words >> shifts) & mask;
    const eight_words hash = (rest * multiplier) >> 56U;
    const eight_words key =
        base + (rest << 8U | (__builtin_convertvector(print, eight_words) ^ hash));
    std::memcpy(keys + i, &key, sizeof(key));
  }
}

// Writes eight numbers: number i is base + (rest << 8 | (print ^ the highest byte of rest *
// multiplier)). Needs avx512_vbmi. The line is read at once, by assembly, as summarized_keys does
// (key_search.hpp): a racing reader validates afterwards.
[[gnu::target("avx512f,avx512dq,avx512vl,avx512vbmi"), gnu::noinline]] inline void unpack_line(
    const void* line, unsigned rest_bits, std::uint64_t base, std::uint64_t multiplier,
    std::uint64_t* numbers) noexcept {
  const eight_words lane{0, 1, 2, 3, 4, 5, 6, 7};
  const eight_words bits = lane * rest_bits + std::uint64_t{line_rests_byte} * 8;
  const eight_words bytes = (bits >> 3U) * 0x0101'0101'0101'0101u + 0x0706'0504'0302'0100u;
  __m512i words;
  asm volatile("vmovdqu64 %1, %0" : "=v"(words) : "m"(*static_cast<const char(*)[64]>(line)));
  const auto moved = reinterpret_cast<eight_words>(
      _mm512_maskz_permutexvar_epi8(~std::uint64_t{0}, reinterpret_cast<__m512i>(bytes), words));
  const auto print = reinterpret_cast<eight_words>(_mm512_maskz_permutexvar_epi8(
      0x0101'0101'0101'0101u, reinterpret_cast<__m512i>(lane + line_prints_byte), words));
  const eight_words rest = (moved >> (bits & 7U)) & ((std::uint64_t{1} << rest_bits) - 1);
  const eight_words number = base + (rest << 8U | (print ^ (rest * multiplier) >> 56U));
  std::memcpy(numbers, &number, sizeof(number));
}

#else

inline void unpack(const std::uint64_t* /*rests*/, unsigned /*first_bit*/, unsigned /*rest_bits*/,
                   const std::uint8_t* /*prints*/, unsigned /*count*/, std::uint64_t /*base*/,
                   std::uint64_t /*multiplier*/, std::uint64_t* /*keys*/) noexcept {}

inline void unpack_line(const void* /*line*/, unsigned /*rest_bits*/, std::uint64_t /*base*/,
                        std::uint64_t /*multiplier*/, std::uint64_t* /*numbers*/) noexcept {}

#endif

}  // namespace elidex::internal::vector_unpack
