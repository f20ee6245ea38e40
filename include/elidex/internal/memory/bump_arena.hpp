// Memory for a transaction's rows: allocated piece by piece, freed all at once.
//
//   bump_arena arena;
//   std::uint64_t* row = arena.allocate(words);
//   arena.clear();                   // frees all pieces
//
// Thread-safety: an object belongs to one thread.
// Errors: allocate() throws std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace elidex::internal {

class bump_arena {
 public:
  // Returns uninitialised memory that is valid until clear().
  std::uint64_t* allocate(std::size_t words) {
    if (words > left_) add_chunk(words);
    std::uint64_t* const result = next_;
    next_ += words;
    left_ -= words;
    return result;
  }
  // Frees all chunks but the first, which the next transaction reuses.
  void clear() noexcept {
    if (chunks_.empty()) return;
    chunks_.resize(1);
    next_ = chunks_.front().words.get();
    left_ = chunks_.front().size;
  }

 private:
  static constexpr std::size_t chunk_words = 2048;
  struct chunk {
    std::unique_ptr<std::uint64_t[]> words;
    std::size_t size;
  };

  void add_chunk(std::size_t words) {
    const std::size_t size = std::max(words, chunk_words);
    chunks_.push_back({std::make_unique_for_overwrite<std::uint64_t[]>(size), size});
    next_ = chunks_.back().words.get();
    left_ = size;
  }

  std::vector<chunk> chunks_;
  std::uint64_t* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace elidex::internal
