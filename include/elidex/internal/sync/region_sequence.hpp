// A leaf's sequence number. It changes when an operation that has reached the leaf must restart
// from the root.
//
//   auto seen = leaf.sequence.read();              // during the descent
//   // in the leaf's region: the leaf still covers the same keys if the number is unchanged
//   if (!leaf.sequence.validate(seen)) restart;
//
// Users: operations in two regions (split_regions.hpp), and threads that return to a leaf without a
// descent (leaf_hint.hpp).
//
// Thread-safety: read() and validate() from any thread. begin_life() and invalidate(): see there.
// Errors: nothing throws.
#pragma once

#include <atomic>
#include <cstdint>

namespace elidex::internal {

struct in_reused_memory {};  // a tag: other threads may still read the memory

// Call invalidate() before a change of the leaf's contents, and after a change of how the leaf is
// accessed (its conflict control). Inside a hardware region the order is invisible. On a fallback
// path a later release store, such as a cleared mark (conflict_control.hpp), publishes the new
// number to its reader.
class region_sequence {
 public:
  using token = std::uint64_t;

  region_sequence() noexcept : number_(0) {}
  // Keeps the number of the memory's earlier life until begin_life(). A stale operation may read
  // the number, so any write but an atomic store would be a data race.
  explicit region_sequence(in_reused_memory /*tag*/) noexcept {}

  // acquire: pairs with invalidate()'s release. A thread that reads a number sees all changes made
  // before the number was set, such as whether the leaf has a conflict control.
  token read() const noexcept { return number().load(std::memory_order_acquire); }
  // acquire: pairs with invalidate()'s release. Suppose that the caller, outside of a region, has
  // read a value with acquire order earlier. If validate() then returns true, the number had not
  // changed before that value was published.
  bool validate(token seen) const noexcept {
    return number().load(std::memory_order_acquire) == seen;
  }
  // Sets a leaf's first number, before other threads can find the leaf. The number must differ from
  // all numbers that this memory has had, also as an earlier leaf. 2^24 invalidations of one leaf
  // and 2^40 leaves do not wrap.
  void begin_life(std::uint64_t nth_leaf) noexcept {
    // relaxed: ordered by the region that publishes the leaf
    number().store(nth_leaf << 24U, std::memory_order_relaxed);
  }
  // Call it only inside a region that excludes other callers.
  void invalidate() noexcept {
    number().store(read() + 1, std::memory_order_release);  // pairs with the acquire in validate()
  }

 private:
  std::atomic_ref<std::uint64_t> number() const noexcept { return std::atomic_ref(number_); }

  mutable std::uint64_t number_;  // a plain word, because every constructor of std::atomic writes
};

// The same calls for leaves that no operation reaches by a number. They compile to nothing.
class no_sequence {
 public:
  struct token {};
  constexpr no_sequence() noexcept = default;
  constexpr explicit no_sequence(in_reused_memory /*tag*/) noexcept {}
  constexpr token read() const noexcept { return {}; }
  constexpr bool validate(token) const noexcept { return true; }
  constexpr void begin_life(std::uint64_t) noexcept {}
  constexpr void invalidate() noexcept {}
};

}  // namespace elidex::internal
