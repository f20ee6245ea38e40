// A lock for readers and writers that spins briefly and then sleeps. It takes 16 bytes, and one
// word holds its whole state.
//
//   sleeping_shared_lock lock;
//   { std::shared_lock guard(lock); look(); }
//   { std::lock_guard guard(lock); change(); }
//
// elidex::shared_mutex (shared_mutex.hpp) takes this lock when it cannot elide.
//
// Thread-safety: all members, from any thread. A call that waits must run outside of regions. At
// most 2^20 - 1 threads.
// Neither side starves. A waiting writer keeps new readers out, and a leaving writer lets in all
// readers that sleep. The lock is not recursive, also not for readers: a writer may arrive in
// between.
// Lifetime: the last holder may destroy the lock right after its unlock.
// Errors: nothing throws.
//
// Implementation notes
// State, one word:
//
//   W    a writer holds the lock
//   T    "trying": an awake writer is next
//   R    the number of readers inside
//   SW   the number of sleeping writers that no thread has woken
//   SR   the number of sleeping readers that no thread has woken
//
// Each of these steps is one exchange:
//
//   reader arrives   R + 1. The reader is inside if W, T and SW are clear. Otherwise it leaves at
//                    once and spins until they are clear, then tries R + 1. If one of them is set
//                    after the spinning: SR + 1, and the reader sleeps.
//   reader leaves    R - 1. If it is the last one, with SW > 0 and T clear: also SW - 1 and sets T,
//                    and the reader wakes a writer.
//   writer arrives   If W and R are clear: sets W, and clears T if the writer owns T. Otherwise
//                    sets T if T is clear, and spins. If W or R is set after the spinning: SW + 1,
//                    clears T if the writer owns T, and the writer sleeps. A woken writer owns T.
//   writer leaves    If SR > 0: clears W, R + SR, SR := 0, and wakes those readers, which are
//                    inside already. Else if SW > 0 and T is clear: clears W, SW - 1, sets T, and
//                    wakes a writer. Else clears W.
//
// No wake-up is lost, because two statements hold in every state.
//
//   (1) SW > 0 implies W, R > 0 or T.
//         SW grows        only in an exchange that sees W or R
//         W is cleared    R > 0 afterwards, or T is set already or by this exchange
//         the last R      T is set already or by this exchange
//         leaves
//         T is cleared    when its owner sets W, or when its owner sees W or R
//   (2) SR > 0 implies W, SW > 0 or T.
//         SR grows        only in an exchange that sees W, SW > 0 or T
//         W is cleared    SR := 0 in the same exchange
//         SW shrinks      only when T is set in the same exchange
//         T is cleared    only with W or with SW + 1
//
// So each sleeper has a thread that is awake, or has a token waiting, and that leads to its
// wake-up. A holder leaves. An owner of T becomes a holder, or sleeps while another thread holds
// the lock.
//
// Destruction: after its exchange an unlock only releases tokens. Each token is for a thread that
// is inside lock() or lock_shared() until it has one.
//
// Elision: W or R is set by a full exchange before the holder's first access.
//
// Linearization: each acquisition and release at its exchange. The acquisition of a reader that
// slept: at the exchange of the writer that let it in.
#pragma once

#include <atomic>
#include <cstdint>

#include "elidex/internal/sync/futex_semaphore.hpp"

namespace elidex::internal {

class sleeping_shared_lock {
 public:
  // The same as sleeping_lock::looks_before_sleep.
  static constexpr std::uint32_t looks_before_sleep = 24;

  constexpr sleeping_shared_lock() noexcept = default;
  sleeping_shared_lock(const sleeping_shared_lock&) = delete;
  sleeping_shared_lock& operator=(const sleeping_shared_lock&) = delete;

  void lock() noexcept {
    std::uint64_t expected = 0;
    // acquire: pairs with the releases in unlock() and unlock_shared(). The failure is relaxed:
    // wait_and_lock() loads the word again.
    if (word_.compare_exchange_strong(expected, writer, std::memory_order_acquire,
                                      std::memory_order_relaxed)) [[likely]] {
      return;
    }
    wait_and_lock();
  }

  // Returns false if a thread holds the lock at this moment. Returns false also while a reader that
  // cannot enter has counted itself and has not left yet.
  bool try_lock() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);  // no partner: the exchange decides
    while ((seen & (writer | readers)) == 0) {
      // acquire: as in lock(). The failure is relaxed: it only loads a value for the next attempt.
      if (word_.compare_exchange_weak(seen, seen | writer, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  void unlock() noexcept {
    std::uint64_t expected = writer;
    // release: pairs with the acquires of the next holders. The failure is relaxed:
    // unlock_and_wake() loads the word again.
    if (!word_.compare_exchange_strong(expected, 0, std::memory_order_release,
                                       std::memory_order_relaxed)) [[unlikely]] {
      unlock_and_wake();
    }
  }

  void lock_shared() noexcept {
    // Counts the reader before the check, which is cheaper where readers contend. acquire: pairs
    // with the release in unlock().
    const std::uint64_t before = word_.fetch_add(one_reader, std::memory_order_acquire);
    if ((before & (writer | trying | sleeping_writers)) == 0) [[likely]]
      return;
    unlock_shared();
    return wait_and_lock_shared();
  }

  // Returns false if a writer holds the lock or waits.
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
      // release: pairs with the acquire of the next writer. The failure is relaxed: it only loads a
      // value for the next attempt.
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

  // Returns whether a writer or a reader holds the lock.
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

  // Returns the state after a holder has left. If a writer sleeps, T is clear and no reader is
  // inside, the state has T set for a sleeping writer.
  static std::uint64_t appointed(std::uint64_t freed) noexcept {
    const bool appoints = (freed & sleeping_writers) != 0 && (freed & (trying | readers)) == 0;
    return appoints ? (freed - one_sleeping_writer) | trying : freed;
  }

  std::atomic<std::uint64_t> word_{0};
  futex_semaphore writers_asleep_;
  futex_semaphore readers_asleep_;
};

}  // namespace elidex::internal
