#include "elidex/internal/memory/block_pool.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/large_memory.hpp"
#include "elidex/internal/memory/memory_name.hpp"

#if defined(__SANITIZE_ADDRESS__)
#  define ELIDEX_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer)
#    define ELIDEX_ADDRESS_SANITIZER 1
#  endif
#endif
#if defined(ELIDEX_ADDRESS_SANITIZER)
#  include <sanitizer/asan_interface.h>
#endif

namespace elidex::internal {
namespace {

// AddressSanitizer does not know our blocks: tell it which ones nobody may touch, beyond the link
// in a free one and the head, where stale requests look for a leaf's sequence number
// (split_regions.hpp).
void forbid_access([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes,
                   [[maybe_unused]] std::size_t head_bytes) {
#if defined(ELIDEX_ADDRESS_SANITIZER)
  const std::size_t spared = std::min(bytes, std::max(sizeof(void*), head_bytes));
  ASAN_POISON_MEMORY_REGION(static_cast<std::byte*>(block) + spared, bytes - spared);
#endif
}
void permit_access([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) {
#if defined(ELIDEX_ADDRESS_SANITIZER)
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
#endif
}

constexpr std::size_t chunk_bytes_max = std::size_t{4} << 20;  // chosen: 2 % of a tree of 10 M keys
// chosen: 1/16 lock of the chunk per block
constexpr std::size_t refill_blocks = 16;
// chosen: above it, other shards may have a batch of them
constexpr std::size_t free_blocks_per_shard_max = 64;
constexpr std::size_t batch_blocks = free_blocks_per_shard_max / 2;

}  // namespace

block_pool::block_pool(std::size_t block_bytes, const char* name, std::size_t head_bytes) noexcept
    : block_bytes_((block_bytes + block_alignment - 1) / block_alignment * block_alignment),
      name_(name),
      head_bytes_(head_bytes) {}

block_pool::~block_pool() {
  for (const auto& [memory, bytes] : chunks_) {
    permit_access(memory, bytes);
    return_memory(memory, bytes);
  }
}

block_pool::shard& block_pool::this_threads_shard() noexcept {
  return shards_[this_thread_slot_or_0() % shards_.size()];
}

void* block_pool::allocate() {
  shard& s = this_threads_shard();
  const std::lock_guard guard(s.mutex);
  if (s.free == nullptr) refill(s);
  free_block* const block = std::exchange(s.free, s.free->next);
  --s.free_count;
  ++s.in_use;
  permit_access(block, block_bytes_);
  return block;
}

void block_pool::deallocate(void* block) noexcept {
  shard& s = this_threads_shard();
  const std::lock_guard guard(s.mutex);
  s.free = ::new (block) free_block{s.free};
  forbid_access(block, block_bytes_, head_bytes_);
  ++s.free_count;
  --s.in_use;
  if (s.free_count > free_blocks_per_shard_max) spill(s);
}

void block_pool::refill(shard& s) {
  std::byte* unused = nullptr;
  std::size_t taken = 0;
  {
    const std::lock_guard guard(chunk_mutex_);
    if (!spilled_.empty()) {
      s.free = spilled_.back();
      spilled_.pop_back();
      s.free_count = batch_blocks;
      return;
    }
    if (unused_begin_ == unused_end_) add_chunk();
    // A small pool hands out single blocks, so that a map of ten keys does not reserve sixteen.
    const std::size_t wanted =
        std::clamp<std::size_t>(reserved_bytes() / block_bytes_ / 64, 1, refill_blocks);
    taken = std::min(wanted, static_cast<std::size_t>(unused_end_ - unused_begin_) / block_bytes_);
    unused = std::exchange(unused_begin_, unused_begin_ + taken * block_bytes_);
  }
  for (std::size_t i = 0; i < taken; ++i)
    s.free = ::new (unused + i * block_bytes_) free_block{s.free};
  s.free_count = taken;
}

void block_pool::spill(shard& s) noexcept {
  free_block* const first = s.free;
  free_block* last = first;
  for (std::size_t i = 1; i < batch_blocks; ++i) last = last->next;
  s.free = std::exchange(last->next, nullptr);
  s.free_count -= batch_blocks;
  const std::lock_guard guard(chunk_mutex_);
  spilled_.push_back(first);  // has room: see add_chunk()
}

void block_pool::add_chunk() {
  // A quarter of the whole while chunks are smaller than a huge page, a sixteenth later: that much
  // may lie idle.
  const std::size_t reserved = reserved_bytes();
  std::size_t bytes = std::max(2 * block_bytes_, reserved / 4);
  if (bytes >= huge_page_bytes) {
    const std::size_t wished = std::clamp(reserved / 16, huge_page_bytes, chunk_bytes_max);
    // Two blocks at least: one alone could leave half of the chunk unused.
    bytes = (std::max(wished, 2 * block_bytes_) + huge_page_bytes - 1) / huge_page_bytes *
            huge_page_bytes;
  }
  chunks_.reserve(chunks_.size() + 1);
  const std::size_t batches = (reserved + bytes) / block_bytes_ / batch_blocks;
  if (batches > spilled_.capacity()) spilled_.reserve(std::max(batches, 2 * spilled_.capacity()));
  void* const memory = obtain_memory(bytes);
  chunks_.emplace_back(memory, bytes);
  name_memory(memory, bytes, name_, block_bytes_, head_bytes_);
  unused_begin_ = static_cast<std::byte*>(memory);
  unused_end_ = unused_begin_ + bytes / block_bytes_ * block_bytes_;
  reserved_bytes_ += bytes;
}

std::size_t block_pool::blocks_in_use() const noexcept {
  std::ptrdiff_t sum = 0;
  for (const shard& s : shards_) {
    const std::lock_guard guard(s.mutex);
    sum += s.in_use;
  }
  // below: while others allocate
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(sum, 0));
}

}  // namespace elidex::internal
