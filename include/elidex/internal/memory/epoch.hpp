// Epoch-based reclamation: decides when memory that readers may still access can be reused.
//
//   { epoch_pin pin;  ... read nodes without locking them ... }        // reader
//   unlink(node); retired.retire(node, ...);                           // writer
//
// Thread-safety: all functions, from any thread. Pins nest, and each level costs a fence.
// A thread that stays pinned blocks all reclamation of the process, so a pin should be as short as
// the operation. In a child of fork() the pins of the parent's other threads have ended
// (fork_generation.hpp).
// Errors: epoch_pin() throws std::bad_alloc on a thread's first use.
//
// Implementation notes
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

#include <atomic>
#include <cstdint>

#include "elidex/internal/memory/thread_slot.hpp"

namespace elidex::internal {

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
