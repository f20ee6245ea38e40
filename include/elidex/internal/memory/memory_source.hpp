// The source of one container's memory. It enforces the limit of the options.
//
//   memory_source source(options);
//   void* chunk = source.obtain(bytes, 64);     // uninitialised
//   source.give_back(chunk, bytes, 64);
//
//   // large pieces, on huge pages if the options want them
//   void* table = source.obtain_zeroed(bytes);
//   source.give_back_zeroed(table, bytes);
//
// Thread-safety: all functions but the constructor, from any thread.
// Errors: obtain() and obtain_zeroed() throw std::bad_alloc and what the resource throws.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory_resource>
#include <new>

#include "elidex/internal/memory/large_memory.hpp"
#include "elidex/memory_options.hpp"

namespace elidex::internal {

class memory_source {
 public:
  constexpr explicit memory_source(const memory_options& options = {}) noexcept
      : resource_(options.resource),
        bytes_max_(options.bytes_max),
        huge_pages_(options.huge_pages),
        is_plain_(options.resource == nullptr && options.bytes_max == memory_options{}.bytes_max) {}
  memory_source(const memory_source&) = delete;
  memory_source& operator=(const memory_source&) = delete;

  [[nodiscard]] void* obtain(std::size_t bytes, std::size_t alignment) {
    if (is_plain_) [[likely]]
      return obtain_plain(bytes, alignment);
    return obtain_counted(bytes, alignment);
  }
  // The arguments must be those of obtain().
  void give_back(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
    if (is_plain_) [[likely]]
      return give_back_plain(memory, bytes, alignment);
    give_back_counted(memory, bytes, alignment);
  }

  // Aligned to 64 bytes, and from huge_page_bytes on to these.
  [[nodiscard]] void* obtain_large(std::size_t bytes);
  void give_back_large(void* memory, std::size_t bytes) noexcept;

  // The same with all bytes zero. A large piece costs nothing before it is touched.
  [[nodiscard]] void* obtain_zeroed(std::size_t bytes);
  void give_back_zeroed(void* memory, std::size_t bytes) noexcept;
  // Gives back the pages but not the addresses (large_memory.hpp). Returns whether it did.
  bool discard_pages(void* memory, std::size_t bytes) noexcept;
  // Before discarded pages are used again. Throws std::bad_alloc.
  void count_discarded(std::size_t bytes) { count(bytes); }
  // Instead of give_back_zeroed().
  void give_back_discarded(void* memory, std::size_t bytes) noexcept {
    return_zeroed_memory(memory, bytes);
  }

  // Returns false if the system or the limit refuses so many bytes at once. If it returns true,
  // obtaining that memory may still fail.
  [[nodiscard]] bool may_obtain(std::size_t bytes) const noexcept;

 private:
  static void* obtain_plain(std::size_t bytes, std::size_t alignment) {
    if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator new(bytes);
    return ::operator new(bytes, std::align_val_t{alignment});
  }
  static void give_back_plain(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
    if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator delete(memory, bytes);
    ::operator delete(memory, bytes, std::align_val_t{alignment});
  }
  template <class Obtain>
  void* counting(std::size_t bytes, Obtain&& obtain);
  void* obtain_counted(std::size_t bytes, std::size_t alignment);
  void give_back_counted(void* memory, std::size_t bytes, std::size_t alignment) noexcept;
  void count(std::size_t bytes);
  void discount(std::size_t bytes) noexcept;

  pages page_size() const noexcept { return huge_pages_ ? pages::huge : pages::small; }

  std::pmr::memory_resource* const resource_;
  const std::size_t bytes_max_;
  std::atomic<std::size_t> bytes_{0};  // if is_plain_, only those of large pieces
  const bool huge_pages_;
  const bool is_plain_;
};

// For containers without options.
extern constinit memory_source default_memory;

}  // namespace elidex::internal
