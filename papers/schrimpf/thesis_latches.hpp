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
// page_latch_of<Latches> is the type of a variant's mutexes of pages (page_latches.hpp).
// wait_slots is InnoDB's table of waiting threads, which no variant changes (section 4.2).
//
// Deviations: the thesis retries after any abort at once, we wait first until the latch is free
// (elided.hpp). Its HLE latches exchange before they look (TAS-T), ours look first (hle_lock.hpp).
// Its low-level variants change every mutex of the server, here those of the lock system and of
// pages. Its glibc stops for a number of acquisitions, ours by time.
//
// Thread-safety: types and constants only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <type_traits>

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

// As InnoDB's lock_wait_table: a thread takes the first free slot under lock_sys->wait_mutex.
class wait_slots {
 public:
  std::size_t enter() {
    const std::lock_guard guard(mutex_);
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    if (free == taken_.end())
      throw std::length_error("elidex: more than 1024 waiting transactions");
    *free = true;
    return static_cast<std::size_t>(free - taken_.begin());
  }
  void leave(std::size_t slot) {
    const std::lock_guard guard(mutex_);
    taken_[slot] = false;
  }

 private:
  std::mutex mutex_;
  std::array<bool, 1024> taken_{};
};

// A waiter is woken by os_event_set() in the section that grants its lock.
template <class SystemLatch, class TransactionLatch>
struct innodb_latches : latches<SystemLatch, TransactionLatch> {
  using wait_table = wait_slots;
  static constexpr bool wakes_under_latch = true;
};

struct unmodified_latches : innodb_latches<posix_mutex, posix_mutex> {};
struct hle_latches : innodb_latches<hle_lock, hle_lock> {};
struct retried_latches
    : innodb_latches<elided<ttas_lock, retry_times<100>>, elided<ttas_lock, retry_times<100>>> {};
struct pthread_elision_latches : innodb_latches<mutex, mutex> {};
struct elided_lock_mutex_latches : innodb_latches<hle_lock, posix_mutex> {};
struct elided_transaction_latches : innodb_latches<posix_mutex, hle_lock> {};

// The low-level variants change all mutexes alike, the others two of them.
template <class Latches>
using page_latch_of = std::conditional_t<
    std::is_same_v<typename Latches::system_latch, typename Latches::transaction_latch>,
    typename Latches::system_latch, posix_mutex>;

}  // namespace elidex::papers
