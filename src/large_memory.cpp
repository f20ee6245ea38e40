#include "elidex/reclaim/large_memory.hpp"

#include <new>

#if defined(__linux__)
#  include <sys/mman.h>
#endif

namespace elidex::detail {
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

}  // namespace elidex::detail
