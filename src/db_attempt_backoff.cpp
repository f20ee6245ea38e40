#include "elidex/db/attempt_backoff.hpp"

#if !defined(ELIDEX_SIMULATED)
#  include <time.h>

#  include <cerrno>
#endif

namespace elidex::db {

void attempt_backoff::sleep() noexcept {
#if defined(ELIDEX_SIMULATED)
  for (std::uint32_t i = 0; i < pauses_max; ++i)
    cpu_pause();  // each simulated core runs one thread: nobody needs the core
#else
  const int errno_before = errno;  // a signal may end it early, and a program does not expect errno to change
  const timespec length{.tv_sec = 0, .tv_nsec = sleep_ns};
  ::nanosleep(&length, nullptr);
  errno = errno_before;
#endif
}

}  // namespace elidex::db
