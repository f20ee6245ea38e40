// DBX's commit with short regions: one hardware region validates what a transaction has read and locks what it writes; the rows are copied
// behind it.
//
//   basic_database<db::dbx_locking_commit<>, db::htm_btree_indexes> db;
//
// Why beside dbx_commit: that one copies rows inside its region, and those of TPC-C (a customer's 700 bytes, ten stocks' 350, and the
// versions kept for snapshots) are more than an L1 keeps for a transaction: on the simulated machine four commits in ten of a thread
// by itself take the lock, and hold it for as long as the copying takes. DBX's records have a pointer to their row, of which a commit exchanges one
// word. Here the word is the stamp: a region writes one line of each record as well, and the fallback holds its lock for no longer.
//
// Linearization: the region's commit, or in the fallback where the epoch is read. All reads are then unchanged and all writes are locked, both at
// one moment; until the unlocking everybody who wants one of the rows waits, or repeats what it has read of it, as under silo_commit. The
// argument for snapshots is that one's, too (commit_epochs.hpp): the phase is announced before anything is locked, and the epoch is read in the
// region, which would abort if the clock moved on before it commits.
//
// No deadlock: a region takes all its locks or none and waits for nothing. The fallback waits for locks, in the order of addresses and one
// fallback at a time; whoever else holds one has nothing left to do but to copy.
//
// Thread-safety: operator(), from any thread. Errors: std::bad_alloc, and then nothing has changed.
// From: papers/003 section 7.1; DBX (Wang et al., EuroSys 2014). Deviations: rows stay in place, see above; phantoms are found by looking
// again (transaction.hpp), where DBX compares versions of leaves; budgets by cause below the outermost region, too (retry.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "elidex/db/commit_protocols.hpp"
#include "elidex/memory_name.hpp"

namespace elidex::db {

// RetryPolicy and Htm as in elided.hpp.
template <class RetryPolicy = nesting_dbx_budgets, class Htm = htm::native>
class dbx_locking_commit {
 public:
  // As dbx_commit has them: what notes more takes the lock at once.
  static constexpr std::size_t region_reads_max = 128;
  static constexpr std::size_t region_writes_max = 64;

  dbx_locking_commit() noexcept {
    elidex::detail::name_memory(&lock_.underlying(), sizeof(ttas_lock), "commit's lock");
  }

  commit_result operator()(transaction& t, commit_epochs& epochs) {
    const bool too_large = t.reads().size() > region_reads_max || t.writes().size() > region_writes_max;
    t.sort_writes();
    for (;;) {
      detail::provide_versions(t, epochs);
      const commit_epochs::commit_phase phase(epochs);
      commit_stamp stamp;
      switch (locks(t, epochs, stamp, too_large)) {
        case outcome::locked:
          detail::write_rows(t, stamp, epochs.horizon());
          return commit_result::committed;
        case outcome::conflict:
          return commit_result::conflict;
        case outcome::out_of_numbers:
          epochs.advance();
          break;
        case outcome::lacks_version:
          break;
      }
    }
  }

  lock_counts region_counts() const noexcept { return lock_.stats(); }

 private:
  enum class outcome : std::uint8_t { locked, conflict, lacks_version, out_of_numbers };

  outcome locks(transaction& t, commit_epochs& epochs, commit_stamp& stamp, bool too_large) {
    if (too_large) {
      const std::lock_guard guard(lock_.underlying());
      return lock_one_by_one(t, epochs, stamp);
    }
    return lock_.run(
        [&] { return Htm::test() ? lock_in_region(t, epochs, stamp) : lock_one_by_one(t, epochs, stamp); });
  }

  static outcome lock_in_region(transaction& t, commit_epochs& epochs, commit_stamp& stamp) {
    const std::uint64_t epoch = epochs.now();
    for (transaction::write& w : t.writes()) {
      w.had = w.row->stamp();
      if (w.had.locked() || w.had.dead()) return outcome::conflict;
    }
    if (!detail::reads_hold(t, false) || !t.observations_hold()) return outcome::conflict;
    const outcome result = stamp_for(t, epoch, stamp);
    if (result != outcome::locked) return result;
    // Nothing can have come between: the region has read these stamps.
    for (const transaction::write& w : t.writes()) static_cast<void>(w.row->try_lock(w.had));
    return result;
  }

  // As Silo does.
  static outcome lock_one_by_one(transaction& t, commit_epochs& epochs, commit_stamp& stamp) {
    auto& writes = t.writes();
    for (std::size_t i = 0; i < writes.size(); ++i) {
      writes[i].had = writes[i].row->lock();
      if (!writes[i].had.dead()) continue;
      unlock(t, i + 1);
      return outcome::conflict;
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);  // 2 of commit_epochs.hpp: locked before, validated after
    const std::uint64_t epoch = epochs.now();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool holds = detail::reads_hold(t, true) && t.observations_hold();
    const outcome result = holds ? stamp_for(t, epoch, stamp) : outcome::conflict;
    if (result != outcome::locked) unlock(t, writes.size());
    return result;
  }
  static void unlock(transaction& t, std::size_t many) noexcept {
    for (std::size_t i = 0; i < many; ++i) t.writes()[i].row->unlock(t.writes()[i].had);
  }

  // The new rows' stamp, unless something is missing for them.
  static outcome stamp_for(transaction& t, std::uint64_t epoch, commit_stamp& stamp) noexcept {
    const commit_stamp before = detail::newest(t);
    if (detail::is_last_of(before, epoch)) return outcome::out_of_numbers;
    if (detail::lacks_version(t, epoch)) return outcome::lacks_version;
    stamp = detail::stamp_after(before, epoch);
    return outcome::locked;
  }

  elided<ttas_lock, RetryPolicy, Htm> lock_;
};

}  // namespace elidex::db
