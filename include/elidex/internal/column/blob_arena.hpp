// An arena of byte strings, which live as long as the arena.
//
//   blob_arena strings;
//   blob* s = strings.make("hello");   // may throw
//   strings.destroy(s);  // no thread uses it: its room is used again if nothing came behind it
//
// arena_blobs has 16 arenas, one for each group of threads. It replaces heap_blobs in trees that
// only grow.
//
// Thread-safety: make(), make_room() and destroy() from any thread.
// Errors: make() and make_room() throw std::bad_alloc. Nothing is then changed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string_view>
#include <vector>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/large_memory.hpp"
#include "elidex/internal/memory/memory_source.hpp"
#include "elidex/internal/tree/codec.hpp"

namespace elidex::internal {

class alignas(128) blob_arena {
 public:
  blob_arena() = default;
  ~blob_arena() {
    for (const chunk& c : chunks_) return_memory(c.begin, c.bytes);
  }
  blob_arena(const blob_arena&) = delete;
  blob_arena& operator=(const blob_arena&) = delete;

  blob* make(std::string_view bytes) {
    blob* const made = make_room(bytes.size());
    made->fill(bytes);
    return made;
  }
  // A blob of `size` bytes that are not written yet.
  blob* make_room(std::size_t size) {
    const std::lock_guard guard(mutex_);
    const std::size_t wanted = blob::bytes_for(size);
    if (static_cast<std::size_t>(end_ - unused_) < wanted) add_chunk(wanted);
    blob* const made = blob::make_room_at(unused_, size);
    unused_ += wanted;
    return made;
  }

  void destroy(blob* unwanted) noexcept {
    const std::lock_guard guard(mutex_);
    auto* const begin = reinterpret_cast<std::byte*>(unwanted);
    const bool in_this_chunk = begin >= chunk_begin_ && begin < end_;
    if (in_this_chunk && begin + blob::bytes_for(unwanted->size()) == unused_) unused_ = begin;
  }

  // The memory obtained from the system, in bytes.
  std::size_t memory_bytes() const noexcept {
    // A statistic that orders nothing. Pairs with the store in add_chunk().
    return reserved_.load(std::memory_order_relaxed);
  }

 private:
  struct chunk {
    void* begin;
    std::size_t bytes;
  };
  // A new chunk has a quarter of the whole size, within these bounds. Both are chosen.
  static constexpr std::size_t chunk_bytes_min = 1024;
  static constexpr std::size_t chunk_bytes_max = std::size_t{4} << 20;

  void add_chunk(std::size_t wanted) {
    const std::size_t all = memory_bytes();
    std::size_t bytes = std::max(std::clamp(all / 4, chunk_bytes_min, chunk_bytes_max), wanted);
    if (bytes > huge_page_bytes)
      bytes = (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    chunks_.reserve(chunks_.size() + 1);
    void* const begin = obtain_memory(bytes);
    chunks_.push_back({begin, bytes});
    unused_ = chunk_begin_ = static_cast<std::byte*>(begin);
    end_ = unused_ + bytes;
    // pairs with memory_bytes(): see there
    reserved_.store(all + bytes, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::vector<chunk> chunks_;
  std::byte* chunk_begin_ = nullptr;  // of the last chunk
  std::byte* unused_ = nullptr;
  std::byte* end_ = nullptr;
  std::atomic<std::size_t> reserved_{0};
};

class arena_blobs {
 public:
  static constexpr bool frees_all_itself = true;
  blob* make(std::string_view bytes, memory_source& /*source*/) { return mine().make(bytes); }
  blob* make_room(std::size_t size, memory_source& /*source*/) { return mine().make_room(size); }
  // A blob in another thread's arena stays there.
  void destroy(blob* b, memory_source& /*source*/) noexcept { mine().destroy(b); }
  static constexpr std::size_t footprint_bytes(std::size_t /*size*/) noexcept { return 0; }
  std::size_t memory_bytes() const noexcept {
    std::size_t sum = 0;
    for (const blob_arena& a : arenas_) sum += a.memory_bytes();
    return sum;
  }

 private:
  blob_arena& mine() noexcept { return arenas_[this_thread_slot_or_0() % arenas_.size()]; }

  std::array<blob_arena, 16> arenas_;
};

}  // namespace elidex::internal
