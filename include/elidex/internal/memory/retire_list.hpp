// Where a container keeps what it has unlinked until no reader can reach it any more.
//
//   retire_list retired(owner);
//   retired.reserve();                          // may throw, before the operation changes anything
//   retired.retire(node, &destroy_node);        // cannot fail
//   retired.unreserve();
//
// Retiring must not fail, because it follows a change that is already visible; so room is reserved
// ahead. Lists are sharded by thread; entries of a shard are in the order of their epochs. Every
// `retirements_per_sweep` retirements in a shard its ripe prefix is destroyed, and that of one
// other shard in turn, whose threads may have gone. A sweep moves the epoch on by one at most and
// an entry waits for two, so a few times that many objects a shard wait at any time, and those that
// a pinned thread holds back: steady churn does not grow memory.
//
// Thread-safety: all functions but the destructor, which needs the container to be quiet: it
// destroys what is left at once, since nobody may be inside a container that is being destroyed.
// Errors: reserve() throws std::bad_alloc and then changes nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/thread_slot.hpp"

namespace elidex::internal {

class retire_list {
 public:
  using destroyer = void (*)(void* owner, void* object) noexcept;

  // Room that one reserve() call makes: an erase retires a key, a value, a node and a separator.
  static constexpr std::size_t reserved_entries = 8;
  // chosen: a sweep looks at every thread's record
  static constexpr std::size_t retirements_per_sweep = 64;

  explicit retire_list(void* owner) noexcept : owner_(owner) {}
  ~retire_list();
  retire_list(const retire_list&) = delete;
  retire_list& operator=(const retire_list&) = delete;

  void reserve();
  void unreserve() noexcept;
  // Needs a reservation of this thread; `object` must be unreachable for readers that pin from now
  // on.
  void retire(void* object, destroyer destroy) noexcept;

  // Objects waiting, over all shards.
  std::size_t pending() const noexcept;
  // What the lists themselves take.
  std::size_t reserved_bytes() const noexcept;
  // Destroys whatever is ripe, in every shard; for tests and for users who want the memory now.
  void sweep_all() noexcept;

 private:
  struct entry {
    void* object;
    destroyer destroy;
    std::uint64_t epoch;
  };
  struct alignas(128) shard {
    mutable std::mutex mutex;
    std::vector<entry> entries;
    std::size_t reserved = 0;
    std::size_t until_sweep = retirements_per_sweep;
  };

  shard& this_threads_shard() noexcept { return shards_[this_thread_slot_or_0() % shards_.size()]; }
  void sweep(shard&) noexcept;  // the caller holds the shard's mutex
  void sweep_next_in_turn() noexcept;

  void* owner_;
  std::array<shard, 8> shards_;
  std::atomic<std::uint32_t> next_in_turn_{0};
};

}  // namespace elidex::internal
