// A pool of memory blocks of one size (tree nodes), cut from large chunks. It reuses freed blocks
// first.
//
//   block_pool pool(512);
//   void* node = pool.allocate();    // 64-byte aligned by default, uninitialised
//   pool.deallocate(node);
//
// Thread-safety: all functions except constructor and destructor, from any thread.
// Lifetime: blocks are valid until deallocate(). The destructor returns all chunks. The source must
// outlive the pool.
// Errors: allocate() throws what the source throws, and then has changed nothing.
//
// Implementation notes
// Chunks grow with the pool, from one block to 4 MiB, and more if a block is larger. Chunks of
// 2 MiB and more are aligned and marked for huge pages. With 4 KiB pages, random look-ups over
// 10 M keys spend half of their time on TLB misses. A chunk ends with a chunk_end, which leads to
// the chunk before.
// Each thread allocates from its part (thread_parts.hpp). A part takes up to `refill_blocks` unused
// blocks at a time, or a batch of `batch_blocks` free blocks that another part has given up.
// Nothing touches a block while the chunks' lock is held, because each touch may miss all caches.
// When it did, 16 threads that inserted into a skip list spent half of their time waiting for that
// lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "elidex/internal/memory/memory_source.hpp"
#include "elidex/internal/memory/thread_parts.hpp"
#include "elidex/internal/sync/sleeping_lock.hpp"

namespace elidex::internal {

class block_pool {
 public:
  static constexpr std::size_t block_alignment = 64;

  // `name` and `head_bytes`, the size of a block's head, are for the simulated machine's reports.
  // Threads may read the head of a free block. `alignment`: of the blocks, a power of two from 8 to
  // 64. Their size is rounded up to a multiple of it.
  explicit block_pool(std::size_t block_bytes, const char* name = "block",
                      std::size_t head_bytes = 0, memory_source& source = default_memory,
                      std::size_t alignment = block_alignment) noexcept;
  ~block_pool();
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;

  [[nodiscard]] void* allocate();
  void deallocate(void* block) noexcept;

  // Enlarges the pool to at least `blocks` blocks in all, but not beyond 2^31. The system backs the
  // new ones with pages before they can be allocated. Throws what the source throws, and then has
  // changed nothing.
  void reserve(std::size_t blocks);

  // Gives all chunks back to the source and returns true, or returns false if a block is in use.
  // During the call, other threads must not call allocate() or read the head of a free block.
  bool give_back_unused() noexcept;

  // The bytes obtained for blocks, used or not, and for the pool's own parts.
  std::size_t reserved_bytes() const noexcept;
  // The number of blocks that are allocated and not yet deallocated.
  std::size_t blocks_in_use() const noexcept;

 private:
  struct free_block {
    free_block* next;
  };
  struct part {
    mutable sleeping_lock lock;
    free_block* free = nullptr;
    std::size_t free_count = 0;
    // allocations minus deallocations here: only the sum over all parts is meaningful
    std::ptrdiff_t in_use = 0;
  };
  struct chunk_end {
    chunk_end* before;
    void* begin;
    std::size_t bytes;         // of this chunk, the end included
    std::size_t bytes_of_all;  // of this chunk and all before
  };

  part& lock_this_threads_part() noexcept;
  void refill(part&);          // the caller holds the part's lock
  void spill(part&) noexcept;  // likewise
  bool take_left_behind(part&) noexcept;
  void add_chunk();                                          // the caller holds chunk_lock_
  void use_chunk(void* memory, std::size_t bytes) noexcept;  // likewise
  void give_back_chunks() noexcept;                          // likewise
  void make_room_for_batches(std::size_t batches);
  std::size_t chunk_bytes() const noexcept {
    return last_chunk_ == nullptr ? 0 : last_chunk_->bytes_of_all;
  }

  alignas(64) thread_parts<part, 32, 128> parts_;
  memory_source& source_;
  const char* const name_;
  const std::uint32_t block_bytes_;
  const std::uint32_t head_bytes_;
  mutable sleeping_lock chunk_lock_;  // taken after a part's lock, never before it
  std::uint32_t unused_count_ = 0;
  std::byte* unused_ = nullptr;
  chunk_end* last_chunk_ = nullptr;
  // Batches. Null while the pool has too few blocks for one.
  std::unique_ptr<std::vector<free_block*>> spilled_;
};

}  // namespace elidex::internal
