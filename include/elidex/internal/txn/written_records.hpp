// Finds a record among a transaction's writes: a hash table that is cleared in constant time and
// used again.
//
//   written_records places;
//   places.reserve(1);
//   places.add(row, 12);
//   places.find(row);                 // 12; `none` for any other record
//   places.clear();
//
// Thread-safety: belongs to one thread.
// Complexity: O(1) expected for each call. clear() rewrites the table once in 2^32 calls.
// Errors: reserve() throws std::bad_alloc.
//
// Implementation notes
// Open addressing, at most half full. A slot counts only if it is of the current generation, so
// clear() touches no slot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace elidex::internal {

class record;

// Fibonacci hashing: the distance between records is their pool's block size. Use the upper bits.
inline std::uint64_t hash_of(const record* row) noexcept {
  return reinterpret_cast<std::uintptr_t>(row) * 0x9E37'79B9'7F4A'7C15u;
}

class written_records {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  // Makes room for `many` records. If it throws std::bad_alloc, nothing has changed.
  void reserve(std::size_t many) {
    while (2 * many > slots_.size()) grow();
  }
  // Requires that `row` is not in the table and that there is room.
  void add(const record& row, std::size_t at) noexcept {
    place({&row, static_cast<std::uint32_t>(at), generation_});
    ++many_;
  }
  std::uint32_t find(const record& row) const noexcept {
    if (many_ == 0) return none;
    for (std::size_t i = first(&row);; i = (i + 1) & (slots_.size() - 1)) {
      const slot& one = slots_[i];
      if (one.generation != generation_) return none;
      if (one.row == &row) return one.at;
    }
  }
  void clear() noexcept {
    many_ = 0;
    if (++generation_ != 0) return;
    std::fill(slots_.begin(), slots_.end(), slot{});
    generation_ = 1;
  }

 private:
  struct slot {
    const record* row = nullptr;
    std::uint32_t at = 0;
    std::uint32_t generation = 0;
  };
  static constexpr std::size_t slots_min = 64;

  std::size_t first(const record* row) const noexcept {
    return (hash_of(row) >> 32U) & (slots_.size() - 1);
  }
  void place(slot one) noexcept {
    std::size_t i = first(one.row);
    while (slots_[i].generation == generation_) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = one;
  }
  void grow() {
    std::vector<slot> before(std::max(slots_min, 2 * slots_.size()));
    slots_.swap(before);
    for (const slot& one : before) {
      if (one.generation == generation_) place(one);
    }
  }

  std::vector<slot> slots_;  // the size is a power of two
  std::size_t many_ = 0;
  std::uint32_t generation_ = 1;
};

}  // namespace elidex::internal
