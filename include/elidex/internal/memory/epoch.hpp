// Threads and epochs: a record and a small number for every live thread, and epoch-based
// reclamation, which decides when memory that readers may still access can be reused.
//
//   { epoch_pin pin;  ... read nodes without locking them ... }        // reader
//   unlink(node); retired.retire(node, ...);                           // writer
//
//   parts[this_thread_slot() % parts.size()].change();
//
// Thread-safety: all functions, from any thread. Pins nest, and each level costs a fence.
// A thread that stays pinned blocks all reclamation of the process, so a pin should be as short as
// the operation. In a child of fork() the pins of the parent's other threads have ended
// (fork_generation.hpp).
// Lifetime: a thread returns its record when it ends, after the destructors of its thread_local
// variables.
// Errors: a thread's first call of epoch_pin(), this_thread_slot() or this_thread_record() may
// throw std::bad_alloc. Later calls cannot fail.
//
// Implementation notes
// Two threads that live at the same time never have the same slot. A new thread gets the lowest
// free slot. Records are never freed, so a walk over them needs no lock.
//
// The process has one epoch counter. A reader that begins a pin stores the counter's value in its
// thread's record. The counter may advance from E to E + 1 only if every pinned thread's record has
// the value E. So no thread can reach memory that was unlinked while the counter was E, once the
// counter is E + 2.
//
// Proof. There are three seq_cst fences:
//
//   R  of a reader        between the store to its record and its first read of the structure
//   U  of an unlinker     between the unlinking and the load of its stamp E
//   A  of an advancer     before it reads the records
//
// Of any two fences one is first. A read after the second fence sees a write before the first.
//   * U before R: the reader sees the unlinking, so it cannot reach the node.
//   * R before U: the reader may reach the node. Let e be the epoch in its record. The reader
//     loaded e before R, hence before U's thread loaded E. The counter only grows, so e <= E.
//     The node is reused once the counter is E + 2, so an advance from E + 1 to E + 2 came first.
//     The fence A of that advance follows the step of the counter to E + 1. So A follows U, which
//     precedes a load of E, and A follows R. So that advancer saw the reader's record. The value
//     e != E + 1 prevents an advance, so the advance happened after the unpinning. The advancer's
//     acquire load saw the 0 that the reader stored, or a later pin of the same record. Both are
//     release stores after the reader's reads, and a record changes its owner by release and
//     acquire. So the reads precede the reuse.
//
// From: Fraser, "Practical lock-freedom" (2004), section 5.2.3. Deviations: the counter only grows.
// A container keeps the garbage that it made (retire_list.hpp), so it can be destroyed without a
// grace period.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

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

// The number of slots in use so far, the slots of all threads that have ever been registered.
std::uint32_t thread_slots_made() noexcept;

// Returns 0 in a thread that has no slot yet, so that thread may contend with the owner of slot 0.
// For code that must not fail and that protects the data of a slot.
inline std::uint32_t this_thread_slot_or_0() noexcept {
  const thread_record* const record = current_thread_record;
  return record != nullptr ? record->slot : 0;
}

extern constinit std::atomic<std::uint64_t> global_epoch;

// Returns the current epoch, the stamp for memory that the calling thread has just unlinked.
inline std::uint64_t epoch_after_unlinking() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // U above
  return global_epoch.load();
}

// Advances the epoch if no pinned thread prevents it. Returns the epoch afterwards.
std::uint64_t try_advance_epoch() noexcept;

// Returns when all present pins of other threads have ended. Then no thread can reach memory that
// the caller unlinked before the call. All actions of the other threads under these pins are
// visible to the caller. The caller must not be pinned.
void wait_for_pins() noexcept;

// Throws std::logic_error if the calling thread is pinned, and std::bad_alloc on a thread's first
// use.
inline void refuse_if_pinned(const char* what) {
  if (this_thread_record().pin_depth != 0) throw std::logic_error(what);
}

// While the object lives, memory that is reachable at its construction is not reused. The
// constructor throws std::bad_alloc on a thread's first use.
class epoch_pin {
 public:
  epoch_pin() : record_(this_thread_record()) {
    if (record_.pin_depth++ == 0) {
      // The load: relaxed, ordered by the fence below. The store: release, as in the destructor,
      // for this thread's reads under its last pin. An advancer that sees this value may never see
      // the 0 in between.
      record_.pinned_epoch.store(global_epoch.load(std::memory_order_relaxed),
                                 std::memory_order_release);
    }
    // R in the proof above. Nested pins have it too, because it also orders a thread's reads in
    // this operation after its writes in the one before. Without it, two threads could each miss
    // the other's last change.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  ~epoch_pin() {
    // release: pairs with the load in try_advance_epoch(), so this thread's reads precede the reuse
    // that it permits.
    if (--record_.pin_depth == 0) record_.pinned_epoch.store(0, std::memory_order_release);
  }
  epoch_pin(const epoch_pin&) = delete;
  epoch_pin& operator=(const epoch_pin&) = delete;

 private:
  thread_record& record_;
};

}  // namespace elidex::internal
