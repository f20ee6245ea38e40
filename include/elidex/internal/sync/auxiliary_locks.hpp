// Auxiliary locks: threads that collided over a node take turns instead of retrying at once.
//
//   auxiliary_locks locks;
//   auxiliary_lock turn(locks, leaf);
//   lower.run(body, aborts, turn);  // elided.hpp: held after the first conflict
//
// A node has one of 64 locks, by a hash of its address. Correctness does not depend on them: two
// nodes that share a lock only wait for each other. The first thread that locks one makes all.
// Without memory for them, all nodes share one.
//
// Thread-safety: all functions except constructors and destructors, from any thread. An
// auxiliary_lock belongs to one thread.
// Errors: none.
// From: Afek, Levy, Morrison, "Software-improved hardware lock elision", PODC 2014.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "elidex/internal/memory/made_on_demand.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/sync/spin_locks.hpp"

namespace elidex::internal {

// Which requests take the auxiliary lock of their leaf. A split takes it unless it joins the
// caller's region.
enum class auxiliary_lock_use : std::uint8_t {
  none,       // splits neither
  splits,     // no others
  conflicts,  // also requests that have aborted because of a conflict
  changes     // also requests that may add or erase keys, before their first region
};

// The upper bits of the product: nodes lie at multiples of their size.
template <unsigned Bits>
std::size_t address_hash(const void* at) noexcept {
  const std::uint64_t product = reinterpret_cast<std::uintptr_t>(at) / 64 * 0x9E37'79B9'7F4A'7C15u;
  return static_cast<std::size_t>(product >> (64 - Bits));
}

class auxiliary_locks {
 public:
  ttas_lock& of(const void* node) const noexcept {
    try {
      return locks_.get()[address_hash<bits>(node)].lock;
    } catch (const std::bad_alloc&) {
      return shared_;
    }
  }

  // What they take outside of the object, in bytes.
  std::size_t memory_bytes() const noexcept {
    return locks_.if_made() == nullptr ? 0 : sizeof(all);
  }

 private:
  // Chosen: 64 locks take 4 KiB, and some ten leaves are hot at a time.
  static constexpr unsigned bits = 6;
  struct alignas(64) one {
    ttas_lock lock;
  };
  using all = std::array<one, 1U << bits>;
  struct maker {
    std::unique_ptr<all> operator()() const {
      auto made = std::make_unique<all>();
      name_memory(made.get(), sizeof(all), "auxiliary locks");
      return made;
    }
  };

  made_on_demand<all, maker> locks_;
  mutable ttas_lock shared_;
};

// The lock of one node, for std::unique_lock.
class auxiliary_lock {
 public:
  auxiliary_lock(const auxiliary_locks& locks, const void* node) noexcept
      : locks_(locks), node_(node) {}
  auxiliary_lock(const auxiliary_lock&) = delete;
  auxiliary_lock& operator=(const auxiliary_lock&) = delete;

  void lock() noexcept {
    held_ = &locks_.of(node_);
    held_->lock();
  }
  void unlock() noexcept { held_->unlock(); }

 private:
  const auxiliary_locks& locks_;
  const void* node_;
  ttas_lock* held_ = nullptr;
};

// In place of auxiliary_locks where there are no regions.
struct no_auxiliary_locks {
  static constexpr std::size_t memory_bytes() noexcept { return 0; }
};

}  // namespace elidex::internal
