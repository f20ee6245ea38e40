#include "elidex/internal/column/packed_ids.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "elidex/internal/tree/key_search.hpp"

namespace elidex::internal {
namespace {

constexpr std::size_t lanes = 16;
constexpr std::size_t lane_rows = packed_ids::block_rows / lanes;
constexpr unsigned word_bits = 32;

using block_ids = std::array<std::uint32_t, packed_ids::block_rows>;

// Ones in an ID's place, for so many bits; 32 need none.
template <unsigned Bits>
constexpr std::uint32_t id_mask = (1U << Bits) - 1;

// The nth of each lane, that is 16 neighbouring rows: the same shifts for all of them.
template <unsigned Bits, std::size_t Nth>
[[gnu::always_inline]] inline void unpack_neighbours(const std::uint32_t* __restrict block,
                                                     std::uint32_t* __restrict out) noexcept {
  constexpr std::size_t word = Nth * Bits / word_bits;
  constexpr unsigned shift = Nth * Bits % word_bits;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    std::uint32_t id = block[word * lanes + lane] >> shift;
    if constexpr (shift + Bits > word_bits)
      id |= block[(word + 1) * lanes + lane] << (word_bits - shift);
    out[Nth * lanes + lane] = id & id_mask<Bits>;
  }
}

template <unsigned Bits>
[[gnu::always_inline]] inline void unpack_block(const std::uint32_t* block,
                                                std::uint32_t* out) noexcept {
  if constexpr (Bits == 0) {
    std::fill_n(out, packed_ids::block_rows, 0U);
  } else if constexpr (Bits == word_bits) {
    std::memcpy(out, block, sizeof(block_ids));
  } else {
    [&]<std::size_t... Nth>(std::index_sequence<Nth...>) {
      (unpack_neighbours<Bits, Nth>(block, out), ...);
    }(std::make_index_sequence<lane_rows>());
  }
}

// What the nth ID of a lane puts into its word.
template <unsigned Bits, std::size_t Nth, std::size_t Word>
[[gnu::always_inline]] inline std::uint32_t part_of_word(std::uint32_t id) noexcept {
  constexpr std::size_t begin = Nth * Bits;
  if constexpr (begin >= Word * word_bits) return id << (begin - Word * word_bits);
  return id >> (Word * word_bits - begin) % word_bits;  // the rest of what began in the word before
}

// One word of each lane, of the IDs that have bits in it: each is written once.
template <unsigned Bits, std::size_t Word>
[[gnu::always_inline]] inline void pack_words(const std::uint32_t* __restrict ids,
                                              std::uint32_t* __restrict block) noexcept {
  constexpr std::size_t first = Word * word_bits / Bits;
  constexpr std::size_t last = ((Word + 1) * word_bits - 1) / Bits;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    block[Word * lanes + lane] = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (part_of_word<Bits, first + I, Word>(ids[(first + I) * lanes + lane]) | ...);
    }(std::make_index_sequence<last - first + 1>());
  }
}

// All IDs fit.
template <unsigned Bits>
[[gnu::always_inline]] inline void pack_block(const std::uint32_t* ids,
                                              std::uint32_t* block) noexcept {
  if constexpr (Bits == word_bits) {
    std::memcpy(block, ids, sizeof(block_ids));
  } else if constexpr (Bits > 0) {
    [&]<std::size_t... Word>(std::index_sequence<Word...>) {
      (pack_words<Bits, Word>(ids, block), ...);
    }(std::make_index_sequence<Bits>());
  }
}

// Returns how many of a block's IDs are in [first, first + width).
[[gnu::always_inline]] inline std::uint32_t count_in(const std::uint32_t* ids, std::uint32_t first,
                                                     std::uint32_t width) noexcept {
  std::uint32_t found = 0;
  for (std::size_t row = 0; row < packed_ids::block_rows; ++row)
    found += ids[row] - first < width ? 1U : 0U;
  return found;
}

// The bits that any of a block's IDs has.
[[gnu::always_inline]] inline std::uint32_t bits_in(const std::uint32_t* ids) noexcept {
  std::uint32_t all = 0;
  for (std::size_t row = 0; row < packed_ids::block_rows; ++row) all |= ids[row];
  return all;
}

// The same code for each kind of CPU. Only the instructions that the compiler may use differ. The
// bits of the rows in a range, found[0] for the first 64, are computed differently for each kind.
struct for_any_cpu {
  template <unsigned Bits>
  static void unpack(const std::uint32_t* block, std::uint32_t* out) noexcept {
    unpack_block<Bits>(block, out);
  }
  template <unsigned Bits>
  static void pack(const std::uint32_t* ids, std::uint32_t* block) noexcept {
    pack_block<Bits>(ids, block);
  }
  static std::uint32_t count(const std::uint32_t* ids, std::uint32_t first,
                             std::uint32_t width) noexcept {
    return count_in(ids, first, width);
  }
  static std::uint32_t bits(const std::uint32_t* ids) noexcept { return bits_in(ids); }

  static void match(const std::uint32_t* ids, std::uint32_t first, std::uint32_t width,
                    std::uint64_t* found) noexcept {
    static constexpr auto bit = [] {
      std::array<std::uint32_t, word_bits> made{};
      for (std::size_t row = 0; row < word_bits; ++row) made[row] = 1U << row;
      return made;
    }();
    for (std::size_t group = 0; group < packed_ids::block_rows / word_bits; ++group) {
      std::uint32_t word = 0;
      for (std::size_t row = 0; row < word_bits; ++row) {
        word |= ids[group * word_bits + row] - first < width ? bit[row] : 0U;
      }
      found[group / 2] =
          group % 2 == 0 ? word : found[group / 2] | std::uint64_t{word} << word_bits;
    }
  }
};
#if defined(ELIDEX_VECTORS)
struct for_avx2 {
  template <unsigned Bits>
  [[gnu::target("avx2")]] static void unpack(const std::uint32_t* block,
                                             std::uint32_t* out) noexcept {
    unpack_block<Bits>(block, out);
  }
  template <unsigned Bits>
  [[gnu::target("avx2")]] static void pack(const std::uint32_t* ids,
                                           std::uint32_t* block) noexcept {
    pack_block<Bits>(ids, block);
  }
  [[gnu::target("avx2")]] static std::uint32_t count(const std::uint32_t* ids, std::uint32_t first,
                                                     std::uint32_t width) noexcept {
    return count_in(ids, first, width);
  }
  [[gnu::target("avx2")]] static std::uint32_t bits(const std::uint32_t* ids) noexcept {
    return bits_in(ids);
  }

  [[gnu::target("avx2")]] static void match(const std::uint32_t* ids, std::uint32_t first,
                                            std::uint32_t width, std::uint64_t* found) noexcept {
    const __m256i begin = _mm256_set1_epi32(static_cast<int>(first));
    const __m256i greatest = _mm256_set1_epi32(static_cast<int>(width - 1));
    for (std::size_t word = 0; word < packed_ids::block_rows / 64; ++word) {
      std::uint64_t bits = 0;
      for (unsigned row = 0; row < 64; row += 8) {
        const __m256i some =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ids + word * 64 + row));
        const __m256i above = _mm256_sub_epi32(some, begin);
        const __m256i is_in =
            // none compares unsigned ones
            _mm256_cmpeq_epi32(_mm256_min_epu32(above, greatest), above);
        bits |= std::uint64_t{static_cast<std::uint32_t>(
                    _mm256_movemask_ps(_mm256_castsi256_ps(is_in)))}
                << row;
      }
      found[word] = bits;
    }
  }
};
struct for_avx512 {
  template <unsigned Bits>
  [[gnu::target("avx512f")]] static void unpack(const std::uint32_t* block,
                                                std::uint32_t* out) noexcept {
    unpack_block<Bits>(block, out);
  }
  template <unsigned Bits>
  [[gnu::target("avx512f")]] static void pack(const std::uint32_t* ids,
                                              std::uint32_t* block) noexcept {
    pack_block<Bits>(ids, block);
  }
  [[gnu::target("avx512f")]] static std::uint32_t count(const std::uint32_t* ids,
                                                        std::uint32_t first,
                                                        std::uint32_t width) noexcept {
    return count_in(ids, first, width);
  }
  [[gnu::target("avx512f")]] static std::uint32_t bits(const std::uint32_t* ids) noexcept {
    return bits_in(ids);
  }

  [[gnu::target("avx512f")]] static void match(const std::uint32_t* ids, std::uint32_t first,
                                               std::uint32_t width, std::uint64_t* found) noexcept {
    const __m512i begin = _mm512_set1_epi32(static_cast<int>(first));
    const __m512i bound = _mm512_set1_epi32(static_cast<int>(width));
    for (std::size_t word = 0; word < packed_ids::block_rows / 64; ++word) {
      std::uint64_t bits = 0;
      for (unsigned row = 0; row < 64; row += 16) {
        const __m512i above = _mm512_sub_epi32(_mm512_loadu_si512(ids + word * 64 + row), begin);
        bits |= std::uint64_t{_mm512_cmplt_epu32_mask(above, bound)} << row;
      }
      found[word] = bits;
    }
  }
};
#endif

// A packed block to 512 IDs and back, for each number of bits; and what is done with the 512.
struct kernels {
  using unpacking = void(const std::uint32_t*, std::uint32_t*) noexcept;
  using packing = void(const std::uint32_t*, std::uint32_t*) noexcept;

  std::array<unpacking*, packed_ids::bits_max + 1> unpack;
  std::array<packing*, packed_ids::bits_max + 1> pack;
  std::uint32_t (*count)(const std::uint32_t*, std::uint32_t, std::uint32_t) noexcept;
  std::uint32_t (*bits)(const std::uint32_t*) noexcept;
  void (*match)(const std::uint32_t*, std::uint32_t, std::uint32_t, std::uint64_t*) noexcept;
};

template <class Cpu>
constexpr kernels kernels_for() {
  return []<std::size_t... Bits>(std::index_sequence<Bits...>) {
    return kernels{.unpack = {&Cpu::template unpack<Bits>...},
                   .pack = {&Cpu::template pack<Bits>...},
                   .count = &Cpu::count,
                   .bits = &Cpu::bits,
                   .match = &Cpu::match};
  }(std::make_index_sequence<packed_ids::bits_max + 1>());
}

const kernels& kernels_of_this_cpu() noexcept {
#if defined(ELIDEX_VECTORS)
  static constexpr kernels avx2 = kernels_for<for_avx2>();
  static constexpr kernels avx512 = kernels_for<for_avx512>();
  if (vectors_of_this_cpu >= vector_instructions::avx512) return avx512;
  if (vectors_of_this_cpu == vector_instructions::avx2) return avx2;
#endif
  static constexpr kernels any = kernels_for<for_any_cpu>();
  return any;
}

}  // namespace

unsigned packed_ids::bits_for(std::uint32_t greatest) noexcept {
  return static_cast<unsigned>(std::bit_width(greatest));
}

packed_ids packed_ids::pack(std::span<const std::uint32_t> ids, unsigned bits) {
  writer made(ids.size(), bits);
  made.append(ids);
  return std::move(made).finish();
}

packed_ids::writer::writer(std::size_t rows, unsigned bits) : rows_(rows) {
  if (bits > bits_max) throw std::invalid_argument("elidex: an ID may have at most 32 bits");
  made_.bits_ = bits;
  made_.words_ = std::make_unique_for_overwrite<std::uint32_t[]>(made_.words_of(rows));
  made_.size_ = rows;
}

void packed_ids::writer::append(std::span<const std::uint32_t> ids) {
  if (ids.size() > rows_ - written_ - waiting_)
    throw std::logic_error("elidex: more IDs than rows");
  while (!ids.empty()) {
    if (waiting_ == 0 && ids.size() >= block_rows) {
      write_block(ids.data());
      written_ += block_rows;
      ids = ids.subspan(block_rows);
      continue;
    }
    const std::size_t taken = std::min(ids.size(), block_rows - waiting_);
    std::copy_n(ids.data(), taken, block_.begin() + static_cast<std::ptrdiff_t>(waiting_));
    ids = ids.subspan(taken);
    waiting_ += taken;
    if (waiting_ == block_rows) {
      write_block(block_.data());
      written_ += block_rows;
      waiting_ = 0;
    }
  }
}

packed_ids packed_ids::writer::finish() && {
  if (written_ + waiting_ != rows_) throw std::logic_error("elidex: fewer IDs than rows");
  if (waiting_ > 0) {
    std::fill(block_.begin() + static_cast<std::ptrdiff_t>(waiting_), block_.end(), 0U);
    write_block(block_.data());
  }
  return std::move(made_);
}

void packed_ids::writer::write_block(const std::uint32_t* ids) {
  const kernels& run = kernels_of_this_cpu();
  if (bits_for(run.bits(ids)) > made_.bits_) {
    throw std::invalid_argument("elidex: an ID does not fit into so few bits");
  }
  run.pack[made_.bits_](ids, made_.words_.get() + made_.words_of(written_));
}

std::uint32_t packed_ids::get(std::size_t row) const noexcept {
  if (bits_ == 0) return 0;
  const std::uint32_t* const lane = block_at(row / block_rows) + row % lanes;
  const std::size_t bit = row % block_rows / lanes * bits_;
  const auto shift = static_cast<unsigned>(bit % word_bits);
  std::uint64_t both = lane[bit / word_bits * lanes];
  if (shift + bits_ > word_bits)
    both |= std::uint64_t{lane[(bit / word_bits + 1) * lanes]} << word_bits;
  return static_cast<std::uint32_t>(both >> shift & ((std::uint64_t{1} << bits_) - 1));
}

void packed_ids::unpack(std::size_t from, std::size_t count, std::uint32_t* out) const noexcept {
  const auto unpack = kernels_of_this_cpu().unpack[bits_];
  while (count > 0) {
    const std::size_t within = from % block_rows;
    const std::size_t rows = std::min(count, block_rows - within);
    if (rows == block_rows) {
      unpack(block_at(from / block_rows), out);
    } else {
      block_ids whole;
      unpack(block_at(from / block_rows), whole.data());
      std::copy_n(whole.data() + within, rows, out);
    }
    from += rows;
    out += rows;
    count -= rows;
  }
}

std::size_t packed_ids::count(std::uint32_t first, std::uint32_t last) const noexcept {
  if (first >= last) return 0;
  const kernels& run = kernels_of_this_cpu();
  block_ids ids;
  std::size_t found = 0;
  for (std::size_t block = 0; block < size_ / block_rows; ++block) {
    run.unpack[bits_](block_at(block), ids.data());
    found += run.count(ids.data(), first, last - first);
  }
  // Behind the last row lie zeros.
  if (size_ % block_rows != 0) {
    for (const std::uint64_t word : matches_in(size_ / block_rows, first, last)) {
      found += static_cast<std::size_t>(std::popcount(word));
    }
  }
  return found;
}

auto packed_ids::matches_in(std::size_t block, std::uint32_t first,
                            std::uint32_t last) const noexcept -> matches {
  const kernels& run = kernels_of_this_cpu();
  block_ids ids;
  run.unpack[bits_](block_at(block), ids.data());
  matches found;
  run.match(ids.data(), first, last - first, found.data());
  const std::size_t rows = std::min(block_rows, size_ - block * block_rows);
  for (std::size_t word = 0; word < found.size() && rows < block_rows; ++word) {
    const std::size_t before = word * 64;
    if (rows < before + 64)
      found[word] &= rows <= before ? 0 : (std::uint64_t{1} << (rows - before)) - 1;
  }
  return found;
}

}  // namespace elidex::internal
