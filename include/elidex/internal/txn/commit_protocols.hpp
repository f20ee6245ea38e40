// How an optimistic transaction commits: the two protocols that are a policy of the database.
//
//   silo_commit   locks what it writes, in the order of addresses; reads the epoch; validates what
//                 it has read; writes and unlocks
//   dbx_commit    does all of that as one hardware region, which writes no lock; where the region
//                 doesn't commit, as Silo does, with the lock held that all regions read
//
// Linearization: where the epoch is read. Silo: behind the locks and before validation, all that it
// writes is locked and all that it has read is unchanged at that moment or the validation fails (a
// seq_cst fence separates the three). What was not there was not there at that moment either: a row
// that came and went since the first look is still in the index, with a stamp that says so
// (table.hpp). DBX: the region's commit.
//
// Both at once are right too (a region next to a fallback): a region reads the stamps of all that
// it touches, so it aborts when one of them is locked, and fails when one is locked already; hence
// regions needn't read a global lock. DBX has one all the same, so that the fallback runs alone and
// ends: papers/003 section 7.1 and its code's budgets (dbx_budgets, internal/sync/retry.hpp).
//
// No deadlock: locks are taken in one order, and nobody waits for anything else while holding one.
// A transaction that fails has met one that committed or is about to, or that failed to lock or
// validate at the same time: the back-off of transact() parts those.
//
// From: Silo, section 4.4; DBX (Wang et al., EuroSys 2014), as papers/003 section 7 uses it.
// Deviations: versions for snapshots are allocated before anything is locked (rule 3 of the house).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
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

// Whether a row that had this stamp has to be kept for snapshots, when it is overwritten in that
// epoch.
inline bool wants_version(const record& row, commit_stamp had, std::uint64_t epoch) noexcept {
  if (had.epoch() >= epoch) return false;
  // a snapshot must find that it was not there between two lives
  return !had.absent() || row.has_versions();
}

// So that no allocation is needed later, mostly: what is missing then is allocated here at the next
// try.
inline void provide_versions(transaction_context& t, commit_clock& epochs) {
  const std::uint64_t epoch = epochs.now();
  bool any = false;
  for (transaction_context::write& w : t.writes()) {
    if (w.spare != nullptr || !wants_version(*w.row, w.row->stamp(), epoch)) continue;
    w.spare = w.of->make_version();
    any = true;
  }
  if (any) epochs.move_horizon();  // so that what is kept is no more than needed
}

// What it has read is as it was. `own_lock`: its own writes are locked now, and have their former
// stamps in `had`.
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

// The largest stamp among what it has read and writes.
inline commit_stamp newest(transaction_context& t) noexcept {
  std::uint64_t time = 0;
  for (const transaction_context::read& r : t.reads()) time = std::max(time, r.seen.time());
  for (const transaction_context::write& w : t.writes()) time = std::max(time, w.had.time());
  return commit_stamp(time << commit_stamp::state_bits);
}

// In that epoch, after `before`.
inline commit_stamp stamp_after(commit_stamp before, std::uint64_t epoch) noexcept {
  return before.epoch() < epoch ? commit_stamp(epoch, 0) : commit_stamp(epoch, before.number() + 1);
}

// Whether a commit has locked its records, or runs in a hardware region, which has no waiters.
enum class commit_by : std::uint8_t { locks, region };

// Puts the new rows in place.
template <commit_by How>
void write_rows(transaction_context& t, commit_stamp stamp, commit_clock& epochs) noexcept {
  epochs.note_commit(stamp.epoch());
  const std::uint64_t horizon = epochs.horizon();
  for (transaction_context::write& w : t.writes()) {
    if (wants_version(*w.row, w.had, stamp.epoch()))
      w.row->keep_version(*std::exchange(w.spare, nullptr), w.had, w.of->row_words());
    if (w.words != nullptr) w.row->write({w.words, w.of->row_words()});
    if (w.row->has_versions()) w.cut_off = w.row->cut_versions(horizon, stamp);
    const commit_stamp now = w.words != nullptr ? stamp : stamp.as_absent();
    if constexpr (How == commit_by::locks) {
      w.row->unlock(now);
    } else {
      w.row->replace_stamp(now);
    }
  }
}

inline bool is_last_of(commit_stamp before, std::uint64_t epoch) noexcept {
  return before.epoch() == epoch && before.number() == commit_stamp::number_max;
}

inline bool lacks_version(transaction_context& t, std::uint64_t epoch) noexcept {
  return std::any_of(t.writes().begin(), t.writes().end(),
                     [&](const transaction_context::write& w) {
                       return w.spare == nullptr && wants_version(*w.row, w.had, epoch);
                     });
}

enum class locking : std::uint8_t { locked, conflict, lacks_version, out_of_numbers };

// The new rows' stamp, unless something is missing for them. All that the transaction writes is
// locked, or the caller is in a region.
inline locking stamp_for(transaction_context& t, std::uint64_t epoch,
                         commit_stamp& stamp) noexcept {
  const commit_stamp before = newest(t);
  if (is_last_of(before, epoch)) return locking::out_of_numbers;
  if (lacks_version(t, epoch)) return locking::lacks_version;
  stamp = stamp_after(before, epoch);
  return locking::locked;
}

// How a hardware region begins that commits or locks: it reads the epoch and validates all reads,
// with no lock among its writes. What it has read so stays in the region's read set.
inline locking validate_in_region(transaction_context& t, const commit_clock& epochs,
                                  commit_stamp& stamp) {
  const std::uint64_t epoch = epochs.now();
  for (transaction_context::write& w : t.writes()) {
    w.had = w.row->stamp();
    if (w.had.locked() || w.had.dead()) return locking::conflict;
  }
  if (!reads_hold(t, false) || !t.observations_hold()) return locking::conflict;
  return stamp_for(t, epoch, stamp);
}

// Silo's protocol: locks the write set row by row, then validates the read set. If the result is
// not `locked`, or if it throws, no row stays locked.
inline locking lock_one_by_one(transaction_context& t, const commit_clock& epochs,
                               commit_stamp& stamp) {
  auto& writes = t.writes();
  const auto unlock = [&](std::size_t many) {
    for (std::size_t i = 0; i < many; ++i) writes[i].row->unlock(writes[i].had);
  };
  for (std::size_t i = 0; i < writes.size(); ++i) {
    writes[i].had = writes[i].row->lock();
    if (!writes[i].had.dead()) continue;
    unlock(i + 1);
    return locking::conflict;
  }
  // 2 of commit_clock.hpp: locked before, validated after
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint64_t epoch = epochs.now();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool holds = reads_hold(t, true);
  try {
    holds = holds && t.observations_hold();
  } catch (...) {
    unlock(writes.size());
    throw;
  }
  const locking result = holds ? stamp_for(t, epoch, stamp) : locking::conflict;
  if (result != locking::locked) unlock(writes.size());
  return result;
}

// A commit that locks, by lock(stamp), before it writes.
template <class Lock>
commit_result commit_by_locks(transaction_context& t, commit_clock& epochs, Lock&& lock) {
  t.sort_writes();
  t.seal_for_log();
  for (;;) {
    provide_versions(t, epochs);
    const commit_clock::commit_phase phase(epochs);
    // mostly the right one: then it costs nothing where rows are locked
    epochs.note_commit(epochs.now());
    commit_stamp stamp;
    switch (lock(stamp)) {
      case locking::locked:
        t.committed_with(stamp);
        write_rows<commit_by::locks>(t, stamp, epochs);
        return commit_result::committed;
      case locking::conflict:
        return commit_result::conflict;
      case locking::out_of_numbers:
        epochs.advance();
        break;
      case locking::lacks_version:
        break;
    }
  }
}

class silo_commit {
 public:
  commit_result operator()(transaction_context& t, commit_clock& epochs) {
    return commit_by_locks(t, epochs,
                           [&](commit_stamp& stamp) { return lock_one_by_one(t, epochs, stamp); });
  }
};

// RetryPolicy and Htm as in elided.hpp.
template <class RetryPolicy = dbx_budgets, class Htm = htm::native>
class dbx_commit {
 public:
  // Chosen, as DBX has them: what notes more takes the lock at once.
  static constexpr std::size_t region_reads_max = 128;
  static constexpr std::size_t region_writes_max = 64;

  dbx_commit() noexcept { name_memory(&lock_.underlying(), sizeof(ttas_lock), "commit's lock"); }

  commit_result operator()(transaction_context& t, commit_clock& epochs) {
    if (t.reads().size() > region_reads_max || t.writes().size() > region_writes_max) {
      const std::lock_guard guard(lock_.underlying());
      return fallback_(t, epochs);
    }
    t.seal_for_log();
    for (;;) {
      provide_versions(t, epochs);
      // mostly the right one: then the region has nothing to write there
      epochs.note_commit(epochs.now());
      const internal::locking result =
          t.is_logged() ? commit_for_log(t, epochs) : commit_once(t, epochs);
      if (result == internal::locking::conflict) return commit_result::conflict;
      if (result == internal::locking::locked) return commit_result::committed;
      if (result == internal::locking::out_of_numbers) epochs.advance();
    }
  }

  lock_counts region_counts() const noexcept { return lock_.stats(); }

 private:
  // The log waits for what has been committed in an epoch and is not in its queue yet, which is for
  // after the region.
  internal::locking commit_for_log(transaction_context& t, commit_clock& epochs) {
    const commit_clock::commit_phase phase(epochs);
    return commit_once(t, epochs);
  }
  // `locked` means that the rows are there.
  internal::locking commit_once(transaction_context& t, commit_clock& epochs) {
    commit_stamp stamp;
    bool fell_back = false;
    const internal::locking result = lock_.run([&] {
      if (Htm::test()) return as_region(t, epochs, stamp);
      fell_back = true;
      return fallback_(t, epochs) == commit_result::committed ? internal::locking::locked
                                                              : internal::locking::conflict;
    });
    if (result == internal::locking::locked && !fell_back) t.committed_with(stamp);
    return result;
  }

  // Without a log it needs no commit_phase: the clock is in the region's read set, so it still
  // shows this epoch when the region commits, and whoever finds a later one comes after that.
  static internal::locking as_region(transaction_context& t, commit_clock& epochs,
                                     commit_stamp& stamp) {
    const internal::locking result = validate_in_region(t, epochs, stamp);
    if (result == internal::locking::locked)
      internal::write_rows<commit_by::region>(t, stamp, epochs);
    return result;
  }

  silo_commit fallback_;
  elided<ttas_lock, RetryPolicy, Htm> lock_;
};

}  // namespace elidex::internal
