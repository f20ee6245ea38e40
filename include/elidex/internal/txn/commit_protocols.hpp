// How an optimistic transaction commits: two protocols, each a policy of the database.
//
//   silo_commit  Locks the write set in the order of addresses, reads the current commit group
//                (commit_clock.hpp), validates the read set, writes and unlocks.
//   dbx_commit   Does all of that in one hardware region that writes no lock. Where the region does
//                not commit, it does the same as Silo under the lock that all regions read.
//
// Thread-safety: operator(), from any thread. Each call has its own transaction.
// Errors: std::bad_alloc, and what transaction_context::observations_hold() throws. In both cases
// nothing has changed.
//
// Implementation notes
// Linearization: the point where the group is read. Silo reads the group after locking and before
// validating. At that moment everything that the transaction writes is locked. Everything that it
// has read is unchanged at that moment, or the validation fails. A seq_cst fence separates the
// three steps. A row that the transaction did not find was absent at that moment, too. A row that
// came and went since the first look is still in the index, with a stamp that shows it (table.hpp).
// DBX: the region's commit.
//
// A region and a fallback may run at once. A region reads the stamps of all records that it
// touches. It aborts when one of them is locked later, and fails when one is locked already. So
// regions need not read a global lock. DBX has a global lock all the same, so that the fallback
// runs alone and ends. See paper 003 section 7.1 and the budgets of its code (dbx_budgets,
// internal/sync/retry.hpp).
//
// No deadlock: locks are taken in one order, and a transaction waits for nothing else while it
// holds one.
// Progress: a transaction fails only if it met another one, or a collection that holds a record's
// lock for a moment. The other one committed, is about to commit, or failed to lock or validate at
// the same time. The backoff of transact() separates those.
//
// Sources: Silo, section 4.4; DBX (Wang et al., EuroSys 2014), as paper 003 section 7 uses it.
// Deviation: versions for snapshots are allocated before anything is locked. A region may run
// again, and an allocation would abort it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <utility>

#include "elidex/elided.hpp"
#include "elidex/htm.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/sync/retry.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/internal/txn/commit_clock.hpp"
#include "elidex/internal/txn/transaction_context.hpp"

namespace elidex::internal {

enum class commit_result : std::uint8_t { committed, conflict };

// Whether a commit of `group` that overwrites a row with the stamp `had` must keep the row for
// snapshots. `horizon`: the clock's, at any moment before the commit is visible.
inline bool wants_version(commit_stamp had, std::uint64_t group, std::uint64_t horizon) noexcept {
  if (had.group() >= group || horizon >= group) return false;
  // An erased row counts as well. A snapshot must see that it was absent between two inserts, and
  // the stamp of that erase: at level sync it waits until the erase is durable.
  return !had.absent() || had.group() != 0;
}

// Whether the commit may cut off a row's body, now or with a version. Without the record's lock and
// outside of a region, the answer is a guess. lacks_memory() asks again under the lock.
inline bool may_free_body(const transaction_context::write& w) noexcept {
  return w.of->rows_vary() && (!w.row->body().empty() || w.row->has_versions());
}

// Prepares a write of a row that may have a body. Throws std::bad_alloc.
inline void provide_body(transaction_context::write& w) {
  const bool has_body = w.words.size() > w.row->room();
  if (!w.may_retire && (has_body || may_free_body(w))) {
    w.of->reserve_retirement();
    w.may_retire = true;
  }
  if (!has_body || w.body != nullptr) return;
  w.body = new std::uint64_t[w.words.size()];
  std::copy(w.words.begin(), w.words.end(), w.body);
}

// Allocates versions and bodies before the commit, so that the commit rarely needs memory. If
// something is missing later, the next attempt allocates it here. `lacked`: something was missing.
// Then all rows get a version, whatever snapshots and groups come next.
inline void provide_versions(transaction_context& t, commit_clock& clock, bool lacked = false) {
  const std::uint64_t group = lacked ? std::numeric_limits<std::uint64_t>::max() : clock.now();
  bool any = false;
  for (transaction_context::write& w : t.writes()) {
    if (w.of->rows_vary()) provide_body(w);
    any = any || wants_version(w.row->stamp(), group, 0);
    w.row->prefetch_version();
  }
  if (!any) return;
  if (!lacked && clock.horizon() < group) clock.move_horizon_once(t.should_look_at_snapshots());
  const std::uint64_t horizon = clock.horizon();
  if (horizon >= group) return;
  for (transaction_context::write& w : t.writes()) {
    if (w.spare != nullptr || !wants_version(w.row->stamp(), group, horizon)) continue;
    w.spare = w.of->make_version(*w.row);
    w.spare->prefetch_for_write();
  }
}

// Whether every record that the transaction read is unchanged. `own_lock`: the transaction holds
// the locks of its writes, and `had` has their former stamps.
inline bool reads_hold(const transaction_context& t, bool own_lock) noexcept {
  for (const transaction_context::read& r : t.reads()) {
    const commit_stamp now = r.row->stamp();
    if (now == r.seen) continue;
    if (!own_lock || now != r.seen.as_locked()) return false;
    const transaction_context::write* const mine = t.own(*r.row);
    if (mine == nullptr || mine->had != r.seen) return false;
  }
  return true;
}

// The largest stamp among the records that the transaction read or writes.
inline commit_stamp newest(transaction_context& t) noexcept {
  std::uint64_t time = 0;
  for (const transaction_context::read& r : t.reads()) time = std::max(time, r.seen.time());
  for (const transaction_context::write& w : t.writes()) time = std::max(time, w.had.time());
  return commit_stamp(time << commit_stamp::state_bits);
}

// The next stamp after `before` in this group.
inline commit_stamp stamp_after(commit_stamp before, std::uint64_t group) noexcept {
  return before.group() < group ? commit_stamp(group, 0) : commit_stamp(group, before.number() + 1);
}

// Whether a commit locked its records, or runs in a hardware region, where locks have no waiters.
enum class commit_by : std::uint8_t { locks, region };

// Installs the new rows.
template <commit_by How>
void write_rows(transaction_context& t, commit_stamp stamp, commit_clock& clock) noexcept {
  clock.note_commit(stamp.group());
  const std::uint64_t horizon = clock.horizon();
  for (transaction_context::write& w : t.writes()) {
    w.keeps_version = wants_version(w.had, stamp.group(), horizon);
    if (w.keeps_version) w.row->keep_version(*std::exchange(w.spare, nullptr), w.had);
    if (!w.erases()) {
      if (w.may_retire) w.old_body = w.row->body();
      w.row->write(w.words, std::exchange(w.body, nullptr));
    }
    if (w.row->has_versions()) w.cut_off = w.row->cut_versions(horizon, stamp);
    const commit_stamp now = w.erases() ? stamp.as_absent() : stamp;
    if constexpr (How == commit_by::locks) {
      w.row->unlock(now);
    } else {
      w.row->replace_stamp(now);
    }
  }
}

inline bool is_last_of(commit_stamp before, std::uint64_t group) noexcept {
  return before.group() == group && before.number() == commit_stamp::number_max;
}

// The horizon only grows, so write_rows() wants no version that this does not miss.
inline bool lacks_memory(transaction_context& t, const commit_clock& clock,
                         std::uint64_t group) noexcept {
  const std::uint64_t horizon = clock.horizon();
  return std::any_of(t.writes().begin(), t.writes().end(),
                     [&](const transaction_context::write& w) {
                       return (w.spare == nullptr && wants_version(w.had, group, horizon)) ||
                              (!w.may_retire && may_free_body(w));
                     });
}

enum class locking : std::uint8_t { locked, conflict, lacks_memory, out_of_numbers };

// Computes the new rows' stamp, unless memory or a stamp number is missing. The transaction's
// writes are locked, or the caller is in a region.
inline locking stamp_for(transaction_context& t, const commit_clock& clock, std::uint64_t group,
                         commit_stamp& stamp) noexcept {
  const commit_stamp before = newest(t);
  if (is_last_of(before, group)) return locking::out_of_numbers;
  if (lacks_memory(t, clock, group)) return locking::lacks_memory;
  stamp = stamp_after(before, group);
  return locking::locked;
}

// The start of a region that commits or locks: reads the group and validates all reads. No record
// of the write set may be locked. Everything it reads stays in the region's read set.
inline locking validate_in_region(transaction_context& t, const commit_clock& clock,
                                  commit_stamp& stamp) {
  const std::uint64_t group = clock.now();
  for (transaction_context::write& w : t.writes()) {
    w.had = w.row->stamp();
    if (w.had.locked() || w.had.dead()) return locking::conflict;
  }
  if (!reads_hold(t, false) || !t.observations_hold()) return locking::conflict;
  return stamp_for(t, clock, group, stamp);
}

// Silo's protocol: locks the write set row by row, then validates the read set. The writes are
// sorted. If the result is not `locked`, or the function throws, no row stays locked.
inline locking lock_one_by_one(transaction_context& t, const commit_clock& clock,
                               commit_stamp& stamp) {
  const std::span<const transaction_context::write_to_lock> writes = t.writes_to_lock();
  const auto unlock = [&](std::size_t many) {
    for (const auto& [row, write] : writes.first(many)) row->unlock(write->had);
  };
  for (std::size_t i = 0; i < writes.size(); ++i) {
    writes[i].of->had = writes[i].row->lock();
    if (!writes[i].of->had.dead()) continue;
    unlock(i + 1);
    return locking::conflict;
  }
  // Note 2 of commit_clock.hpp: locks before it, validation after it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint64_t group = clock.now();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool holds = reads_hold(t, true);
  try {
    holds = holds && t.observations_hold();
  } catch (...) {
    unlock(writes.size());
    throw;
  }
  const locking result = holds ? stamp_for(t, clock, group, stamp) : locking::conflict;
  if (result != locking::locked) unlock(writes.size());
  return result;
}

// A commit that calls lock(stamp) first and then writes.
template <class Lock>
commit_result commit_by_locks(transaction_context& t, commit_clock& clock, Lock&& lock) {
  t.sort_writes();
  t.seal_for_log();
  for (bool lacked = false;; lacked = true) {
    provide_versions(t, clock, lacked);
    const commit_clock::commit_phase phase(clock);
    // The group is usually the right one. Then write_rows() need not note it while rows are locked.
    clock.note_commit(clock.now());
    commit_stamp stamp;
    switch (lock(stamp)) {
      case locking::locked:
        t.committed_with(stamp);
        write_rows<commit_by::locks>(t, stamp, clock);
        return commit_result::committed;
      case locking::conflict:
        return commit_result::conflict;
      case locking::out_of_numbers:
        clock.advance();
        break;
      case locking::lacks_memory:
        break;
    }
  }
}

class silo_commit {
 public:
  commit_result operator()(transaction_context& t, commit_clock& clock) {
    return commit_by_locks(t, clock,
                           [&](commit_stamp& stamp) { return lock_one_by_one(t, clock, stamp); });
  }
};

// RetryPolicy and Htm: see elided.hpp.
template <class RetryPolicy = dbx_budgets, class Htm = htm::native>
class dbx_commit {
 public:
  // Chosen, as in DBX. A transaction with larger sets takes the lock at once.
  static constexpr std::size_t region_reads_max = 128;
  static constexpr std::size_t region_writes_max = 64;

  dbx_commit() noexcept { name_memory(&lock_.underlying(), sizeof(ttas_lock), "commit's lock"); }

  commit_result operator()(transaction_context& t, commit_clock& clock) {
    if (t.reads().size() > region_reads_max || t.writes().size() > region_writes_max) {
      const std::lock_guard guard(lock_.underlying());
      return fallback_(t, clock);
    }
    t.seal_for_log();
    for (bool lacked = false;; lacked = true) {
      provide_versions(t, clock, lacked);
      // The group is usually the right one. Then the region does not write the noted group.
      clock.note_commit(clock.now());
      const internal::locking result =
          t.is_logged() ? commit_for_log(t, clock) : commit_once(t, clock);
      if (result == internal::locking::conflict) return commit_result::conflict;
      if (result == internal::locking::locked) return commit_result::committed;
      if (result == internal::locking::out_of_numbers) clock.advance();
    }
  }

  lock_counts htm_counts() const noexcept { return lock_.stats(); }

 private:
  // The log waits for each commit of a group that is not in its queue yet. The queue is filled
  // after the region, so the commit phase encloses both.
  internal::locking commit_for_log(transaction_context& t, commit_clock& clock) {
    const commit_clock::commit_phase phase(clock);
    return commit_once(t, clock);
  }
  // Returns `locked` if the rows are installed.
  internal::locking commit_once(transaction_context& t, commit_clock& clock) {
    commit_stamp stamp;
    bool fell_back = false;
    const internal::locking result = lock_.run([&] {
      if (Htm::test()) return as_region(t, clock, stamp);
      fell_back = true;
      return fallback_(t, clock) == commit_result::committed ? internal::locking::locked
                                                             : internal::locking::conflict;
    });
    if (result == internal::locking::locked && !fell_back) t.committed_with(stamp);
    return result;
  }

  // Without a log the region needs no commit_phase. The clock is in its read set, so it still shows
  // this group when the region commits. A thread that reads a later group comes after the commit.
  static internal::locking as_region(transaction_context& t, commit_clock& clock,
                                     commit_stamp& stamp) {
    const internal::locking result = validate_in_region(t, clock, stamp);
    if (result == internal::locking::locked)
      internal::write_rows<commit_by::region>(t, stamp, clock);
    return result;
  }

  silo_commit fallback_;
  elided<ttas_lock, RetryPolicy, Htm> lock_;
};

}  // namespace elidex::internal
