// Eight packed keys at once, where the CPU can move bytes freely within a register (AVX-512 with VBMI). The user is
// packed_keys.hpp, whose header tells how keys are packed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "elidex/index/vector_search.hpp"

namespace elidex::detail::vector_unpack {

inline constexpr unsigned lane_count = 8;
inline constexpr std::size_t window_bytes = 64;

#if defined(ELIDEX_VECTOR_SEARCH)

inline bool find_instructions() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
// False while static objects are being made, which is right, too.
inline const bool by_this_cpu = find_instructions();

[[gnu::target("avx512f"), gnu::always_inline]] inline __m512i all(std::uint64_t v) noexcept {
  return _mm512_set1_epi64(static_cast<long long>(v));
}

// The keys whose rests of so many bits begin at `first_bit` and lie one behind the other: base + (rest << 8 | (print ^ the
// highest byte of rest * multiplier)). Reads a window of 64 bytes from the first byte of every eighth rest on, and
// writes keys by the eight.
[[gnu::target("avx512f,avx512dq,avx512vl,avx512vbmi"), gnu::noinline]] inline void unpack(
    const std::uint64_t* rests, unsigned first_bit, unsigned rest_bits, const std::uint8_t* prints, unsigned count,
    std::uint64_t base, std::uint64_t multiplier, std::uint64_t* keys) noexcept {
  // In each window the rests begin at the same bits, because eight of them are whole bytes.
  const __m512i bits = _mm512_add_epi64(all(first_bit % 8),
                                        _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), all(rest_bits)));
  const __m512i bytes = _mm512_add_epi64(_mm512_mullo_epi64(_mm512_srli_epi64(bits, 3), all(0x0101'0101'0101'0101u)),
                                         all(0x0706'0504'0302'0100u));
  const __m512i shifts = _mm512_and_si512(bits, all(7));
  const __m512i mask = all((std::uint64_t{1} << rest_bits) - 1);
  const char* window = reinterpret_cast<const char*>(rests) + first_bit / 8;
  for (unsigned i = 0; i < count; i += lane_count, window += rest_bits) {
    const __m512i words = _mm512_permutexvar_epi8(bytes, _mm512_loadu_si512(window));
    const __m512i rest = _mm512_and_si512(_mm512_srlv_epi64(words, shifts), mask);
    const __m512i hash = _mm512_srli_epi64(_mm512_mullo_epi64(rest, all(multiplier)), 56);
    const __m512i print = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(prints + i)));
    const __m512i distance = _mm512_or_si512(_mm512_slli_epi64(rest, 8), _mm512_xor_si512(print, hash));
    _mm512_storeu_si512(keys + i, _mm512_add_epi64(distance, all(base)));
  }
}

#else

inline constexpr bool by_this_cpu = false;

inline void unpack(const std::uint64_t* /*rests*/, unsigned /*first_bit*/, unsigned /*rest_bits*/,
                   const std::uint8_t* /*prints*/, unsigned /*count*/, std::uint64_t /*base*/,
                   std::uint64_t /*multiplier*/, std::uint64_t* /*keys*/) noexcept {}

#endif

}  // namespace elidex::detail::vector_unpack
