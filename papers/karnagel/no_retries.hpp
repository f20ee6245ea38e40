#pragma once
// TSX-R without retries (paper 001 section 4.3, figure 6), as a retry policy of elided.hpp.
//
//   elided<ttas_lock, no_retries> lock;
//
// After an abort a thread takes the lock at once if the lock is free, as HLE does. If another
// thread holds the lock, it waits, and then elides again, also as HLE does: the exchange of an
// aborted elision fails, and the thread returns to the loop that waits (hle_lock.hpp).
//
// The product's no_retry waits for the lock and takes it in both cases. With eight threads that
// seldom ends: each thread that takes the lock aborts all others, which then wait for it (the
// lemming effect, section 3.3.2). The paper's curve is close to that of HLE, so its handler hardly
// does that.
//
// Thread-safety: a value. Errors: none.
// Deviation: the paper does not print its handler.

#include "elidex/internal/sync/retry.hpp"

namespace elidex::papers {

struct no_retries : internal::retry_budgets {
  static constexpr bool leaves_convoys = true;
  // Chosen: HLE waits as often as it must. Here the number must be finite.
  static constexpr std::uint32_t waits_max = 1000;
  constexpr no_retries() noexcept
      : internal::retry_budgets{.conflict = 0,
                                .capacity = 0,
                                .explicit_abort = 0,
                                .interrupt = 0,
                                .other = 0,
                                .nested = 0,
                                .lock_busy = waits_max} {}
};

}  // namespace elidex::papers
