#include "elidex/column/packed_ids.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "elidex/index/vector_instructions.hpp"

namespace elidex {
namespace {

constexpr std::size_t lanes = 16;
constexpr std::size_t lane_rows = packed_ids::block_rows / lanes;
constexpr unsigned word_bits = 32;

using block_ids = std::array<std::uint32_t, packed_ids::block_rows>;

// The nth of each lane, that is 16 neighbouring rows: the same shifts for all of them.
template <unsigned Bits, std::size_t Nth>
[[gnu::always_inline]] inline void unpack_neighbours(const std::uint32_t* block, std::uint32_t* out) noexcept {
  constexpr std::size_t word = Nth * Bits / word_bits;
  constexpr unsigned shift = Nth * Bits % word_bits;
  constexpr std::uint32_t mask = Bits == word_bits ? ~0U : (1U << Bits % word_bits) - 1;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    std::uint32_t id = block[word * lanes + lane] >> shift;
    if constexpr (shift + Bits > word_bits) id |= block[(word + 1) * lanes + lane] << (word_bits - shift);
    out[Nth * lanes + lane] = id & mask;
  }
}

template <unsigned Bits>
[[gnu::always_inline]] inline void unpack_block(const std::uint32_t* block, std::uint32_t* out) noexcept {
  if constexpr (Bits == 0) {
    std::fill_n(out, packed_ids::block_rows, 0U);
  } else {
    [&]<std::size_t... Nth>(std::index_sequence<Nth...>) {
      (unpack_neighbours<Bits, Nth>(block, out), ...);
    }(std::make_index_sequence<lane_rows>());
  }
}

// How many of a block's IDs are in the `width` from `first` on.
template <unsigned Bits>
[[gnu::always_inline]] inline std::uint32_t count_block(const std::uint32_t* block, std::uint32_t first,
                                                        std::uint32_t width) noexcept {
  block_ids ids;
  unpack_block<Bits>(block, ids.data());
  std::uint32_t found = 0;
  for (const std::uint32_t id : ids) found += id - first < width ? 1U : 0U;
  return found;
}

struct kernels {
  void (*unpack)(const std::uint32_t*, std::uint32_t*) noexcept;
  std::uint32_t (*count)(const std::uint32_t*, std::uint32_t, std::uint32_t) noexcept;
};

// The same code for each kind of CPU: what differs is what the compiler may make of it.
struct for_any_cpu {
  template <unsigned Bits>
  static void unpack(const std::uint32_t* block, std::uint32_t* out) noexcept {
    unpack_block<Bits>(block, out);
  }
  template <unsigned Bits>
  static std::uint32_t count(const std::uint32_t* block, std::uint32_t first, std::uint32_t width) noexcept {
    return count_block<Bits>(block, first, width);
  }
};
#if defined(ELIDEX_VECTORS)
struct for_avx2 {
  template <unsigned Bits>
  [[gnu::target("avx2")]] static void unpack(const std::uint32_t* block, std::uint32_t* out) noexcept {
    unpack_block<Bits>(block, out);
  }
  template <unsigned Bits>
  [[gnu::target("avx2")]] static std::uint32_t count(const std::uint32_t* block, std::uint32_t first,
                                                     std::uint32_t width) noexcept {
    return count_block<Bits>(block, first, width);
  }
};
struct for_avx512 {
  template <unsigned Bits>
  [[gnu::target("avx512f")]] static void unpack(const std::uint32_t* block, std::uint32_t* out) noexcept {
    unpack_block<Bits>(block, out);
  }
  template <unsigned Bits>
  [[gnu::target("avx512f")]] static std::uint32_t count(const std::uint32_t* block, std::uint32_t first,
                                                        std::uint32_t width) noexcept {
    return count_block<Bits>(block, first, width);
  }
};
#endif

template <class Cpu>
constexpr auto kernels_for() {
  return []<std::size_t... Bits>(std::index_sequence<Bits...>) {
    return std::array{kernels{&Cpu::template unpack<Bits>, &Cpu::template count<Bits>}...};
  }(std::make_index_sequence<packed_ids::bits_max + 1>());
}

const kernels& kernels_of_this_cpu(unsigned bits) noexcept {
#if defined(ELIDEX_VECTORS)
  static constexpr auto avx2 = kernels_for<for_avx2>();
  static constexpr auto avx512 = kernels_for<for_avx512>();
  if (detail::vectors_of_this_cpu >= detail::vector_instructions::avx512) return avx512[bits];
  if (detail::vectors_of_this_cpu == detail::vector_instructions::avx2) return avx2[bits];
#endif
  static constexpr auto any = kernels_for<for_any_cpu>();
  return any[bits];
}

}  // namespace

unsigned packed_ids::bits_for(std::uint32_t greatest) noexcept {
  return static_cast<unsigned>(std::bit_width(greatest));
}

packed_ids packed_ids::pack(std::span<const std::uint32_t> ids, unsigned bits) {
  if (bits > bits_max) throw std::invalid_argument("elidex: an ID may have at most 32 bits");
  packed_ids made;
  made.bits_ = bits;
  made.words_ = std::make_unique<std::uint32_t[]>(made.words_of(ids.size()));  // zeros
  made.size_ = ids.size();
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const std::uint32_t id = ids[row];
    if (bits_for(id) > bits) throw std::invalid_argument("elidex: an ID does not fit into so few bits");
    if (bits == 0) continue;
    std::uint32_t* const lane = made.words_.get() + row / block_rows * lanes * bits + row % lanes;
    const std::size_t bit = row % block_rows / lanes * bits;
    const auto shift = static_cast<unsigned>(bit % word_bits);
    lane[bit / word_bits * lanes] |= id << shift;
    if (shift + bits > word_bits) lane[(bit / word_bits + 1) * lanes] |= id >> (word_bits - shift);
  }
  return made;
}

std::uint32_t packed_ids::get(std::size_t row) const noexcept {
  if (bits_ == 0) return 0;
  const std::uint32_t* const lane = block_at(row / block_rows) + row % lanes;
  const std::size_t bit = row % block_rows / lanes * bits_;
  const auto shift = static_cast<unsigned>(bit % word_bits);
  std::uint64_t both = lane[bit / word_bits * lanes];
  if (shift + bits_ > word_bits) both |= std::uint64_t{lane[(bit / word_bits + 1) * lanes]} << word_bits;
  return static_cast<std::uint32_t>(both >> shift & ((std::uint64_t{1} << bits_) - 1));
}

void packed_ids::unpack(std::size_t from, std::size_t count, std::uint32_t* out) const noexcept {
  const auto unpack = kernels_of_this_cpu(bits_).unpack;
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
  const auto count = kernels_of_this_cpu(bits_).count;
  std::size_t found = 0;
  for (std::size_t block = 0; block < size_ / block_rows; ++block) {
    found += count(block_at(block), first, last - first);
  }
  // Behind the last row lie zeros.
  if (size_ % block_rows != 0) {
    for (const std::uint64_t word : matches_in(size_ / block_rows, first, last)) {
      found += static_cast<std::size_t>(std::popcount(word));
    }
  }
  return found;
}

auto packed_ids::matches_in(std::size_t block, std::uint32_t first, std::uint32_t last) const noexcept -> matches {
  block_ids ids;
  kernels_of_this_cpu(bits_).unpack(block_at(block), ids.data());
  const std::size_t rows = std::min(block_rows, size_ - block * block_rows);
  matches found{};
  for (std::size_t row = 0; row < rows; ++row) {
    found[row / 64] |= std::uint64_t{ids[row] - first < last - first ? 1U : 0U} << row % 64;
  }
  return found;
}

}  // namespace elidex
