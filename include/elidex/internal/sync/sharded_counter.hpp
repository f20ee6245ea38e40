// A sum to which many threads add without sharing a cache line.
//
//   sharded_counter restarts_;  // for rare events: 16 threads have a line each, further ones share
//   busy_counter size_;         // for frequent events: 64 threads have a line each, in 4 KiB
//
// sum() adds up the shards one after the other. It is exact if no thread adds at the same time.
// Otherwise it includes some of the concurrent additions, so it may be negative although no count
// ever was.
//
// Thread-safety: all members, from any thread.
// Errors: nothing throws.
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
