// Searches among the few keys of one node or bucket.
//
//   branchless_lower_bound<false>(key_at, count, wanted)   keys in order, wherever they lie
//   keys.rank<true>(count, wanted)                         summarized_keys: in order, of an inner
//                                                          node
//   prints.find(print, count, is_wanted)                   fingerprints: in any order, a byte each
//   find_heads<Words, Stride, Racing>(heads, count, wanted)
//                                                          the first words of strings, in order
//
// Thread-safety: as the node's fields. A racing reader's result counts only if the node's version
// has not changed.
//
// Implementation notes
// Each class below has its own notes.
//
// Vector code lies beside code that runs on every CPU. It runs only where the CPU has the
// instructions, which is found out at program start. It is not used under a thread checker or
// simulator, which would not see vector loads.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "elidex/internal/sync/version_lock.hpp"

#if defined(__x86_64__) && !defined(ELIDEX_SIMULATED) && !defined(__SANITIZE_THREAD__)
#  if defined(__has_feature)
#    if !__has_feature(thread_sanitizer)
#      define ELIDEX_VECTORS 1
#    endif
#  else
#    define ELIDEX_VECTORS 1
#  endif
#endif

#if defined(ELIDEX_VECTORS)
#  include <immintrin.h>
#elif defined(__SSE2__)
#  include <emmintrin.h>
#endif

namespace elidex::internal {

// Which vector instructions for whole cache lines of keys the CPU has. Each level includes those
// before it.
enum class vector_instructions : std::uint8_t {
  none,
  avx2,
  avx512,       // the foundation
  avx512_vbmi,  // and bytes moved freely within a register (with DQ and VL)
};

#if defined(ELIDEX_VECTORS)
inline vector_instructions find_vector_instructions() noexcept {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) return vector_instructions::none;
  if (!__builtin_cpu_supports("avx512f")) return vector_instructions::avx2;
  const bool moves_bytes = __builtin_cpu_supports("avx512vbmi") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return moves_bytes ? vector_instructions::avx512_vbmi : vector_instructions::avx512;
}
// `none` until static objects are initialized, which is also correct.
inline const vector_instructions vectors_of_this_cpu = find_vector_instructions();
#else
inline constexpr vector_instructions vectors_of_this_cpu = vector_instructions::none;
#endif

// Returns how many of `count` ascending keys are less than `wanted` (OrEqual: or equal to it).
// Conditional moves choose the halves, so that random keys cause no mispredictions.
template <bool OrEqual, class KeyAt, class Key>
unsigned branchless_lower_bound(KeyAt&& key_at, unsigned count, Key wanted) noexcept {
  const auto before = [&](unsigned i) {
    return OrEqual ? key_at(i) <= wanted : key_at(i) < wanted;
  };
  unsigned base = 0;
  unsigned length = count;
  while (length > 1) {
    const unsigned half = length / 2;
    base += before(base + half - 1) ? half : 0;
    length -= half;
  }
  return base + static_cast<unsigned>(length == 1 && before(base));
}

// Returns a bit for each byte in which the words are equal, the lowest bit for the lowest byte.
constexpr std::uint64_t equal_bytes(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t low_bits = 0x7F7F'7F7F'7F7F'7F7Fu;
  const std::uint64_t different = a ^ b;
  // No byte's sum carries into the next byte.
  const std::uint64_t highest = ~(((different & low_bits) + low_bits) | different | low_bits);
  // The product moves bit 8 i to bit 56 + i. Its other terms lie below bit 56 or above bit 63.
  return ((highest >> 7U) * 0x0102'0408'1020'4080u) >> 56U;
}

// Fingerprints: one byte of a hash for each key. A search compares these first, and then reads only
// the few keys with the wanted fingerprint.
//
// Eight fingerprints lie in a word, and all of a word are compared at once. Of n keys that are not
// the wanted one, a search reads n / 256 in vain.
// From: Oukid et al., "FPTree", SIGMOD 2016, section 4.2, where fingerprints save reads of slow
// memory.
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

  std::array<field<std::uint64_t>, words> words_{};
};

}  // namespace elidex::internal

// Counts the keys that are less than another one, a cache line at a time, by AVX2.
namespace elidex::internal::vector_search {

inline constexpr std::size_t key_bytes = 8;
inline constexpr unsigned lane_count = 8;

#if defined(ELIDEX_VECTORS)

// Loads eight words that another thread may write meanwhile.
[[gnu::target("avx512f"), gnu::always_inline]] inline __m512i load_512(const void* eight) noexcept {
  __m512i words;
  asm volatile("vmovdqu64 %1, %0" : "=v"(words) : "m"(*static_cast<const char(*)[64]>(eight)));
  return words;
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i load_256(const void* four) noexcept {
  __m256i words;
  asm volatile("vmovdqu %1, %0" : "=x"(words) : "m"(*static_cast<const char(*)[32]>(four)));
  return words;
}

// A comparison of eight keys with the wanted one, in one statement, so that it is inlined into code
// for every CPU. A function for AVX2 could not be. Keys, flipped, are in ymm2 and ymm3, and the
// wanted one is in ymm0. The end, vzeroupper, changes all vector registers.
#  define ELIDEX_COMPARE_EIGHT(compare_low, compare_high)          \
    "vmovq %[wanted], %%xmm0\n\t"                                  \
    "vmovq %[flip], %%xmm1\n\t"                                    \
    "vpbroadcastq %%xmm0, %%ymm0\n\t"                              \
    "vpbroadcastq %%xmm1, %%ymm1\n\t"                              \
    "vpxor %[first], %%ymm1, %%ymm2\n\t"                           \
    "vpxor %[second], %%ymm1, %%ymm3\n\t" compare_low compare_high \
    "vmovmskpd %%ymm2, %k[low]\n\t"                                \
    "vmovmskpd %%ymm3, %k[high]\n\t"                               \
    "vzeroupper" : [low] "=r"(low),                                \
                   [high] "=r"(high)                               \
        : [wanted] "r"(flipped),                                   \
          [flip] "r"(flip),                                        \
          [first] "m"(keys[0]),                                    \
          [second] "m"(keys[1])                                    \
        : "xmm0",                                                  \
          "xmm1",                                                  \
          "xmm2",                                                  \
          "xmm3",                                                  \
          "xmm4",                                                  \
          "xmm5",                                                  \
          "xmm6",                                                  \
          "xmm7",                                                  \
          "xmm8",                                                  \
          "xmm9",                                                  \
          "xmm10",                                                 \
          "xmm11",                                                 \
          "xmm12",                                                 \
          "xmm13",                                                 \
          "xmm14",                                                 \
          "xmm15"

// Counts, from the left, how many of eight keys are before the wanted one. Stops at the first that
// is not. The CPU must have AVX2, which compares signed numbers. So the highest bit of unsigned
// keys is flipped.
template <bool OrEqual, std::integral Key>
[[gnu::always_inline]] inline unsigned run_before(const Key* eight_keys, Key wanted) noexcept {
  constexpr std::uint64_t flip = std::is_signed_v<Key> ? 0 : std::uint64_t{1} << 63U;
  const std::uint64_t flipped = static_cast<std::uint64_t>(wanted) ^ flip;
  const auto* const keys = reinterpret_cast<const char(*)[32]>(eight_keys);
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  if constexpr (OrEqual) {  // a bit for each key that is greater than the wanted one
    asm volatile(ELIDEX_COMPARE_EIGHT("vpcmpgtq %%ymm0, %%ymm2, %%ymm2\n\t",
                                      "vpcmpgtq %%ymm0, %%ymm3, %%ymm3\n\t"));
  } else {  // a bit for each key that is less than it
    asm volatile(ELIDEX_COMPARE_EIGHT("vpcmpgtq %%ymm2, %%ymm0, %%ymm2\n\t",
                                      "vpcmpgtq %%ymm3, %%ymm0, %%ymm3\n\t"));
  }
  const std::uint64_t bits = low | high << lane_count / 2;
  return static_cast<unsigned>(
      std::countr_zero((OrEqual ? bits : ~bits) | std::uint64_t{1} << lane_count));
}
#  undef ELIDEX_COMPARE_EIGHT

// The rank among the first `count` keys behind a summary of `summary_length` keys, of which
// `full_blocks` count. Eight keys must be readable from the summary's first key on, and from the
// first key of each block on.
template <bool OrEqual, std::integral Key>
[[gnu::always_inline]] inline unsigned rank(const void* words, unsigned summary_length,
                                            unsigned full_blocks, unsigned count,
                                            Key wanted) noexcept {
  const auto* const keys = static_cast<const Key*>(words);
  const unsigned block = std::min(run_before<OrEqual>(keys, wanted), full_blocks);
  const unsigned first = block * lane_count;
  return std::min(first + run_before<OrEqual>(keys + summary_length + first, wanted), count);
}

#else

template <bool OrEqual, std::integral Key>
unsigned rank(const void* /*words*/, unsigned /*summary_length*/, unsigned /*full_blocks*/,
              unsigned /*count*/, Key /*wanted*/) noexcept {
  return 0;
}

#endif

}  // namespace elidex::internal::vector_search

namespace elidex::internal {

// The keys of an inner node, in order, behind a summary: the last key of each block of keys.
//
//   | head | summary: last of block 0, of block 1, ... | block 0 | block 1 | ... | block n - 1 |
//
// A search compares the summary, which tells the block, and then that block. It touches two cache
// lines. On x86 with AVX2 it compares whole lines, twice. A binary search in place would
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
// vectors, and for keys of other sizes than eight bytes, the search is binary, with relaxed loads.
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
                                            wanted);
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

// The keys of a node that have a wanted head: those from `first` to `last` - 1. Keys before `first`
// have smaller heads. first <= last <= count, whatever a racing reader reads.
struct equal_heads {
  unsigned first;
  unsigned last;
};

}  // namespace elidex::internal

// Compares all heads of a node with a wanted one, without a branch that depends on the keys.
namespace elidex::internal::vector_search {

// A bit for each head.
struct head_bits {
  std::uint64_t less;
  std::uint64_t equal;
};

#if defined(ELIDEX_VECTORS)

template <unsigned Stride>
[[gnu::target("avx512f"), gnu::always_inline]] inline head_bits compare_heads_512(
    const std::uint64_t* heads, std::uint64_t wanted) noexcept {
  const __m512i all = _mm512_set1_epi64(static_cast<long long>(wanted));
  head_bits bits{};
#  pragma GCC unroll 8
  for (unsigned i = 0; i < Stride; i += lane_count) {
    const __m512i eight = load_512(heads + i);
    bits.less |= std::uint64_t{_mm512_cmplt_epu64_mask(eight, all)} << i;
    bits.equal |= std::uint64_t{_mm512_cmpeq_epi64_mask(eight, all)} << i;
  }
  return bits;
}

template <unsigned Stride>
[[gnu::target("avx2"), gnu::always_inline]] inline head_bits compare_heads_256(
    const std::uint64_t* heads, std::uint64_t wanted) noexcept {
  // AVX2 compares signed numbers.
  const __m256i flip = _mm256_set1_epi64x(INT64_MIN);
  const __m256i all = _mm256_xor_si256(_mm256_set1_epi64x(static_cast<long long>(wanted)), flip);
  head_bits bits{};
#  pragma GCC unroll 16
  for (unsigned i = 0; i < Stride; i += lane_count / 2) {
    const __m256i four = _mm256_xor_si256(load_256(heads + i), flip);
    const __m256d less = _mm256_castsi256_pd(_mm256_cmpgt_epi64(all, four));
    const __m256d equal = _mm256_castsi256_pd(_mm256_cmpeq_epi64(all, four));
    bits.less |= static_cast<std::uint64_t>(_mm256_movemask_pd(less)) << i;
    bits.equal |= static_cast<std::uint64_t>(_mm256_movemask_pd(equal)) << i;
  }
  return bits;
}

// The bits of the first `count` heads alone.
[[gnu::always_inline]] inline head_bits first_bits(head_bits bits, unsigned count) noexcept {
  const std::uint64_t used = count < 64 ? (std::uint64_t{1} << count) - 1 : ~std::uint64_t{0};
  return {bits.less & used, bits.equal & used};
}

// The second words count only where the first words are equal.
[[gnu::always_inline]] inline head_bits joined(head_bits first, head_bits second) noexcept {
  return {first.less | (first.equal & second.less), first.equal & second.equal};
}

[[gnu::always_inline]] inline equal_heads heads_of(head_bits bits) noexcept {
  const auto first = static_cast<unsigned>(std::popcount(bits.less));
  return {first, first + static_cast<unsigned>(std::popcount(bits.equal))};
}

template <unsigned Words, unsigned Stride>
[[gnu::target("avx512f,popcnt"), gnu::noinline]] equal_heads find_heads_512(
    const std::uint64_t* heads, unsigned count,
    const std::array<std::uint64_t, Words>& wanted) noexcept {
  head_bits bits = first_bits(compare_heads_512<Stride>(heads, wanted[0]), count);
  if constexpr (Words == 2) {
    if (bits.equal != 0) bits = joined(bits, compare_heads_512<Stride>(heads + Stride, wanted[1]));
  }
  return heads_of(bits);
}

template <unsigned Words, unsigned Stride>
[[gnu::target("avx2,popcnt"), gnu::noinline]] equal_heads find_heads_256(
    const std::uint64_t* heads, unsigned count,
    const std::array<std::uint64_t, Words>& wanted) noexcept {
  head_bits bits = first_bits(compare_heads_256<Stride>(heads, wanted[0]), count);
  if constexpr (Words == 2) {
    if (bits.equal != 0) bits = joined(bits, compare_heads_256<Stride>(heads + Stride, wanted[1]));
  }
  return heads_of(bits);
}

template <unsigned Words, unsigned Stride>
equal_heads find_heads(const void* heads, unsigned count,
                       const std::array<std::uint64_t, Words>& wanted,
                       vector_instructions with) noexcept {
  const auto* const words = static_cast<const std::uint64_t*>(heads);
  return with >= vector_instructions::avx512 ? find_heads_512<Words, Stride>(words, count, wanted)
                                             : find_heads_256<Words, Stride>(words, count, wanted);
}

#else

template <unsigned Words, unsigned Stride>
equal_heads find_heads(const void* /*heads*/, unsigned /*count*/,
                       const std::array<std::uint64_t, Words>& /*wanted*/,
                       vector_instructions /*with*/) noexcept {
  return {0, 0};
}

#endif

}  // namespace elidex::internal::vector_search

namespace elidex::internal {

// Finds a wanted head among the heads of `count` keys in order. A head is the first Words words of
// a key, 1 or 2. The first words of all keys lie together, from `heads` on. The second words lie
// together, from `heads` + Stride on.
//
// Vectors compare all Stride words, also those behind `count`, which must be readable. A mask then
// takes away what is not a head. So no branch depends on the keys, except on whether a first word
// is equal. Without vectors the search is binary. Why a racing vector load is correct: see
// summarized_keys.
template <unsigned Words, unsigned Stride, bool Racing>
equal_heads find_heads(const field<std::uint64_t>* heads, unsigned count,
                       const std::array<std::uint64_t, Words>& wanted,
                       vector_instructions with = vectors_of_this_cpu) noexcept {
  static_assert((Words == 1 || Words == 2) && Stride % 8 == 0 && Stride <= 64);
  if (with != vector_instructions::none) {
    return vector_search::find_heads<Words, Stride>(heads, count, wanted, with);
  }
  equal_heads found{0, count};
  for (unsigned word = 0; word < Words && found.first < found.last; ++word) {
    const unsigned base = found.first;
    const auto at = [&](unsigned i) {
      return heads[word * Stride + base + i].template load<Racing>();
    };
    const unsigned many = found.last - base;
    found.first = base + branchless_lower_bound<false>(at, many, wanted[word]);
    if (found.first == found.last || at(found.first - base) != wanted[word]) {
      found.last = found.first;
    } else {
      // A racing reader may find fewer keys now. The result counts only after validation.
      const unsigned last = base + branchless_lower_bound<true>(at, many, wanted[word]);
      found.last = std::max(found.first, last);
    }
  }
  return found;
}

}  // namespace elidex::internal
