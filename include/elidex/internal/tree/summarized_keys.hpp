// The keys of an inner node, in order, behind a summary: the last key of each block of keys.
//
//   | head | summary: last of block 0, of block 1, ... | block 0 | block 1 | ... | block n - 1 |
//
// Thread-safety: as the node's fields. A racing reader's result counts only if the node's version
// has not changed.
//
// Implementation notes
// A search compares the summary, which tells the block, and then that block. It touches two cache
// lines. On x86 with AVX2 or AVX-512 it compares whole lines, twice. A binary search in place would
// touch four lines one after the other. The idea is micro-indexing (Lomet, "The evolution of
// effective B-tree", SIGMOD Record 30(3), 2001). Ours are the vectors, and the omission of the last
// block's entry, so that head and summary fill a line.
//
// Invariant: the summary has the last key of each full block except the last block. Entries of
// blocks that are not full, and keys behind `count`, may have any value. A rank counts from the
// left up to the first key that is not before the wanted one, and ends at `count`.
//
// Vector loads read what `field` stores. The version lock's fences order them as they order its
// relaxed loads. If a word is torn, validation of the version fails. C++ has no name for such a
// load, so it is one line of assembly, which the compiler treats as a read of that memory. Without
// vectors (vector_instructions.hpp), and for keys of other sizes than eight bytes, the search is
// binary, with relaxed loads.
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

// Counts the keys that are less than another one, a cache line at a time, by AVX-512 or AVX2.
namespace elidex::internal::vector_search {

inline constexpr std::size_t key_bytes = 8;
inline constexpr unsigned lane_count = 8;

#if defined(ELIDEX_VECTORS)

// Counts, from the left, how many of eight keys are before the wanted one. Stops at the first that
// is not.
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
  // The comparison marks keys that are not before the wanted one (OrEqual), or those that are.
  const __m256i first = OrEqual ? _mm256_cmpgt_epi64(low, wanted) : _mm256_cmpgt_epi64(wanted, low);
  const __m256i second =
      OrEqual ? _mm256_cmpgt_epi64(high, wanted) : _mm256_cmpgt_epi64(wanted, high);
  const auto bits = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(first)) |
                                          _mm256_movemask_pd(_mm256_castsi256_pd(second)) << 4);
  return static_cast<unsigned>(std::countr_zero(OrEqual ? bits | 0x100U : ~bits));
}

// The rank among the first `count` keys behind a summary of `summary_length` keys, of which
// `full_blocks` count. Eight keys must be readable from the summary's first key on, and from the
// first key of each block on.
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
  // AVX2 compares signed numbers.
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
