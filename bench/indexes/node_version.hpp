#pragma once
// The version in each node of paper 003's HTM-B+Tree, for trees that need none themselves.
//
//   struct policy : coarse<elided<ttas_lock>> { using node_lock =
//       node_version<alignof(std::uint64_t)>; };
//
// Thread-safety: that of the tree's lock. From: paper 003 section 3.2.

#include <cstddef>
#include <cstdint>

namespace elidex::bench {

// A version in every node that each write to the node counts up: what a database over the tree
// looks at to detect phantoms. It lies in the node's head, or on a line of its own.
template <std::size_t Alignment>
class node_version {
 public:
  struct token {
    constexpr bool is_obsolete() const noexcept { return false; }
  };
  token read() const noexcept { return {}; }
  bool validate(token) const noexcept { return true; }
  bool try_upgrade(token) noexcept { return true; }
  token lock() noexcept { return {}; }
  void unlock() noexcept { version_ = version_ + 1; }
  void unlock_unchanged(token) noexcept {}
  void unlock_obsolete() noexcept {}

 private:
  alignas(Alignment) std::uint64_t version_ = 0;
};

}  // namespace elidex::bench
