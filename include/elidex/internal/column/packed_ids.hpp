// The main's vector of value IDs: each in as few bits as the largest one needs, and read many at a
// time.
//
//   const packed_ids rows = packed_ids::pack(ids, bits);    // every ID below 2^bits
//   rows.get(7);                                            // one
//   rows.unpack(0, 512, out);                               // many
//   rows.count(10, 20);                                     // rows with an ID from 10 to 19
//   rows.for_each(10, 20, [](std::size_t row) { ... });     // which these are, ascending
//   // 64 rows at a time
//   rows.for_each_word(10, 20, [](std::size_t row, std::uint64_t these) { ... });
//
//   packed_ids::writer made(rows, bits);  // if not all IDs are there at once
//   made.append(some);
//   made.append(more);
//   const packed_ids all = std::move(made).finish();
//
// Thread-safety: immutable once made. A writer is for one thread.
// Errors: pack() and the writer throw std::bad_alloc, and std::invalid_argument for more than 32
// bits or an ID that does not fit. The writer checks IDs when a block is full, or at the end. It
// throws std::logic_error for more IDs than rows, and then adds none of them. It also throws
// std::logic_error for a finish() with fewer IDs than rows. After any other exception it may only
// be destroyed.
//
// Implementation notes
// Layout. A block has 512 rows, in 16 lanes of 32 rows. Row i of a block is number i / 16 in lane i
// % 16. A lane is a stream of 32-bit words with its IDs, bit by bit and without gaps. The words of
// the lanes alternate. So a block takes 16 * bits words. For any number of bits, the same shifts
// unpack 16 neighbouring rows at once. These are plain loops over 16 lanes, which compilers turn
// into the CPU's vector instructions. (The idea of interleaved lanes: Lemire and Boytsov, "Decoding
// billions of integers per second through vectorization", 2015. The idea of lanes wider than any
// CPU's registers: Afroozeh and Boncz, "The FastLanes compression layout", VLDB 2023. The order
// within a block is ours, and simpler.)
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace elidex::internal {

class packed_ids {
 public:
  static constexpr std::size_t block_rows = 512;
  static constexpr unsigned bits_max = 32;

  class writer;

  packed_ids() = default;
  // The bits that IDs from 0 to `greatest` need. 0 if all IDs are 0.
  static unsigned bits_for(std::uint32_t greatest) noexcept;
  static packed_ids pack(std::span<const std::uint32_t> ids, unsigned bits);

  std::size_t size() const noexcept { return size_; }
  unsigned bits() const noexcept { return bits_; }
  std::size_t memory_bytes() const noexcept {
    return sizeof(*this) + words_of(size_) * sizeof(std::uint32_t);
  }

  // Requires row < size().
  std::uint32_t get(std::size_t row) const noexcept;

  // Writes the IDs of the rows from `from` on to out[0], out[1], ... Requires from + count <=
  // size().
  void unpack(std::size_t from, std::size_t count, std::uint32_t* out) const noexcept;

  // The number of rows with an ID in [first, last).
  std::size_t count(std::uint32_t first, std::uint32_t last) const noexcept;

  // Calls fn(row) for each row with an ID in [first, last), ascending.
  template <class Fn>
  void for_each(std::uint32_t first, std::uint32_t last, Fn&& fn) const {
    for_each_word(first, last, [&](std::size_t row, std::uint64_t these) {
      for (; these != 0; these &= these - 1)
        fn(row + static_cast<std::size_t>(std::countr_zero(these)));
    });
  }

  // Calls fn(row, these) for each 64 rows of which at least one has such an ID. Row row + i has one
  // if bit i of `these` is set. `row` is a multiple of 64, and ascends.
  template <class Fn>
  void for_each_word(std::uint32_t first, std::uint32_t last, Fn&& fn) const {
    if (first >= last) return;
    for (std::size_t block = 0; block * block_rows < size_; ++block) {
      const matches found = matches_in(block, first, last);
      for (std::size_t word = 0; word < found.size(); ++word) {
        if (found[word] != 0) fn(block * block_rows + word * 64, found[word]);
      }
    }
  }

 private:
  static constexpr std::size_t lanes = 16;
  using matches = std::array<std::uint64_t, block_rows / 64>;  // a bit for each row of a block

  std::size_t words_of(std::size_t rows) const noexcept {
    return (rows + block_rows - 1) / block_rows * lanes * bits_;
  }
  const std::uint32_t* block_at(std::size_t block) const noexcept {
    return words_.get() + block * lanes * bits_;
  }
  matches matches_in(std::size_t block, std::uint32_t first, std::uint32_t last) const noexcept;

  std::unique_ptr<std::uint32_t[]> words_;
  std::size_t size_ = 0;
  unsigned bits_ = 0;
};

// Packs IDs as they arrive, a block at a time.
class packed_ids::writer {
 public:
  writer(std::size_t rows, unsigned bits);
  // Takes any number of IDs.
  void append(std::span<const std::uint32_t> ids);
  // Requires as many IDs as rows.
  packed_ids finish() &&;

 private:
  void write_block(const std::uint32_t* ids);

  packed_ids made_;
  std::size_t rows_;
  std::size_t written_ = 0;  // rows
  std::size_t waiting_ = 0;  // in block_
  std::array<std::uint32_t, block_rows> block_{};
};

}  // namespace elidex::internal
