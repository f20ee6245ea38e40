// Sums for many threads. Under contention each thread adds to a cache line of its own.
//
//   rare_counter restarts_;
//   busy_counter size_;      size_.add(1);   std::int64_t all = size_.sum();
//
// sum() adds up the parts one after the other. It is exact if no thread adds at the same time.
// Otherwise it includes some of the concurrent additions, so it may be negative although the true
// sum never was.
//
// Thread-safety: any thread may call any function, except the constructor and destructor.
// Errors: none.
// Memory: 16 bytes (rare_counter) or 40 (busy_counter), and 1 KiB or 4 KiB more once threads have
// contended for it. Before that add() writes the object itself, so the object should not lie on a
// cache line that other threads read.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/memory/thread_parts.hpp"

namespace elidex::internal {

// A sum that is never negative. While other threads add and subtract, the sum of its parts may be
// negative, and then this returns 0.
inline std::size_t count_of_sum(std::int64_t sum) noexcept {
  return sum < 0 ? 0 : static_cast<std::size_t>(sum);
}

// For rare events. 16 threads have a part each, and further ones share.
class rare_counter {
 public:
  void add(std::int64_t amount) noexcept {
    // relaxed: pairs with sum()'s relaxed loads. A count orders nothing.
    std::atomic<std::int64_t>& mine = parts_.mine().value;
    std::int64_t seen = mine.load(std::memory_order_relaxed);
    if (!mine.compare_exchange_strong(seen, seen + amount, std::memory_order_relaxed)) [[unlikely]]
      add_beside_others(amount);
  }
  std::int64_t sum() const noexcept {
    std::int64_t total = 0;
    parts_.for_each([&](const part& p) {
      total += p.value.load(std::memory_order_relaxed);  // pairs with add(): see there
    });
    return total;
  }
  std::size_t count() const noexcept { return count_of_sum(sum()); }
  // What it takes outside of the object, in bytes.
  std::size_t memory_bytes() const noexcept { return parts_.memory_bytes(); }

 private:
  struct part {
    std::atomic<std::int64_t> value{0};
  };
  [[gnu::noinline, gnu::cold]] void add_beside_others(std::int64_t amount) noexcept {
    parts_.spread();
    // relaxed: pairs with sum(), as in add().
    parts_.mine().value.fetch_add(amount, std::memory_order_relaxed);
  }
  thread_parts<part, 16> parts_;
};

// For frequent events. A part has one owner, which adds with a load and a store. An atomic addition
// would take some 20 cycles, as it waits for all earlier stores. Other threads that use the part
// have a second sum in it, to which they add atomically.
//
// At first there is one part, owned by the first thread that adds. Once other threads add at the
// same time, each thread gets a part: those with slots below 64 own theirs, and further ones
// are guests. A thread that ends gives its slot, and so its part, to the next thread: the release
// in give_back() and the acquire in register_this_thread() order their additions.
//
// Measured on the simulated machine with 64 inserting cores: with 16 parts, nine of ten additions
// fetched the line from another core, which took 5 % of the time.
class busy_counter {
 public:
  busy_counter() = default;
  busy_counter(const busy_counter&) = delete;
  busy_counter& operator=(const busy_counter&) = delete;
  ~busy_counter() { delete more_.load(); }

  void add(std::int64_t amount) noexcept {
    const thread_record* const me = current_thread_record;
    const std::uint32_t slot = me != nullptr ? me->slot : no_slot;
    // relaxed: pairs with the writes of owner_, by this thread or one that had its slot before.
    if (owner_.load(std::memory_order_relaxed) == slot) [[likely]] {
      first_.add_as_owner(amount);
      return;
    }
    // acquire: pairs with the release in spread().
    if (many* const all = more_.load(std::memory_order_acquire)) {
      if (slot < part_count) {
        (*all)[slot].values.add_as_owner(amount);
      } else {
        (slot == no_slot ? first_ : (*all)[slot % part_count].values).add_as_guest(amount);
      }
      return;
    }
    add_to_first(slot, amount);
  }
  std::int64_t sum() const noexcept {
    std::int64_t total = first_.sum();
    // acquire: pairs with the release in spread().
    if (const many* const all = more_.load(std::memory_order_acquire)) {
      // Slots are dense, so the parts behind those of all threads so far are zero.
      const std::size_t used = std::min<std::size_t>(part_count, thread_slots_made());
      for (std::size_t i = 0; i < used; ++i) total += (*all)[i].values.sum();
    }
    return total;
  }
  std::size_t count() const noexcept { return count_of_sum(sum()); }
  std::size_t memory_bytes() const noexcept { return more_.load() == nullptr ? 0 : sizeof(many); }

 private:
  static constexpr std::size_t part_count = 64;
  static constexpr std::uint32_t no_slot = 0xFFFF'FFFF;   // a thread that is not registered
  static constexpr std::uint32_t no_owner = 0xFFFF'FFFE;  // of the first part
  static constexpr std::uint32_t is_spread = 0xFFFF'FFFD;
  static constexpr std::uint32_t meetings_max = 16;  // chosen

  // relaxed: pairs with the loads of sum(). A count orders nothing.
  struct part {
    std::atomic<std::int64_t> owners{0};
    std::atomic<std::int64_t> guests{0};
    void add_as_owner(std::int64_t amount) noexcept {
      owners.store(owners.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    void add_as_guest(std::int64_t amount) noexcept {
      guests.fetch_add(amount, std::memory_order_relaxed);
    }
    std::int64_t sum() const noexcept {
      // relaxed: pairs with both additions
      return owners.load(std::memory_order_relaxed) + guests.load(std::memory_order_relaxed);
    }
  };
  struct alignas(64) padded {
    part values;
  };
  using many = std::array<padded, part_count>;

  [[gnu::noinline]] void add_to_first(std::uint32_t slot, std::int64_t amount) noexcept {
    std::uint32_t owner = no_owner;
    if (slot != no_slot && owner_.compare_exchange_strong(owner, slot)) {
      first_.add_as_owner(amount);
      return;
    }
    // A guest that finds the owner's sum changed has met the owner.
    const std::int64_t owners = first_.owners.load();
    if (owners_seen_.exchange(owners) != owners && meetings_.fetch_add(1) >= meetings_max) spread();
    std::int64_t seen = first_.guests.load();
    if (!first_.guests.compare_exchange_strong(seen, seen + amount)) {
      spread();
      first_.add_as_guest(amount);
    }
  }
  void spread() noexcept {
    many* const made = new (std::nothrow) many;
    if (made != nullptr) name_memory(made, sizeof *made, "counters");
    many* expected = nullptr;
    // release: pairs with add() and sum().
    if (made == nullptr ||
        !more_.compare_exchange_strong(expected, made, std::memory_order_acq_rel))
      delete made;
    if (more_.load() != nullptr) owner_.store(is_spread);
  }

  part first_;
  std::atomic<many*> more_{nullptr};
  std::atomic<std::int64_t> owners_seen_{0};
  std::atomic<std::uint32_t> owner_{no_owner};
  std::atomic<std::uint32_t> meetings_{0};
};

}  // namespace elidex::internal
