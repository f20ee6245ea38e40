#include "elidex/internal/memory/large_memory.hpp"

#include <cstdint>
#include <cstring>
#include <new>

#if defined(__linux__)
#  include <sys/mman.h>
#endif

// Pages of the system's own. The simulated machine must not be given any behind its back.
#if defined(MADV_HUGEPAGE) && !defined(ELIDEX_SIMULATED)
#  define ELIDEX_MAPS_MEMORY 1
#endif

namespace elidex::internal {
namespace {

constexpr std::size_t line_bytes = 64;

std::align_val_t alignment_of(std::size_t bytes) noexcept {
  return std::align_val_t{bytes >= huge_page_bytes ? huge_page_bytes : line_bytes};
}

}  // namespace

void* obtain_memory(std::size_t bytes) {
  void* const memory = ::operator new(bytes, alignment_of(bytes));
#if defined(MADV_HUGEPAGE)
  // A wish: where the kernel does not grant it, everything works with small pages.
  if (bytes >= huge_page_bytes) ::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

void return_memory(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, alignment_of(bytes));
}

// The system's fresh pages are zero, and are made when they are touched, by whoever touches them:
// nobody waits for a whole table.
void* obtain_zeroed_memory(std::size_t bytes) {
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
    ::madvise(begin + before, bytes, MADV_HUGEPAGE);
    return begin + before;
  }
#endif
  void* const memory = obtain_memory(bytes);
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

bool may_obtain_memory([[maybe_unused]] std::size_t bytes) noexcept {
#if defined(ELIDEX_MAPS_MEMORY)
  if (bytes < huge_page_bytes) return true;
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return false;
  ::munmap(mapped, bytes);
#endif
  return true;
}

}  // namespace elidex::internal
