// DBX's commit with short regions: one hardware region validates what a transaction has read and
// locks what it writes; the rows are copied behind it.
//
//   basic_database<dbx_locking_commit<>, papers::htm_btree_indexes> db;
//
// Why beside dbx_commit: that one copies rows inside its region, and those of TPC-C (a customer's
// 700 bytes, ten stocks' 350, and the versions kept for snapshots) are more than an L1 keeps for a
// transaction: on the simulated machine four commits in ten of a thread by itself take the lock,
// and hold it for as long as the copying takes. DBX's records have a pointer to their row, of which
// a commit exchanges one word. Here the word is the stamp: a region writes one line of each record
// as well, and the fallback holds its lock for no longer.
//
// Linearization: the region's commit, or in the fallback where the epoch is read. All reads are
// then unchanged and all writes are locked, both at one moment; until the unlocking everybody who
// wants one of the rows waits, or repeats what it has read of it, as under silo_commit. The
// argument for snapshots is that one's, too (commit_clock.hpp): the phase is announced before
// anything is locked, and the epoch is read in the region, which would abort if the clock moved on
// before it commits.
//
// No deadlock: a region takes all its locks or none and waits for nothing. The fallback waits for
// locks, in the order of addresses and one fallback at a time; whoever else holds one has nothing
// left to do but to copy.
//
// Thread-safety: operator(), from any thread. Errors: std::bad_alloc, and then nothing has changed.
// From: papers/003 section 7.1; DBX (Wang et al., EuroSys 2014). Deviations: rows stay in place,
// see above; phantoms are found by looking again (transaction.hpp), where DBX compares versions of
// leaves; budgets by cause below the outermost region, too (retry.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "elidex/htm.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/txn/commit_protocols.hpp"

namespace elidex::internal {

// RetryPolicy and Htm as in elided.hpp.
template <class RetryPolicy = nesting_dbx_budgets, class Htm = htm::native>
class dbx_locking_commit {
 public:
  // As dbx_commit has them: what notes more takes the lock at once.
  static constexpr std::size_t region_reads_max = 128;
  static constexpr std::size_t region_writes_max = 64;

  dbx_locking_commit() noexcept {
    name_memory(&lock_.underlying(), sizeof(ttas_lock), "commit's lock");
  }

  commit_result operator()(transaction_context& t, commit_clock& epochs) {
    const bool too_large =
        t.reads().size() > region_reads_max || t.writes().size() > region_writes_max;
    return commit_by_locks(t, epochs, [&](commit_stamp& stamp) {
      if (too_large) {
        const std::lock_guard guard(lock_.underlying());
        return lock_one_by_one(t, epochs, stamp);
      }
      return lock_.run([&] {
        return Htm::test() ? lock_in_region(t, epochs, stamp) : lock_one_by_one(t, epochs, stamp);
      });
    });
  }

  lock_counts region_counts() const noexcept { return lock_.stats(); }

 private:
  static internal::locking lock_in_region(transaction_context& t, commit_clock& epochs,
                                          commit_stamp& stamp) {
    const internal::locking result = validate_in_region(t, epochs, stamp);
    if (result != internal::locking::locked) return result;
    // Nothing can have come between: the region has read these stamps.
    for (const transaction_context::write& w : t.writes())
      static_cast<void>(w.row->try_lock(w.had));
    return result;
  }

  elided<ttas_lock, RetryPolicy, Htm> lock_;
};

// The commit that this CPU favours, decided once: DBX's where hardware regions commit, Silo's
// elsewhere. Of DBX's two it takes the one that locks in its region: with TPC-C's rows it was twice
// as fast on the simulated machine, where the other one's regions outgrow the L1.
class capability_commit {
 public:
  commit_result operator()(transaction_context& t, commit_clock& epochs) {
    return by_regions_ ? dbx_(t, epochs) : silo_(t, epochs);
  }
  bool by_regions() const noexcept { return by_regions_; }
  lock_counts region_counts() const noexcept { return dbx_.region_counts(); }

 private:
  const bool by_regions_ = htm::capability().rtm_commits;
  silo_commit silo_;
  dbx_locking_commit<> dbx_;
};

}  // namespace elidex::internal
