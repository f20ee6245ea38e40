// Two-phase locking as a policy of the database: InnoDB's protocol on its lock system.
//
//   // <papers::hle_latches>, ...: lock_latches.hpp
//   elidex::basic_database<elidex::db::two_phase_locking<>> db;
//   db.protocol().wait_for(std::chrono::seconds(5));  // for a lock; the default is 50 s
//   db.transact([&](auto& t) { ... });  // two_phase_transaction.hpp
//
// Thread-safety: all members, from any thread. begin() makes a transaction for the calling thread.
// Errors: those of lock_system.hpp.
//
// Implementation notes
// A commit is Silo's with nothing to validate (commit_protocols.hpp). The transaction locks the
// words of its rows, reads the commit group, writes, and unlocks them. Then it releases its locks.
// So the log and the snapshots can rely on the same guarantees under each policy:
// - Serial order (commit_clock.hpp, note 2): if T2 overwrites what T1 has read under a shared lock,
//   T2 got its lock after T1's end. So T1 read the clock before T2 did. At the levels without read
//   locks T1 need not precede T2, and read_only() sees both or T2 alone.
// - No deadlock: only commits wait for row words. They lock them in one order, and wait for nothing
//   else meanwhile. No thread waits for a lock of the lock system while it holds a word. So the two
//   kinds of locks form no cycle.
//
// Which erased records may be unlinked: those without a lock on the record or on the gap before it.
// The rule asks while the record's word is locked. A transaction that gets such a lock looks at the
// word afterwards. It finds the word locked or dead, or the rule has seen its lock
// (two_phase_transaction.hpp).
//
// Source: paper 004 section 4.1. Deviations:
// - Rows are written at the commit. So there is nothing to undo, and no uncommitted row is visible.
// - The transaction's function runs again after a deadlock or a timeout, where InnoDB returns an
//   error.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "elidex/internal/locking/lock_system.hpp"
#include "elidex/internal/txn/commit_protocols.hpp"
#include "elidex/internal/txn/table.hpp"
#include "elidex/internal/txn/two_phase_transaction.hpp"

namespace elidex::internal {

// Phantoms: see two_phase_transaction.hpp. Policies other than looks_again are for tests.
template <class Latches = sharded_latches<>, class Phantoms = looks_again>
class two_phase_locking {
 public:
  using transaction = two_phase_transaction<lock_system<Latches>, Phantoms>;

  // How long a transaction waits for a lock before it is rolled back and run again. The victim of a
  // deadlock waits as long for its turn to run again.
  void wait_for(std::chrono::nanoseconds time) noexcept { wait_ns_.store(time.count()); }

  // Returns the counts of lock requests, waits and deadlocks.
  lock_system_counts counts() const { return locks_.counts(); }
  // Returns the lock system, for tests.
  lock_system<Latches>& locks() noexcept { return locks_; }

  // For the database.
  static row_locking locking_of(std::uint32_t table) noexcept {
    return {.space = table + 1, .words_behind_row = 1};
  }
  // No wait for a lock lasts beyond the deadline.
  transaction begin(typename transaction::memory& notes, isolation level, commit_clock& clock,
                    const void* database, std::chrono::steady_clock::time_point deadline) {
    return transaction(notes, level, locks_, clock, std::chrono::nanoseconds(wait_ns_.load()),
                       database, deadline);
  }
  commit_result operator()(transaction& t, commit_clock& clock) {
    if (t.is_doomed()) return commit_result::conflict;
    t.prepare_commit();
    if (silo_(transaction_access::context(t), clock) == commit_result::conflict)
      return commit_result::conflict;
    t.end_locks();
    return commit_result::committed;
  }

  class unlinking_what_nobody_locks final : public unlinking_rule {
   public:
    explicit unlinking_what_nobody_locks(lock_system<Latches>& locks) : asking_(locks) {}
    bool allows(const table_base& table, record& erased) override {
      using std::chrono::nanoseconds;
      const record_address at = lock_address(table, erased);
      asking_.begin();
      const struct guard {
        typename lock_system<Latches>::transaction& asking;
        ~guard() { asking.end(); }
      } ends{asking_};
      return asking_.lock_record(at, lock_mode::exclusive, lock_kind::insert_intention,
                                 lock_owner_id{}, nanoseconds::zero()) == lock_outcome::granted &&
             asking_.lock_record(at, lock_mode::exclusive, lock_kind::record, erased.writer(),
                                 nanoseconds::zero()) == lock_outcome::granted;
    }

   private:
    typename lock_system<Latches>::transaction asking_;
  };
  unlinking_what_nobody_locks unlinking() { return unlinking_what_nobody_locks(locks_); }

 private:
  lock_system<Latches> locks_;
  silo_commit silo_;
  std::atomic<std::int64_t> wait_ns_{std::chrono::nanoseconds(std::chrono::seconds(50)).count()};
};

}  // namespace elidex::internal
