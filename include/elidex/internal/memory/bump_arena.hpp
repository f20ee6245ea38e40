// Memory for a transaction's rows: taken piece by piece, given back all at once.
//
// Thread-safety: belongs to one thread. Errors: allocate() throws std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace elidex::internal {

class bump_arena {
 public:
  // Not initialised; valid until clear().
  std::uint64_t* allocate(std::size_t words) {
    if (words > left_) add_chunk(words);
    std::uint64_t* const result = next_;
    next_ += words;
    left_ -= words;
    return result;
  }
  // Keeps the first chunk for the next time.
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
