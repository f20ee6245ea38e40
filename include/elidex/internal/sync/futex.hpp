// Sleeping on a word until another thread wakes the sleeper. The sleeping locks and the condition
// variable use it.
//
//   while (word.load() == busy) futex_wait(word, busy);      // the waiter
//   word.store(free); futex_wake(word, 1);                   // the waker
//
// futex_wait() returns when it is woken, at once if the word has another value by then, and
// sometimes spuriously. So call it in a loop. A wake-up between the waiter's last load and its
// sleep is not lost, because the system compares the word once more.
// On systems without futexes, a waiter sleeps for 50 microseconds and then returns.
//
// Thread-safety: any thread, outside of regions, because a system call aborts a hardware region.
// Errors: nothing throws.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace elidex::internal {

using futex_word = std::atomic<std::uint32_t>;
using futex_deadline = std::chrono::steady_clock::time_point;

void futex_wait(const futex_word& word, std::uint32_t expected) noexcept;
// Returns false if the deadline has passed. futex_deadline::max() never passes.
bool futex_wait_until(const futex_word& word, std::uint32_t expected,
                      futex_deadline deadline) noexcept;
// Wakes at most `count` waiters. The word may be freed already. A waiter of another word at this
// address may then wake spuriously.
void futex_wake(const futex_word& word, std::uint32_t count) noexcept;
inline constexpr std::uint32_t futex_wake_all = 0x7fffffff;

}  // namespace elidex::internal
