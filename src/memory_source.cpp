#include "elidex/internal/memory/memory_source.hpp"

#include <cstring>

namespace elidex::internal {
namespace {

// As large_memory.hpp aligns its pieces.
std::size_t large_alignment(std::size_t bytes) noexcept {
  return bytes >= huge_page_bytes ? huge_page_bytes : 64;
}

}  // namespace

constinit memory_source default_memory;

void memory_source::count(std::size_t bytes) {
  // relaxed, without a partner: the number orders nothing, and the exchange decides.
  std::size_t before = bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > bytes_max_ || before > bytes_max_ - bytes) throw std::bad_alloc();
  } while (!bytes_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
}

void memory_source::discount(std::size_t bytes) noexcept {
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);  // as in count()
}

// Counts the bytes that obtain() obtains, unless it throws.
template <class Obtain>
void* memory_source::counting(std::size_t bytes, Obtain&& obtain) {
  count(bytes);
  try {
    return obtain();
  } catch (...) {
    discount(bytes);
    throw;
  }
}

void* memory_source::obtain_counted(std::size_t bytes, std::size_t alignment) {
  return counting(bytes, [&] {
    return resource_ != nullptr ? resource_->allocate(bytes, alignment)
                                : obtain_plain(bytes, alignment);
  });
}

void memory_source::give_back_counted(void* memory, std::size_t bytes,
                                      std::size_t alignment) noexcept {
  if (resource_ != nullptr) {
    resource_->deallocate(memory, bytes, alignment);
  } else {
    give_back_plain(memory, bytes, alignment);
  }
  discount(bytes);
}

void* memory_source::obtain_large(std::size_t bytes) {
  if (resource_ != nullptr) return obtain_counted(bytes, large_alignment(bytes));
  return counting(bytes, [&] { return obtain_memory(bytes, page_size()); });
}

void memory_source::give_back_large(void* memory, std::size_t bytes) noexcept {
  if (resource_ != nullptr) return give_back_counted(memory, bytes, large_alignment(bytes));
  return_memory(memory, bytes);
  discount(bytes);
}

void* memory_source::obtain_zeroed(std::size_t bytes) {
  if (resource_ != nullptr)
    return std::memset(obtain_counted(bytes, large_alignment(bytes)), 0, bytes);
  return counting(bytes, [&] { return obtain_zeroed_memory(bytes, page_size()); });
}

void memory_source::give_back_zeroed(void* memory, std::size_t bytes) noexcept {
  if (resource_ != nullptr) return give_back_counted(memory, bytes, large_alignment(bytes));
  return_zeroed_memory(memory, bytes);
  discount(bytes);
}

bool memory_source::may_obtain(std::size_t bytes) const noexcept {
  // relaxed, without a partner: another thread may obtain memory right afterwards.
  const std::size_t now = bytes_.load(std::memory_order_relaxed);
  if (bytes > bytes_max_ || now > bytes_max_ - bytes) return false;
  return resource_ != nullptr || may_obtain_memory(bytes);
}

}  // namespace elidex::internal
