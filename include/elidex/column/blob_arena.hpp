// Byte strings one behind the other, for as long as the arena lives.
//
//   blob_arena strings;
//   detail::blob* s = strings.make("hello");   // may throw
//   strings.take_back(s);                      // nobody has it: its room is used again if nothing came behind it
//
// Thread-safety: make() and take_back() from any thread.
// Errors: make() throws std::bad_alloc and has then changed nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string_view>
#include <vector>

#include "elidex/index/blob.hpp"
#include "elidex/reclaim/large_memory.hpp"

namespace elidex::detail {

class blob_arena {
 public:
  blob_arena() = default;
  ~blob_arena() {
    for (const chunk& c : chunks_) return_memory(c.begin, c.bytes);
  }
  blob_arena(const blob_arena&) = delete;
  blob_arena& operator=(const blob_arena&) = delete;

  blob* make(std::string_view bytes) {
    const std::lock_guard guard(mutex_);
    const std::size_t wanted = blob::bytes_for(bytes.size());
    if (static_cast<std::size_t>(end_ - unused_) < wanted) add_chunk(wanted);
    blob* const made = blob::make_at(unused_, bytes);
    unused_ += wanted;
    return made;
  }

  void take_back(blob* unwanted) noexcept {
    const std::lock_guard guard(mutex_);
    auto* const begin = reinterpret_cast<std::byte*>(unwanted);
    if (begin + blob::bytes_for(unwanted->size()) == unused_) unused_ = begin;
  }

  // Obtained from the system, in bytes.
  std::size_t memory_bytes() const noexcept {
    return reserved_.load(std::memory_order_relaxed);  // a figure, orders nothing; pairs with the store in add_chunk()
  }

 private:
  struct chunk {
    void* begin;
    std::size_t bytes;
  };
  // A quarter of the whole at most lies idle, and no more than the largest. Both chosen.
  static constexpr std::size_t chunk_bytes_min = 1024;
  static constexpr std::size_t chunk_bytes_max = std::size_t{4} << 20;

  void add_chunk(std::size_t wanted) {
    const std::size_t all = memory_bytes();
    std::size_t bytes = std::max(std::clamp(all / 4, chunk_bytes_min, chunk_bytes_max), wanted);
    if (bytes > huge_page_bytes) bytes = (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    chunks_.reserve(chunks_.size() + 1);
    void* const begin = obtain_memory(bytes);
    chunks_.push_back({begin, bytes});
    unused_ = static_cast<std::byte*>(begin);
    end_ = unused_ + bytes;
    reserved_.store(all + bytes, std::memory_order_relaxed);  // pairs with memory_bytes(): see there
  }

  std::mutex mutex_;
  std::vector<chunk> chunks_;
  std::byte* unused_ = nullptr;
  std::byte* end_ = nullptr;
  std::atomic<std::size_t> reserved_{0};
};

}  // namespace elidex::detail
