#include "elidex/internal/memory/large_memory.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#if defined(__linux__)
#  include <sys/mman.h>
#  include <unistd.h>
#endif

// Pages from the system. Simulated programs must not use any that the machine does not know.
#if defined(MADV_HUGEPAGE) && !defined(ELIDEX_SIMULATED)
#  define ELIDEX_MAPS_MEMORY 1
#endif

namespace elidex::internal {
namespace {

constexpr std::size_t line_bytes = 64;

std::align_val_t alignment_of(std::size_t bytes) noexcept {
  return std::align_val_t{bytes >= huge_page_bytes ? huge_page_bytes : line_bytes};
}

// A hint: if the kernel does not follow it, everything works with the other size.
void advise([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes,
            [[maybe_unused]] pages size) noexcept {
#if defined(MADV_HUGEPAGE)
  if (bytes < huge_page_bytes) return;
  ::madvise(memory, bytes, size == pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
}

}  // namespace

void* obtain_memory(std::size_t bytes, pages size) {
  void* const memory = ::operator new(bytes, alignment_of(bytes));
  advise(memory, bytes, size);
  return memory;
}

void return_memory(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, alignment_of(bytes));
}

// The system's fresh pages are zero. The system makes each page when a thread touches it, so no
// thread waits for a whole table.
void* obtain_zeroed_memory(std::size_t bytes, pages size) {
#if defined(ELIDEX_MAPS_MEMORY)
  if (bytes >= huge_page_bytes && bytes % huge_page_bytes == 0) {
    // Too much at first, to find a huge page's boundary in it.
    void* const mapped = ::mmap(nullptr, bytes + huge_page_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    auto* const begin = static_cast<std::byte*>(mapped);
    const std::size_t before = (0 - reinterpret_cast<std::uintptr_t>(begin)) % huge_page_bytes;
    if (before != 0) ::munmap(begin, before);
    ::munmap(begin + before + bytes, huge_page_bytes - before);
    advise(begin + before, bytes, size);
    return begin + before;
  }
#endif
  void* const memory = obtain_memory(bytes, size);
  std::memset(memory, 0, bytes);
  return memory;
}

void return_zeroed_memory(void* memory, std::size_t bytes) noexcept {
#if defined(ELIDEX_MAPS_MEMORY)
  if (bytes >= huge_page_bytes && bytes % huge_page_bytes == 0) {
    ::munmap(memory, bytes);
    return;
  }
#endif
  return_memory(memory, bytes);
}

// From Linux 5.14 on the kernel makes all pages in one call. Before, each page gets a byte.
void touch_pages(void* memory, std::size_t bytes) noexcept {
  constexpr std::size_t page_bytes = 4096;
#if defined(ELIDEX_MAPS_MEMORY) && defined(MADV_POPULATE_WRITE)
  const std::size_t before = (0 - reinterpret_cast<std::uintptr_t>(memory)) % page_bytes;
  if (before < bytes) {
    std::byte* const first = static_cast<std::byte*>(memory) + before;
    const std::size_t whole_pages = (bytes - before) / page_bytes * page_bytes;
    if (::madvise(first, whole_pages, MADV_POPULATE_WRITE) == 0 || errno == ENOMEM) return;
  }
#endif
  for (std::size_t at = 0; at < bytes; at += page_bytes)
    static_cast<volatile std::byte*>(memory)[at] = std::byte{};
}

bool discard_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(ELIDEX_MAPS_MEMORY)
  if (bytes >= huge_page_bytes && bytes % huge_page_bytes == 0)
    return ::madvise(memory, bytes, MADV_DONTNEED) == 0;
#endif
  return false;
}

bool may_obtain_memory([[maybe_unused]] std::size_t bytes) noexcept {
#if defined(ELIDEX_MAPS_MEMORY)
  if (bytes < huge_page_bytes) return true;
  // With vm.overcommit_memory = 1 the kernel maps any number of bytes.
  const long page_count = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (page_count > 0 && page_bytes > 0 &&
      bytes / static_cast<std::size_t>(page_bytes) > static_cast<std::size_t>(page_count))
    return false;
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return false;
  ::munmap(mapped, bytes);
#endif
  return true;
}

}  // namespace elidex::internal
