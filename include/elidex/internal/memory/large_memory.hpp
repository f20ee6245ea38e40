// Large pieces of memory for many small objects, on huge pages where the piece is large enough.
// A container that has memory_options calls memory_source.hpp, which calls these.
//
//   void* chunk = obtain_memory(bytes);   // 64-byte aligned, uninitialised
//   return_memory(chunk, bytes);
//
//   // the same with all bytes zero: a large piece costs nothing before it is touched
//   void* table = obtain_zeroed_memory(bytes);
//   return_zeroed_memory(table, bytes);
//
// Thread-safety: all functions, from any thread.
// Errors: obtain_memory() and obtain_zeroed_memory() throw std::bad_alloc.
//
// Implementation notes
// With 4 KiB pages, random accesses to tens of MiB spend half of their time on TLB misses.
#pragma once

#include <cstddef>

namespace elidex::internal {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Whether pieces of 2 MiB and more ask the kernel for huge pages.
enum class pages : bool { small, huge };

[[nodiscard]] void* obtain_memory(std::size_t bytes, pages size = pages::huge);
// `bytes` must be the number that was obtained.
void return_memory(void* memory, std::size_t bytes) noexcept;

[[nodiscard]] void* obtain_zeroed_memory(std::size_t bytes, pages size = pages::huge);
// `bytes` must be the number that was obtained.
void return_zeroed_memory(void* memory, std::size_t bytes) noexcept;

// Backs uninitialised memory with pages of the system now, instead of at the first access to each
// page. Its contents are unspecified afterwards. If the system runs out of pages, some may be
// missing.
void touch_pages(void* memory, std::size_t bytes) noexcept;

// Gives the pages of obtain_zeroed_memory() back to the system. The addresses stay valid and read
// as zero, also for threads that read at this moment. Returns false, and does nothing, if the
// memory cannot be given back in this way.
bool discard_pages(void* memory, std::size_t bytes) noexcept;

// Returns false if the system has less memory, or refuses so many bytes at once. If it returns
// true, obtaining that memory may still fail.
[[nodiscard]] bool may_obtain_memory(std::size_t bytes) noexcept;

}  // namespace elidex::internal
