// A small number for every live thread, counters that are sharded by it, and the per-thread record
// that epochs use.
//
//   parts[this_thread_slot() % parts.size()].change();
//
//   sharded_counter splits;
//   splits.add(1);
//   std::int64_t all = splits.sum();
//
// Thread-safety: all functions, from any thread.
// Lifetime: a thread returns its record when it ends, after the destructors of its thread_local
// variables.
// Errors: a thread's first call of this_thread_slot() or this_thread_record() may throw
// std::bad_alloc. Later calls, and counters, cannot fail.
//
// Implementation notes
// Invariants: two threads that live at the same time never have the same slot. A new thread gets
// the lowest free slot. Records are never freed, so a walk over them needs no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace elidex::internal {

// The record of one live thread, on its own cache lines (two, because of the adjacent-line
// prefetcher).
struct alignas(128) thread_record {
  // The epoch that the thread has pinned, or 0 if the thread is not pinned. Only the owner writes
  // it. A forked child also clears the values of threads that it lacks.
  std::atomic<std::uint64_t> pinned_epoch{0};
  // The nesting depth of the pins. Only the owner accesses it.
  std::uint32_t pin_depth = 0;
  std::uint32_t slot = 0;
  std::atomic<bool> in_use{false};
  thread_record* next = nullptr;

  // release: pairs with the acquire exchange of the next thread that takes it.
  void give_back() noexcept { in_use.store(false, std::memory_order_release); }
};

// Defined in the library, not here, like all state that headers and library share. So each copy of
// the library in a process has its own state, with any visibility setting of its users.
extern constinit thread_local thread_record* current_thread_record;

// Takes a free record or makes a new one. Throws std::bad_alloc.
thread_record& register_this_thread();

// Returns the newest record. Its `next` chain holds all records ever made.
const thread_record* first_thread_record() noexcept;

inline thread_record& this_thread_record() {
  thread_record* const record = current_thread_record;
  return record != nullptr ? *record : register_this_thread();
}

inline std::uint32_t this_thread_slot() {
  return this_thread_record().slot;
}

// Returns 0 in a thread that has no slot yet, so that thread may contend with the owner of slot 0.
// For code that must not fail and that protects the data of a slot.
inline std::uint32_t this_thread_slot_or_0() noexcept {
  const thread_record* const record = current_thread_record;
  return record != nullptr ? record->slot : 0;
}

// A sum to which many threads add without sharing a cache line.
//
//   sharded_counter restarts_;  // for rare events: 16 threads have a line each, further ones share
//   busy_counter size_;         // for frequent events: 64 threads have a line each, in 4 KiB
//
// sum() adds up the shards one after the other. It is exact if no thread adds at the same time.
// Otherwise it includes some of the concurrent additions, so it may be negative although no count
// ever was. No function throws.
template <std::size_t Shards>
class basic_sharded_counter {
 public:
  void add(std::int64_t amount) noexcept {
    // relaxed: pairs with sum()'s relaxed loads. A count orders nothing.
    shards_[this_thread_slot_or_0() % shards_.size()].value.fetch_add(amount,
                                                                      std::memory_order_relaxed);
  }
  std::int64_t sum() const noexcept {
    std::int64_t total = 0;
    // pairs with add(): see there
    for (const auto& s : shards_) total += s.value.load(std::memory_order_relaxed);
    return total;
  }
  // Returns the sum of a count that is never negative. While other threads add and subtract, the
  // sum may be negative, and count() then returns 0.
  std::size_t count() const noexcept {
    const std::int64_t total = sum();
    return total < 0 ? 0 : static_cast<std::size_t>(total);
  }

 private:
  struct alignas(64) shard {
    std::atomic<std::int64_t> value{0};
  };
  std::array<shard, Shards> shards_{};
};

using sharded_counter = basic_sharded_counter<16>;
// Measured on the simulated machine with 64 inserting cores: with 16 shards, nine of ten additions
// fetched the line from another core, which took 5 % of the time.
using busy_counter = basic_sharded_counter<64>;

}  // namespace elidex::internal
