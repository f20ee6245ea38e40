// Which latches a lock system has (lock_system.hpp). papers/schrimpf/thesis_latches.hpp has those
// of the thesis.
//
//   lock_system<sharded_latches<>> locks;
//
//   sharded_latches<N>   a drop-in mutex for each Nth of the queues instead of one for all, as
//                        MySQL 8 and MariaDB 10.6 have it; elided
//
// A policy gives system_latch and transaction_latch, which have lock() and unlock(), and `shards`,
// how many of the former there are: a power of two. A latch that has stats() is counted in
// lock_system::latch_counts(); drop-in mutexes count with all mutexes that have no name
// (lock_names.hpp).
//
// Thread-safety: types and constants only.
#pragma once

#include <cstddef>

#include "elidex/mutex.hpp"

namespace elidex::internal {

template <class SystemLatch, class TransactionLatch, std::size_t Shards = 1>
struct latches {
  static_assert(Shards != 0 && (Shards & (Shards - 1)) == 0, "a power of two");
  using system_latch = SystemLatch;
  using transaction_latch = TransactionLatch;
  static constexpr std::size_t shards = Shards;
};

// 16 is chosen: many for a socket's cores, and no more than a region can stand for at once
// (region_locks.hpp), which the search for deadlocks asks of it.
template <std::size_t Shards = 16>
struct sharded_latches : latches<mutex, mutex, Shards> {};

}  // namespace elidex::internal
