// Which process this is: a child of fork() has all of its parent's memory, and one of its threads.
//
//   const std::uint64_t made_in = fork_generation();
//   ...
//   if (made_in != fork_generation()) ...  // made by a parent: its threads are not here
//
// In a child, before fork() returns there:
//   * the generation is one more than the parent's;
//   * pins of threads that are not there have ended (internal/memory/epoch.hpp);
//   * the slot of the thread that called fork() is known, so that all other slots can be ignored
//     (internal/txn/commit_clock.hpp). New threads do not get slots of the parent's other threads.
//
// fork() only: vfork(), _Fork() and clone() run no handlers. Such a child may call exec() or
// _exit(), and nothing of this library.
//
// Thread-safety: all functions, from any thread. The handler in the child takes no lock and
// allocates nothing. Errors: watch_forks() returns false if the system had no memory for the
// handler.
#pragma once

#include <atomic>
#include <cstdint>

namespace elidex::internal {

inline constexpr std::uint32_t no_forking_thread = UINT32_MAX;

// Both change in a child only, while it has one thread.
extern constinit std::atomic<std::uint64_t> generation_of_process;
extern constinit std::atomic<std::uint32_t> slot_of_forking_thread;

// 0 in the program that was started.
inline std::uint64_t fork_generation() noexcept {
  // relaxed, without a partner: it changes while there is one thread, before it starts any other.
  return generation_of_process.load(std::memory_order_relaxed);
}

// Whether the thread that owned this slot in this generation may exist in this process.
inline bool may_be_here(std::uint32_t slot, std::uint64_t generation) noexcept {
  // relaxed, without a partner: as above.
  return generation == fork_generation() ||
         slot == slot_of_forking_thread.load(std::memory_order_relaxed);
}

// Registers the handler once; also called at program start. False if registration failed.
bool watch_forks() noexcept;

}  // namespace elidex::internal
