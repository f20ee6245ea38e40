// Eight packed keys at once, where the CPU can move bytes freely within a register. The user is
// packed_keys.hpp, whose header tells how keys are packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "elidex/internal/tree/vector_instructions.hpp"

namespace elidex::internal::vector_unpack {

inline constexpr unsigned lane_count = 8;
inline constexpr std::size_t window_bytes = 64;

#if defined(ELIDEX_VECTORS)

using eight_words [[gnu::vector_size(64)]] = std::uint64_t;
using eight_bytes [[gnu::vector_size(8)]] = std::uint8_t;

// Needs avx512_vbmi. The keys whose rests of so many bits begin at `first_bit` and lie one behind
// the other: base + (rest << 8 | (print ^ the highest byte of rest * multiplier)). Reads a window
// of 64 bytes from the first byte of every eighth rest on, and writes keys by the eight.
[[gnu::target("avx512f,avx512dq,avx512vl,avx512vbmi"), gnu::noinline]] inline void unpack(
    const std::uint64_t* rests, unsigned first_bit, unsigned rest_bits, const std::uint8_t* prints,
    unsigned count, std::uint64_t base, std::uint64_t multiplier, std::uint64_t* keys) noexcept {
  // In each window the rests begin at the same bits, because eight of them are whole bytes.
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

#else

inline void unpack(const std::uint64_t* /*rests*/, unsigned /*first_bit*/, unsigned /*rest_bits*/,
                   const std::uint8_t* /*prints*/, unsigned /*count*/, std::uint64_t /*base*/,
                   std::uint64_t /*multiplier*/, std::uint64_t* /*keys*/) noexcept {}

#endif

}  // namespace elidex::internal::vector_unpack
