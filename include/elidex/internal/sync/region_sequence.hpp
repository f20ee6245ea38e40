// A leaf's sequence number: it changes when a request that has come to the leaf must go back to the
// root.
//
//   auto seen = leaf.sequence.read();              // on the way down
//   // in the leaf's region: it is still the one for the same keys
//   if (!leaf.sequence.validate(seen)) restart;
//
// Users: requests in two regions (split_regions.hpp), and threads that come back to a leaf without
// the way down (leaf_hint.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace elidex::internal {

struct in_reused_memory {};  // a tag: what stands there may still be read by others

// invalidate() comes before a change of what is in the leaf, and behind one of how it is to be
// accessed (its control). Inside a hardware region the order is invisible; on a fallback path it
// lets what is published with release order afterwards (a cleared mark, conflict_control.hpp) lead
// its reader to the new number.
class region_sequence {
 public:
  using token = std::uint64_t;

  region_sequence() noexcept : number_(0) {}
  // Keeps the number of the memory's earlier life until begin_life(): a stale request may be
  // reading it, and would race with anything but an atomic store.
  explicit region_sequence(in_reused_memory /*tag*/) noexcept {}

  // acquire: pairs with invalidate()'s release: who sees a number sees what was changed before it
  // was set, such as whether the leaf has a conflict control.
  token read() const noexcept { return number().load(std::memory_order_acquire); }
  // acquire: pairs with invalidate()'s release. True outside of a region means: it had not changed
  // before whatever was read with acquire order earlier was published.
  bool validate(token seen) const noexcept {
    return number().load(std::memory_order_acquire) == seen;
  }
  // A leaf's first number, when nobody else knows the leaf: it must differ from all that its memory
  // has had before, in an earlier leaf's life too. 2^24 invalidations of one leaf and 2^40 leaves
  // do not wrap.
  void begin_life(std::uint64_t nth_leaf) noexcept {
    // relaxed: ordered by the region that publishes the leaf
    number().store(nth_leaf << 24U, std::memory_order_relaxed);
  }
  // Only inside a region that excludes others who call it.
  void invalidate() noexcept {
    number().store(read() + 1, std::memory_order_release);  // pairs with the acquire in validate()
  }

 private:
  std::atomic_ref<std::uint64_t> number() const noexcept { return std::atomic_ref(number_); }

  mutable std::uint64_t number_;  // a plain word: every constructor of a std::atomic writes it
};

// Of leaves that nobody comes to by a number.
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
