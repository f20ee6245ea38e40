// The simulated program's heap: equal calls give equal addresses, in every run and on every
// machine.
//
// Size classes with pages of their own, free lists per hardware thread: what one thread allocates
// lies together, as with the allocators of today. Nothing is written into blocks or beside them.
//
// Thread-safety: outside of runs all functions may be called from any thread; inside, one thread
// runs at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace elidex::sim::heap {

inline constexpr unsigned shared_list = ~0u;  // for threads outside of runs

// Null: no memory.
void* allocate(std::size_t bytes, std::size_t alignment, unsigned thread) noexcept;
void free(void* at, unsigned thread) noexcept;
// Whether it would need pages from the system.
bool would_grow(std::size_t bytes, std::size_t alignment, unsigned thread) noexcept;
bool owns(const void* at) noexcept;
// All memory so far lies below.
std::uint64_t end() noexcept;

}  // namespace elidex::sim::heap
