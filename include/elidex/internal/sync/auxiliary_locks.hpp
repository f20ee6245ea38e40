// Auxiliary locks: threads that collided over a node take turns instead of retrying at once.
//
//   auxiliary_locks locks;
//   lower.run(body, aborts, locks.of(leaf));  // elided.hpp: held after the first conflict
//
// A node has one of 64 locks, by a hash of its address. Correctness does not depend on them: two
// nodes that share a lock only wait for each other.
//
// Thread-safety: all functions except constructor and destructor, from any thread.
// Errors: the constructor throws std::bad_alloc.
// From: Afek, Levy, Morrison, "Software-improved hardware lock elision", PODC 2014.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

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
  auxiliary_locks() : locks_(std::make_unique<all>()) {
    name_memory(locks_.get(), sizeof(all), "auxiliary locks");
  }
  ttas_lock& of(const void* node) const noexcept {
    return (*locks_)[address_hash<bits>(node)].lock;
  }

  // What they take outside of the object, in bytes.
  static constexpr std::size_t memory_bytes() noexcept { return sizeof(all); }

 private:
  // Chosen: 64 locks take 4 KiB, and some ten leaves are hot at a time.
  static constexpr unsigned bits = 6;
  struct alignas(64) one {
    ttas_lock lock;
  };
  using all = std::array<one, 1U << bits>;
  // Apart from the object, because each ordered_map contains such a tree.
  const std::unique_ptr<all> locks_;
};
// In place of auxiliary_locks where there are no regions.
struct no_auxiliary_locks {
  static constexpr std::size_t memory_bytes() noexcept { return 0; }
};

}  // namespace elidex::internal
