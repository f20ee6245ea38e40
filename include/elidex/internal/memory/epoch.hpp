// Epochs: when may memory that readers might still be looking at be used again?
//
//   { epoch_pin pin;  ... read nodes without locking them ... }        // reader
//   unlink(node); retired.retire(node, ...);                                     // writer
//
// The process has one epoch counter. A reader that enters a pinned region writes the counter's
// value into its thread's record; the counter may move from E to E + 1 only when every pinned
// thread stands at E. What was unlinked while the counter stood at E can thus be reached by nobody
// once it stands at E + 2.
//
// Why that holds. There are three seq_cst fences: R, a reader's, between writing its record and its
// first read of the structure; U, an unlinker's, between the unlinking and the reading of its stamp
// E; A, an advancer's, before it looks at the records. Of any two fences one is first, and what was
// written before the first is seen by what is read after the second.
//   * U before R: the reader sees the unlinking, so it cannot reach the node.
//   * R before U: the reader may reach the node. Let e be the epoch in its record. It read e before
//     R, hence before U's thread read E, and the counter only grows: e <= E. The node is reused
//     once the counter is E + 2, so some advance from E + 1 to E + 2 came first. Its fence A comes
//     after the counter became E + 1, hence after U (which precedes a read of E), hence after R:
//     that advancer saw the reader's record, and e != E + 1 stopped it. So the advance happened
//     after the unpinning: its acquiring load saw the 0 that the reader stored or a later pin of
//     the same record. Both are release stores behind the reader's reads (and a record changes
//     hands by release and acquire), so the reads come before the reuse.
//
// Thread-safety: all of it. Pins nest and cost a fence at every level. A thread that stays pinned
// holds back all reclamation of the process: keep pins as short as the operation. In a child of
// fork() the pins of its parent's other threads have ended (fork_generation.hpp). Source: Fraser,
// "Practical lock-freedom" (2004), section 5.2.3. Deviation: the counter only grows, garbage is
// kept with the container that made it (retire_list.hpp), so that a container can be destroyed
// without a grace period.
#pragma once

#include <atomic>
#include <cstdint>

#include "elidex/internal/memory/thread_slot.hpp"

namespace elidex::internal {

extern constinit std::atomic<std::uint64_t> global_epoch;

// The current epoch, for stamping what the calling thread has just unlinked.
inline std::uint64_t epoch_after_unlinking() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // U above
  return global_epoch.load();
}

// Moves the epoch on if no pinned thread stands in the way; returns the epoch afterwards.
std::uint64_t try_advance_epoch() noexcept;

// Returns when all pins that other threads have now have ended: what the caller has unlinked before
// can then be reached by nobody, and what they did under these pins is visible to the caller. The
// caller must not be pinned itself.
void wait_for_pins() noexcept;

// Keeps everything reachable now from being reused while it lives. Throws std::bad_alloc on a
// thread's first use.
class epoch_pin {
 public:
  epoch_pin() : record_(this_thread_record()) {
    if (record_.pin_depth++ == 0) {
      // The load: relaxed, ordered by the fence below. The store: release, as in the destructor,
      // for what this thread has read under its last pin; an advancer that sees this value may
      // never see the 0 in between.
      record_.pinned_epoch.store(global_epoch.load(std::memory_order_relaxed),
                                 std::memory_order_release);
    }
    // R in the argument above. Nested pins have it too: it also keeps a thread's reads in this
    // operation behind its writes in the one before, without which two threads could each miss the
    // other's last change.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  ~epoch_pin() {
    // release: pairs with the load in try_advance_epoch(): our reads come before the reuse it
    // permits.
    if (--record_.pin_depth == 0) record_.pinned_epoch.store(0, std::memory_order_release);
  }
  epoch_pin(const epoch_pin&) = delete;
  epoch_pin& operator=(const epoch_pin&) = delete;

 private:
  thread_record& record_;
};

}  // namespace elidex::internal
