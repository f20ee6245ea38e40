// Identifies the process after fork(): a child has all of its parent's memory, but only one of its
// threads.
//
//   const std::uint64_t made_in = fork_generation();
//   ...
//   if (made_in != fork_generation()) ...  // a parent made it: its threads are not in this process
//
// In a child, before fork() returns there:
//   * The generation is one more than the parent's.
//   * The pins of all threads but the forking one have ended (internal/memory/epoch.hpp).
//   * The slot of the thread that called fork() is known, so all other slots can be ignored
//     (internal/txn/commit_clock.hpp). New threads do not get slots of the parent's other threads.
//
// This is true for fork() only. vfork(), _Fork() and clone() run no handlers. Such a child may call
// exec() or _exit(), but no function of this library.
//
// Thread-safety: all functions, from any thread. The handler in the child takes no lock and
// allocates nothing.
// Errors: watch_forks() returns false if the system had no memory for the handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace elidex::internal {

inline constexpr std::uint32_t no_forking_thread = UINT32_MAX;

// Both variables change only in a child, while it has one thread.
extern constinit std::atomic<std::uint64_t> generation_of_process;
extern constinit std::atomic<std::uint32_t> slot_of_forking_thread;

// Returns 0 in the process that started the program.
inline std::uint64_t fork_generation() noexcept {
  // relaxed, without a partner: the value changes while the process has one thread, before that
  // thread starts any other.
  return generation_of_process.load(std::memory_order_relaxed);
}

// Returns whether the thread that owned this slot in this generation may exist in this process.
inline bool may_be_here(std::uint32_t slot, std::uint64_t generation) noexcept {
  // relaxed, without a partner: as above.
  return generation == fork_generation() ||
         slot == slot_of_forking_thread.load(std::memory_order_relaxed);
}

// Drops the handle of a thread that only the parent has: it can be neither joined nor detached.
void abandon(std::thread&& thread) noexcept;

// Registers the handler once. The library also calls it at program start. Returns false if the
// registration failed.
bool watch_forks() noexcept;

}  // namespace elidex::internal
