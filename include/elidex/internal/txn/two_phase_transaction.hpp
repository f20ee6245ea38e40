// A transaction under two-phase locking. It locks rows before it writes them, and at level
// serializable before it reads them. It holds its locks until it ends.
//
//   basic_database<two_phase_locking<>> db;               // two_phase_locking.hpp
//   // the functions of transaction.hpp
//   db.transact(isolation::repeatable_read, [&](auto& t) {
//     const auto a = t.get(accounts, 1);  // no lock, a snapshot: InnoDB's consistent read
//     t.update(accounts, 1, [](account& row) { ... });  // locks, and changes the newest row
//   });
//
// Isolation levels
//   read_uncommitted  As read_committed: uncommitted rows are never visible.
//   read_committed    get() sees the newest committed row. Each scan() sees one moment of its own.
//                     No locks.
//   repeatable_read   get() and scan() see one moment, that of the first of them. No locks.
//   serializable      Reads take shared locks of rows and gaps, and see the newest rows.
// At every level update(), erase(), insert() and upsert() lock the row and see its newest version,
// and a transaction sees its own writes.
// Like InnoDB, repeatable_read allows
// - a lost update by get() and upsert(),
// - write skew,
// - an update() that sees what get() did not see.
// A reader sees no phantoms. But two transactions that count rows and then insert may both do so.
//
// The victim of a deadlock, or a transaction whose wait times out, is doomed. Its call throws
// lock_refused, which is not a std::exception. Every later call throws it again, and the commit
// refuses. Then the function runs again.
//
// Thread-safety: belongs to one thread.
// Errors:
//   those of errors.hpp
//   std::logic_error   a table of another database, before anything is noted or locked
//   std::bad_alloc
//   std::system_error  more threads than the lock system has transactions
//   others             what Key and the caller's functions throw
//
// Implementation notes
// The writes stay in the transaction's notes, as in transaction.hpp, until the commit installs
// them. A row is locked exclusively when it is first written. The lock is implicit if no other
// transaction wants the row.
//
// --- Why locked records stay
//
// A lock's name contains the record's address, so it is meaningful only while the record is in its
// index. The transaction holds no epoch_pin while it waits or between two calls. Instead, a locked
// record is not unlinked, and a record that was waited for is looked up again.
//   unlinking  Locks the record's word, then asks whether a lock exists on the record or the gap.
//              If not, it marks the word dead.
//   locking    Gets the lock, then looks at the word, and waits while the word is locked. If the
//              word is dead, it starts over.
// Both ask under the latch of the record's queue. If the lock came first, the unlinking thread sees
// it and keeps the record. If not, the word was locked before that latch was released, so the
// transaction that gets the lock sees the word locked or dead.
// A lock of a dead record stays with its owner until the end and does no harm. Memory that is used
// for a new record is locked by its maker before the record becomes visible, in the lock system's
// ordinary way. If another transaction still has such an old lock, the maker is refused.
//
// --- Why there are no phantoms
//
// A reader locks the gap before each record that it finds in its range. It also locks the gap
// before the first record after the range (or the table's end). A descending scan locks that gap
// first. A scan that its visitor ends has locked what it has passed, and the gap before its last
// record. An inserter asks for the gap that its record falls into. No page latch protects the time
// between the two. Instead
//   inserter  Puts its record, locked and absent, into the index. Then it asks for the gaps of the
//             records behind it, one after the other. It stops at the first record that was ever
//             committed, or that it has inserted itself and asked for before, or at the table's
//             end.
//   reader    Gets its locks. Then it looks at the index again, and locks what is new, until a look
//             finds nothing new.
// Let R be a reader with all its locks, E a record inserted into one of R's gaps, and X the record
// behind that gap.
// 1. Both take the latch of X's queue. R takes it for its lock, before its last look. The inserter
//    of E takes it when it asks for X, after its insertion. If the inserter came first, R's last
//    look finds E, and R waits for the lock of E's writer. If R came first, the inserter sees R's
//    lock and waits for R's end.
// 2. The inserter of E does ask for X. X is in the index as long as R runs (see above). Of the
//    inserters that stop before X, take the one that asked first. It stops at a record B between E
//    and X that was committed or asked for. R's last look did not find B, so B came later. B's
//    inserter had asked before. That contradicts the choice, unless B's inserter asked for X, and
//    so waited for R.
// A record that was never committed does not end the inserter's walk, because its inserter may be
// one of those that wait. A record that was committed once and is absent now is locked itself by
// every reader that passes it. So inserting it again needs only its own lock.
//
// Sources: paper 004 section 4.1 and InnoDB's isolation levels. Deviations:
// - A read view is a commit group (commit_clock.hpp), and a thread has one at a time. The order of
//   commits decides which of them a view contains, not a list of running transactions. read_only()
//   inside a transaction that has a view is refused.
// - Below serializable, locking reads lock records only, not the gaps before them. There is no scan
//   with exclusive locks.
// - A transaction that waits to insert has its record in the index already. A serializable reader
//   that reads the same gap twice, and finds the record there, waits for its inserter. The inserter
//   waits for the reader. InnoDB does not have this deadlock. It ends as any other. We tried to
//   take the record out of the index for the wait. Two such waiters then let each other's scans in
//   again and again, without end on the simulated machine.
// - A scan locks up to four times as many records as it visits, because it takes them in groups
//   that grow from one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "elidex/internal/locking/lock_system.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/txn/commit_clock.hpp"
#include "elidex/internal/txn/errors.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/table.hpp"
#include "elidex/internal/txn/table_scans.hpp"
#include "elidex/internal/txn/transaction_context.hpp"
#include "elidex/internal/visitor.hpp"

namespace elidex::internal {

// How readers prevent phantoms. Any other policy is a planted bug of a test.
struct looks_again {
  static constexpr bool after_locking = true;
};

// Thrown out of a transaction's function so that the function runs again. It is not an error. A
// function that catches it changes nothing: the transaction stays doomed.
struct lock_refused {};

// Derived from the record's address: a heap number for each possible place of a record, and a page
// for each 16 KiB, or 8 KiB if rows vary.
inline record_address lock_address(const table_base& table, const record& row) noexcept {
  const std::uint64_t distance = table.record_distance();
  const std::uint64_t page_bytes = record_address::heap_numbers * distance;
  const auto address = reinterpret_cast<std::uintptr_t>(&row);
  return {.space = table.locking().space,
          .heap = static_cast<std::uint32_t>(address % page_bytes / distance),
          .page = address / page_bytes};
}
// Names the gap behind the last record. No record's page is 0.
inline record_address end_of_table(const table_base& table) noexcept {
  return {.space = table.locking().space, .heap = 0, .page = 0};
}

template <class LockSystem, class Phantoms = looks_again>
class two_phase_transaction : private transaction_context,
                              public table_scans<two_phase_transaction<LockSystem, Phantoms>> {
 public:
  // The memory of a transaction, for the thread's next one to use again.
  class memory;

  // `database` is the address of the owner of the tables, or null for tables without a database.
  two_phase_transaction(
      memory& of, isolation level, LockSystem& locks, commit_clock& clock,
      std::chrono::nanoseconds wait_for, const void* database = nullptr,
      std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max())
      : transaction_context(of.notes_, level, database, unpinned()),
        locks_(of.locks_of(locks)),
        tables_(of.tables_),
        clock_(clock),
        wait_for_(wait_for),
        deadline_(deadline) {
    tables_.clear();
    locks_.wait_for_turn(longest_wait());
    locks_.begin();
  }
  ~two_phase_transaction() { locks_.end(); }
  two_phase_transaction(const two_phase_transaction&) = delete;
  two_phase_transaction& operator=(const two_phase_transaction&) = delete;

  using savepoint = transaction_context::savepoint;
  // Returns a moment to which rollback_to() can return. Throws std::bad_alloc.
  savepoint set_savepoint() { return transaction_context::set_savepoint(); }
  // Undoes what the transaction has written since then. Its reads still count. `to` stays valid.
  // Throws std::logic_error inside a function of update(), and for a savepoint of another
  // transaction, or one that an earlier rollback_to() has undone. Then nothing changes.
  void rollback_to(const savepoint& to) { transaction_context::rollback_to(to); }

  // Returns a copy of the row, or std::nullopt.
  template <class Table, class Key>
  std::optional<typename Table::row_type> get(Table& table, const Key& key);

  // Throws duplicate_key if the key is present. Then the present row is locked.
  template <class Table, class Key>
  void insert(Table& table, const Key& key, const typename Table::row_type& row);

  // Writes the row whether or not the key is present.
  template <class Table, class Key>
  void upsert(Table& table, const Key& key, const typename Table::row_type& row);

  // Calls change(row&). Returns false if the key is absent.
  template <class Table, class Key, value_change<typename Table::row_type> Fn>
  bool update(Table& table, const Key& key, Fn&& change);
  // Calls change(i, row&) for each key that is present, in the order of `keys`. `i` is the key's
  // index in the range. Returns how many keys are present. The rows are locked in the order
  // of `keys`, so transactions with other orders may deadlock. If `change` throws, the transaction
  // keeps the changes of earlier rows. A key that occurs twice is changed twice.
  template <class Table, std::ranges::input_range Keys, change_of_many<typename Table::row_type> Fn>
  std::size_t multi_update(Table& table, Keys&& keys, Fn&& change) {
    std::size_t present = 0;
    std::size_t i = 0;
    for (const auto& key : this->template arguments_of<Table>(keys)) {
      if (update(table, key, [&](typename Table::row_type& row) { change(i, row); })) ++present;
      ++i;
    }
    return present;
  }
  // Removes the row. Returns false if the key is absent.
  template <class Table, class Key>
  bool erase(Table& table, const Key& key);
  // Erases the rows of a range. Returns their number.
  template <class Table, class Bounds>
    requires bounds_of<Bounds, typename Table::key_type>
  std::size_t erase(Table& table, const Bounds& which) {
    return erase_range(*this, table, which, [&](const auto& key) { return erase(table, key); });
  }

 private:
  friend transaction_access;
  friend table_scans<two_phase_transaction>;
  template <class Latches, class Rule>
  friend class two_phase_locking;

  // --- for the policy

  bool is_doomed() const noexcept { return doomed_; }
  // Gives up the snapshot and pins, so that no record is freed until this is destroyed, even if it
  // is unlinked.
  void prepare_commit() {
    snapshot_.reset();
    pin();
  }
  void end_locks() noexcept { locks_.end(); }

  template <class Key>
  struct row_seen {
    const record* row;
    Key key;
    std::size_t first_word;
    std::size_t words;  // 0: the snapshot sees no row
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
  // Returns true if the lock is granted. Returns false if the request waits: the caller then calls
  // wait() without a pin. Otherwise throws lock_refused.
  bool granted(lock_outcome outcome) {
    if (outcome == lock_outcome::granted) return true;
    if (outcome != lock_outcome::waiting) refuse();
    return false;
  }
  std::chrono::nanoseconds longest_wait() const {
    using clock = std::chrono::steady_clock;
    if (deadline_ == clock::time_point::max()) return wait_for_;
    return std::clamp<std::chrono::nanoseconds>(deadline_ - clock::now(),
                                                std::chrono::nanoseconds::zero(), wait_for_);
  }
  void wait() {
    if (locks_.wait(longest_wait()) != lock_outcome::granted) refuse();
  }
  void lock_table(const table_base& table, lock_mode mode) {
    check_not_doomed();
    const std::uint32_t space = table.locking().space;
    for (const auto& [held, as] : tables_) {
      if (held == space && is_stronger_or_equal(as, mode)) return;
    }
    if (locks_.lock_table(space, mode, longest_wait()) != lock_outcome::granted) refuse();
    tables_.emplace_back(space, mode);
  }

  // Whether a record that has just been locked is dead. Then the caller starts over.
  static bool is_gone(const record& r) noexcept { return r.unlocked_stamp().dead(); }
  static bool was_ever_committed(const record& r) noexcept {
    const commit_stamp now = r.stamp();
    return !now.dead() && now.as_locked() != commit_stamp().as_locked();
  }

  // Returns the record of the key, locked, or null if there is none. With `and_absence`, none will
  // be inserted before this transaction ends.
  template <class Table>
  record* lock_existing(Table& table, typename Table::key_argument key, lock_mode mode,
                        bool and_absence);
  // As lock_existing(), for the record that `find` returns. `find` makes and locks a record if
  // there is none.
  template <class Table, class Find>
  record& lock_or_make(Table& table, const Find& find);
  template <class Table>
  auto locking_what_is_made(Table& table, const record*& made) {
    return [this, &table, &made](record& fresh) {
      // This cannot wait, because the caller is pinned. It is refused if another transaction still
      // has a lock of the record that was in this memory before.
      if (locks_.write_record(lock_address(table, fresh), fresh.writer(),
                              std::chrono::nanoseconds::zero()) != lock_outcome::granted)
        refuse();
      made = &fresh;
    };
  }
  // Locks the gap into which the key falls. Returns false if the key is present. The caller is
  // pinned. Never waits.
  template <class Table>
  bool lock_gap(Table& table, typename Table::key_argument key);
  void lock_gap_before(const table_base& table, const record* next) {
    granted(
        locks_.request_record(next != nullptr ? lock_address(table, *next) : end_of_table(table),
                              lock_mode::shared, lock_kind::gap));
  }
  // Returns the first record behind the range, or null. The caller is pinned.
  template <class Table>
  static const record* first_behind(const Table& table, const typename Table::range& which) {
    const record* first = nullptr;
    if (!which.upper) return first;
    typename Table::range behind;
    behind.lower = which.upper;
    behind.without_lower = which.with_upper;
    table.walk(behind, [&](const record* one) {
      first = one;
      return false;
    });
    return first;
  }
  // Locks the first `wanted` records of `rest`, in its direction, and the gaps between them. With
  // `begins`, nothing of the range is locked yet. Otherwise the record at which `rest` begins is.
  // Returns true if it reached the end of the range.
  template <class Table>
  bool lock_next(Table& table, const typename Table::range& rest, bool begins, std::size_t wanted,
                 std::vector<record*>& locked);
  // Asks whether a record that is in the index may be inserted there, and waits until it may.
  template <class Table>
  void ask_for_gap(Table& table, const record& inserted);

  // --- rows

  // For a locked record, which is not dead. Returns an empty span if there is no row.
  std::span<const std::uint64_t> read_locked(record& r) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): not dead, so read
    return *read_record(r, false);
  }
  // Returns an empty span if there is no row. Overwrites last_row_.
  std::span<const std::uint64_t> read_snapshot(const record& from) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the caller reads a moment, so it has one
    const record::seen_row seen = from.read_as_of(snapshot_->group(), last_row_);
    note_seen(seen.stamp);
    return seen.words;
  }
  // To be called after make_room().
  template <class Table>
  void write_locked(Table& table, record& r, std::span<const std::uint64_t> words,
                    commit_stamp had) {
    if (had == commit_stamp()) {
      try {
        ask_for_gap(table, r);
      } catch (...) {
        table.note_absent(r);  // locked, so it is still in the index
        throw;
      }
    }
    note_write(table, r, words, had.absent());
    locks_.add_changes(1);
  }
  // One by one, because each row is locked before the next key is searched.
  template <class Table, class Fn>
  void get_all(Table& table, std::span<const typename Table::key_argument> keys, Fn&& fn) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (auto row = get(table, keys[i])) fn(i, *std::move(row));
    }
  }
  template <class Table, class Fn>
  void scan_range(Table& table, const typename Table::range& which, Fn& fn);
  template <class Table, class Fn>
  void scan_locked(Table& table, typename Table::range rest, Fn& fn);
  template <class Table, class Fn>
  void scan_snapshot(Table& table, typename Table::range rest, Fn& fn);

  // Chosen: only a scan's last group may be locked needlessly, and a group of this size is worth a
  // look at the index.
  static constexpr std::size_t locked_at_once_max = 64;
  static constexpr std::size_t seen_at_once_max = 64;

  typename LockSystem::transaction& locks_;
  std::vector<std::pair<std::uint32_t, lock_mode>>& tables_;  // locked by this transaction
  commit_clock& clock_;
  const std::chrono::nanoseconds wait_for_;
  const std::chrono::steady_clock::time_point deadline_;
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

// --- bodies ---

// --- locks ---

template <class LockSystem, class Phantoms>
template <class Table>
record* two_phase_transaction<LockSystem, Phantoms>::lock_existing(Table& table,
                                                                   typename Table::key_argument key,
                                                                   lock_mode mode,
                                                                   bool and_absence) {
  for (;; wait()) {
    const epoch_pin pinned;
    for (;;) {
      record* const found = table.find(key);
      if (found == nullptr) {
        if (!and_absence || lock_gap(table, key)) return nullptr;
        continue;
      }
      if (own(*found) != nullptr) return found;
      const record_address at = lock_address(table, *found);
      auto& writer = found->writer();
      const lock_outcome outcome = mode == lock_mode::exclusive
                                       ? locks_.request_write(at, writer)
                                       : locks_.request_record(at, mode, lock_kind::record, writer);
      if (!granted(outcome)) break;
      if (!is_gone(*found)) return found;
    }
  }
}

template <class LockSystem, class Phantoms>
template <class Table, class Find>
record& two_phase_transaction<LockSystem, Phantoms>::lock_or_make(Table& table, const Find& find) {
  for (;; wait()) {
    const epoch_pin pinned;
    for (;;) {
      const record* made = nullptr;
      record& found = *find(locking_what_is_made(table, made));
      if (&found == made || own(found) != nullptr) return found;
      if (!granted(locks_.request_write(lock_address(table, found), found.writer()))) break;
      if (!is_gone(found)) return found;
    }
  }
}

template <class LockSystem, class Phantoms>
template <class Table>
bool two_phase_transaction<LockSystem, Phantoms>::lock_gap(Table& table,
                                                           typename Table::key_argument key) {
  typename Table::range below;
  below.upper.emplace(key);
  const record* locked = nullptr;
  bool looked_before = false;
  for (;;) {
    const record* const next = first_behind(table, below);
    if (next != nullptr && key_words<typename Table::key_type>::of(next->key()) == key)
      return false;
    if (looked_before && next == locked) return true;
    lock_gap_before(table, next);
    looked_before = next == nullptr || !is_gone(*next);
    locked = next;
    if (!Phantoms::after_locking && looked_before) return true;
  }
}

template <class LockSystem, class Phantoms>
template <class Table>
bool two_phase_transaction<LockSystem, Phantoms>::lock_next(Table& table,
                                                            const typename Table::range& rest,
                                                            bool begins, std::size_t wanted,
                                                            std::vector<record*>& locked) {
  std::optional<const record*> gap_before;  // the locked gap is before it (null: the end)
  std::vector<record*> found;
  locked.clear();
  for (;;) {
    bool news = false;
    bool waits = false;
    bool all = false;
    const auto lock_gap_behind_range = [&](const record* next) {
      if (gap_before == next) return;
      lock_gap_before(table, next);
      news = true;
      if (next == nullptr || !is_gone(*next)) gap_before = next;
    };
    const auto look = [&](record* one) {
      // Locked records stay in the index, so the records of the previous look come again in their
      // order.
      if (const std::size_t at = found.size(); at >= locked.size() || locked[at] != one) {
        const auto known = std::find(locked.begin(), locked.end(), one);
        if (known == locked.end()) {
          news = true;
          waits = !granted(locks_.request_record(lock_address(table, *one), lock_mode::shared,
                                                 lock_kind::next_key, one->writer()));
          if (waits || is_gone(*one)) return false;
        }
      }
      found.push_back(one);
      return found.size() < wanted;
    };
    {
      const epoch_pin pinned;
      found.clear();
      if (rest.descends) {
        if (begins) lock_gap_behind_range(first_behind(table, rest));
        all = table.walk(rest, look);
      } else {
        // One walk finds the records of the range and the first one behind it.
        typename Table::range without_end = rest;
        without_end.upper.reset();
        const record* behind = nullptr;
        const bool to_the_last = table.walk(without_end, [&](record* one) {
          if (!rest.ends_before(key_words<typename Table::key_type>::of(one->key())))
            return look(one);
          behind = one;
          return false;
        });
        all = to_the_last || behind != nullptr;
        if (all) lock_gap_behind_range(behind);
      }
      locked.swap(found);
    }
    if (waits) {
      wait();
    } else if (!news || !Phantoms::after_locking) {
      return all;
    }
  }
}

template <class LockSystem, class Phantoms>
template <class Table>
void two_phase_transaction<LockSystem, Phantoms>::ask_for_gap(Table& table,
                                                              const record& inserted) {
  const auto may_insert_before = [&](const record_address& at) {
    return granted(locks_.request_record(at, lock_mode::exclusive, lock_kind::insert_intention));
  };
  for (;; wait()) {
    const epoch_pin pinned;
    bool may = true;
    const auto ask = [&](const record* one) {
      if (one == &inserted) return true;
      may = may_insert_before(lock_address(table, *one));
      return may && !was_ever_committed(*one) && own(*one) == nullptr;
    };
    const bool to_the_end =
        table.walk(key_words<typename Table::key_type>::of(inserted.key()), ask);
    if (to_the_end) may = may_insert_before(end_of_table(table));
    if (may) return;
  }
}

// --- rows ---

template <class LockSystem, class Phantoms>
template <class Table, class Key>
std::optional<typename Table::row_type> two_phase_transaction<LockSystem, Phantoms>::get(
    Table& table, const Key& key) {
  check_is_ours(table);
  check_not_doomed();
  const typename Table::key_argument wanted = argument<Table>(key);
  std::span<const std::uint64_t> words;
  if (reads_with_locks()) {
    lock_table(table, lock_mode::intention_shared);
    const record* const found = lock_existing(table, wanted, lock_mode::shared, true);
    if (found != nullptr) words = read_locked(const_cast<record&>(*found));
    if (words.empty()) return std::nullopt;
    return table.row_of(words);
  }
  if (reads_one_moment() && !snapshot_) snapshot_.emplace(clock_);
  const epoch_pin pinned;
  if (reads_one_moment()) {
    const record* const found = table.find(wanted);
    if (found == nullptr) return std::nullopt;
    if (own(*found) == nullptr) {
      words = read_snapshot(*found);
      if (words.empty()) return std::nullopt;
      return table.row_of(words);
    }
  }
  words = find_row(table, wanted, false).words;
  if (words.empty()) return std::nullopt;
  return table.row_of(words);
}

template <class LockSystem, class Phantoms>
template <class Table, class Key>
void two_phase_transaction<LockSystem, Phantoms>::insert(Table& table, const Key& key,
                                                         const typename Table::row_type& row) {
  check_is_ours(table);
  lock_table(table, lock_mode::intention_exclusive);
  make_room();
  const std::span<const std::uint64_t> words = words_of(table, row);
  record& r = lock_or_make(table, [&](const auto& lock_made) {  //
    return table.get_or_create(key_likely_is::absent, argument<Table>(key), words.size(),
                               lock_made);
  });
  if (write* const mine = own(r)) {
    if (!mine->erases())
      throw duplicate_key(table.name() +
                          ": insert: key is present (expected an absent key, or upsert())");
    overwrite(*mine, words);
    return;
  }
  const commit_stamp had = r.unlocked_stamp();
  note_seen(had);
  if (!had.absent())
    throw duplicate_key(table.name() +
                        ": insert: key is present (expected an absent key, or upsert())");
  write_locked(table, r, words, had);
}

template <class LockSystem, class Phantoms>
template <class Table, class Key>
void two_phase_transaction<LockSystem, Phantoms>::upsert(Table& table, const Key& key,
                                                         const typename Table::row_type& row) {
  check_is_ours(table);
  lock_table(table, lock_mode::intention_exclusive);
  make_room();
  const std::span<const std::uint64_t> words = words_of(table, row);
  record& r = lock_or_make(table, [&](const auto& lock_made) {  //
    return table.get_or_create(key_likely_is::present, argument<Table>(key), words.size(),
                               lock_made);
  });
  if (write* const mine = own(r)) {
    overwrite(*mine, words);
    return;
  }
  write_locked(table, r, words, r.unlocked_stamp());
}

template <class LockSystem, class Phantoms>
template <class Table, class Key, value_change<typename Table::row_type> Fn>
bool two_phase_transaction<LockSystem, Phantoms>::update(Table& table, const Key& key,
                                                         Fn&& change) {
  check_is_ours(table);
  lock_table(table, lock_mode::intention_exclusive);
  record* const r =
      lock_existing(table, argument<Table>(key), lock_mode::exclusive, reads_with_locks());
  if (r == nullptr) return false;
  const std::span<const std::uint64_t> words = read_locked(*r);
  if (words.empty()) return false;
  // the locked row stays as it is
  const std::span<const std::uint64_t> before = kept_for_log(words);
  auto row = table.row_of(words);
  {
    const running_update guard(*this);
    change(row);
  }
  make_room();
  const std::span<const std::uint64_t> changed = words_of(table, row);
  if (write* const mine = own(*r)) {
    overwrite(*mine, changed);
  } else {
    write_locked(table, *r, changed, r->unlocked_stamp());
    writes().back().before = before;
  }
  return true;
}

template <class LockSystem, class Phantoms>
template <class Table, class Key>
bool two_phase_transaction<LockSystem, Phantoms>::erase(Table& table, const Key& key) {
  check_is_ours(table);
  lock_table(table, lock_mode::intention_exclusive);
  record* const r =
      lock_existing(table, argument<Table>(key), lock_mode::exclusive, reads_with_locks());
  if (r == nullptr || read_locked(*r).empty()) return false;
  make_room();
  if (write* const mine = own(*r)) {
    overwrite(*mine, {});
  } else {
    write_locked(table, *r, {}, r->unlocked_stamp());
  }
  return true;
}

template <class LockSystem, class Phantoms>
template <class Table, class Fn>
void two_phase_transaction<LockSystem, Phantoms>::scan_range(Table& table,
                                                             const typename Table::range& which,
                                                             Fn& fn) {
  check_is_ours(table);
  check_not_doomed();
  if (which.is_empty()) return;
  if (reads_with_locks()) {
    scan_locked(table, which, fn);
    return;
  }
  // The snapshot of this statement, unless the transaction or an outer scan has one.
  struct statement {
    std::optional<commit_clock::snapshot>& snapshot;
    bool ends;
    ~statement() {
      if (ends) snapshot.reset();
    }
  } const scope{snapshot_, !snapshot_ && !reads_one_moment()};
  if (!snapshot_) snapshot_.emplace(clock_);
  scan_snapshot(table, which, fn);
}

template <class LockSystem, class Phantoms>
template <class Table, class Fn>
void two_phase_transaction<LockSystem, Phantoms>::scan_locked(Table& table,
                                                              typename Table::range rest, Fn& fn) {
  using key_type = typename Table::key_type;
  lock_table(table, lock_mode::intention_shared);
  std::vector<record*> locked;
  std::size_t wanted = 1;
  bool begins = true;
  for (bool all = false; !all; begins = false) {
    all = lock_next(table, rest, begins, wanted, locked);
    for (record* const one : locked) {
      const std::span<const std::uint64_t> words = read_locked(*one);
      if (words.empty()) continue;
      const typename Table::key_argument key = key_words<key_type>::of(one->key());
      const auto row = table.row_of(words);
      if (!visits_on(fn, key, row)) return;
    }
    if (all) return;
    rest.continue_behind(key_words<key_type>::of(locked.back()->key()));
    wanted = std::min(wanted * 4, locked_at_once_max);
  }
}

template <class LockSystem, class Phantoms>
template <class Table, class Fn>
void two_phase_transaction<LockSystem, Phantoms>::scan_snapshot(Table& table,
                                                                typename Table::range rest,
                                                                Fn& fn) {
  using key_type = typename Table::key_type;
  using key_argument = typename Table::key_argument;
  std::vector<row_seen<key_type>> seen;
  std::vector<std::uint64_t> rows;
  std::optional<key_type> last;  // the key of the last row seen
  std::size_t wanted = 4;
  for (bool more = true; more;) {
    // No pin while fn runs: rows that the snapshot sees, and locked rows, are not unlinked
    // meanwhile.
    seen.clear();
    rows.clear();
    more = false;
    {
      const epoch_pin pinned;
      table.template walk<walk_reads::rows>(rest, [&](const record* one) {
        if (seen.size() == wanted) {
          more = true;
          return false;
        }
        const std::span<const std::uint64_t> row = read_snapshot(*one);
        if (row.empty() && own(*one) == nullptr) return true;
        seen.push_back(
            {one, key_type(key_words<key_type>::of(one->key())), rows.size(), row.size()});
        rows.insert(rows.end(), row.begin(), row.end());
        return true;
      });
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      std::span<const std::uint64_t> words(rows.data() + seen[i].first_word, seen[i].words);
      if (const write* const mine = own(*seen[i].row)) words = mine->words;
      if (words.empty()) continue;
      const key_argument key = seen[i].key;
      const auto row = table.row_of(words);
      if (!visits_on(fn, key, row)) return;
    }
    if (more) {
      last = std::move(seen.back().key);
      rest.continue_behind(*last);
    }
    wanted = std::min(wanted * 2, seen_at_once_max);
  }
}

}  // namespace elidex::internal
