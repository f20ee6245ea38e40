// Holds the objects that a container has unlinked, until no reader can reach them.
//
//   retire_list retired(owner);
//   retired.reserve();                          // may throw, before the operation changes anything
//   retired.retire(node, &destroy_node);        // cannot fail
//   retired.unreserve();
//
// Retiring must not fail, because it follows a change that is already visible. So an operation
// reserves room first.
//
// Thread-safety: all functions except the destructor. The destructor destroys all waiting objects
// at once, because no thread may be inside a container that is being destroyed.
// Memory: nothing before the first reserve(). A shard keeps a few times `retirements_per_sweep`
// objects at any time, and the objects that a pinned thread holds back. Steady churn does not grow
// memory.
// Errors: reserve() throws std::bad_alloc and then changes nothing.
//
// Implementation notes
// The lists are sharded by thread. The entries of a shard are in the order of their epochs. After
// every `retirements_per_sweep` retirements in a shard, a sweep destroys the shard's ripe prefix.
// It also sweeps one other shard in turn, because that shard's threads may have ended. A sweep
// advances the epoch by one at most, and an entry waits for two advances.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/made_on_demand.hpp"
#include "elidex/internal/memory/memory_name.hpp"

namespace elidex::internal {

class retire_list {
 public:
  using destroyer = void (*)(void* owner, void* object) noexcept;

  // The room that one reserve() call makes. An erase retires a key, a value, a node and a
  // separator.
  static constexpr std::size_t reserved_entries = 8;
  // chosen: a sweep reads every thread's record
  static constexpr std::size_t retirements_per_sweep = 64;

  explicit retire_list(void* owner) noexcept : owner_(owner) {}
  ~retire_list();
  retire_list(const retire_list&) = delete;
  retire_list& operator=(const retire_list&) = delete;

  void reserve();
  void unreserve() noexcept;
  // The calling thread must have a reservation. Readers that pin from now on must be unable to
  // reach `object`.
  void retire(void* object, destroyer destroy) noexcept;

  // The number of waiting objects in all shards.
  std::size_t pending() const noexcept;
  // The bytes that the lists themselves take.
  std::size_t reserved_bytes() const noexcept;
  // Destroys the ripe objects of every shard. For tests, and for users that need the memory now.
  void sweep_all() noexcept;

 private:
  static constexpr std::size_t shard_count = 8;
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

  using all_shards = std::array<shard, shard_count>;
  struct maker {
    std::unique_ptr<all_shards> operator()() const {
      auto made = std::make_unique<all_shards>();
      name_memory(made.get(), sizeof *made, "retired objects");
      return made;
    }
  };

  // After the thread's reserve().
  shard& this_threads_shard() noexcept {
    return (*shards_.if_made())[this_thread_slot_or_0() % shard_count];
  }
  void sweep(shard&) noexcept;  // the caller holds the shard's mutex
  void sweep_next_in_turn() noexcept;
  template <class Fn>
  void for_each_shard(Fn&& fn) const;

  void* owner_;
  made_on_demand<all_shards, maker> shards_;
  std::atomic<std::uint32_t> next_in_turn_{0};
};

}  // namespace elidex::internal
