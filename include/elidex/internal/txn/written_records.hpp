// Where among a transaction's writes a record is: a hash table that is emptied in no time and used
// again.
//
//   written_records places;
//   places.reserve(1);
//   places.add(row, 12);
//   places.find(row);                 // 12; none for another
//   places.clear();
//
// Open addressing, at most half full. A slot counts only if it is of the present generation, so
// clear() touches none.
//
// Thread-safety: belongs to one thread. Errors: reserve() throws std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace elidex::internal {

class record;

class written_records {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  // For so many. Throws std::bad_alloc and has changed nothing then.
  void reserve(std::size_t many) {
    while (2 * many > slots_.size()) grow();
  }
  // `row` is not in it, and there is room.
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

  // By Fibonacci hashing: records are as far apart as their pool has them.
  std::size_t first(const record* row) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(row) * 0x9E37'79B9'7F4A'7C15u >> 32U) &
           (slots_.size() - 1);
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

  std::vector<slot> slots_;  // a power of two
  std::size_t many_ = 0;
  std::uint32_t generation_ = 1;
};

}  // namespace elidex::internal
