// Parking: a thread waits for a word to change, without room in the word for its waiters. A waiter
// spins briefly, then sleeps. The word's address is the key of the sleep.
//
//   wait_while<looks::often>(&word, [&] { return is_locked(word); });    // a waiter
//   word.store(free, std::memory_order_release);                         // the holder
//   wake_waiters(&word);
//
// wait_while() pauses, calls `is_blocked`, and repeats both until `is_blocked` returns false.
// wake_waiters() wakes all threads that sleep on the address, and may wake sleepers of another
// address. The address is only a key and is never dereferenced, so the word may be freed by then.
//
// `is_blocked` may run many times, but never again after it has returned false. So it may be the
// attempt to lock. It must return true only if a wake-up will follow. A spuriously failed attempt
// is not followed by a wake-up, so `is_blocked` must not use a weak compare-exchange.
//
// Cost: wake_waiters() is a branch and a load of a word that changes only when a thread goes to
// sleep or wakes up. A waiter pauses for some microseconds, yields the processor
// `yields_before_sleep` times, then sleeps. In practice it sleeps only when the lock holder has
// lost its processor to another program.
//
// Thread-safety: any thread, outside of hardware regions.
// Errors: nothing throws or allocates.
//
// Implementation notes
// No wake-up is lost for longer than `first_sleep`. A waiter W counts itself in `threads_parked`,
// calls is_blocked() once more, and sleeps if that returns true. A waker S stores the word, then
// loads `threads_parked`, with no fence between the two. S's store may still be in its store buffer
// when W calls is_blocked(), and S's load may precede W's count. So W's first sleep ends by time.
// Before each later sleep W calls expose_stores(). That call makes every running thread of the
// process execute a full barrier (Linux's membarrier(), private and expedited). The barrier takes
// some 50 microseconds on a virtual machine, so the first sleep does without it. Take S's two
// accesses and the barrier that S's thread executes:
//   * S's load follows the barrier. The load reads W's count, and S wakes W.
//   * S's load precedes the barrier. The store precedes it too and is visible to W, so W's
//     is_blocked() returns false.
// Where the system has no membarrier(), every sleep ends by time.
//
// The bucket's `wakes` covers the time between W's is_blocked() and its sleep. W reads `wakes`
// before is_blocked(), S increments it before the wake-up, and the kernel compares it again
// (futex.hpp).
//
// From: parking by address as in WebKit's ParkingLot, and the barrier on the slow side as in
// liburcu's membarrier flavour. Deviation: a wake-up wakes all sleepers of an address. Few threads
// sleep on one word at a time, because a holder loses its processor once in a time slice.
#pragma once

#include <atomic>
#include <cstdint>

#include "elidex/internal/sync/backoff.hpp"

namespace elidex::internal {

// How often a waiter on the simulated machine calls is_blocked() after its first pauses: after
// every pause, or after every 64th.
enum class looks : std::uint8_t { often, seldom };

#if defined(ELIDEX_SIMULATED)
// A simulated core has one thread, so the thread that a waiter waits for always runs. The waiter
// only spins.
template <looks Manner, class IsBlocked>
void wait_while(const void* /*address*/, const IsBlocked& is_blocked, backoff& wait) noexcept {
  do {
    if (Manner == looks::seldom && wait.is_spent()) pause_at_length();
    wait.once();
  } while (is_blocked());
}
inline void wake_waiters(const void* /*address*/) noexcept {}
#else

// How often a waiter yields before it sleeps. Measured with 16 threads on two cores that contend
// for four rows: 0 yields give 0.8 of the throughput of 16, and 4 give 0.9. A sleep and its wake-up
// take longer than the holder needs.
inline constexpr std::uint32_t yields_before_sleep = 16;

// The number of threads that sleep or are about to sleep, on any address. It begins a cache line.
extern constinit std::atomic<std::uint32_t> threads_parked;

struct parking {
  enum class sleep_kind : std::uint8_t { first, later };

  // Sleeps until woken, or until some time has passed (see above). Returns false if
  // is_blocked(context) has returned false.
  static bool sleep(const void* address, sleep_kind kind, bool (*is_blocked)(const void*),
                    const void* context) noexcept;
  static void wake(const void* address) noexcept;
  // Resets all counts in a child of fork(), where the sleeping threads do not exist.
  static void forget_sleepers() noexcept;
};

template <looks, class IsBlocked>
[[gnu::noinline]] void wait_while(const void* address, const IsBlocked& is_blocked,
                                  backoff& wait) noexcept {
  for (std::uint32_t yields = 0; yields < yields_before_sleep;) {
    if (wait.is_spent()) ++yields;
    wait.once_or_yield();
    if (!is_blocked()) return;
  }
  const auto ask = [](const void* context) { return (*static_cast<const IsBlocked*>(context))(); };
  for (auto kind = parking::sleep_kind::first;; kind = parking::sleep_kind::later) {
    if (!parking::sleep(address, kind, ask, &is_blocked) || !is_blocked()) return;
  }
}

inline void wake_waiters(const void* address) noexcept {
  // Keeps the compiler from moving the load before the caller's store. expose_stores() handles the
  // processor's reordering.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // relaxed: pairs with expose_stores() in sleep(), see above.
  if (threads_parked.load(std::memory_order_relaxed) != 0) [[unlikely]]
    parking::wake(address);
}
#endif

template <looks Manner, class IsBlocked>
void wait_while(const void* address, const IsBlocked& is_blocked) noexcept {
  backoff wait;
  wait_while<Manner>(address, is_blocked, wait);
}

}  // namespace elidex::internal
