// The set of a column's deleted rows: a bit for each row, which is never cleared.
//
//   deleted_rows deleted;
//   deleted.add(7);          // true: it was not deleted yet
//   deleted.contains(7);
//   deleted.word(0);         // rows 0 to 63, the first one in the lowest bit
//
// Thread-safety: all functions but constructor and destructor, from any thread. Once add() has
// returned, every later call sees the bit. A thread that sees a bit sees what was done before
// add().
// Errors: add() throws std::bad_alloc. Nothing is then changed.
//
// Implementation notes
// A column without deleted rows has no memory for bits, and its queries read a single flag. add()
// sets the flag before the first bit. So a thread that must see a bit sees the flag.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "elidex/internal/column/append_only_array.hpp"

namespace elidex::internal {

class deleted_rows {
 public:
  bool add(std::uint64_t row) {
    words_.provide(row / word_rows + 1);
    any_.store(true);
    const bool was_there = (words_[row / word_rows].fetch_or(bit_of(row)) & bit_of(row)) != 0;
    if (!was_there) count_.fetch_add(1);
    return !was_there;
  }
  bool contains(std::uint64_t row) const noexcept {
    return any() && (word(row / word_rows) & bit_of(row)) != 0;
  }
  std::uint64_t word(std::size_t n) const noexcept {
    const std::atomic<std::uint64_t>* const at = words_.at(n);
    return at == nullptr ? 0 : at->load();
  }

  // Whether there may be deleted rows.
  bool any() const noexcept { return any_.load(); }
  // Exact when no thread adds.
  std::size_t count() const noexcept { return count_.load(); }
  std::size_t memory_bytes() const noexcept { return words_.memory_bytes(); }

 private:
  static constexpr std::size_t word_rows = 64;
  static std::uint64_t bit_of(std::uint64_t row) noexcept {
    return std::uint64_t{1} << row % word_rows;
  }

  append_only_array<std::atomic<std::uint64_t>> words_{"deleted rows"};
  std::atomic<bool> any_{false};
  std::atomic<std::size_t> count_{0};
};

}  // namespace elidex::internal
