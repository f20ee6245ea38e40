// A lock for readers and writers that spins for a moment and then sleeps: 16 bytes, one word
// decides everything.
//
//   sleeping_shared_lock lock;
//   { std::shared_lock guard(lock); look(); }
//   { std::lock_guard guard(lock); change(); }
//
// It is what elidex::shared_mutex (mutex.hpp) takes when it cannot elide. Neither side starves: a
// writer that has to wait keeps new readers out, and a writer that leaves lets in all readers that
// sleep.
//
// State, one word: W, held by a writer; T, a writer that is awake is next ("trying"); R, readers
// inside; SW, writers that sleep and SR, readers that sleep and whom nobody has woken. Each of
// these steps is one exchange:
//
//   reader comes       R + 1; inside, if there was neither W nor T nor SW. Else leaves at once and
//                      spins until there is none of them, for R + 1; then, still seeing one, SR + 1
//                      and sleeps.
//   reader leaves      R - 1. The last, with SW and no T: SW - 1, T, and wakes a writer.
//   writer comes       neither W nor R: W, and T goes if it is this writer's. Else sets T if it is
//                      clear, and spins; then, still seeing W or R, SW + 1 (T goes if its own) and
//                      sleeps. Woken, T is its own.
//   writer leaves      with SR: W goes, R + SR, SR := 0, and wakes those readers, who are inside
//                      already. Else with SW and no T: W goes, SW - 1, T, and wakes a writer. Else
//                      W goes.
//
// No wake-up is lost, because two statements hold in every state. (1) SW > 0 implies W, R > 0 or T.
// A writer counts itself only when it sees W or R. W goes: to R > 0, or T is set or was. The last R
// goes: T is set or was. T goes: when W comes, or when its owner sees W or R. (2) SR > 0 implies W,
// SW > 0 or T: a reader counts itself only when it sees one of them; W goes with SR := 0; SW goes
// down only when T comes; T goes for W or for SW + 1. So somebody who is awake, or has a token
// waiting, always leads to whoever sleeps: a holder leaves, and an owner of T becomes a holder or
// sleeps before one.
//
// A lock may be destroyed by whoever held it last: after its exchange an unlock only gives tokens,
// each to a thread that is inside lock() or lock_shared() until it has one.
//
// For elision: W or R is set by a full exchange before the holder's first access.
//
// Linearization: each acquisition and release at its exchange; of a reader that slept, at the
// exchange of the writer that let it in. Not recursive, for readers neither: a writer may come in
// between.
//
// Thread-safety: all members, from any thread, outside of regions as soon as there is somebody to
// wait for. Nothing throws. At most 2^20 - 1 threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "elidex/internal/sync/futex_semaphore.hpp"

namespace elidex::internal {

class sleeping_shared_lock {
 public:
  // As sleeping_lock::looks_before_sleep.
  static constexpr std::uint32_t looks_before_sleep = 24;

  constexpr sleeping_shared_lock() noexcept = default;
  sleeping_shared_lock(const sleeping_shared_lock&) = delete;
  sleeping_shared_lock& operator=(const sleeping_shared_lock&) = delete;

  void lock() noexcept {
    std::uint64_t expected = 0;
    // acquire: pairs with the releases in unlock() and unlock_shared(). The failure is relaxed: the
    // other way looks again.
    if (word_.compare_exchange_strong(expected, writer, std::memory_order_acquire,
                                      std::memory_order_relaxed)) [[likely]] {
      return;
    }
    wait_and_lock();
  }

  // False: held by somebody at this moment, or a reader that cannot come in has just looked.
  bool try_lock() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
    while ((seen & (writer | readers)) == 0) {
      // acquire: as in lock(). The failure is relaxed: a value to try again with.
      if (word_.compare_exchange_weak(seen, seen | writer, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  void unlock() noexcept {
    std::uint64_t expected = writer;
    // release: pairs with the acquires of whoever comes next. The failure is relaxed: the other way
    // looks again.
    if (!word_.compare_exchange_strong(expected, 0, std::memory_order_release,
                                       std::memory_order_relaxed)) [[unlikely]] {
      unlock_and_wake();
    }
  }

  void lock_shared() noexcept {
    // Counts itself before it looks, which is cheaper where readers meet. acquire: pairs with the
    // release in unlock().
    const std::uint64_t before = word_.fetch_add(one_reader, std::memory_order_acquire);
    if ((before & (writer | trying | sleeping_writers)) == 0) [[likely]]
      return;
    unlock_shared();
    return wait_and_lock_shared();
  }

  // False: held by a writer, or one waits.
  bool try_lock_shared() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
    while ((seen & (writer | trying | sleeping_writers)) == 0) {
      // acquire: pairs with the release in unlock(). The failure is relaxed: a value to try again
      // with.
      if (word_.compare_exchange_weak(seen, seen + one_reader, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  void unlock_shared() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
    while ((seen & readers) != 0) {
      const std::uint64_t freed = seen - one_reader;
      const std::uint64_t next = appointed(freed);
      // release: pairs with the acquire of the writer that comes next. The failure is relaxed: a
      // value to try again with.
      if (!word_.compare_exchange_weak(seen, next, std::memory_order_release,
                                       std::memory_order_relaxed))
        continue;
      if (next != freed) [[unlikely]]
        writers_asleep_.release(1);
      return;
    }
  }

  bool is_locked_exclusive() const noexcept {
    // pairs with the release in unlock()
    return (word_.load(std::memory_order_acquire) & writer) != 0;
  }

  // Held in either way.
  bool is_locked() const noexcept {
    // acquire: pairs with the releases in unlock() and unlock_shared().
    return (word_.load(std::memory_order_acquire) & (writer | readers)) != 0;
  }

 private:
  static constexpr std::uint64_t field = (std::uint64_t{1} << 20) - 1;
  static constexpr std::uint64_t writer = 1;
  static constexpr std::uint64_t trying = 2;
  static constexpr std::uint64_t one_reader = std::uint64_t{1} << 2;
  static constexpr std::uint64_t readers = field * one_reader;
  static constexpr std::uint64_t one_sleeping_writer = std::uint64_t{1} << 22;
  static constexpr std::uint64_t sleeping_writers = field * one_sleeping_writer;
  static constexpr std::uint64_t one_sleeping_reader = std::uint64_t{1} << 42;
  static constexpr std::uint64_t sleeping_readers = field * one_sleeping_reader;

  void wait_and_lock() noexcept;
  void wait_and_lock_shared() noexcept;
  void unlock_and_wake() noexcept;

  // The state after a holder has gone: with a writer appointed, if one sleeps, nobody holds the
  // lock and nobody is trying.
  static std::uint64_t appointed(std::uint64_t freed) noexcept {
    const bool appoints = (freed & sleeping_writers) != 0 && (freed & (trying | readers)) == 0;
    return appoints ? (freed - one_sleeping_writer) | trying : freed;
  }

  std::atomic<std::uint64_t> word_{0};
  futex_semaphore writers_asleep_;
  futex_semaphore readers_asleep_;
};

}  // namespace elidex::internal
