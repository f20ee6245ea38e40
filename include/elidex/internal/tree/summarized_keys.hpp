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
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "elidex/internal/tree/branchless_lower_bound.hpp"
#include "elidex/internal/tree/field.hpp"
#include "elidex/internal/tree/vector_search.hpp"

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
