// A sum to which many threads add without sharing a cache line.
//
//   rare_counter restarts_;
//   busy_counter size_;      size_.add(1);   std::int64_t all = size_.sum();
//
// sum() adds up the parts one after the other. It is exact if no thread adds at the same time.
// Otherwise it includes some of the concurrent additions, so it may be negative although the true
// sum never was.
//
// Thread-safety: all functions but constructor and destructor, from any thread.
// Errors: none.
// Memory: 16 bytes, and 1 KiB (rare_counter) or 4 KiB (busy_counter) once two threads have
// contended for it. Before that add() writes the object itself, so the object should not lie on a
// cache line that other threads read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "elidex/internal/memory/thread_parts.hpp"

namespace elidex::internal {

template <std::size_t Parts>
class basic_counter {
 public:
  void add(std::int64_t amount) noexcept {
    // relaxed: pairs with sum()'s relaxed loads. A count orders nothing.
    std::atomic<std::int64_t>& mine = parts_.mine().value;
    std::int64_t seen = mine.load(std::memory_order_relaxed);
    if (!mine.compare_exchange_strong(seen, seen + amount, std::memory_order_relaxed)) [[unlikely]]
      add_beside_others(amount);
  }
  std::int64_t sum() const noexcept {
    std::int64_t total = 0;
    parts_.for_each([&](const part& p) {
      total += p.value.load(std::memory_order_relaxed);  // pairs with add(): see there
    });
    return total;
  }
  // Returns the sum of a count that is never negative. While other threads add and subtract, the
  // sum may be negative, and count() then returns 0.
  std::size_t count() const noexcept {
    const std::int64_t total = sum();
    return total < 0 ? 0 : static_cast<std::size_t>(total);
  }
  // What it takes outside of the object, in bytes.
  std::size_t memory_bytes() const noexcept { return parts_.memory_bytes(); }

 private:
  struct part {
    std::atomic<std::int64_t> value{0};
  };
  [[gnu::noinline, gnu::cold]] void add_beside_others(std::int64_t amount) noexcept {
    parts_.spread();
    // relaxed: pairs with sum(), as in add().
    parts_.mine().value.fetch_add(amount, std::memory_order_relaxed);
  }
  thread_parts<part, Parts> parts_;
};

// For rare events. 16 threads have a part each, and further ones share.
using rare_counter = basic_counter<16>;

// For frequent events. Measured on the simulated machine with 64 inserting cores: with 16 parts,
// nine of ten additions fetched the line from another core, which took 5 % of the time.
using busy_counter = basic_counter<64>;

}  // namespace elidex::internal
