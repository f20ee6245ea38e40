#pragma once
// Makes the n-th allocation of the calling thread fail.
//
//   // the third operator new from here throws
//   { const failing_allocation armed(3); map.insert(...); }
//
// Works in executables that link failing_allocations' replacement of operator new:
// tests/allocation.

#include <cstdint>

namespace elidex::testing {

// How many allocations of this thread may still succeed before one fails; negative: all.
extern thread_local std::int64_t allocations_left;
// How many allocations this thread has made, less how many it has freed.
extern thread_local std::int64_t allocations_alive;

class failing_allocation {
 public:
  explicit failing_allocation(std::int64_t nth) { allocations_left = nth - 1; }
  ~failing_allocation() { allocations_left = -1; }
  failing_allocation(const failing_allocation&) = delete;
  failing_allocation& operator=(const failing_allocation&) = delete;

  // Whether the allocation that was to fail has come.
  static bool has_failed() { return allocations_left < -1; }
};

}  // namespace elidex::testing
