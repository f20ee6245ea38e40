// Fast random numbers for internal decisions. Each thread has its own sequence, seeded by its slot.
// Do not use them for keys, tests or secrets.
//
// Thread-safety: all functions, from any thread.
// Errors: nothing throws.
//
// Implementation notes
// From: Marsaglia, "Xorshift RNGs" (2003), triple 13, 7, 17.
#pragma once

#include <cstdint>

#include "elidex/internal/memory/epoch.hpp"

namespace elidex::internal {

inline std::uint64_t next_random_of_this_thread() noexcept {
  thread_local std::uint64_t state = 0;
  if (state == 0) state = (std::uint64_t{this_thread_slot_or_0()} + 1) * 0x9E37'79B9'7F4A'7C15u;
  state ^= state << 13U;
  state ^= state >> 7U;
  state ^= state << 17U;
  return state;
}

}  // namespace elidex::internal
