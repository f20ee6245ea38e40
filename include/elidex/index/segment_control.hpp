// Conflict control for a segment of a skip list: conflict_control.hpp's module in sixteen lanes.
//
//   const unsigned slot = control.slot_of(key);
//   control.lock(slot);  ...  control.unlock(slot);
//
// The hot keys of a segment are often neighbours, and a lock bit is written twice in each request that changes something.
// Were all bits in one word, its cache line would be what the records' lines are no more: wanted by everybody. So
// four slots share a line, and neighbouring keys have different ones (sixteen consecutive keys next to always). It takes 1
// KiB, which only hot segments have.
//
// Invariants and use are those of conflict_control.
// Thread-safety: all members. Nothing here but set_marks() may be called inside a hardware region.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>

#include "elidex/sync/conflict_control.hpp"

namespace elidex {

class segment_control {
  static constexpr unsigned lanes = 16;
  static constexpr unsigned slots_per_lane = 4;
  using lane = conflict_control<slots_per_lane>;

 public:
  static constexpr unsigned slots = lanes * slots_per_lane;

  template <std::integral Key>
  static unsigned slot_of(Key key) noexcept {
    return conflict_control<slots>::slot_of(key);
  }
  static constexpr std::uint64_t bit(unsigned slot) noexcept { return std::uint64_t{1} << slot; }

  bool lock(unsigned slot) noexcept { return lane_of(slot).lock(slot / lanes); }
  void unlock(unsigned slot) noexcept { lane_of(slot).unlock(slot / lanes); }

  bool is_marked(unsigned slot) const noexcept { return lanes_[slot % lanes].is_marked(slot / lanes); }
  void mark(unsigned slot) noexcept { lane_of(slot).mark(slot / lanes); }
  void clear_mark(unsigned slot) noexcept { lane_of(slot).clear_mark(slot / lanes); }
  // Before anybody else knows this control.
  void set_marks(std::uint64_t marks) noexcept {
    for (unsigned i = 0; i < lanes; ++i) {
      std::uint64_t of_lane = 0;
      for (unsigned s = 0; s < slots_per_lane; ++s) of_lane |= (marks >> (s * lanes + i) & 1U) << s;
      lanes_[i].set_marks(of_lane);
    }
  }

  // Counts a request, as in conflict_control; needs the slot's lock bit. Says whether the segment has become quiet: the
  // slot's lane at the end of a period with few conflicts, and no lane at the end of one with many since the last such
  // question.
  bool has_become_quiet(unsigned slot, bool conflicted, unsigned requests_per_period,
                        unsigned conflicts_to_stay) noexcept {
    const auto period = lane_of(slot).count(conflicted, requests_per_period);
    if (!period.over) return false;
    const bool hot = period.conflicts >= conflicts_to_stay;
    // relaxed, without a partner: a guess.
    const bool was_hot = some_lane_was_hot_.load(std::memory_order_relaxed);
    if (hot != was_hot) some_lane_was_hot_.store(hot, std::memory_order_relaxed);  // no partner, as above
    return !hot && !was_hot;
  }

 private:
  lane& lane_of(unsigned slot) noexcept { return lanes_[slot % lanes]; }

  std::array<lane, lanes> lanes_;
  alignas(64) std::atomic<bool> some_lane_was_hot_{true};
};

}  // namespace elidex
