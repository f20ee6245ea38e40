// Replaces the global operator new with one that fails on demand; see
// support/failing_allocations.hpp.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/failing_allocations.hpp"

namespace elidex::testing {
thread_local std::int64_t allocations_left = -1;
thread_local std::int64_t allocations_alive = 0;
}  // namespace elidex::testing

namespace {

bool fails_now() {
  using elidex::testing::allocations_left;
  if (allocations_left < 0) return false;
  if (allocations_left-- > 0) return false;
  allocations_left = -2;  // failed: from here on all succeed
  return true;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (fails_now()) throw std::bad_alloc();
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  ++elidex::testing::allocations_alive;
  return memory;
}
void deallocate(void* memory) noexcept {
  if (memory != nullptr) --elidex::testing::allocations_alive;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* memory) noexcept {
  deallocate(memory);
}
void operator delete[](void* memory) noexcept {
  deallocate(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  deallocate(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  deallocate(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  deallocate(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  deallocate(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  deallocate(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  deallocate(memory);
}
