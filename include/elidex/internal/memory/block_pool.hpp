// A pool of memory blocks of one size (tree nodes), cut from large chunks. It reuses freed blocks
// first.
//
//   block_pool pool(512);
//   void* node = pool.allocate();    // 64-byte aligned, uninitialised
//   pool.deallocate(node);
//
// Thread-safety: all functions except constructor and destructor, from any thread.
// Lifetime: blocks are valid until deallocate(). The destructor returns all chunks to the system.
// Errors: allocate() throws std::bad_alloc and then has changed nothing.
//
// Implementation notes
// Chunks grow with the pool, from two blocks to 4 MiB, and more if a block is larger. Chunks of
// 2 MiB and more are aligned and marked for huge pages. With 4 KiB pages, random look-ups over
// 10 M keys spend half of their time on TLB misses.
// Threads allocate from shards. A shard takes up to `refill_blocks` unused blocks at a time, or a
// batch of `batch_blocks` free blocks that another shard has given up. Nothing touches a block
// while the chunk's mutex is held, because each touch may miss all caches. When it did, 16 threads
// that inserted into a skip list spent half of their time waiting for that mutex.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace elidex::internal {

class block_pool {
 public:
  static constexpr std::size_t block_alignment = 64;

  // `name` and `head_bytes`, the size of a block's head, are for the simulated machine's reports.
  // Threads may read the head of a free block.
  explicit block_pool(std::size_t block_bytes, const char* name = "block",
                      std::size_t head_bytes = 0) noexcept;
  ~block_pool();
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;

  [[nodiscard]] void* allocate();
  void deallocate(void* block) noexcept;

  // The bytes obtained from the system, used or not.
  std::size_t reserved_bytes() const noexcept { return reserved_bytes_.load(); }
  // The number of blocks that are allocated and not yet deallocated.
  std::size_t blocks_in_use() const noexcept;

 private:
  struct free_block {
    free_block* next;
  };
  struct alignas(128) shard {
    mutable std::mutex mutex;
    free_block* free = nullptr;
    std::size_t free_count = 0;
    // allocations minus deallocations here: only the sum over all shards is meaningful
    std::ptrdiff_t in_use = 0;
  };

  shard& this_threads_shard() noexcept;
  void refill(shard&);          // the caller holds the shard's mutex
  void spill(shard&) noexcept;  // likewise
  void add_chunk();             // the caller holds chunk_mutex_

  const std::size_t block_bytes_;
  const char* const name_;
  const std::size_t head_bytes_;
  std::array<shard, 32> shards_;
  std::mutex chunk_mutex_;  // taken after a shard's mutex, never before it
  std::vector<std::pair<void*, std::size_t>> chunks_;
  std::byte* unused_begin_ = nullptr;
  std::byte* unused_end_ = nullptr;
  std::vector<free_block*> spilled_;  // batches
  std::atomic<std::size_t> reserved_bytes_{0};
};

}  // namespace elidex::internal
