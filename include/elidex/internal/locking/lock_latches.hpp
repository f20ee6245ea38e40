// The latches of a lock system (lock_system.hpp), as policies. papers/schrimpf/thesis_latches.hpp
// has those of the thesis.
//
//   lock_system<sharded_latches<>> locks;
//
//   sharded_latches<N>  One elided drop-in mutex for each Nth of the queues, instead of one for
//                       all, as in MySQL 8 and MariaDB 10.6.
//
// A policy defines the types system_latch and transaction_latch, which have lock() and unlock().
// Its constant `shards` is the number of system latches, a power of two. Two more members model
// InnoDB, and `latches` switches both off:
//   wait_table         A transaction calls enter() before a wait and leave() after it.
//   wakes_under_latch  The thread that decides a request wakes the waiter before it releases the
//                      latch, which takes a system call.
// lock_system::latch_counts() includes each latch that has stats(). Drop-in mutexes are counted
// with all mutexes without a name (lock_names.hpp).
//
// Thread-safety: types and constants only.
#pragma once

#include <cstddef>

#include "elidex/mutex.hpp"

namespace elidex::internal {

struct no_wait_table {
  static constexpr std::size_t enter() noexcept { return 0; }
  static constexpr void leave(std::size_t) noexcept {}
};

template <class SystemLatch, class TransactionLatch, std::size_t Shards = 1>
struct latches {
  static_assert(Shards != 0 && (Shards & (Shards - 1)) == 0, "a power of two");
  using system_latch = SystemLatch;
  using transaction_latch = TransactionLatch;
  static constexpr std::size_t shards = Shards;
  using wait_table = no_wait_table;
  static constexpr bool wakes_under_latch = false;
};

// Chosen: 16 suffice for a socket's cores. A region can elide that many locks at once
// (region_locks.hpp), which the search for deadlocks requires.
template <std::size_t Shards = 16>
struct sharded_latches : latches<mutex, mutex, Shards> {};

}  // namespace elidex::internal
