// Names memory for the simulated machine, so that its reports can name the cache lines on which
// threads contend. It does nothing in other builds.
//
//   // blocks with a head of 16 bytes each
//   name_memory(chunk, chunk_bytes, "leaf", block_bytes, 16);
//   name_memory(&lock, sizeof(lock), "lock");
//
// Thread-safety: any thread.
// Errors: nothing throws.
#pragma once

#include <cstddef>

#if defined(ELIDEX_SIMULATED)
// The simulated machine defines it.
extern "C" void elidex_sim_name_memory(const void* from, std::size_t bytes, const char* name,
                                       std::size_t block_bytes, std::size_t head_bytes) noexcept;
#endif

namespace elidex::internal {

inline void name_memory([[maybe_unused]] const void* from, [[maybe_unused]] std::size_t bytes,
                        [[maybe_unused]] const char* name,
                        [[maybe_unused]] std::size_t block_bytes = 1,
                        [[maybe_unused]] std::size_t head_bytes = 0) noexcept {
#if defined(ELIDEX_SIMULATED)
  elidex_sim_name_memory(from, bytes, name, block_bytes, head_bytes);
#endif
}

}  // namespace elidex::internal
