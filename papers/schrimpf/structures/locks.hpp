#pragma once
// The locks of paper 004 section 3.3 that the library itself does not have. The use cases
// (closed_bank.hpp and the other headers here) are written once, as templates over any of them:
//
//   spin_loop lock;                  // TAS: an exchange, then a loop that only reads
//   hle_spin_loop elided_by_the_cpu; // HLE: the same loop with the prefixes
//   elision_only no_lock;            // a region again and again until one commits
//   nestable_hle outer, inner;       // section 3.2.4: HLE locks that may be held together
//   { std::lock_guard guard(lock); ++shared; }
//
// Idea: the figures compare loops that differ in the prefix alone, so one template has both.
// ttas_lock and hle_lock of the library wait otherwise (they test first and back off); they run
// beside these in the tests.
//
// Invariants: not recursive. spin_loop's word is 0 (free) or 1 (held).
//
// Linearization: an elided section at its commit, any other at the exchange and the store.
//
// Thread-safety: all members, from any thread. elision_only::lock() throws std::runtime_error when
// it gives up; nothing else throws.
//
// From: paper 004 sections 2.4, 3.2.4 and 3.3. Deviations stand at the classes.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "bench/workload/random.hpp"
#include "elidex/htm.hpp"
#include "elidex/internal/sync/pause.hpp"

namespace elidex::bench {

using namespace internal;

enum class elide_by : std::uint8_t { nothing, prefix };

template <elide_by How>
class basic_spin_loop {
 public:
  basic_spin_loop() = default;
  basic_spin_loop(const basic_spin_loop&) = delete;
  basic_spin_loop& operator=(const basic_spin_loop&) = delete;

  void lock() noexcept {
    while (exchange() != 0) {
      // With the prefix an exchange that found 1 is a region that watches a held lock: the pause
      // ends it, and the next exchange is a real one.
      do cpu_pause();
      while (is_locked());
    }
  }

  void unlock() noexcept {
    if constexpr (How == elide_by::prefix) {
      htm::hle_store_release(word_, 0);
    } else {
      word_.store(0, std::memory_order_release);  // pairs with the acquire in exchange()
    }
  }

  [[nodiscard]] bool is_locked() const noexcept {
    return word_.load(std::memory_order_acquire) != 0;  // pairs with the release in unlock()
  }

 private:
  std::uint32_t exchange() noexcept {
    if constexpr (How == elide_by::prefix) {
      return htm::hle_exchange_acquire(word_, 1);
    } else {
      return word_.exchange(1, std::memory_order_acquire);  // pairs with the release in unlock()
    }
  }

  std::atomic<std::uint32_t> word_{0};
};

using spin_loop = basic_spin_loop<elide_by::nothing>;
using hle_spin_loop = basic_spin_loop<elide_by::prefix>;

// "Elision only": a region around each section, no lock at all, again until one commits.
//
// What it needs to end, since nothing here guarantees it: regions that fit the caches, no system
// call and no memory that is touched for the first time in them, every other thread in regions too
// (a real lock would not keep them out), and threads that get out of step. The last is no idle
// worry: of regions in conflict the one that asks later wins, so threads of equal period can abort
// each other for ever. On the simulated machine haswell-ep-2x10, which has no noise, four threads
// on a list of twenty items hung within a hundred operations each, in 4 of 6 runs.
//
// Deviations: from patience attempts on, it waits for a while at random, so that threads get out of
// step; after attempts_max, as many as the thesis's programs allow, it gives up with an exception.
class elision_only {
 public:
  // Chosen: far more than a section needs that conflicts by chance.
  static constexpr std::uint32_t patience = 1'000;
  static constexpr std::uint32_t attempts_max = 10'000'000;

  elision_only() = default;
  elision_only(const elision_only&) = delete;
  elision_only& operator=(const elision_only&) = delete;

  void lock() {
    if (!htm::enabled())
      throw std::runtime_error("elision_only: no region commits on this machine");
    for (std::uint32_t attempt = 0; attempt < attempts_max; ++attempt) {
      if (htm::begin().started()) return;
      cpu_pause();
      if (attempt >= patience) wait_at_random(attempt);
    }
    throw std::runtime_error("elision_only: a section did not commit in ten million attempts");
  }
  void unlock() noexcept { htm::commit(); }

 private:
  // Up to a hundred pauses. Each thread's stack lies elsewhere, which tells the threads apart.
  static void wait_at_random(std::uint32_t attempt) noexcept {
    const std::uint64_t drawn = mix(reinterpret_cast<std::uintptr_t>(&attempt) + attempt);
    for (std::uint64_t i = drawn % 100; i != 0; --i) cpu_pause();
  }
};

// Section 3.2.4's way to hold several HLE locks, of which the CPU can elide one: inside a
// transaction a lock is only read, so that taking it by others still aborts; unlocking it then does
// nothing, since it was not written. The word tells which: the thread that elides a lock sees its
// own 1.
//
// Invariants: sections nest; who took a lock first gives it back last. Otherwise the outermost
// would commit while an inner one, which was only read, is still thought to be held.
//
// Deviation: the thesis's listing goes on inside the transaction when it reads a lock that another
// thread holds. That lock's section is then no section any more (as_listed = true shows it; the
// schedule tests find a lost update). Here such a transaction aborts, and the outermost lock is
// taken for real.
template <bool AsListed>
class basic_nestable_hle {
 public:
  basic_nestable_hle() = default;
  basic_nestable_hle(const basic_nestable_hle&) = delete;
  basic_nestable_hle& operator=(const basic_nestable_hle&) = delete;

  void lock() noexcept {
    if (htm::test()) {
      const bool held = read() != 0;  // in any case: it puts the word into the read set
      if (!held || AsListed) return;
      htm::abort<htm::code_lock_busy>();
    }
    while (htm::hle_exchange_acquire(word_, 1) != 0) {
      do cpu_pause();
      while (read() != 0);
    }
  }

  void unlock() noexcept {
    if (read() == 0) return;
    htm::hle_store_release(word_, 0);
  }

 private:
  [[nodiscard]] std::uint32_t read() const noexcept {
    // pairs with the release in htm::hle_store_release()
    return word_.load(std::memory_order_acquire);
  }

  std::atomic<std::uint32_t> word_{0};
};

using nestable_hle = basic_nestable_hle<false>;
using nestable_hle_as_listed = basic_nestable_hle<true>;

// A lock in cache lines of its own, as in the thesis, where "no two locking objects are in the same
// cache line".
template <class Lock>
struct alignas(std::max(std::size_t{64}, alignof(Lock))) own_lines {
  Lock lock;
};

}  // namespace elidex::bench
