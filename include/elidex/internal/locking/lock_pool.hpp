// A pool of unused lock objects. Each transaction keeps a few spares, so that sections need not
// allocate.
//
//   lock_pool pool;
//   pool.fill(me, 2);              // before a section: at least 2 spares
//   lock_object* one = pop_spare(me);   // inside
//   push_spare(me, *one);
//   pool.trim(me);                 // after the end: returns surplus spares to the pool
//
// Thread-safety: fill(), trim() and memory_bytes() from any thread, each for its own transaction,
// outside of regions.
// Errors: fill() throws std::bad_alloc.
//
// Implementation notes
// Invariants: a spare object has no bits and is in no queue. The pool frees its memory when it is
// destroyed.
// Conversions move objects between transactions. An object comes from the spares of the requester
// and ends in those of the lock's holder. trim() returns the surplus.
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
  // Chosen: 4 KiB each.
  static constexpr std::uint32_t objects_per_chunk = 32;
  // Chosen: enough for a transaction of some dozens of records to use again.
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
