// A small number for every live thread, and the per-thread record that epochs hang on.
//
//   counters[this_thread_slot() % shards].add(1);
//
// Invariants: two threads that live at the same time never have the same slot; a new thread gets
// the lowest that is free; records are never freed, so a walk over them needs no lock.
// Thread-safety: everything here may be called from any thread. The first call of a thread may
// throw std::bad_alloc; later calls cannot fail. A thread's record is given back when it ends,
// behind the destructors of its thread_local variables.
#pragma once

#include <atomic>
#include <cstdint>

namespace elidex::internal {

// One per live thread, on cache lines of its own (two, because of the adjacent-line prefetcher).
struct alignas(128) thread_record {
  // Epoch in which the thread is inside a pinned region, 0 when it is in none. Written by its
  // thread only.
  std::atomic<std::uint64_t> pinned_epoch{0};
  // How deeply pins are nested. Touched by its thread only.
  std::uint32_t pin_depth = 0;
  std::uint32_t slot = 0;
  std::atomic<bool> in_use{false};
  thread_record* next = nullptr;

  // release: pairs with the acquire exchange of the next thread that takes it.
  void give_back() noexcept { in_use.store(false, std::memory_order_release); }
};

// Defined in the library, not here, like all state that headers and library share. So each copy of
// the library in a process has its own state, whatever visibility its users are compiled with.
extern constinit thread_local thread_record* current_thread_record;

// Takes a free record or makes one; throws std::bad_alloc.
thread_record& register_this_thread();

// The newest record; follow `next` to see all that ever were.
const thread_record* first_thread_record() noexcept;

inline thread_record& this_thread_record() {
  thread_record* const record = current_thread_record;
  return record != nullptr ? *record : register_this_thread();
}

inline std::uint32_t this_thread_slot() {
  return this_thread_record().slot;
}

// The same, but 0 in a thread that has no slot yet, which may thus meet the owner of slot 0. For
// what must not fail, and protects what it finds behind the slot.
inline std::uint32_t this_thread_slot_or_0() noexcept {
  const thread_record* const record = current_thread_record;
  return record != nullptr ? record->slot : 0;
}

}  // namespace elidex::internal
