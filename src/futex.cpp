#include "elidex/internal/sync/futex.hpp"

#if defined(__linux__)
#  include <linux/futex.h>
#  include <sys/syscall.h>
#  include <time.h>
#  include <unistd.h>

#  include <cerrno>
#else
#  include <thread>
#endif

namespace elidex::internal {

#if defined(__linux__)
namespace {

// 0 or an error's number. A program does not expect a lock to change errno, as std::mutex does not.
int call(const futex_word& word, int operation, std::uint32_t value,
         const timespec* until = nullptr) noexcept {
  static_assert(sizeof(futex_word) == sizeof(std::uint32_t) && futex_word::is_always_lock_free);
  const int errno_before = errno;
  const long result = ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, until,
                                nullptr, FUTEX_BITSET_MATCH_ANY);
  if (result >= 0) return 0;
  const int error = errno;
  errno = errno_before;
  return error;
}

}  // namespace

void futex_wait(const futex_word& word, std::uint32_t expected) noexcept {
  call(word, FUTEX_WAIT, expected);
}

bool futex_wait_until(const futex_word& word, std::uint32_t expected,
                      futex_deadline deadline) noexcept {
  using namespace std::chrono;
  if (deadline == futex_deadline::max()) {
    futex_wait(word, expected);
    return true;
  }
  const auto since_epoch = deadline.time_since_epoch();
  if (since_epoch < since_epoch.zero()) return false;
  const auto whole = duration_cast<seconds>(since_epoch);
  // The steady clock is the one that FUTEX_WAIT_BITSET counts by.
  const timespec until{
      .tv_sec = static_cast<time_t>(whole.count()),
      .tv_nsec = static_cast<long>(duration_cast<nanoseconds>(since_epoch - whole).count())};
  return call(word, FUTEX_WAIT_BITSET, expected, &until) != ETIMEDOUT;
}

void futex_wake(const futex_word& word, std::uint32_t count) noexcept {
  call(word, FUTEX_WAKE, count);
}
#else
void futex_wait(const futex_word& word, std::uint32_t expected) noexcept {
  if (word.load() == expected) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

bool futex_wait_until(const futex_word& word, std::uint32_t expected,
                      futex_deadline deadline) noexcept {
  futex_wait(word, expected);
  return std::chrono::steady_clock::now() < deadline;
}

void futex_wake(const futex_word&, std::uint32_t) noexcept {}
#endif

}  // namespace elidex::internal
