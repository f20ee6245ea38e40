#pragma once
// Counters, one or one for each core, under one lock or a lock each, in one cache line or in one
// each.
//
//   shared_counters<spin_loop> counters(4, counter_layout::aligned, counter_locks::global);
//   counters.increment(2);
//   counters.check(1);  // throws std::logic_error unless they add up to so many increments
//
// Idea: the smallest section there is, in four settings that differ in who shares what: the datum
// (one counter), its cache line (unaligned), nothing (aligned, a lock each), the lock alone
// (aligned, global lock).
//
// Invariants: unaligned counters lie in one cache line (up to sixteen), aligned ones in one each.
// Locks have lines of their own and lie apart from the counters.
//
// Order of locks: one at a time. Linearization points: those of the lock.
//
// Thread-safety: any thread may call increment(). check() must run alone.
//
// From: paper 004 section 3.3.2. Deviation: the unaligned and the aligned setting share one array,
// whose stride differs.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "papers/schrimpf/structures/locks.hpp"

namespace elidex::bench {

enum class counter_layout : std::uint8_t { unaligned, aligned };
enum class counter_locks : std::uint8_t { own, global };

template <class Lock>
class shared_counters {
 public:
  shared_counters(std::size_t count, counter_layout layout, counter_locks locks)
      : count_(count),
        stride_(layout == counter_layout::aligned ? ints_per_line : 1),
        lock_stride_(locks == counter_locks::own ? 1 : 0),
        locks_(std::make_unique<own_lines<Lock>[]>(locks == counter_locks::own ? count : 1)),
        lines_(std::make_unique<line[]>((count * stride_ + ints_per_line - 1) / ints_per_line)) {}

  [[nodiscard]] std::size_t size() const noexcept { return count_; }

  void increment(std::size_t which) {
    const std::lock_guard guard(locks_[which * lock_stride_].lock);
    ++counter(which);
  }

  void check(std::uint64_t increments) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count_; ++i) sum += static_cast<std::uint64_t>(counter(i));
    if (sum != increments) {
      throw std::logic_error("shared counters: " + std::to_string(sum) + " after " +
                             std::to_string(increments) + " increments: the lock does not work");
    }
  }

 private:
  static constexpr std::size_t ints_per_line = 64 / sizeof(int);
  struct alignas(64) line {
    int counters[ints_per_line] = {};
  };

  [[nodiscard]] int& counter(std::size_t which) const noexcept {
    const std::size_t at = which * stride_;
    return lines_[at / ints_per_line].counters[at % ints_per_line];
  }

  std::size_t count_;
  std::size_t stride_;       // in counters
  std::size_t lock_stride_;  // 0: one lock for all
  std::unique_ptr<own_lines<Lock>[]> locks_;
  std::unique_ptr<line[]> lines_;
};

}  // namespace elidex::bench
