// Sleeping on a word until somebody wakes: what the sleeping locks and the condition variable are
// made of.
//
//   while (word.load() == busy) futex_wait(word, busy);      // the waiter
//   word.store(free); futex_wake(word, 1);                   // the waker
//
// futex_wait() returns when woken, at once if the word has another value by then, and sometimes for
// no reason; so it stands in a loop. A wake between the waiter's last look and its sleep is not
// lost, because the system compares the word once more.
//
// On systems without futexes a waiter sleeps for 50 microseconds and then returns.
//
// Thread-safety: any thread, outside of regions: a system call ends a hardware region. Nothing
// throws.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace elidex::internal {

using futex_word = std::atomic<std::uint32_t>;
using futex_deadline = std::chrono::steady_clock::time_point;

void futex_wait(const futex_word& word, std::uint32_t expected) noexcept;
// False: the deadline has passed. futex_deadline::max() never does.
bool futex_wait_until(const futex_word& word, std::uint32_t expected,
                      futex_deadline deadline) noexcept;
// Wakes so many waiters at most. The word need not exist any more: a waiter of another word there
// may wake for no reason.
void futex_wake(const futex_word& word, std::uint32_t count) noexcept;
inline constexpr std::uint32_t futex_wake_all = 0x7fffffff;

}  // namespace elidex::internal
