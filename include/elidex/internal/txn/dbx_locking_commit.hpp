// DBX's commit with short regions: one hardware region validates what a transaction has read and
// locks what it writes. The rows are copied after the region.
//
//   basic_database<dbx_locking_commit<>, papers::htm_btree_indexes> db;
//
// Thread-safety: operator(), from any thread.
// Errors: std::bad_alloc. Then nothing has changed.
//
// Implementation notes
// Why not only dbx_commit: it copies rows inside its region. TPC-C's rows (a customer's 700 bytes,
// ten stocks' 350, and the versions kept for snapshots) exceed what an L1 holds for a transaction.
// On the simulated machine four in ten commits of a single thread then take the lock, and hold it
// while they copy. DBX's records have a pointer to their row, and a commit exchanges one word of
// the record. Here that word is the stamp. So a region writes one line of each record as well, and
// the fallback holds its lock for no longer.
//
// Linearization: the region's commit. In the fallback, the point where the commit group is read. At
// that moment all reads are unchanged and all writes are locked. Until a row is unlocked, every
// transaction that wants it waits, or repeats its read of it, as under silo_commit.
// Snapshots: the argument of silo_commit holds here, too (commit_clock.hpp). The phase is announced
// before anything is locked. The group is read in the region, which aborts if the clock advances
// before it commits.
//
// No deadlock: a region takes all its locks or none, and waits for nothing. The fallback takes its
// locks in the order of addresses, and only one fallback runs at a time. Every other holder of a
// lock only has to copy its rows.
//
// Sources: paper 003 section 7.1; DBX (Wang et al., EuroSys 2014).
// Deviations:
// - Rows stay in place (see above).
// - Phantoms are detected by looking again (transaction_context.hpp), where DBX compares versions
//   of leaves.
// - Inner regions have budgets by abort cause, too (retry.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "elidex/htm.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/txn/commit_protocols.hpp"

namespace elidex::internal {

// RetryPolicy and Htm: see elided.hpp.
template <class RetryPolicy = nesting_dbx_budgets, class Htm = htm::native>
class dbx_locking_commit {
 public:
  // As in dbx_commit. A transaction with larger sets takes the lock at once.
  static constexpr std::size_t region_reads_max = 128;
  static constexpr std::size_t region_writes_max = 64;

  dbx_locking_commit() noexcept {
    name_memory(&lock_.underlying(), sizeof(ttas_lock), "commit's lock");
  }

  static bool is_too_large(transaction_context& t) noexcept {
    return t.reads().size() > region_reads_max || t.writes().size() > region_writes_max;
  }
  commit_result operator()(transaction_context& t, commit_clock& clock) {
    return commit_by_locks(t, clock, [&](commit_stamp& stamp) {
      if (is_too_large(t)) {
        const std::lock_guard guard(lock_.underlying());
        return lock_one_by_one(t, clock, stamp);
      }
      return lock_.run([&] {
        return Htm::test() ? lock_in_region(t, clock, stamp) : lock_one_by_one(t, clock, stamp);
      });
    });
  }

  lock_counts htm_counts() const noexcept { return lock_.stats(); }

 private:
  static internal::locking lock_in_region(transaction_context& t, commit_clock& clock,
                                          commit_stamp& stamp) {
    const internal::locking result = validate_in_region(t, clock, stamp);
    if (result != internal::locking::locked) return result;
    // try_lock() cannot fail: the region has read these stamps.
    for (const transaction_context::write& w : t.writes())
      static_cast<void>(w.row->try_lock(w.had));
    return result;
  }

  elided<ttas_lock, RetryPolicy, Htm> lock_;
};

// Chooses the commit for this CPU once: DBX's where hardware regions commit, Silo's elsewhere. Of
// DBX's two variants it uses the one that locks in its region. With TPC-C's rows that variant was
// twice as fast on the simulated machine, where the other one's regions outgrow the L1.
//
// A transaction that is too large for a region commits by Silo's protocol, beside the regions. A
// region sees its locks in the stamps that it reads, so DBX's lock is not necessary. Taking that
// lock would abort all regions: each DELIVERY of TPC-C would stop 64 cores.
class capability_commit {
 public:
  commit_result operator()(transaction_context& t, commit_clock& clock) {
    return by_regions_ && !dbx_.is_too_large(t) ? dbx_(t, clock) : silo_(t, clock);
  }
  bool by_regions() const noexcept { return by_regions_; }
  lock_counts htm_counts() const noexcept { return dbx_.htm_counts(); }

 private:
  const bool by_regions_ = htm::capability().rtm_commits;
  silo_commit silo_;
  dbx_locking_commit<> dbx_;
};

}  // namespace elidex::internal
