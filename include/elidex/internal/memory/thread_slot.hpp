// A small number for every live thread, and the per-thread record that epochs use.
//
//   counters[this_thread_slot() % shards].add(1);
//
// Thread-safety: all functions, from any thread.
// Lifetime: a thread returns its record when it ends, after the destructors of its thread_local
// variables.
// Errors: a thread's first call may throw std::bad_alloc. Later calls cannot fail.
//
// Implementation notes
// Invariants: two threads that live at the same time never have the same slot. A new thread gets
// the lowest free slot. Records are never freed, so a walk over them needs no lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace elidex::internal {

// The record of one live thread, on its own cache lines (two, because of the adjacent-line
// prefetcher).
struct alignas(128) thread_record {
  // The epoch that the thread has pinned, or 0 if the thread is not pinned. Only the owner writes
  // it. A forked child also clears the values of threads that it lacks.
  std::atomic<std::uint64_t> pinned_epoch{0};
  // The nesting depth of the pins. Only the owner accesses it.
  std::uint32_t pin_depth = 0;
  std::uint32_t slot = 0;
  std::atomic<bool> in_use{false};
  thread_record* next = nullptr;

  // release: pairs with the acquire exchange of the next thread that takes it.
  void give_back() noexcept { in_use.store(false, std::memory_order_release); }
};

// Defined in the library, not here, like all state that headers and library share. So each copy of
// the library in a process has its own state, with any visibility setting of its users.
extern constinit thread_local thread_record* current_thread_record;

// Takes a free record or makes a new one. Throws std::bad_alloc.
thread_record& register_this_thread();

// Returns the newest record. Its `next` chain holds all records ever made.
const thread_record* first_thread_record() noexcept;

inline thread_record& this_thread_record() {
  thread_record* const record = current_thread_record;
  return record != nullptr ? *record : register_this_thread();
}

inline std::uint32_t this_thread_slot() {
  return this_thread_record().slot;
}

// Returns 0 in a thread that has no slot yet, so that thread may contend with the owner of slot 0.
// For code that must not fail and that protects the data of a slot.
inline std::uint32_t this_thread_slot_or_0() noexcept {
  const thread_record* const record = current_thread_record;
  return record != nullptr ? record->slot : 0;
}

}  // namespace elidex::internal
