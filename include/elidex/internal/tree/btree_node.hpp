// The common part of all nodes of a B+tree: the lock, the count of slots, and the level.
//
//   struct my_leaf : btree_node<Sync> { ... };
//
// Thread-safety: const functions may race with a writer if the policy's readers_race is true. The
// others need the node's lock.
// Errors: nothing throws.
#pragma once

#include <cstdint>

#include "elidex/internal/sync/version_lock.hpp"

namespace elidex::internal {

// The largest number that a node's 16-bit count can hold.
inline constexpr unsigned slots_max = 65535;

// The number of a slot that does not exist or is not known.
inline constexpr unsigned no_slot = ~0U;

enum class side : std::uint8_t { left, right };

template <class Sync>
struct btree_node {
  using node_lock = typename Sync::node_lock;
  static constexpr bool racing = Sync::readers_race;

  explicit btree_node(unsigned level_above_leaves) noexcept
      : level(static_cast<std::uint8_t>(level_above_leaves)) {
    set_count(0);
  }

  // Slots in use. Never more than the node has, even when it is read while a writer changes it.
  unsigned count() const noexcept { return count_.template load<racing>(); }
  void set_count(unsigned n) noexcept {
    count_.template store<racing>(static_cast<std::uint16_t>(n));
  }
  bool is_leaf() const noexcept { return level == 0; }

  [[no_unique_address]] mutable node_lock lock;
  field<std::uint16_t> count_;
  const std::uint8_t level;
};

}  // namespace elidex::internal
