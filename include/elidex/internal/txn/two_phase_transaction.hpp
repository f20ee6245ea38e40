// A transaction under two-phase locking: locks rows before it writes them (and, serializable,
// before it reads them) and holds them until it ends.
//
//   basic_database<two_phase_locking<>> db;               // two_phase_locking.hpp
//   // the same functions as transaction.hpp has
//   db.transact(isolation::repeatable_read, [&](auto& t) {
//     const auto a = t.get(accounts, 1);  // no lock, a snapshot: InnoDB's consistent read
//     t.update(accounts, 1, [](account& row) { ... });  // locks, and changes the row as it is now
//   });
//
// Writes are kept in the transaction's notes, as in transaction.hpp, and put in place by the
// commit. A row is locked exclusively when it is first written: implicitly where nobody else wants
// it.
//
// Isolation levels
//   read_uncommitted  as read_committed: nothing uncommitted stands anywhere
//   read_committed    get() sees the newest committed row; scan() one moment of its own. No locks
//   repeatable_read   get() and scan() see one moment, that of the first of them. No locks
//   serializable      reads take shared locks of rows and gaps, and see the newest rows
// update(), erase(), insert() and upsert() lock and see the newest row at every level. So
// repeatable_read lets through, as InnoDB does: a lost update by get() and upsert(), write skew,
// and an update() that sees what get() did not. Phantoms are not among what a reader sees, but two
// who count and insert may both do so. All see their own writes.
//
// Whoever is chosen to end a deadlock, or waits for too long, is doomed: the function is left by
// lock_refused, which is no std::exception; every later call throws it again, and the commit
// refuses. Then the function is run again.
//
// --- Why locked records stay
//
// A lock's name is made of the record's address, so it means something only as long as the record
// is in its index. No epoch_pin is held while waiting or between two calls: a record that is locked
// is not unlinked, and one that was waited for is looked up again.
//   unlinking   locks the record's word, then asks whether anybody has a lock on record or gap; if
//               not, marks the word dead
//   locking     gets the lock, then looks at the word, waiting while it is locked; if it is dead,
//               starts over
// Both ask under the latch of the record's queue. If the lock came first, the unlinker sees it and
// lets the record be. If not, the word was locked before that latch was released, so who gets the
// lock sees it locked or dead. A lock of a dead record stays with its owner until the end and does
// no harm: memory that is used for a new record is locked by who makes it before anybody can find
// it, in the lock system's ordinary way; if somebody has such an old lock, the maker is refused.
//
// --- Why there are no phantoms
//
// A reader locks the gap before each record that it finds in its range and that before the first
// one behind (or the table's end), and an inserter asks for the gap that its record falls into.
// Between the two nothing latches a page. Instead
//   the inserter puts its record, locked and absent, into the index; then asks for the gaps of the
//   records behind it, one after the other, up to the first one that has been committed ever, or
//   that it has inserted itself and asked for before (or the table's end) the reader gets its
//   locks; then looks at the index again, and locks what is new, until a look finds nothing new
// Let R be a reader with all its locks, and E a record inserted into one of R's gaps, and X the
// record behind that gap.
// 1. Both take the latch of X's queue: R for its lock, before its last look; the inserter of E when
//    it asks for X, behind its insertion. If the inserter came first, R's last look finds E, and
//    waits for the lock of its writer. If R came first, the inserter sees the lock and waits for
//    R's end.
// 2. The inserter asks for X. X is in the index as long as R runs, see above. Of those that stop
//    earlier, take the one that asked first: it stops at a record B between E and X, that has been
//    committed or asked for. R's last look did not find B; so B came later, and its inserter had
//    asked before: a contradiction, unless it has asked for X, and waited for R.
// Records that nobody has committed don't end the inserter's way because their inserters may be
// those who wait. A record that has been committed once and is absent now is locked itself by those
// who come by, so inserting it again needs only its own lock.
//
// Thread-safety: belongs to one thread. Errors: errors.hpp; std::logic_error for a table of another
// database, before anything is noted or locked; std::bad_alloc; std::system_error with more threads
// than the lock system has transactions; what Key and the caller's functions throw.
// From: papers/004 section 4.1; InnoDB's isolation levels. Deviations:
// - A read view is an epoch (commit_clock.hpp), of which a thread has one at a time: commits are in
//   or out by their order, not by a list of those that ran. read_only() inside of a transaction
//   that has a view is refused.
// - Locking reads lock records only, not the gaps before them, below serializable; there is nothing
//   to scan with exclusive locks.
// - Whoever waits to insert has its record in the index already. A serializable reader that reads
//   the same gap twice and finds it there waits for its inserter, who waits for the reader: a
//   deadlock that InnoDB does not have, ended as any other. (To take the record out of the index as
//   long was tried: two who wait so let each other's scans in again and again, without end on the
//   simulated machine.)
// - A scan locks up to four times as many records as it visits, since it takes them in groups that
//   grow from one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "elidex/internal/locking/lock_system.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/txn/call_visitor.hpp"
#include "elidex/internal/txn/commit_clock.hpp"
#include "elidex/internal/txn/errors.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/table.hpp"
#include "elidex/internal/txn/transaction_context.hpp"

namespace elidex::internal {

// How readers keep phantoms out: the only way that works.
struct looks_again {
  static constexpr bool after_locking = true;
};

// Thrown out of a transaction's function so that it is run again. Not an error: who catches it
// changes nothing.
struct lock_refused {};

// By the address: a page for each 16 KiB, a heap number for each block of the pool.
inline record_address lock_address(const table_base& table, const record& row) noexcept {
  constexpr std::uint64_t page_bytes =
      std::uint64_t{record_address::heap_numbers} * block_pool::block_alignment;
  const auto address = reinterpret_cast<std::uintptr_t>(&row);
  return {.space = table.locking().space,
          .heap = static_cast<std::uint32_t>(address % page_bytes / block_pool::block_alignment),
          .page = address / page_bytes};
}
// What stands for the gap behind the last record: no record's page is 0.
inline record_address end_of_table(const table_base& table) noexcept {
  return {.space = table.locking().space, .heap = 0, .page = 0};
}

template <class LockSystem, class Phantoms = looks_again>
class two_phase_transaction : private transaction_context {
 public:
  // What it needs, for the next one of the thread to use again.
  class memory;

  // `database` is the address of the owner of the tables; null for tables without a database.
  two_phase_transaction(memory& of, isolation level, LockSystem& locks, commit_clock& epochs,
                        std::chrono::nanoseconds wait_for, const void* database = nullptr)
      : transaction_context(of.notes_, level, database, unpinned()),
        locks_(of.locks_of(locks)),
        tables_(of.tables_),
        epochs_(epochs),
        wait_for_(wait_for) {
    tables_.clear();
    locks_.wait_for_turn(wait_for_);
    locks_.begin();
  }
  ~two_phase_transaction() { locks_.end(); }
  two_phase_transaction(const two_phase_transaction&) = delete;
  two_phase_transaction& operator=(const two_phase_transaction&) = delete;

  template <class Table, class Key>
  std::optional<typename Table::row_type> get(Table& table, const Key& key);

  // Throws duplicate_key; then the row that is there is locked.
  template <class Table, class Key>
  void insert(Table& table, const Key& key, const typename Table::row_type& row);

  // Whether it was there or not.
  template <class Table, class Key>
  void upsert(Table& table, const Key& key, const typename Table::row_type& row);

  // False: not there.
  template <class Table, class Key, value_change<typename Table::row_type> Fn>
  bool update(Table& table, const Key& key, Fn&& change);
  template <class Table, class Key>
  bool erase(Table& table, const Key& key);

  // Calls fn(key, row) in the keys' order for keys from `from` up to but without `to`, or to the
  // last one, until it says false, if it says anything.
  template <class Table, class Key, class Fn>
  void scan(Table& table, const Key& from, const Key& to, Fn&& fn) {
    scan_up_to(table, argument<Table>(from),
               std::optional<typename Table::key_type>(argument<Table>(to)), fn);
  }
  template <class Table, class Key, class Fn>
  void scan(Table& table, const Key& from, Fn&& fn) {
    scan_up_to(table, argument<Table>(from), std::nullopt, fn);
  }

 private:
  friend transaction_access;
  template <class Latches, class Rule>
  friend class two_phase_locking;

  // --- for the policy

  bool is_doomed() const noexcept { return doomed_; }
  // The snapshot is given up, and records stay until this is destroyed, whoever unlinks them.
  void prepare_commit() {
    snapshot_.reset();
    pin();
  }
  void end_locks() noexcept { locks_.end(); }

  template <class Key>
  struct row_seen {
    const record* row;
    Key key;
  };

  bool reads_with_locks() const noexcept { return level() == isolation::serializable; }
  bool reads_one_moment() const noexcept { return level() == isolation::repeatable_read; }

  // --- locks

  void check_not_doomed() const {
    if (doomed_) throw lock_refused();
  }
  [[noreturn]] void refuse() {
    doomed_ = true;
    throw lock_refused();
  }
  // True: granted. False: it waits, and wait() is to be called without a pin.
  bool granted(lock_outcome outcome) {
    if (outcome == lock_outcome::granted) return true;
    if (outcome != lock_outcome::waiting) refuse();
    return false;
  }
  void wait() {
    if (locks_.wait(wait_for_) != lock_outcome::granted) refuse();
  }
  void lock_table(const table_base& table, lock_mode mode) {
    check_not_doomed();
    const std::uint32_t space = table.locking().space;
    for (const auto& [held, as] : tables_) {
      if (held == space && is_stronger_or_equal(as, mode)) return;
    }
    if (locks_.lock_table(space, mode, wait_for_) != lock_outcome::granted) refuse();
    tables_.emplace_back(space, mode);
  }

  // Of a record whose lock has just been granted: start over.
  static bool is_gone(const record& r) noexcept { return r.unlocked_stamp().dead(); }
  static bool was_ever_committed(const record& r) noexcept {
    const commit_stamp now = r.stamp();
    return !now.dead() && now.as_locked() != commit_stamp().as_locked();
  }

  // The record of the key, locked. Null: there is none, and, if that was asked for, there will be
  // none before the end.
  template <class Table>
  record* lock_existing(Table& table, typename Table::key_argument key, lock_mode mode,
                        bool and_absence);
  // The same of find(), which makes one if there is none and has locked that.
  template <class Table, class Find>
  record& lock_or_make(Table& table, const Find& find);
  template <class Table>
  auto locking_what_is_made(Table& table, const record*& made) {
    return [this, &table, &made](record& fresh) {
      // Nobody waits here: the caller is pinned. Refused because somebody still has a lock of what
      // was in this memory before.
      if (locks_.write_record(lock_address(table, fresh), fresh.writer(table.row_words()),
                              std::chrono::nanoseconds::zero()) != lock_outcome::granted)
        refuse();
      made = &fresh;
    };
  }
  // The gap into which the key falls. False: the key is there. The caller is pinned. Waits for
  // nobody.
  template <class Table>
  bool lock_gap(Table& table, typename Table::key_argument key);
  void lock_gap_before(const table_base& table, const record* next) {
    granted(
        locks_.request_record(next != nullptr ? lock_address(table, *next) : end_of_table(table),
                              lock_mode::shared, lock_kind::gap));
  }
  // The next records from `from` on, behind `after` if that is not null, as many as wanted. True:
  // up to `to`, or to the last one, and there are no more.
  template <class Table>
  bool lock_next(Table& table, typename Table::key_argument from, const record* after,
                 const std::optional<typename Table::key_type>& to, std::size_t wanted,
                 std::vector<record*>& locked);
  // Asks whether a record that is in the index may be inserted there.
  template <class Table>
  void ask_for_gap(Table& table, const record& inserted);

  // --- rows

  // Of a record that is locked, and so not dead; empty: the row is not there.
  std::span<const std::uint64_t> read_locked(const table_base& table, record& r) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): not dead, so read
    return *read_record(table, r, false);
  }
  commit_stamp read_snapshot(const record& from, std::span<std::uint64_t> into) noexcept {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): who reads a moment has one
    const commit_stamp seen = from.read_as_of(snapshot_->epoch(), into);
    note_seen(seen);
    return seen;
  }
  // Behind make_room().
  template <class Table>
  void write_locked(Table& table, record& r, std::uint64_t* words, commit_stamp had) {
    if (had == commit_stamp()) {
      try {
        ask_for_gap(table, r);
      } catch (...) {
        table.note_absent(r);  // locked, so still there
        throw;
      }
    }
    note_write(table, r, words, had.absent());
    locks_.add_changes(1);
  }
  template <class Table, class Fn>
  void scan_up_to(Table& table, typename Table::key_argument from,
                  const std::optional<typename Table::key_type>& to, Fn& fn);
  template <class Table, class Fn>
  void scan_locked(Table& table, typename Table::key_argument from,
                   const std::optional<typename Table::key_type>& to, Fn& fn);
  template <class Table, class Fn>
  void scan_snapshot(Table& table, typename Table::key_argument from,
                     const std::optional<typename Table::key_type>& to, Fn& fn);

  // Chosen: what a scan visits last is locked needlessly at most, and a look at the index is worth
  // it.
  static constexpr std::size_t locked_at_once_max = 64;
  static constexpr std::size_t seen_at_once_max = 64;

  typename LockSystem::transaction& locks_;
  std::vector<std::pair<std::uint32_t, lock_mode>>& tables_;  // that it has locked
  commit_clock& epochs_;
  const std::chrono::nanoseconds wait_for_;
  std::optional<commit_clock::snapshot> snapshot_;
  bool doomed_ = false;
};

template <class LockSystem, class Phantoms>
class two_phase_transaction<LockSystem, Phantoms>::memory {
 private:
  friend class two_phase_transaction;
  typename LockSystem::transaction& locks_of(LockSystem& system) {
    if (!locks_) locks_.emplace(system);
    return *locks_;
  }
  transaction_context::memory notes_;
  std::optional<typename LockSystem::transaction> locks_;
  std::vector<std::pair<std::uint32_t, lock_mode>> tables_;
};

}  // namespace elidex::internal

#include "elidex/internal/txn/two_phase_transaction_impl.hpp"
