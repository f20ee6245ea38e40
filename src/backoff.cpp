#include "elidex/internal/sync/backoff.hpp"

#if !defined(ELIDEX_SIMULATED)
#  include <sched.h>
#endif

namespace elidex::internal {

void yield_processor() noexcept {
#if defined(ELIDEX_SIMULATED)
  cpu_pause();  // each simulated core runs one thread, so a yield has no effect
#else
  ::sched_yield();
#endif
}

}  // namespace elidex::internal
