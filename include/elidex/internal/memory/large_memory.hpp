// Memory for many small things at once: on huge pages where it is large enough, because random
// accesses to tens of MiB spend half of their time on TLB misses with 4 KiB pages.
//
//   void* chunk = obtain_memory(bytes);   // 64-byte aligned, uninitialised; throws std::bad_alloc
//   return_memory(chunk, bytes);
//
//   // the same, all zero; large ones cost nothing before they are touched
//   void* table = obtain_zeroed_memory(bytes);
//   return_zeroed_memory(table, bytes);
//
// Thread-safety: all of it.
#pragma once

#include <cstddef>

namespace elidex::internal {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

[[nodiscard]] void* obtain_memory(std::size_t bytes);
// With as many bytes as were obtained.
void return_memory(void* memory, std::size_t bytes) noexcept;

[[nodiscard]] void* obtain_zeroed_memory(std::size_t bytes);
// With as many bytes as were obtained.
void return_zeroed_memory(void* memory, std::size_t bytes) noexcept;

}  // namespace elidex::internal
