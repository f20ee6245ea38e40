// Memory for a table's records and versions, by their room (record.hpp).
//
//   record_memory memory(record_memory::one_room(words), words_behind);  // rows of one size
//   record_memory memory(record_memory::any_room, words_behind);         // rows of varying length
//   const std::size_t room = memory.room_for(row_words);
//   void* block = memory.allocate(room);         // for a record, or a version of one
//   memory.deallocate(block, room);
//
// Thread-safety: all functions except constructor and destructor, from any thread.
// Lifetime: blocks are valid until deallocate(). The destructor returns all memory.
// Errors: allocate() throws std::bad_alloc, and then has changed nothing.
//
// Implementation notes
// Rows of one size have one pool. Its blocks begin on cache lines, so that a row that many threads
// change shares no line with another row. Only blocks of 96 bytes do not, which would take 128. No
// header lies in two lines. Rows of varying length have a pool for each size class, and blocks
// without padding: a row costs its words, the record's header, and at most an eighth for the class.
// A row longer than `room_max` has a body.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/sync/sleeping_lock.hpp"

namespace elidex::internal {

class record_memory {
 public:
  // Chosen: copying a kilobyte costs as much as a few cache misses, and a body costs one.
  static constexpr std::size_t room_max = 128;
  static constexpr std::size_t any_room = 0;

  // `room`: of all records, or any_room. `words_behind`: words of each record behind its room.
  record_memory(std::size_t room, std::size_t words_behind);
  ~record_memory();
  record_memory(const record_memory&) = delete;
  record_memory& operator=(const record_memory&) = delete;

  bool has_one_room() const noexcept { return room_ != any_room; }
  // The room of a new record for a row of so many words, at least 1.
  std::size_t room_for(std::size_t row_words) const noexcept {
    return has_one_room() ? room_ : classes::room_for(row_words);
  }
  [[nodiscard]] void* allocate(std::size_t room) {
    return has_one_room() ? one_.allocate() : pool_for(room).allocate();
  }
  void deallocate(void* block, std::size_t room) noexcept {
    if (has_one_room()) {
      one_.deallocate(block);
    } else {
      made_pool(room).deallocate(block);
    }
  }
  // Gives back the memory of each pool without a block in use. Returns false if a pool has one.
  // During the call, other threads must not call allocate().
  bool give_back_unused() noexcept;
  std::size_t reserved_bytes() const noexcept;

  // The distance between two records' addresses is at least this.
  std::size_t record_distance() const noexcept { return has_one_room() ? 64 : 32; }

  // Size classes: each room up to 16 words, then eight for each doubling.
  struct classes {
    static constexpr std::size_t exact = 16;
    static constexpr std::size_t for_a_doubling = 8;
    static constexpr std::size_t count = exact + 3 * for_a_doubling;
    static constexpr std::size_t room_for(std::size_t words) noexcept {
      if (words > room_max) return 1;  // of the pointer to the body
      const std::size_t step = step_for(words);
      return words == 0 ? 1 : (words + step - 1) / step * step;
    }
    // Of a room that room_for() returns.
    static constexpr std::size_t index_of(std::size_t room) noexcept {
      if (room <= exact) return room - 1;
      const std::size_t step = step_for(room);
      std::size_t doublings = 0;
      for (std::size_t s = step; s > 2; s /= 2) ++doublings;
      return exact + doublings * for_a_doubling + (room - exact * step / 2) / step - 1;
    }

   private:
    static constexpr std::size_t step_for(std::size_t words) noexcept {
      std::size_t step = 1;
      for (std::size_t last = exact; words > last; last *= 2) step *= 2;
      return step;
    }
  };

 private:
  // Each class's pool is made when the first block of the class is allocated.
  using pools = std::array<std::atomic<block_pool*>, classes::count>;

  block_pool& made_pool(std::size_t room) const noexcept {
    // acquire: pairs with the release in make_pool().
    return *(*pools_)[classes::index_of(room)].load(std::memory_order_acquire);
  }
  block_pool& pool_for(std::size_t room) {
    // acquire: pairs with the release in make_pool().
    block_pool* const made = (*pools_)[classes::index_of(room)].load(std::memory_order_acquire);
    return made != nullptr ? *made : make_pool(room);
  }
  block_pool& make_pool(std::size_t room);
  // Calls fn(pool) for each pool of rows of varying length.
  template <class Fn>
  void for_each_pool(Fn&& fn) const;

  const std::size_t room_;
  const std::size_t words_behind_;
  block_pool one_;
  sleeping_lock making_;
  std::unique_ptr<pools> pools_;  // null: all records have one room
};

}  // namespace elidex::internal
