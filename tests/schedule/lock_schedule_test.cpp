// Every lock under explored interleavings: sections exclude each other, nothing hangs, and elided
// ones lose no update when regions and real holders meet.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "elidex/elided.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/mutex.hpp"
#include "elidex/shared_mutex.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/no_retries.hpp"
#include "papers/karnagel/posix_mutex.hpp"
#include "schedule/explore.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

template <class Lock>
struct increments {
  static constexpr std::uint64_t threads = 3;
  static constexpr std::uint64_t each = 2;
  Lock lock;
  alignas(64) std::atomic<std::uint64_t> counter{0};

  std::vector<std::function<void()>> bodies() {
    return std::vector<std::function<void()>>(threads, [this] {
      for (std::uint64_t i = 0; i < each; ++i) {
        lock.lock();
        const std::uint64_t seen = counter;
        counter = seen + 1;
        lock.unlock();
      }
    });
  }
  std::string verdict() const { return counter == threads * each ? "" : "an increment is lost"; }
};

// A section that sometimes cannot commit, so that holders of the real lock meet regions.
template <class Lock>
struct some_take_the_lock : increments<Lock> {
  std::vector<std::function<void()>> bodies() {
    auto all = increments<Lock>::bodies();
    all[0] = [this] {
      for (std::uint64_t i = 0; i < this->each; ++i) {
        this->lock.lock();
        const std::uint64_t seen = this->counter;
        std::this_thread::yield();  // a system call: the region aborts
        this->counter = seen + 1;
        this->lock.unlock();
      }
    };
    return all;
  }
};

template <class Lock>
class LockSchedules : public ::testing::Test {};
using locks =
    ::testing::Types<tas_lock, ttas_lock, posix_mutex, std::shared_mutex, hle_lock,
                     elided<ttas_lock>, elided<ttas_lock, no_retry>, elided<ttas_lock, no_retries>,
                     elided<ttas_lock, dbx_budgets>, elided<posix_mutex>,
                     elided<tas_lock, adaptive<no_retry>>, sleeping_lock, sleeping_shared_lock,
                     mutex, recursive_mutex, shared_mutex>;
TYPED_TEST_SUITE(LockSchedules, locks);

TYPED_TEST(LockSchedules, NoIncrementIsLost) {
  EXPECT_EQ(explore<increments<TypeParam>>(static_cast<std::uint64_t>(300 * effort())), "");
}

TYPED_TEST(LockSchedules, NorWhereRegionsMeetHolders) {
  EXPECT_EQ(explore<some_take_the_lock<TypeParam>>(static_cast<std::uint64_t>(300 * effort())), "");
}

}  // namespace
}  // namespace elidex::testing
