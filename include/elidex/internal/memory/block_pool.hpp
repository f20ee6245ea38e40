// Equal blocks of memory (tree nodes) from large chunks, with the freed ones used again first.
//
//   block_pool pool(512);
//   void* node = pool.allocate();    // 64-byte aligned, uninitialised
//   pool.deallocate(node);
//
// Chunks grow with the pool, from two blocks to 4 MiB (more where a block is larger), and from 2
// MiB on they are aligned and marked for huge pages: random look-ups over 10 M keys spend half of
// their time on TLB misses with 4 KiB pages. Chunks go back to the system when the pool is
// destroyed. Threads allocate from shards of their own and meet in the chunk only once per
// `refill_blocks`.
//
// Thread-safety: all functions but constructor and destructor.
// Errors: allocate() throws std::bad_alloc and then has changed nothing.
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

  // What the blocks are, and how many of their bytes are head, is for the simulated machine's
  // reports; and the head of a block that is free may be read.
  explicit block_pool(std::size_t block_bytes, const char* name = "block",
                      std::size_t head_bytes = 0) noexcept;
  ~block_pool();
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;

  [[nodiscard]] void* allocate();
  void deallocate(void* block) noexcept;

  // Everything obtained from the system, used or not, in bytes.
  std::size_t reserved_bytes() const noexcept { return reserved_bytes_.load(); }
  // Blocks handed out and not given back.
  std::size_t blocks_in_use() const noexcept;

 private:
  struct free_block {
    free_block* next;
  };
  struct alignas(128) shard {
    mutable std::mutex mutex;
    free_block* free = nullptr;
    std::size_t free_count = 0;
    // allocations less deallocations here; only the sum over shards means anything
    std::ptrdiff_t in_use = 0;
  };

  shard& this_threads_shard() noexcept;
  void refill(shard&);          // the caller holds the shard's mutex
  void spill(shard&) noexcept;  // likewise
  void add_chunk();             // the caller holds chunk_mutex_

  const std::size_t block_bytes_;
  const char* const name_;
  const std::size_t head_bytes_;
  std::array<shard, 8> shards_;
  std::mutex chunk_mutex_;  // taken after a shard's mutex, never before it
  std::vector<std::pair<void*, std::size_t>> chunks_;
  std::byte* unused_begin_ = nullptr;
  std::byte* unused_end_ = nullptr;
  free_block* spilled_ = nullptr;
  std::atomic<std::size_t> reserved_bytes_{0};
};

}  // namespace elidex::internal
