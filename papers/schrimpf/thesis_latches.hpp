// The latches of paper 004 section 4.2, for the lock system (internal/locking/lock_system.hpp).
//
//   lock_system<hle_latches> locks;
//
//   unmodified_latches              the system's mutexes, as MySQL 5.6 has them
//   hle_latches                     "low-level HLE": every latch has the HLE prefixes
//   retried_latches                 "low-level retried": every latch is elided by RTM, tried again
//                                   100 times
//   pthread_elision_latches         "glibc": every latch is a drop-in mutex that stops eliding for
//                                   a time where that fails
//   elided_lock_mutex_latches       "lock-mutex": only the lock system's mutex has HLE
//   elided_transaction_latches      "transaction latches": only those have HLE
//
// Deviations: the thesis retries after any abort at once, we wait first until the latch is free
// (elided.hpp). Its HLE latches exchange before they look (TAS-T), ours look first (hle_lock.hpp).
// Its low-level variants change every mutex of the server, of which the lock system's are a part;
// here they are all there are. Its glibc stops for a number of acquisitions, ours by time.
//
// Thread-safety: types and constants only.
#pragma once

#include <cstdint>

#include "elidex/elided.hpp"
#include "elidex/htm.hpp"
#include "elidex/internal/locking/lock_latches.hpp"
#include "elidex/mutex.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/posix_mutex.hpp"

namespace elidex::papers {

using namespace internal;

// Any abort is followed by another attempt, so many times (paper 004 section 4.2.2).
template <std::uint32_t Times>
struct retry_times {
  class remaining {
   public:
    constexpr bool retry_after(htm::status) noexcept {
      if (left_ == 0) return false;
      --left_;
      return true;
    }

   private:
    std::uint32_t left_ = Times;
  };
  constexpr remaining start() const noexcept { return {}; }
};

struct unmodified_latches : latches<posix_mutex, posix_mutex> {};
struct hle_latches : latches<hle_lock, hle_lock> {};
struct retried_latches
    : latches<elided<ttas_lock, retry_times<100>>, elided<ttas_lock, retry_times<100>>> {};
struct pthread_elision_latches : latches<mutex, mutex> {};
struct elided_lock_mutex_latches : latches<hle_lock, posix_mutex> {};
struct elided_transaction_latches : latches<posix_mutex, hle_lock> {};

}  // namespace elidex::papers
