#include "elidex/internal/memory/lasting_memory.hpp"

#include <array>
#include <atomic>
#include <new>

namespace elidex::internal {
namespace {

#if defined(ELIDEX_SIMULATED)
// Nothing is unloaded there, and the addresses of records affect the simulation. So all memory
// comes from the machine's heap.
constexpr std::size_t bytes_here = 1;
#else
// chosen: 512 threads and 200 names; pages count when touched
constexpr std::size_t bytes_here = std::size_t{1} << 20;
#endif

alignas(128) constinit std::array<std::byte, bytes_here> here{};
constinit std::atomic<std::size_t> used{0};

}  // namespace

void* lasting_memory(std::size_t bytes, std::size_t alignment) {
  for (std::size_t before = used.load();;) {
    const std::size_t begin = (before + alignment - 1) / alignment * alignment;
    if (begin >= bytes_here || bytes > bytes_here - begin) break;
    if (used.compare_exchange_weak(before, begin + bytes)) return here.data() + begin;
  }
  return ::operator new(bytes, std::align_val_t{alignment});
}

std::size_t lasting_bytes_left() noexcept {
  return bytes_here - used.load();
}

}  // namespace elidex::internal
