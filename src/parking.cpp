#include "elidex/internal/sync/parking.hpp"

#if !defined(ELIDEX_SIMULATED)

#  include <array>
#  include <chrono>
#  include <cstddef>

#  include "elidex/internal/sync/futex.hpp"

#  if defined(__linux__)
#    include <linux/membarrier.h>
#    include <sys/syscall.h>
#    include <unistd.h>

#    include <cerrno>
#  endif

namespace elidex::internal {

alignas(64) constinit std::atomic<std::uint32_t> threads_parked{0};

namespace {

// Waiters of addresses that share a bucket are woken together.
struct alignas(64) bucket {
  futex_word asleep{0};  // threads that sleep here or are about to
  futex_word wakes{0};   // changes with every wake-up; what they sleep on
};
constexpr unsigned bucket_bits = 8;
constinit std::array<bucket, std::size_t{1} << bucket_bits> buckets{};

// Chosen: the longest delay by a lost wake-up, once in a wait. It is long compared with the
// microseconds that going to sleep takes.
constexpr std::chrono::milliseconds first_sleep{1};

bucket& bucket_of(const void* address) noexcept {
  constexpr std::uint64_t golden_ratio = 0x9E37'79B9'7F4A'7C15u;
  return buckets[(reinterpret_cast<std::uintptr_t>(address) * golden_ratio) >> (64 - bucket_bits)];
}

// Returns false if the system has no membarrier().
bool expose_stores() noexcept {
#  if defined(__linux__) && defined(SYS_membarrier)
  const int errno_before = errno;
  // Registers again after a fork: a child loses the registration if another thread of the parent
  // made it.
  const bool done =
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0 ||
      (::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
       ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
  errno = errno_before;
  return done;
#  else
  return false;
#  endif
}

}  // namespace

bool parking::sleep(const void* address, sleep_kind kind, bool (*is_blocked)(const void*),
                    const void* context) noexcept {
  bucket& here = bucket_of(address);
  threads_parked.fetch_add(1);
  here.asleep.fetch_add(1);
  const bool exposed = kind == sleep_kind::later && expose_stores();
  const std::uint32_t wakes = here.wakes.load();
  const bool sleeps = is_blocked(context);
  if (sleeps && exposed) {
    futex_wait(here.wakes, wakes);
  } else if (sleeps) {
    static_cast<void>(
        futex_wait_until(here.wakes, wakes, futex_deadline::clock::now() + first_sleep));
  }
  here.asleep.fetch_sub(1);
  threads_parked.fetch_sub(1);
  return sleeps;
}

void parking::forget_sleepers() noexcept {
  for (bucket& each : buckets) each.asleep.store(0);
  threads_parked.store(0);
}

void parking::wake(const void* address) noexcept {
  bucket& here = bucket_of(address);
  // The caller has read a count in `threads_parked`, perhaps that of a waiter elsewhere.
  // relaxed: pairs with expose_stores() in sleep()
  if (here.asleep.load(std::memory_order_relaxed) == 0) return;
  here.wakes.fetch_add(1);
  futex_wake(here.wakes, futex_wake_all);
}

}  // namespace elidex::internal

#endif
