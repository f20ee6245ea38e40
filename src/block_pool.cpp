#include "elidex/internal/memory/block_pool.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

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

// AddressSanitizer does not know the pool's blocks. These tell it that no thread may touch a free
// block, except its link and its head, in which stale requests read a leaf's sequence number
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
// chosen: above it, other parts may have a batch of them
constexpr std::size_t free_blocks_per_part_max = 64;
constexpr std::size_t batch_blocks = free_blocks_per_part_max / 2;

std::size_t rounded_chunk(std::size_t bytes) noexcept {
  const std::size_t unit = bytes >= huge_page_bytes ? huge_page_bytes : alignof(void*);
  return (bytes + unit - 1) / unit * unit;
}

// Changes a part's count of free blocks, under its lock.
void set(std::size_t& count, std::size_t to) noexcept {
  // relaxed: pairs with the guess of take_left_behind().
  std::atomic_ref(count).store(to, std::memory_order_relaxed);
}

}  // namespace

block_pool::block_pool(std::size_t block_bytes, const char* name, std::size_t head_bytes,
                       memory_source& source, std::size_t alignment) noexcept
    : source_(source),
      name_(name),
      block_bytes_(
          static_cast<std::uint32_t>((block_bytes + alignment - 1) / alignment * alignment)),
      head_bytes_(static_cast<std::uint32_t>(head_bytes)) {}

block_pool::~block_pool() {
  give_back_chunks();
}

void block_pool::give_back_chunks() noexcept {
  while (last_chunk_ != nullptr) {
    const chunk_end chunk = *last_chunk_;
    permit_access(chunk.begin, chunk.bytes);
    source_.give_back_large(chunk.begin, chunk.bytes);
    last_chunk_ = chunk.before;
  }
}

// A thread that has to wait for its part asks for more parts.
block_pool::part& block_pool::lock_this_threads_part() noexcept {
  for (;;) {
    part& mine = parts_.mine();
    if (mine.lock.try_lock()) return mine;
    parts_.spread();
    part& own = parts_.mine();
    if (&own != &mine) continue;
    own.lock.lock();
    return own;
  }
}

void* block_pool::allocate() {
  part& p = lock_this_threads_part();
  const std::lock_guard guard(p.lock, std::adopt_lock);
  if (p.free == nullptr) refill(p);
  free_block* const block = std::exchange(p.free, p.free->next);
  set(p.free_count, p.free_count - 1);
  ++p.in_use;
  permit_access(block, block_bytes_);
  return block;
}

void block_pool::deallocate(void* block) noexcept {
  part& p = lock_this_threads_part();
  const std::lock_guard guard(p.lock, std::adopt_lock);
  p.free = ::new (block) free_block{p.free};
  forbid_access(block, block_bytes_, head_bytes_);
  set(p.free_count, p.free_count + 1);
  --p.in_use;
  if (p.free_count > free_blocks_per_part_max) spill(p);
}

void block_pool::refill(part& p) {
  if (take_left_behind(p)) return;
  std::byte* unused = nullptr;
  std::size_t taken = 0;
  {
    const std::lock_guard guard(chunk_lock_);
    if (spilled_ != nullptr && !spilled_->empty()) {
      p.free = spilled_->back();
      spilled_->pop_back();
      set(p.free_count, batch_blocks);
      return;
    }
    if (unused_count_ == 0) add_chunk();
    // A small pool hands out single blocks, so that a map of ten keys does not reserve sixteen.
    const std::size_t wanted =
        std::clamp<std::size_t>(chunk_bytes() / block_bytes_ / 64, 1, refill_blocks);
    taken = std::min<std::size_t>(wanted, unused_count_);
    unused = std::exchange(unused_, unused_ + taken * block_bytes_);
    unused_count_ -= static_cast<std::uint32_t>(taken);
  }
  // The block with the lowest address is allocated first.
  for (std::size_t i = taken; i > 0; --i)
    p.free = ::new (unused + (i - 1) * block_bytes_) free_block{p.free};
  set(p.free_count, taken);
}

// Takes the free blocks of the part that all threads had at first. No thread allocates from that
// part now. The lock of the first part comes after the lock of another one.
bool block_pool::take_left_behind(part& p) noexcept {
  part& first = parts_.first();
  if (&p == &first) return false;
  // relaxed: a guess, which pairs with set(). The next refill finds what is returned meanwhile. All
  // threads read the first part's line, so it is written only if there is something to take.
  if (std::atomic_ref(first.free_count).load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard guard(first.lock);
  p.free = std::exchange(first.free, nullptr);
  set(p.free_count, first.free_count);
  set(first.free_count, 0);
  return p.free != nullptr;
}

void block_pool::spill(part& p) noexcept {
  free_block* const first = p.free;
  free_block* last = first;
  for (std::size_t i = 1; i < batch_blocks; ++i) last = last->next;
  p.free = std::exchange(last->next, nullptr);
  set(p.free_count, p.free_count - batch_blocks);
  const std::lock_guard guard(chunk_lock_);
  spilled_->push_back(first);  // has room: see add_chunk()
}

void block_pool::add_chunk() {
  // A quarter of the whole while chunks are smaller than a huge page, and a sixteenth later. That
  // much may be unused.
  const std::size_t all = chunk_bytes();
  std::size_t bytes = std::max(block_bytes_ + sizeof(chunk_end), all / 4);
  if (bytes >= huge_page_bytes) {
    const std::size_t wished = std::clamp(all / 16, huge_page_bytes, chunk_bytes_max);
    // Two blocks at least: one alone could leave half of the chunk unused.
    bytes = std::max(wished, std::size_t{2} * block_bytes_ + sizeof(chunk_end));
  }
  bytes = rounded_chunk(bytes);
  make_room_for_batches((all + bytes) / block_bytes_ / batch_blocks);
  use_chunk(source_.obtain_large(bytes), bytes);
}

// The blocks of the chunk before are all in use, or the caller keeps them.
void block_pool::use_chunk(void* memory, std::size_t bytes) noexcept {
  name_memory(memory, bytes, name_, block_bytes_, head_bytes_);
  unused_ = static_cast<std::byte*>(memory);
  last_chunk_ = ::new (unused_ + bytes - sizeof(chunk_end))
      chunk_end{last_chunk_, memory, bytes, chunk_bytes() + bytes};
  unused_count_ = static_cast<std::uint32_t>((bytes - sizeof(chunk_end)) / block_bytes_);
}

// No lock is held while the system makes the pages, so other threads go on.
void block_pool::reserve(std::size_t blocks) {
  // Half of what unused_count_ can hold: a chunk is rounded up.
  constexpr std::size_t blocks_max = std::numeric_limits<std::uint32_t>::max() / 2;
  std::size_t bytes = 0;
  {
    const std::lock_guard guard(chunk_lock_);
    const std::size_t there = chunk_bytes() / block_bytes_;
    if (there >= std::min(blocks, blocks_max)) return;
    const std::size_t missing = std::min(blocks, blocks_max) - there;
    bytes = rounded_chunk(missing * block_bytes_ + sizeof(chunk_end));
  }
  if (!source_.may_obtain(bytes)) throw std::bad_alloc();
  void* const memory = source_.obtain_large(bytes);
  touch_pages(memory, bytes);
  std::byte* rest = nullptr;
  std::size_t rest_count = 0;
  try {
    const std::lock_guard guard(chunk_lock_);
    make_room_for_batches((chunk_bytes() + bytes) / block_bytes_ / batch_blocks);
    rest = std::exchange(unused_, nullptr);
    rest_count = std::exchange(unused_count_, 0);
    use_chunk(memory, bytes);
  } catch (...) {
    source_.give_back_large(memory, bytes);
    throw;
  }
  part& mine = lock_this_threads_part();
  const std::lock_guard guard(mine.lock, std::adopt_lock);
  for (std::size_t i = rest_count; i > 0; --i)
    mine.free = ::new (rest + (i - 1) * block_bytes_) free_block{mine.free};
  set(mine.free_count, mine.free_count + rest_count);
}

void block_pool::make_room_for_batches(std::size_t batches) {
  if (batches == 0) return;
  if (spilled_ == nullptr) spilled_ = std::make_unique<std::vector<free_block*>>();
  if (batches > spilled_->capacity())
    spilled_->reserve(std::max(batches, 2 * spilled_->capacity()));
}

bool block_pool::give_back_unused() noexcept {
  if (blocks_in_use() != 0) return false;
  parts_.for_each([](part& p) {
    const std::lock_guard guard(p.lock);
    p.free = nullptr;
    set(p.free_count, 0);
  });
  const std::lock_guard guard(chunk_lock_);
  if (spilled_ != nullptr) spilled_->clear();
  unused_ = nullptr;
  unused_count_ = 0;
  give_back_chunks();
  return true;
}

std::size_t block_pool::reserved_bytes() const noexcept {
  const std::lock_guard guard(chunk_lock_);
  return chunk_bytes() + parts_.memory_bytes();
}

std::size_t block_pool::blocks_in_use() const noexcept {
  std::ptrdiff_t sum = 0;
  parts_.for_each([&](const part& p) {
    const std::lock_guard guard(p.lock);
    sum += p.in_use;
  });
  // below: while others allocate
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(sum, 0));
}

}  // namespace elidex::internal
