// Immutable byte strings outside the nodes, for keys and values of any length.
//
// A blob is written once, before any node refers to it, and freed through the container's retire
// list: a reader that found its address in a validated node may read it for as long as it is
// pinned.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

namespace elidex::internal {

class blob {
 public:
  static blob* make(std::string_view bytes) {
    blob* const made = make_room(bytes.size());
    made->fill(bytes);
    return made;
  }
  // A blob of `size` bytes that are not written yet.
  static blob* make_room(std::size_t size) {
    return ::new (::operator new(sizeof(blob) + size)) blob(static_cast<std::uint32_t>(size));
  }
  // The same in memory of bytes_for(size) bytes that somebody else owns: such a blob is not
  // destroyed.
  static blob* make_room_at(void* memory, std::size_t size) noexcept {
    return ::new (memory) blob(static_cast<std::uint32_t>(size));
  }
  // A multiple of its alignment.
  static constexpr std::size_t bytes_for(std::size_t size) noexcept {
    return (sizeof(blob) + size + alignof(std::uint32_t) - 1) / alignof(std::uint32_t) *
           alignof(std::uint32_t);
  }
  // Writes a blob that no reader knows yet; it must have been made for exactly as many bytes.
  void fill(std::string_view bytes) noexcept {
    // an empty view may point nowhere
    if (!bytes.empty()) std::memcpy(data(), bytes.data(), bytes.size());
  }
  static void destroy(blob* b) noexcept { ::operator delete(b); }

  std::string_view view() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), size_};
  }
  std::size_t size() const noexcept { return size_; }

  // What the system's allocator sets aside for it, in bytes: 16-byte granules with an 8-byte
  // header, two of them at least, as in glibc.
  static constexpr std::size_t footprint_bytes(std::size_t size) noexcept {
    return std::max<std::size_t>((sizeof(blob) + size + 8 + 15) / 16 * 16, 32);
  }

 private:
  explicit blob(std::uint32_t size) noexcept : size_(size) {}
  char* data() noexcept { return reinterpret_cast<char*>(this + 1); }

  std::uint32_t size_;
};

// Where a tree's blobs live: each by itself, and freed by itself.
struct heap_blobs {
  static constexpr bool frees_all_itself = false;
  static blob* make(std::string_view bytes) { return blob::make(bytes); }
  static blob* make_room(std::size_t size) { return blob::make_room(size); }
  static void destroy(blob* b) noexcept { blob::destroy(b); }
  static constexpr std::size_t footprint_bytes(std::size_t size) noexcept {
    return blob::footprint_bytes(size);
  }
  static constexpr std::size_t memory_bytes() noexcept { return 0; }
};

}  // namespace elidex::internal
