// Two-phase locking as a policy of the database: InnoDB's, over its lock system.
//
//   // <hle_latches>, ...: lock_latches.hpp
//   elidex::basic_database<elidex::db::two_phase_locking<>> db;
//   db.protocol().wait_for(std::chrono::seconds(5));  // a lock; 50 s unless said
//   db.transact([&](auto& t) { ... });  // two_phase_transaction.hpp
//
// A commit is Silo's without anything to validate: the transaction locks its rows' words, takes the
// epoch, writes, unlocks them (commit_protocols.hpp); then it gives its locks back. So log and
// snapshots have the same to go by under each policy:
// - What commit_clock.hpp (2) asks: if T2 overwrites what T1 has read under a shared lock, T2's
//   lock came after T1's end, so T1 read the clock before T2 did. At the levels without read locks
//   T1 need not stand before T2 anywhere, and read_only() sees both or T2 alone.
// - Row words are locked in one order, by commits only, which wait for nobody else meanwhile; locks
//   of the lock system are not taken while a word is locked. So the two kinds make no cycle.
//
// Which erased records may go: nobody has a lock on the record or on the gap before it. The rule
// asks with the record's word locked; who gets a lock looks at the word afterwards, and finds it
// locked, or dead, or was seen by the rule (two_phase_transaction.hpp).
//
// Thread-safety: all members; begin() for the calling thread. Errors: as lock_system.hpp. From:
// papers/004 section 4.1. Deviations: rows are written at the commit, so there is nothing to undo
// and nothing uncommitted to be seen; the transaction's function is run again after a deadlock or a
// time-out, where InnoDB returns an error.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "elidex/internal/locking/lock_system.hpp"
#include "elidex/internal/txn/commit_protocols.hpp"
#include "elidex/internal/txn/table.hpp"
#include "elidex/internal/txn/two_phase_transaction.hpp"

namespace elidex::internal {

// Phantoms: two_phase_transaction.hpp; any other than looks_again is for tests.
template <class Latches = sharded_latches<>, class Phantoms = looks_again>
class two_phase_locking {
 public:
  using transaction = two_phase_transaction<lock_system<Latches>, Phantoms>;

  // How long a transaction waits for a lock before it is rolled back and run again, and how long
  // the victim of a deadlock waits for its turn to run again.
  void wait_for(std::chrono::nanoseconds time) noexcept { wait_ns_.store(time.count()); }

  lock_system_counts counts() const { return locks_.counts(); }
  lock_system<Latches>& locks() noexcept { return locks_; }

  // For the database.
  static row_locking locking_of(std::uint32_t table) noexcept {
    return {.space = table + 1, .words_behind_row = 1};
  }
  transaction begin(typename transaction::memory& notes, isolation level, commit_clock& epochs,
                    const void* database) {
    return transaction(notes, level, locks_, epochs, std::chrono::nanoseconds(wait_ns_.load()),
                       database);
  }
  commit_result operator()(transaction& t, commit_clock& epochs) {
    if (t.is_doomed()) return commit_result::conflict;
    t.prepare_commit();
    if (silo_(transaction_access::context(t), epochs) == commit_result::conflict)
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
             asking_.lock_record(at, lock_mode::exclusive, lock_kind::record,
                                 erased.writer(table.row_words()),
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
