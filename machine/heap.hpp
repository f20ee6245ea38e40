// The simulated program's heap. Equal calls return equal addresses, in every run and on every
// machine.
//
// Thread-safety: outside of runs, all functions from any thread. Inside a run, one thread runs at a
// time.
// Errors: allocate() returns null if there is no memory.
//
// Implementation notes
// Each size class has its own pages, and each hardware thread has its own free lists. So the blocks
// that one thread allocates lie together, as with present-day allocators. The heap writes nothing
// into blocks or beside them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace elidex::sim::heap {

inline constexpr unsigned shared_list = ~0u;  // for threads outside of runs

// Returns null if there is no memory.
void* allocate(std::size_t bytes, std::size_t alignment, unsigned thread) noexcept;
void free(void* at, unsigned thread) noexcept;
// Returns whether the allocation would need pages from the system.
bool would_grow(std::size_t bytes, std::size_t alignment, unsigned thread) noexcept;
bool owns(const void* at) noexcept;
// Returns the address below which all memory so far lies.
std::uint64_t end() noexcept;

}  // namespace elidex::sim::heap
