// Lock objects that nobody uses: each transaction has a few of its own, so that sections need not
// allocate.
//
//   lock_pool pool;
//   pool.fill(me, 2);              // before a section: at least so many spares
//   lock_object* one = pop_spare(me);   // inside
//   push_spare(me, *one);
//   pool.trim(me);                 // after the end: what is too many goes back for others
//
// Conversions let objects move from one transaction to another: taken from the spares of who asks,
// they end in the spares of who holds the lock. Hence trim().
//
// Invariants: spare objects have no bits and stand in no queue. Memory is given back when the pool
// ends.
//
// Thread-safety: fill(), trim() and memory_bytes() from any thread, each for its own transaction,
// outside of regions; fill() throws std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "elidex/internal/locking/lock_queue.hpp"

namespace elidex::internal {

inline void push_spare(lock_owner& to, lock_object& one) noexcept {
  for (std::uint64_t& word : one.bits) word = 0;
  one.next_of_owner = to.spare;
  to.spare = &one;
  ++to.spare_count;
}

inline lock_object* pop_spare(lock_owner& from) noexcept {
  lock_object* const one = from.spare;
  if (one == nullptr) return nullptr;
  from.spare = one->next_of_owner;
  --from.spare_count;
  return one;
}

class lock_pool {
 public:
  // Chosen: 4 KiB at a time.
  static constexpr std::uint32_t objects_per_chunk = 32;
  // Chosen: what a transaction of some dozens of records uses again.
  static constexpr std::uint32_t spares_kept = 128;

  void fill(lock_owner& one, std::uint32_t at_least) {
    if (one.spare_count >= at_least) return;
    const std::lock_guard guard(lock_);
    while (one.spare_count < at_least) {
      if (free_ == nullptr) add_chunk();
      for (std::uint32_t i = 0; i < objects_per_chunk && free_ != nullptr; ++i) {
        lock_object* const next = free_->next_of_owner;
        push_spare(one, *free_);
        free_ = next;
      }
    }
  }

  void trim(lock_owner& one) { trim(one, spares_kept); }
  void trim(lock_owner& one, std::uint32_t to) {
    if (one.spare_count <= to) return;
    const std::lock_guard guard(lock_);
    while (one.spare_count > to) {
      lock_object* const object = pop_spare(one);
      object->next_of_owner = free_;
      free_ = object;
    }
  }

  std::size_t memory_bytes() const {
    const std::lock_guard guard(lock_);
    return chunks_.size() * objects_per_chunk * sizeof(lock_object) +
           chunks_.capacity() * sizeof(chunks_[0]);
  }

 private:
  void add_chunk() {
    chunks_.reserve(chunks_.size() + 1);
    chunks_.push_back(std::make_unique<lock_object[]>(objects_per_chunk));
    for (std::uint32_t i = 0; i < objects_per_chunk; ++i) {
      chunks_.back()[i].next_of_owner = free_;
      free_ = &chunks_.back()[i];
    }
  }

  mutable std::mutex lock_;
  std::vector<std::unique_ptr<lock_object[]>> chunks_;
  lock_object* free_ = nullptr;
};

}  // namespace elidex::internal
