// The keys of an inner node, in order, with a summary in front: the last key of each block of them.
//
//   | head | summary: last of block 0, of block 1, ... | block 0 | block 1 | ... | block n - 1 |
//
// A search compares the summary, which says in which block to look, and then that block: two cache
// lines and, on x86 with AVX2 or AVX-512, as many comparisons of whole lines. Halving the keys in
// place would touch four lines one after the other. The idea is micro-indexing (Lomet, "The
// evolution of effective B-tree", SIGMOD Record 30(3), 2001); that the last block needs no entry,
// so that head and summary fill a line, and the vectors are ours.
//
// Invariant: the summary has the last key of each full block but the last. Entries of blocks that
// are not full, and keys behind `count`, may be anything: a rank counts from the left up to the
// first key that is not before, and ends at `count`.
//
// Thread-safety: as the node's fields; what a racing reader makes of it is worth something only if
// the node's version stayed. Vector loads read what `field` stores, ordered by the version lock's
// fences as its relaxed loads are; should a word come torn, the version tells. C++ has no name for
// such a load, so it is one line of assembly, which the compiler takes for a read of that memory.
// Where there are no vectors (vector_instructions.hpp), and for keys of other sizes than eight
// bytes, the search halves with relaxed loads.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elidex/internal/tree/branchless_lower_bound.hpp"
#include "elidex/internal/tree/field.hpp"
#include "elidex/internal/tree/vector_instructions.hpp"

// How many of a few keys are less than another one, a cache line at a time: AVX-512 or AVX2, as the
// CPU has it.
namespace elidex::internal::vector_search {

inline constexpr std::size_t key_bytes = 8;
inline constexpr unsigned lane_count = 8;

#if defined(ELIDEX_VECTORS)

// How many of eight keys, from the left, are before the wanted one up to the first that is not.
template <bool OrEqual, std::integral Key>
[[gnu::target("avx512f"), gnu::always_inline]] inline unsigned run_before_512(
    const void* eight_keys, __m512i wanted) {
  __m512i keys;
  asm volatile("vmovdqu64 %1, %0" : "=v"(keys) : "m"(*static_cast<const char(*)[64]>(eight_keys)));
  constexpr int order = OrEqual ? _MM_CMPINT_LE : _MM_CMPINT_LT;
  const __mmask8 before = std::is_signed_v<Key> ? _mm512_cmp_epi64_mask(keys, wanted, order)
                                                : _mm512_cmp_epu64_mask(keys, wanted, order);
  return static_cast<unsigned>(std::countr_one(static_cast<std::uint8_t>(before)));
}

template <bool OrEqual, std::integral Key>
[[gnu::target("avx2"), gnu::always_inline]] inline unsigned run_before_256(const void* eight_keys,
                                                                           __m256i wanted,
                                                                           __m256i flip) {
  __m256i low;
  __m256i high;
  const auto* const halves = static_cast<const char(*)[32]>(eight_keys);
  asm volatile("vmovdqu %1, %0" : "=x"(low) : "m"(halves[0]));
  asm volatile("vmovdqu %1, %0" : "=x"(high) : "m"(halves[1]));
  low = _mm256_xor_si256(low, flip);
  high = _mm256_xor_si256(high, flip);
  // Not before: greater than the wanted one, or not less.
  const __m256i first = OrEqual ? _mm256_cmpgt_epi64(low, wanted) : _mm256_cmpgt_epi64(wanted, low);
  const __m256i second =
      OrEqual ? _mm256_cmpgt_epi64(high, wanted) : _mm256_cmpgt_epi64(wanted, high);
  const auto bits = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(first)) |
                                          _mm256_movemask_pd(_mm256_castsi256_pd(second)) << 4);
  return static_cast<unsigned>(std::countr_zero(OrEqual ? bits | 0x100U : ~bits));
}

// The rank among the first `count` keys behind a summary of `summary_length` keys, of which
// `full_blocks` count. Eight keys are there to be read from the summary's first on, and from the
// first of each block on.
template <bool OrEqual, std::integral Key>
[[gnu::target("avx512f"), gnu::noinline]] unsigned rank_512(const Key* words,
                                                            unsigned summary_length,
                                                            unsigned full_blocks, unsigned count,
                                                            Key wanted) noexcept {
  const __m512i all = _mm512_set1_epi64(static_cast<long long>(wanted));
  const unsigned block = std::min(run_before_512<OrEqual, Key>(words, all), full_blocks);
  const unsigned first = block * lane_count;
  return std::min(first + run_before_512<OrEqual, Key>(words + summary_length + first, all), count);
}

template <bool OrEqual, std::integral Key>
[[gnu::target("avx2"), gnu::noinline]] unsigned rank_256(const Key* words, unsigned summary_length,
                                                         unsigned full_blocks, unsigned count,
                                                         Key wanted) noexcept {
  // Comparisons are of signed numbers.
  const __m256i flip = _mm256_set1_epi64x(std::is_signed_v<Key> ? 0 : INT64_MIN);
  const __m256i all = _mm256_xor_si256(_mm256_set1_epi64x(static_cast<long long>(wanted)), flip);
  const unsigned block = std::min(run_before_256<OrEqual, Key>(words, all, flip), full_blocks);
  const unsigned first = block * lane_count;
  return std::min(first + run_before_256<OrEqual, Key>(words + summary_length + first, all, flip),
                  count);
}

template <bool OrEqual, std::integral Key>
unsigned rank(const void* words, unsigned summary_length, unsigned full_blocks, unsigned count,
              Key wanted, vector_instructions with) noexcept {
  const auto* const keys = static_cast<const Key*>(words);
  return with >= vector_instructions::avx512
             ? rank_512<OrEqual>(keys, summary_length, full_blocks, count, wanted)
             : rank_256<OrEqual>(keys, summary_length, full_blocks, count, wanted);
}

#else

template <bool OrEqual, std::integral Key>
unsigned rank(const void* /*words*/, unsigned /*summary_length*/, unsigned /*full_blocks*/,
              unsigned /*count*/, Key /*wanted*/, vector_instructions /*with*/) noexcept {
  return 0;
}

#endif

}  // namespace elidex::internal::vector_search

namespace elidex::internal {

template <std::integral Key, bool Racing, unsigned Capacity>
class summarized_keys {
 public:
  static constexpr unsigned keys_per_block = std::max<unsigned>(1, 64 / sizeof(Key));
  static constexpr unsigned blocks = (Capacity + keys_per_block - 1) / keys_per_block;
  static constexpr unsigned summary_length = blocks - 1;
  static constexpr bool searches_with_vectors =
      sizeof(Key) == vector_search::key_bytes && summary_length <= 8;

  Key key(unsigned i) const noexcept { return words_[summary_length + i].template load<Racing>(); }
  void set_key(unsigned i, Key k) noexcept {
    words_[summary_length + i].template store<Racing>(k);
    if (i % keys_per_block == keys_per_block - 1 && i / keys_per_block < summary_length) {
      words_[i / keys_per_block].template store<Racing>(k);
    }
  }

  // How many of the first `count` keys are less than `wanted` (OrEqual: or equal to it).
  template <bool OrEqual>
  unsigned rank(unsigned count, Key wanted) const noexcept {
    return rank<OrEqual>(count, wanted, vectors_of_this_cpu);
  }
  template <bool OrEqual>
  unsigned rank(unsigned count, Key wanted, vector_instructions with) const noexcept {
    const unsigned full_blocks = std::min(count / keys_per_block, summary_length);
    if constexpr (searches_with_vectors) {
      if (with != vector_instructions::none) {
        return vector_search::rank<OrEqual>(words_.data(), summary_length, full_blocks, count,
                                            wanted, with);
      }
    }
    const unsigned block = branchless_lower_bound<OrEqual>(
        [&](unsigned i) { return words_[i].template load<Racing>(); }, full_blocks, wanted);
    const unsigned first = block * keys_per_block;
    return first + branchless_lower_bound<OrEqual>([&](unsigned i) { return key(first + i); },
                                                   std::min(count - first, keys_per_block), wanted);
  }

 private:
  std::array<field<Key>, summary_length + blocks * keys_per_block> words_;
};

}  // namespace elidex::internal
