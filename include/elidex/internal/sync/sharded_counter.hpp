// A sum that many threads add to without meeting on a cache line.
//
//   // of what happens now and then: 16 threads have a line each, more share them
//   sharded_counter restarts_;
//   busy_counter size_;  // of what every other operation does: 64 threads, for 4 KiB instead of 1
//
// Thread-safety: all of it. sum() adds up the shards one after the other: it is exact when nobody
// adds meanwhile, and otherwise counts some of the additions that run beside it, so it may be below
// 0 although no count ever was.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "elidex/internal/memory/thread_slot.hpp"

namespace elidex::internal {

template <std::size_t Shards>
class basic_sharded_counter {
 public:
  void add(std::int64_t amount) noexcept {
    // relaxed: pairs with sum()'s relaxed loads; a count orders nothing.
    shards_[this_thread_slot_or_0() % shards_.size()].value.fetch_add(amount,
                                                                      std::memory_order_relaxed);
  }
  std::int64_t sum() const noexcept {
    std::int64_t total = 0;
    // pairs with add(): see there
    for (const auto& s : shards_) total += s.value.load(std::memory_order_relaxed);
    return total;
  }
  // The same of something that is never below zero, though its sum may be while others add and
  // subtract.
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
// Simulated, 64 cores that insert: with 16 shards nine in ten additions fetched the line from
// another core, which took 5 % of the time.
using busy_counter = basic_sharded_counter<64>;

}  // namespace elidex::internal
