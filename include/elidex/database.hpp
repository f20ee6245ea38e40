// Tables with typed rows in memory, and serializable transactions over them. A write-ahead log in a
// directory is optional.
//
//   struct account { std::int64_t balance; };
//   elidex::database db;
//   auto& accounts = db.create_table<std::uint64_t, account>("accounts");
//   db.transact([&](auto& t) {  // all of it or nothing; may run several times
//     const auto from = t.get(accounts, 1);
//     if (!from || from->balance < 5) return false;  // commits; an exception rolls back
//     t.update(accounts, 1, [](account& a) { a.balance -= 5; });
//     t.update(accounts, 2, [](account& a) { a.balance += 5; });
//     return true;
//   });
//   db.read_only([&](auto& t) {
//     t.scan(accounts, elidex::below(100), [&](auto key, const account& a) { sum += a.balance; });
//   });
//
// A row type is trivially copyable, or ELIDEX_ROW registers its members. Registered members may be
// texts, bytes and optional values (internal/txn/row_members.hpp). A row may also have a schema
// that is known only at run time (internal/txn/schema.hpp).
//
//   struct order { std::uint64_t customer; std::string note; std::optional<double> discount; };
//   ELIDEX_ROW(order, customer, note, discount);  // at namespace scope
//   auto& orders = db.create_table<std::uint64_t, order>("orders");
//
// transact() runs the function, commits, and returns what the function returned. After a conflict
// it backs off and runs the function again. So the function must be safe to repeat, and must pass
// on what it has read only through its result. An exception rolls the transaction back and passes
// through. If the transaction had read outdated rows, the function runs again instead.
// Transactions do not nest in one thread. Take a transaction as `auto&`, so that one function
// works under every commit protocol. It offers:
//
//   get(table, key)             returns std::optional<row>, a copy
//   insert(table, key, row)     throws db::duplicate_key if the key is present
//   upsert(table, key, row)     writes the row whether or not the key is present
//   update(table, key, fn)      calls fn(row&); returns whether the key is present
//   erase(table, key)           returns whether the key was present
//   erase(table, bounds)        erases the rows of a range, and returns their number
//   multi_get(table, keys)      returns a std::vector with what get() returns for each key
//   multi_get(table, keys, fn)  calls fn(i, row) for each key that is present, in the order of
//                               `keys`. `i` is the key's index in `keys`. Returns how many keys are
//                               present
//   multi_update(table, keys, fn)
//                               calls fn(i, row&) in the same way. fn changes the row
//   set_savepoint()             returns a savepoint
//   rollback_to(savepoint)      undoes what the transaction has written since then
//   scan(table, bounds, fn)     calls fn(key, row) for the keys of a range (bounds.hpp), in
//                               ascending or descending order. fn may return false to end the scan
//   scan(table, from, to, fn)   scans the keys of between(from, to)
//   scan(table, key, fn)        scans the keys of from(key)
//
// The transaction of read_only() offers get(), multi_get() and scan().
//
// Isolation: serializable by default. Commits are strictly serializable: transact() and read_only()
// see what was committed before they were called. read_only() sees a snapshot. It never aborts, and
// no writer waits for it. Under the optimistic protocols weaker levels leave out some checks, and
// permit the following. Two-phase locking differs (internal/txn/two_phase_transaction.hpp).
//
//   repeatable_read    phantoms, and write skew through them
//   read_committed     also non-repeatable reads, lost updates of get() and upsert(), read skew and
//                      write skew
//   read_uncommitted   the same as read_committed: uncommitted rows are never visible
//
// update() of one row is atomic at every level. A transaction sees its own writes. Other
// transactions see them after the commit. A transaction reads committed rows, each of them whole,
// but possibly from different moments. From repeatable_read on, the commit detects that, and the
// function runs again. So the function may see an inconsistent state. Its loops must terminate even
// then, and a second read of a row may find another one or none.
//
// Durability: a database lives in memory until open() gives it a directory.
//
//   auto& accounts = db.create_table<std::uint64_t, account>("accounts");  // before open()
//   db.open("bank", {.level = elidex::db::durability::sync});  // loads the directory's rows
//   db.transact(...);                                          // sync: durable when it returns
//   db.checkpoint();                                           // shortens the log
//   db.backup("copy");                                         // a copy that open() accepts
//   db.update_backup("copy");                                  // adds what has been logged since
//   auto& now = db.change_table<account_2>(accounts, since);   // other columns
//   db.close();                                                // async: makes the rest durable
//
// Other processes may follow a directory while this one writes it:
//
//   follower.follow("bank");  // in place of open()
//   follower.catch_up();      // applies what has become durable since
//   follower.read_only(...);
//
// The level says what a crash may lose:
//   none   open() loads the directory. Nothing is written.
//   async  A crash may lose the transactions of the last `group_time` and of one running fsync. It
//          never loses a part of a transaction. It never loses a transaction whose writes a
//          surviving transaction has read.
//   sync   transact() and read_only() return when everything that they wrote and read is durable.
//
// A database with a log also writes checkpoints by itself (storage_options::checkpoint_bytes,
// checkpoint_time), in a thread of its own. close() waits for the one that is being written.
//
// Thread-safety: any thread may call any member, with three exceptions. open(), follow() and the
// destructor must run alone. No transaction may be running during close(). While a checkpoint(),
// backup() or update_backup() runs, a second one throws std::system_error (operation_in_progress).
// A call waits for a checkpoint that the database writes by itself.
// Complexity: in a table of n rows, get(), insert(), upsert(), update() and erase() take O(log n)
// and copy the row. A scan takes O(log n) and O(1) for each row. A commit takes time for each row
// that the transaction read or wrote.
// Iterator validity: there are no iterators. A scan passes its function references to const that
// are valid until the function returns.
// Lifetime: a table lives as long as its database. A transaction lives until the function that
// received it returns. A reference or pointer to either must not be used afterwards; nothing checks
// that. No transaction may be running when a database is destroyed. docs/MISUSE.md lists the
// results of calls inside a transaction and after close().
// Handles: a table, schema_table or indexed_table of another database throws std::logic_error at
// its first use in a transaction or snapshot. The call changes nothing, so a function may catch the
// error and continue. Transactions of two databases may run inside one another, each with its own
// tables.
// Errors: classes of namespace elidex::db, all derived from db::error (a std::runtime_error):
//   duplicate_key          insert() of a key that is present
//   unknown_table          no table has that name
//   schema_mismatch        the table exists with other key or row types. open() compares the names
//                          and types of columns, and for types without ELIDEX_ROW the size
//   row_too_large          a row exceeds its table's row size, or 16 MiB
//   timed_out, canceled    transact() has passed its deadline, or was told to stop
//   forked_child           see fork() below
// Others:
//   log_error              of elidex::db, from open(), follow(), catch_up() and restore(): a
//                          damaged directory, another version of the format, compressed files if
//                          the library was built without the method, or a follower that is left
//                          behind; problem() says which (a db::log_problem)
//   lock_refused           of elidex::db: a transaction under two-phase locking must end
//                          (docs/DATABASE.md). Not a std::exception
//   std::bad_alloc
//   std::out_of_range      a key outside the table's key type, also as `from` or `to` of a scan.
//                          Bounds of bounds.hpp may be outside
//   std::invalid_argument  a key of more than 64 KiB. From open(): a value of `compress` that the
//                          library was built without
//   std::logic_error       a transaction inside a transaction, or after follow()
//   std::system_error      with a directory: the log failed, and nothing commits afterwards;
//                          another process has the directory open; a second checkpoint() or
//                          backup() runs; or an error of the system
// All but the last leave the database unchanged. If transact() throws std::system_error because it
// cannot make the transaction durable, the transaction is committed in memory. Its writes may be on
// disk.
//
// fork(): a child has its own copy of the database. What the child may do depends on the level:
//   memory, none  Also after follow(). The child may use and destroy the copy if no other thread
//                 was inside a call of a transaction or of the database when the process forked. A
//                 thread that was running the function of a transact() or read_only() does not
//                 count as inside. Its pin and snapshot end in the child. Under two-phase locking,
//                 its row locks do not: a transaction of the child that needs one of these rows
//                 retries forever. If the thread was a deadlock victim whose turn had come to run
//                 again, its turn does not end either. A victim in the child then waits for the
//                 whole time of wait_for() before it runs again.
//   async, sync   The log, its files and the directory's lock belong to the parent. In the child
//                 transact(), create_table(), wait_durable(), checkpoint(), backup(),
//                 update_backup() and close() throw db::forked_child at once. A transact() that
//                 forked throws it at its commit.
//                 read_only() and the destructor work if no other thread was inside a call, as
//                 above. At level sync, read_only() throws db::forked_child after its function
//                 returns, if data that it read was not durable at the fork. The destructor touches
//                 no file. The directory stays locked until the parent destroys the database. If
//                 the parent is killed, it stays locked until its children end or call exec().
//
// Implementation notes
// `database` is basic_database<db::capability_commit>: DBX's transactions on CPUs that commit them,
// Silo's locks elsewhere (internal/txn/commit_protocols.hpp).
// basic_database<db::two_phase_locking<>> locks rows instead of validating
// (internal/txn/two_phase_locking.hpp). `Indexes` chooses the tables' maps: ordered_map, or one of
// the sets in papers/eunomia/index_sets.hpp. Recovery: internal/log/redo_log.hpp.
// Sources: paper 003, section 7 (DBX); Silo (Tu et al., SOSP 2013). Each part names its deviations.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "elidex/bounds.hpp"
#include "elidex/internal/log/backup.hpp"
#include "elidex/internal/log/following.hpp"
#include "elidex/internal/log/storage.hpp"
#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/fork_generation.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/memory/slot_array.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/parking.hpp"
#include "elidex/internal/tree/ordered_tree.hpp"
#include "elidex/internal/txn/column_change.hpp"
#include "elidex/internal/txn/commit_protocols.hpp"
#include "elidex/internal/txn/dbx_locking_commit.hpp"
#include "elidex/internal/txn/errors.hpp"
#include "elidex/internal/txn/indexed_table.hpp"
#include "elidex/internal/txn/schema.hpp"
#include "elidex/internal/txn/sequence.hpp"
#include "elidex/internal/txn/snapshot_transaction.hpp"
#include "elidex/internal/txn/table.hpp"
#include "elidex/internal/txn/transaction.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"

namespace elidex {

namespace db {

// Tables, rows and keys.
using internal::column_definition;
using internal::column_type;
using internal::end_of_prefix;
using internal::indexed_table;
using internal::name_of;
using internal::ordered_key;
using internal::row;
using internal::row_bytes_max;
using internal::schema;
using internal::schema_change;
using internal::sequence;
using internal::string_of_image;
using internal::varying_row_bytes_max;

// Durability.
using internal::automatic_checkpoints_report;
using internal::compression;
using internal::durability;
using internal::finished_checkpoint;
using internal::log_directory;
using internal::recovered_log;
using internal::storage_options;

// Transactions, and how they commit.
using internal::capability_commit;
using internal::dbx_commit;
using internal::dbx_locking_commit;
using internal::isolation;
using internal::silo_commit;
using internal::snapshot_transaction;
using internal::transaction;
using internal::two_phase_locking;
using internal::two_phase_transaction;

// Errors.
using internal::canceled;
using internal::duplicate_key;
using internal::error;
using internal::forked_child;
using internal::lock_refused;
using internal::log_error;
using internal::log_problem;
using internal::row_too_large;
using internal::schema_mismatch;
using internal::timed_out;
using internal::unknown_table;

}  // namespace db

using internal::isolation;

// Tables over ordered_map.
struct ordered_map_indexes {
  template <class Key>
  using map = internal::ordered_tree<Key, internal::record*>;
};

namespace db {
// How transact() runs a function.
struct transact_options {
  isolation level = isolation::serializable;
  // After this moment transact() does not run the function again, and throws timed_out. A commit
  // that has begun completes, and a function that is running is not interrupted. Under two-phase
  // locking a wait for a lock ends at this moment. At level sync the wait for the disk does not.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  // After a request to stop, transact() does not run the function again, and throws canceled. A
  // request does not end a wait for a lock.
  std::stop_token stop = {};
};
}  // namespace db

namespace db {
// Copies an earlier state of a directory to another one, which must be empty or not exist. It is
// the state after the commit group with this number, which wait_durable() has returned. For another
// number it is the last state before it that one fsync has made durable. Returns that state's
// number. Another process may have the directory open. Rows are copied without being read: open()
// finds damage in them.
// The directory has the states from the end of its oldest checkpoint on, and all states if
// storage_options::keep_history has been set since the first open(). If a checkpoint of that
// process removes a file meanwhile, restore() throws std::system_error: call it again.
// Thread-safety: any thread. Complexity: O(size of the log and of a checkpoint).
// Errors: std::system_error, and then the copy is empty if its files can be removed:
//   invalid_argument     the directory does not have the state
//   directory_not_empty  the copy's directory has files
//   otherwise            an error of the system
// log_error: as for database::open().
inline std::uint64_t restore(const std::string& directory, const std::string& copy,
                             std::uint64_t group) {
  const auto from = internal::open_log_directory(directory, internal::directory_use::follow);
  const auto to = internal::open_log_directory(copy);
  return internal::restore_log(*from, group, internal::log_fingerprint, *to);
}
}  // namespace db

// The counts of a database's transactions.
struct database_stats {
  std::size_t commits = 0;
  std::size_t conflicts = 0;  // attempts that had to be repeated
};

namespace internal {
// The transaction type of a policy: its own type, or the one of transaction.hpp.
template <class Commit>
struct transaction_of {
  using type = db::transaction;
};
template <class Commit>
  requires requires { typename Commit::transaction; }
struct transaction_of<Commit> {
  using type = typename Commit::transaction;
};
}  // namespace internal

// A database. Guarantees and errors: at the top of this header.
//
// Commit   the commit protocol: db::capability_commit, silo_commit, dbx_commit<>,
//          dbx_locking_commit<> or two_phase_locking<>
// Indexes  the maps of the tables
template <class Commit = db::capability_commit, class Indexes = ordered_map_indexes>
class basic_database {
 public:
  using transaction = typename internal::transaction_of<Commit>::type;
  template <class Key, class Row>
  using table = internal::table<Key, Row, typename Indexes::template map<Key>>;
  template <class Key>
  using schema_table = internal::schema_table<Key, typename Indexes::template map<Key>>;
  // A table with indexes.
  template <class Key, class Row>
  using indexed_table = internal::indexed_table<basic_database, table<Key, Row>>;

  basic_database() {
    internal::name_memory(this, sizeof *this, "database");
    internal::name_memory(&clock_, sizeof clock_, "commit clock");
  }
  basic_database(const basic_database&) = delete;
  basic_database& operator=(const basic_database&) = delete;

  // Creates a table and returns it. Throws schema_mismatch if a table of that name exists,
  // std::logic_error after follow(), and the exceptions of the log.
  template <class Key, class Row>
  table<Key, Row>& create_table(std::string name) {
    check_does_not_follow("create_table()");
    return add<table<Key, Row>>(std::move(name));
  }
  // The same, for rows with a schema that is known only at run time (internal/txn/schema.hpp).
  template <class Key>
  schema_table<Key>& create_table(std::string name, const db::schema& columns) {
    check_does_not_follow("create_table()");
    return add<schema_table<Key>>(std::move(name), columns);
  }
  // The same, with what has changed in the rows since earlier versions of the program
  // (internal/txn/schema_change.hpp). open() converts the rows of a directory. Row has registered
  // members (ELIDEX_ROW). Throws std::logic_error after open().
  template <class Key, class Row>
  table<Key, Row>& create_table(std::string name, db::schema_change since) {
    static_assert(internal::registered_row<Row>,
                  "a schema_change needs a row type that ELIDEX_ROW has registered");
    return with_changes(create_table<Key, Row>(std::move(name)), std::move(since));
  }
  template <class Key>
  schema_table<Key>& create_table(std::string name, const db::schema& columns,
                                  db::schema_change since) {
    return with_changes(create_table<Key>(std::move(name), columns), std::move(since));
  }
  // Returns the table of that name. Throws unknown_table, or schema_mismatch if the table's keys or
  // rows have other types.
  template <class Key, class Row>
  table<Key, Row>& find_table(std::string_view name) {
    return find<table<Key, Row>>(name);
  }
  template <class Key>
  schema_table<Key>& find_table(std::string_view name) {
    return find<schema_table<Key>>(name);
  }

  // Changes the columns of a table while other threads use it, and returns the table with the new
  // columns. Its rows are of type Row, which has registered members (ELIDEX_ROW). `since` explains
  // the differences, as for create_table().
  //
  //   auto& now = db.change_table<account_2>(accounts, db::schema_change().add("country", "FI"));
  //
  // Until the change is complete, transactions use `from`. At its end, new transactions wait for
  // the running ones. If that takes too long, change_table() lets them begin and tries again later.
  // From then on transactions that use `from` throw schema_mismatch, and find_table() returns the
  // new table. A snapshot that began before the end of the change reads `from`. Reading the new
  // table in it throws schema_mismatch. For later snapshots the opposite holds.
  // With a directory, change_table() writes a checkpoint. After a crash the directory has either
  // the former columns and rows or the new ones. At its next start the program creates the table
  // with the new columns and passes `since`: open() then accepts both.
  // Followers end, as after a change by open(). update_backup() refuses earlier backups.
  // The calling thread must not be in a transaction or snapshot. A function of transact() that
  // waits for another transaction to begin delays the end of the change. A second call waits for
  // the first. change_table() returns when all snapshots have ended that began before the change
  // was complete. Call open() before change_table(): a later open() throws, as it does after a
  // transaction.
  // Complexity: O(n log n) for n rows. The memory of the former table's rows is freed at the end,
  // or later if a thread is reading a map or a table for long. The map from keys to rows is kept
  // until the database is destroyed: about 20 bytes for an integer key. So are the maps of its
  // indexes, with 30 to 45 bytes a row each. A change that fails keeps those of the new table.
  // Errors: the table is as before if it throws one of these:
  //   schema_mismatch    `since` does not explain a difference, or `from` was replaced before, or
  //                      its rows are of a type without registered members
  //   std::logic_error   in a transaction of the calling thread, after follow(), for a table of
  //                      another database, for a table with indexes (see below), for one with
  //                      indexes that open_all() has created, or while an index of the table is
  //                      added or dropped
  //   row_too_large, std::out_of_range
  //                      a row or a value of add() does not fit. The message names a row's key.
  //                      Before change_table() throws, a transaction that writes such a row may
  //                      throw row_too_large
  //   std::system_error  an error of the system during the checkpoint, or the log failed. If the
  //                      directory may have the new columns by then, transactions keep writing
  //                      both tables, and a later change_table() throws std::logic_error
  template <class Row, class From>
  table<typename From::key_type, Row>& change_table(From& from, db::schema_change since = {}) {
    static_assert(internal::registered_row<Row>,
                  "change_table() needs a row type that ELIDEX_ROW has registered");
    return change<table<typename From::key_type, Row>>(from, std::move(since), without_indexes());
  }
  // The same, for rows with a schema that is known only at run time.
  template <class From>
  schema_table<typename From::key_type>& change_table(From& from, const db::schema& columns,
                                                      db::schema_change since = {}) {
    return change<schema_table<typename From::key_type>>(from, std::move(since), without_indexes(),
                                                         columns);
  }
  // The same two, for a table with indexes. `define` gets the new table while it is empty, makes an
  // indexed_table of it, adds its indexes, and returns the indexed_table by reference. That must
  // live as long as the database is used. `define` must not call change_table().
  //
  //   std::optional<elidex::database::indexed_table<std::uint64_t, account_2>> by;
  //   auto& now = db.change_table<account_2>(accounts, since, [&](auto& next) -> auto& {
  //     by.emplace(db, next);
  //     owner = by->template add_index<std::string>("accounts by owner", owner_of);
  //     return *by;
  //   });
  //
  // A new index may have the name of an index of the former table, and then replaces it. All
  // indexes of the former table end together with that table. An index that keeps a name must
  // compute the same values as before, and be unique or not as before, because after a crash open()
  // keeps the stored entries. For another function, choose a new name, and call drop_table() with
  // the old name at the next start.
  // Errors: as above; what `define` throws; std::logic_error if it returns no indexed_table with
  // all indexes of the new table; schema_mismatch if an index has another table's name;
  // duplicate_key if two rows have the same value in a unique index. Before it is thrown, a
  // transaction that writes one of the two rows may throw it, too. After the exception the table
  // and its indexes are as before.
  template <class Row, class From, class Define>
  table<typename From::key_type, Row>& change_table(From& from, db::schema_change since,
                                                    Define&& define) {
    static_assert(internal::registered_row<Row>,
                  "change_table() needs a row type that ELIDEX_ROW has registered");
    return change<table<typename From::key_type, Row>>(from, std::move(since), define);
  }
  template <class From, class Define>
  schema_table<typename From::key_type>& change_table(From& from, const db::schema& columns,
                                                      db::schema_change since, Define&& define) {
    return change<schema_table<typename From::key_type>>(from, std::move(since), define, columns);
  }

  // Makes open() drop a table or an index, if the directory has it. open() then writes a checkpoint
  // without it. The call may stay in the program, so the name cannot be used again: create_table()
  // throws schema_mismatch for it. Throws std::logic_error after open(), and schema_mismatch if the
  // program has created a table of that name.
  void drop_table(std::string name) {
    const std::lock_guard guard(tables_mutex_);
    if (storage_ || following_)
      throw std::logic_error(name + ": drop_table() after open() (expected: before open())");
    for (const auto& one : tables_) {
      if (one->name() == name)
        throw db::schema_mismatch(name + ": the program has created this table (expected another)");
    }
    dropped_.push_back(std::move(name));
  }
  // Calls fn(std::type_identity<Key>()) for each type of keys that a directory can have.
  template <class Fn>
  static void for_each_key_type(Fn&& fn) {
    const auto visit = [&]<class... Keys>(std::type_identity<std::tuple<Keys...>>) {
      (fn(std::type_identity<Keys>()), ...);
    };
    visit(std::type_identity<
          std::tuple<std::uint64_t, std::int64_t, std::string, std::uint32_t, std::int32_t,
                     std::uint16_t, std::int16_t, std::uint8_t, std::int8_t>>());
  }
  // Calls fn(table) for each table whose rows have a schema, with a schema_table<Key>& of its key
  // type: an integer of 1 to 8 bytes, or std::string. fn may call any function of the database.
  template <class Fn>
  void for_each_schema_table(Fn&& fn) {
    for (internal::table_base* const one : listed_tables()) {
      if (one->is_abandoned() || !is_current(*one)) continue;
      for_each_key_type([&]<class Key>(std::type_identity<Key>) {
        if (auto* const found = dynamic_cast<schema_table<Key>*>(one)) fn(*found);
      });
    }
  }

  // Says that the indexes of a table will no longer agree with its rows, and returns their number.
  // The next open() of a program that has these indexes makes their entries again. Call it before
  // writing rows of a table that open_all() has created: a database without the program's functions
  // cannot update its indexes.
  // A directory of an earlier version does not say which tables are indexes until the program has
  // written a checkpoint. Until then the result is 0, and writing makes the indexes wrong.
  // Complexity: linear in the number of tables. Throws std::logic_error for a table of another
  // database, schema_mismatch for one that change_table() has replaced, and std::system_error if
  // the log has failed or is closed.
  template <class Table>
  std::size_t mark_indexes_stale(const Table& of) {
    const std::lock_guard guard(tables_mutex_);
    of.check_owner(this);
    std::size_t found = 0;
    for (const auto& one : tables_) {
      // The functions of the program's own indexes are here, and indexed_table updates those.
      if (one->indexed() != nullptr || one->indexed_number() != of.id()) continue;
      ++found;
      if (!one->is_unfinished()) set_unfinished(*one, true);
    }
    return found;
  }

  // Loads the tables from the directory, and logs later commits there. It creates a directory that
  // does not exist, except at level none. Call it once, alone, before the first transaction. Create
  // the directory's tables before the call. Other tables may be created later.
  // Level none needs no write permission on the directory or its files. At this level, other
  // processes may read the directory while open() runs, but not write to it. open() unlocks the
  // directory when it returns.
  // Throws db::log_error (damaged, or another version of the format), std::system_error (another
  // database has the directory open, or an error of the system), unknown_table or schema_mismatch.
  // Throws duplicate_key if two rows have the same value in a new unique index. Throws
  // row_too_large or std::out_of_range if a value of schema_change::add() does not fit its column.
  // The directory then has the same rows. It may have one more empty log file. The database must
  // not be used again: its transactions throw std::logic_error.
  // Throws std::logic_error, and changes nothing, on a second call, after a committed transaction,
  // or inside a transaction of the calling thread. Running transactions of other threads are not
  // detected.
  const db::recovered_log& open(const std::string& directory,
                                const db::storage_options& options = {}) {
    check_may_open();
    use_ = use::none;
    return load(internal::open_log_directory(directory, use_of(options)), options);
  }
  // The same, and creates each table of the directory that the program has not created. The table's
  // schema is the directory's columns (schema::of_directory()). for_each_schema_table() visits the
  // table. Throws db::schema_mismatch for a directory of a later version.
  const db::recovered_log& open_all(const std::string& directory,
                                    const db::storage_options& options = {}) {
    check_may_open();
    use_ = use::none;
    return load(internal::open_log_directory(directory, use_of(options)), options,
                [&](const internal::table_description& said) { return make_table(said); });
  }
  // The same, with a directory that the caller has opened. Tests pass one with faults.
  const db::recovered_log& open(std::unique_ptr<db::log_directory> directory,
                                const db::storage_options& options = {}) {
    check_may_open();
    use_ = use::none;
    return load(std::move(directory), options);
  }
  // Loads the tables from a directory that another process may be writing, and lets catch_up() keep
  // them up to date. Call it in place of open(). The directory is neither locked nor changed, and
  // needs no write permission. Afterwards read_only() reads a state that the writer had and that a
  // crash of it cannot undo. transact() and create_table() throw std::logic_error.
  // The rows of tables that the program has not created are skipped. A table that the directory
  // does not have is empty until the writer creates it.
  // Throws log_error and std::system_error as open() does. Throws schema_mismatch if the columns
  // differ, if one of the program's indexes is missing although its table has rows, or if the
  // writer is building it. The database must not be used again then.
  const db::recovered_log& follow(const std::string& directory) {
    check_may_open();
    use_ = use::none;
    return start_following(
        internal::open_log_directory(directory, internal::directory_use::follow));
  }
  // The same, and creates each table of the directory that the program has not created, as
  // open_all() does. catch_up() creates those that the writer creates later.
  const db::recovered_log& follow_all(const std::string& directory) {
    check_may_open();
    use_ = use::none;
    return start_following(
        internal::open_log_directory(directory, internal::directory_use::follow),
        [&](const internal::table_description& said) { return make_table(said); });
  }
  // The same as follow(), with a directory that the caller has opened. Tests pass one with faults.
  const db::recovered_log& follow(std::unique_ptr<db::log_directory> directory) {
    check_may_open();
    use_ = use::none;
    return start_following(std::move(directory));
  }
  // After follow(): applies what the writer has made durable since, while other threads read. A
  // snapshot has all of a transaction or nothing. Returns the number of changed rows, 0 if there
  // was nothing. A second call at the same time waits for the first.
  // Throws std::logic_error without follow(). Throws std::system_error, std::bad_alloc, and:
  //   log_error        left_behind: the writer has removed a file that was not read yet. It does so
  //                    after a checkpoint, if catch_up() was not called for too long. Otherwise as
  //                    for open()
  //   schema_mismatch  the writer's open() has changed the columns of a table of this program, or
  //                    the writer has dropped such a table or index, or writes without such an
  //                    index
  // The tables then stay as they are, with whole transactions, and each later call throws the same
  // error. To continue, create another database and follow the directory again.
  std::uint64_t catch_up() {
    if (following_ == nullptr)
      throw std::logic_error(
          "elidex::database: catch_up() without follow() (expected: follow() first)");
    const std::lock_guard guard(catching_up_);
    return following_->catch_up([this](std::size_t absent) { collect_after(absent); });
  }

  // Writes all tables to the directory while transactions run. Removes the earlier log, unless
  // storage_options::keep_history is set. Throws
  // std::system_error, and then keeps the earlier log:
  //   operation_in_progress    another thread's checkpoint() or backup() is running
  //   operation_not_supported  there is no directory, or the level is none
  //   operation_canceled       after close()
  //   otherwise                the log failed, or an error of the system
  db::finished_checkpoint checkpoint() {
    return opened("checkpoint()").checkpoint([this] { return listed_tables(); });
  }
  // Returns the counts of the checkpoints that the database has written by itself.
  // storage_options::checkpoint_bytes and checkpoint_time determine when it writes one.
  db::automatic_checkpoints_report automatic_checkpoints() const {
    return storage_ ? storage_->automatic() : db::automatic_checkpoints_report{};
  }
  // Copies the tables to another directory while transactions run. open() accepts the copy. It has
  // every transaction that committed before the call, perhaps later ones, and never a part of one.
  // The directory must be empty or not exist, and its parent must exist. Returns the copy's size.
  // Throws std::system_error, and then leaves the directory empty if its files can be removed:
  //   directory_not_empty      the directory has files
  //   operation_in_progress    another thread's checkpoint() or backup() is running
  //   operation_not_supported  there is no log: the level is none, or open() was not called
  //   operation_canceled       after close()
  //   otherwise                the log failed, or an error of the system
  db::finished_checkpoint backup(const std::string& directory) {
    return opened("backup()").backup(directory, [this] { return listed_tables(); });
  }
  // The same, with a directory that the caller has opened. Tests pass one with faults.
  db::finished_checkpoint backup(std::unique_ptr<db::log_directory> directory) {
    return opened("backup()").backup(std::move(directory), [this] { return listed_tables(); });
  }
  // Adds to a backup in another directory what has been logged since, while transactions run. The
  // copy then has every transaction that committed before the call. It must not have been opened
  // for writing since. It is locked during the call. If the call is interrupted, open() accepts the
  // copy. Returns the number of bytes that were added. Throws std::system_error:
  //   invalid_argument  the directory is not a backup of this database, was changed since, or ends
  //                     before the log begins: checkpoints remove the log before them
  //                     (storage_options::keep_history). Or a crash of this database has lost
  //                     commits that the copy may have. Make a new backup then
  //   otherwise         as backup()
  std::uint64_t update_backup(const std::string& directory) {
    return opened("update_backup()").update_backup(directory);
  }
  // The same, with a directory that the caller has opened. Tests pass one with faults.
  std::uint64_t update_backup(std::unique_ptr<db::log_directory> directory) {
    return opened("update_backup()").update_backup(std::move(directory));
  }
  // Returns when all transactions that committed before the call are durable. Returns the number of
  // the last durable commit group, for db::restore(): the state after that group has all of them,
  // and perhaps later ones. Without a log it returns 0 at once. Throws std::system_error if they
  // cannot become durable.
  std::uint64_t wait_durable() {
    if (log_ == nullptr) return 0;
    log_->wait_durable(clock_.now());
    return log_->durable_group();
  }
  // Makes all commits durable and ends the log. Later transactions that write throw. The directory
  // stays locked until the database is destroyed. No transaction may be running. Throws
  // std::system_error if the log has failed, now or before. Throws std::logic_error inside a
  // transaction, and the database then stays open. The destructor does the same silently, and
  // unlocks the directory.
  void close() {
    check_not_in_transaction("close()");
    if (storage_) storage_->close();
  }

  // Runs fn(transaction), commits, and returns fn's result. After a conflict it backs off and runs
  // fn again, without limit. An exception from fn rolls back and passes through. If fn had read
  // outdated rows, fn runs again instead. At level sync, transact() returns when the writes, and
  // everything that fn read, are durable.
  // Throws what fn throws, and the errors at the top of this header. std::logic_error: a transact()
  // of this database is running in this thread, or open() has failed. std::system_error: the log
  // failed, or the transaction writes after close().
  template <class Fn>
  auto transact(isolation level, Fn&& fn) {
    return transact(db::transact_options{.level = level}, std::forward<Fn>(fn));
  }
  // The same until a deadline or a request to stop. Both are checked before each run of fn, so the
  // function may not run at all. Throws db::timed_out or db::canceled; nothing is committed then.
  template <class Fn>
  auto transact(const db::transact_options& options, Fn&& fn) {
    using result = std::remove_cvref_t<std::invoke_result_t<Fn&, transaction&>>;
    const borrowed_memory memory(*this);
    const change_of_columns* held_back_by = nullptr;
    for (internal::backoff wait;; wait.once()) {
      if (held_back_by != nullptr) memory.let_pass(*std::exchange(held_back_by, nullptr), options);
      std::conditional_t<std::is_void_v<result>, std::monostate, std::optional<result>> kept;
      std::uint64_t group = 0;
      check_may_run(options);
      {
        transaction t = begin(memory.notes(), options);
        held_back_by = holding_back();
        if (held_back_by != nullptr) [[unlikely]]
          continue;
        if (memory.log() != nullptr) access::context(t).log_with(*memory.log());
        try {
          if constexpr (std::is_void_v<result>) {
            fn(t);
          } else {
            kept.emplace(fn(t));
          }
          if (!commits(t)) continue;
        } catch (...) {
          const bool thread_ends =
              // pthread_exit(): there is no exception, and the unwinding must continue
              std::current_exception() == nullptr;
          const bool believed = thread_ends || is_believed(t);
          roll_back(t);
          if (believed) {
            // The exception, too, may reveal data that the transaction saw.
            if (!thread_ends) wait_for_what_was_seen(access::context(t).newest_seen());
            throw;
          }
          conflicts_.add(1);
          continue;
        }
        if (log_ != nullptr) {
          const internal::transaction_context& done = access::context(t);
          group = log_->level() == db::durability::sync ? done.group_to_be_durable()
                                                        : done.group_of_writes();
        }
      }
      // The transaction has ended, so no thread waits for it while it waits for the disk.
      if (log_ != nullptr) log_->acknowledge(*memory.log(), group);
      if constexpr (std::is_void_v<result>) {
        return;
      } else {
        return std::move(*kept);
      }
    }
  }
  // The same at level serializable.
  template <class Fn>
  auto transact(Fn&& fn) {
    return transact(isolation::serializable, std::forward<Fn>(fn));
  }

  // Runs fn(snapshot) once and returns its result. The snapshot contains every transaction that
  // committed before the call. At level sync, read_only() returns when everything that fn read is
  // durable.
  // Throws std::logic_error inside read_only() of the same database, and inside a transaction that
  // reads a snapshot (internal/txn/two_phase_transaction.hpp).
  template <class Fn>
  auto read_only(Fn&& fn) {
    if (use_ == use::none) throw std::logic_error(not_opened);
    using result = std::remove_cvref_t<std::invoke_result_t<Fn&, db::snapshot_transaction&>>;
    ended_snapshot ended;
    const auto run = [&] {
      db::snapshot_transaction t(clock_, this);
      const note_at_end note{t, ended};
      return static_cast<result>(fn(t));
    };
    if constexpr (std::is_void_v<result>) {
      run();
      free_versions_after(ended.group);
      wait_for_what_was_seen(ended.to_be_durable);
    } else {
      result kept = run();
      free_versions_after(ended.group);
      wait_for_what_was_seen(ended.to_be_durable);
      return kept;
    }
  }

  // Unlinks erased rows that no snapshot and no running transaction needs. At level sync the erase
  // must also be durable. An erased row is unlinked at the second call at the earliest. Also frees
  // the old versions of rows that were overwritten while a snapshot ran, if no snapshot needs them
  // any more: for that it visits all rows of each table that may have some. The database also
  // collects by itself from time to time.
  void collect() {
    collect_absent();
    // Tables are only added, behind the others.
    for (std::size_t i = 0;; ++i) {
      std::unique_lock guard(tables_mutex_);
      if (i == tables_.size()) return;
      internal::table_base& one = *tables_[i];
      for (bool more = one.begin_to_free_versions(); more;) {
        more = one.continue_to_free_versions(clock_.settled_horizon());
        guard.unlock();  // others need not wait for the whole table
        guard.lock();
      }
    }
  }

  // Returns the counts of transactions. Exact when no transaction runs.
  database_stats stats() const noexcept { return {commits_.count(), conflicts_.count()}; }
  // Returns the commit protocol, for its settings (two_phase_locking::wait_for()).
  Commit& protocol() noexcept { return commit_; }

 private:
  // A collection visits all tables, and scans skip erased rows. Measured with TPC-C: 64 takes 12 %
  // fewer instructions than 1024, and 256 takes 9 % fewer.
  static constexpr std::size_t erases_per_collection = 64;

  static constexpr auto no_deadline = std::chrono::steady_clock::time_point::max();
  static constexpr const char* not_opened =
      "elidex::database: open() or follow() has failed (expected: destroy this database and create "
      "another)";

  // What the database permits: only snapshots after follow(), and nothing if open() has failed.
  enum class use : std::uint8_t { everything, snapshots, none };

  using access = internal::transaction_access;
  using change_of_columns = internal::running_change<transaction>;
  friend struct internal::index_access;
  // False if the policy has its own transactions, with locks.
  static constexpr bool is_optimistic = std::is_same_v<transaction, db::transaction>;

  // The memory of one thread, which its next transaction reuses.
  struct alignas(64) thread_memory {
    std::unique_ptr<typename transaction::memory> notes;
    std::optional<internal::redo_log::worker> log;
    // Odd while the thread runs a transaction. Only the thread writes it.
    std::atomic<std::uint64_t> runs{0};
    // The fork generation in which the thread last ran one (fork_generation.hpp). Written before
    // `runs`.
    std::atomic<std::uint64_t> generation{0};
    bool in_use() const noexcept {
      // relaxed, without a partner: the thread's own.
      return runs.load(std::memory_order_relaxed) % 2 != 0;
    }
  };
  class borrowed_memory {
   public:
    explicit borrowed_memory(basic_database& from)
        : mine_(from.thread_memory_.provide(internal::this_thread_slot())) {
      if (mine_.in_use())
        throw std::logic_error(
            "elidex::database: transact() inside a transaction (expected: pass the transaction "
            "on)");
      if (from.use_ != use::everything) refuse_transaction(from.use_);
      if (from.log_ != nullptr) from.log_->check_process();
      if (!mine_.notes) {
        from.clock_.provide_for_this_thread();
        mine_.notes = std::make_unique<typename transaction::memory>();
      }
      if (from.log_ != nullptr && !mine_.log) mine_.log.emplace(*from.log_);
      const std::uint64_t here = internal::fork_generation();
      // relaxed, here and in the next line: only this thread writes it, ordered by step().
      if (mine_.generation.load(std::memory_order_relaxed) != here)
        mine_.generation.store(here, std::memory_order_relaxed);
      step();
      // Pairs with the fence in wait_for_transactions(). An optimistic transaction has one when it
      // pins (epoch.hpp).
      if constexpr (!is_optimistic) std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~borrowed_memory() {
      step();
      internal::wake_waiters(&mine_.runs);
    }
    // Waits as a thread without a transaction. To be called between two.
    void let_pass(const change_of_columns& change, const db::transact_options& options) const {
      step();
      internal::wake_waiters(&mine_.runs);
      change.wait(options.deadline != no_deadline || options.stop.stop_possible(), [&] {
        return options.stop.stop_requested() ||
               std::chrono::steady_clock::now() >= options.deadline;
      });
      step();
      // As in the constructor.
      if constexpr (!is_optimistic) std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    borrowed_memory(const borrowed_memory&) = delete;
    borrowed_memory& operator=(const borrowed_memory&) = delete;
    typename transaction::memory& notes() const noexcept { return *mine_.notes; }
    // Returns null if there is no log.
    internal::redo_log::worker* log() const noexcept { return mine_.log ? &*mine_.log : nullptr; }

   private:
    void step() const noexcept {
      // relaxed load: the thread's own. release: pairs with the acquire in wait_for_transactions().
      mine_.runs.store(mine_.runs.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    thread_memory& mine_;
  };

  // Whether any thread has begun a transaction. One that has not begun sees what the caller wrote
  // before the call.
  bool has_begun() const noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // as in wait_for_transactions()
    const std::uint32_t slots = internal::thread_slots_made();
    for (std::uint32_t i = 0; i < slots; ++i) {
      const thread_memory* const one = thread_memory_.if_provided(i);
      // acquire: pairs with the release in step().
      if (one != nullptr && one->runs.load(std::memory_order_acquire) != 0) return true;
    }
    return false;
  }
  // Returns when all transactions have ended that may not have seen what the caller wrote before
  // the call. The caller is not in a transaction.
  void wait_for_transactions() const { static_cast<void>(transactions_end_before(no_deadline)); }
  // The same until a deadline. Returns false if they have not ended by then.
  bool transactions_end_before(std::chrono::steady_clock::time_point deadline) const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint32_t slots = internal::thread_slots_made();
    for (std::uint32_t i = 0; i < slots; ++i) {
      const thread_memory* const one = thread_memory_.if_provided(i);
      if (one == nullptr) continue;
      // acquire, here and below: pairs with the release in step(). What the transaction wrote is
      // visible. relaxed: ordered by that load.
      const std::uint64_t seen = one->runs.load(std::memory_order_acquire);
      if (seen % 2 == 0 ||
          !internal::may_be_here(i, one->generation.load(std::memory_order_relaxed)))
        continue;
      const auto runs = [&] { return one->runs.load(std::memory_order_acquire) == seen; };
      if (deadline == no_deadline) {
        internal::backoff wait;
        if (runs()) internal::wait_while<internal::looks::often>(&one->runs, runs, wait);
        continue;
      }
      while (runs()) {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    return true;
  }

  [[noreturn]] static void refuse_transaction(use now) {
    if (now == use::none) throw std::logic_error(not_opened);
    throw std::logic_error(
        "elidex::database: transact() after follow() (expected: read_only(), or transact() in the "
        "process that writes the directory)");
  }
  void check_does_not_follow(const char* function) const {
    if (use_ == use::snapshots)
      throw std::logic_error(std::string("elidex::database: ") + function +
                             " after follow() (expected: before it)");
  }
  void collect_absent() {
    const std::lock_guard guard(tables_mutex_);
    collect_locked();
  }
  const db::recovered_log& start_following(std::unique_ptr<internal::log_directory> directory,
                                           const internal::loading::table_maker& make = {}) {
    following_ = std::make_unique<internal::following>(std::move(directory), clock_, all_tables(),
                                                       dropped_, make);
    collect_absent();
    use_ = use::snapshots;
    return following_->found();
  }

  static internal::directory_use use_of(const db::storage_options& options) noexcept {
    return options.level == db::durability::none ? internal::directory_use::read
                                                 : internal::directory_use::write;
  }
  const db::recovered_log& load(std::unique_ptr<internal::log_directory> directory,
                                const db::storage_options& options,
                                const internal::storage::table_maker& make = {}) {
    storage_ = std::make_unique<internal::storage>(std::move(directory), options, clock_,
                                                   all_tables(), dropped_, make);
    log_ = storage_->log();
    collect_absent();
    storage_->write_checkpoints_by_itself([this] {
      const std::lock_guard guard(published_mutex_);
      return published_;
    });
    use_ = use::everything;
    return storage_->found();
  }
  // Checks the calling thread only.
  void check_not_in_transaction(const char* function) const {
    const thread_memory* const mine = thread_memory_.if_provided(internal::this_thread_slot());
    if ((mine != nullptr && mine->in_use()) || clock_.has_snapshot_here())
      throw std::logic_error(std::string("elidex::database: ") + function +
                             " inside a transaction");
  }
  void check_may_open() const {
    check_not_in_transaction("open()");
    if (use_ == use::none) throw std::logic_error(not_opened);
    if (storage_ || following_ || commits_.count() != 0)
      throw std::logic_error(
          "elidex::database: open() or follow() called again or after a transaction (expected: "
          "once, before the first transaction)");
  }
  struct ended_snapshot {
    std::uint64_t group = 0;
    std::uint64_t to_be_durable = 0;
  };
  struct note_at_end {
    const db::snapshot_transaction& of;
    ended_snapshot& ended;
    ~note_at_end() { ended = {of.group(), of.group_to_be_durable()}; }
  };
  void wait_for_what_was_seen(std::uint64_t group) {
    if (log_ != nullptr && log_->level() == db::durability::sync) log_->wait_durable(group);
  }

  internal::storage& opened(const char* function) {
    if (storage_) return *storage_;
    throw std::system_error(std::make_error_code(std::errc::operation_not_supported),
                            std::string("elidex::database::") + function +
                                ": no directory (expected a call of open() with level async or "
                                "sync)");
  }

  template <class Table, class... More>
  Table& add(std::string name, const More&... more) {
    return add_as<Table>(made_as::table, std::move(name), more...);
  }
  enum class made_as : std::uint8_t { table, unfinished_index, next_of_its_name };
  template <class Table, class... More>
  Table& add_as(made_as what, std::string name, const More&... more) {
    if (log_ != nullptr) log_->check_process();
    const std::lock_guard guard(tables_mutex_);
    for (const auto& one : tables_) {
      if (what != made_as::next_of_its_name && one->name() == name &&
          one->standing() != internal::table_base::role::former)
        throw db::schema_mismatch(name + ": table exists (expected an unused name)");
    }
    if (std::find(dropped_.begin(), dropped_.end(), name) != dropped_.end())
      throw db::schema_mismatch(name + ": drop_table() has this name (expected an unused name)");
    auto made = std::make_unique<Table>(std::move(name), more...,
                                        locking_of(static_cast<std::uint32_t>(tables_.size())));
    Table& result = *made;
    result.set_owner(this);
    result.set_unfinished(what == made_as::unfinished_index);
    if (what == made_as::next_of_its_name) result.be_next();
    tables_.reserve(tables_.size() + 1);
    // A checkpoint that does not have the table must begin before the log declares the table.
    const std::lock_guard publishing(published_mutex_);
    published_.reserve(tables_.size() + 1);
    if (storage_) storage_->declare(result);
    tables_.push_back(std::move(made));
    published_.push_back(&result);
    return result;
  }
  template <class Table>
  Table& with_changes(Table& made, db::schema_change&& since) {
    if (storage_)
      throw std::logic_error(made.name() +
                             ": a schema_change after open() (expected: before open())");
    made.set_changes(std::move(since));
    return made;
  }
  // Marks an index. Under tables_mutex_.
  void set_unfinished(internal::table_base& entries, bool is) {
    entries.set_unfinished(is);
    try {
      if (storage_) storage_->note_state(entries);
    } catch (...) {
      entries.set_unfinished(!is);
      throw;
    }
  }
  // Creates a table of the directory that the program has not created.
  internal::table_base* make_table(const internal::table_description& said) {
    const db::schema columns = db::schema::of_directory(said.schema_text, said.row_bytes);
    internal::table_base* made = nullptr;
    for_each_key_type([&]<class Key>(std::type_identity<Key>) {
      const bool is_string = std::is_same_v<Key, std::string>;
      if (said.key.bytes != (is_string ? 0 : sizeof(Key)) ||
          (!is_string && said.key.is_signed != std::is_signed_v<Key>))
        return;
      made = &add<schema_table<Key>>(said.name, columns);
    });
    if (made == nullptr)
      throw db::schema_mismatch(said.name + ": keys of a type that this program does not have");
    return made;
  }
  // --- change_table(), explained in column_change.hpp

  const change_of_columns* holding_back() const noexcept {
    const change_of_columns* const change = change_.load();
    return change != nullptr && change->holds_back() ? change : nullptr;
  }
  struct without_indexes {
    template <class To>
    internal::rows_alone<To> operator()(To& next) const noexcept {
      return internal::rows_alone<To>(next);
    }
  };
  template <class To, class From, class Define, class... Made>
  To& change(From& from, db::schema_change since, Define&& define, const Made&... made) {
    check_not_in_transaction("change_table()");
    check_does_not_follow("change_table()");
    const std::lock_guard one_at_a_time(changing_);
    if (change_.load() != nullptr)
      throw std::logic_error(
          "elidex::database: change_table() after one that failed in its checkpoint (expected: "
          "close() and open())");
    const changing_table changing(*this, from,
                                  std::same_as<std::remove_cvref_t<Define>, without_indexes>);
    const std::optional<db::schema> before = from.columns_of_rows();
    if (!before)
      throw db::schema_mismatch(from.name() +
                                ": rows without registered members (expected ELIDEX_ROW)");
    const internal::row_conversion conversion(*before, columns_after<To>(made...), since);
    static_cast<void>(conversion.converted(db::row(*before).words()));  // the values of add() fit
    To& to = add_as<To>(made_as::next_of_its_name, from.name(), made...);
    change_of_columns* running = nullptr;
    std::vector<internal::table_base*> former;
    std::vector<internal::table_base*> next;
    try {
      auto&& by = define(to);
      using copies = std::remove_cvref_t<decltype(by)>;
      static_assert(std::is_lvalue_reference_v<decltype(define(to))> || internal::is_alone<copies>,
                    "the function must return its indexed_table by reference");
      if (static_cast<const void*>(&by.table()) != static_cast<const void*>(&to))
        throw std::logic_error(from.name() +
                               ": change_table() with an indexed_table of another table (expected: "
                               "of the one that it passes)");
      keep_indexes(to, by.index_count());
      former = with_its_indexes(from);
      next = with_its_indexes(to);
      check_names(former, next);
      auto made_change = std::make_unique<internal::column_change<transaction, From, copies>>(
          from, by, conversion);
      const auto& change = *made_change;
      changes_.push_back(std::move(made_change));
      running = changes_.back().get();
      change_.store(running);
      wait_for_transactions();
      std::optional<typename From::key_type> done;
      do {
        // After a conflict fewer rows, so that one that changes all the time does not stop it.
        std::size_t rows_max = 2 * change.rows_per_step;
        done = transact([&](auto& t) {
          rows_max = std::max<std::size_t>(rows_max / 2, 1);
          return change.copy_some(t, done, rows_max);
        });
      } while (done);
      if (storage_) storage_->change_places(former, next, [this] { return listed_tables(); });
      hold_back_all(*running);
      note_replaced(from);
    } catch (...) {
      if (running != nullptr) running->resume();
      // The directory has the new table, or may have it. So both must be written on.
      if (from.is_apart()) throw;
      if (running == nullptr) next = with_its_indexes(to);
      give_up(next);
      clear(next);
      throw;
    }
    const std::uint64_t group = replace(former, next);
    running->resume();
    wait_for_snapshots_before(group);
    clear(former);
    return to;
  }
  // Marks the table as one whose columns are being changed.
  class changing_table {
   public:
    changing_table(basic_database& in, internal::table_base& table, bool without_indexes)
        : in_(in), table_(table) {
      const std::lock_guard guard(in_.tables_mutex_);
      table_.check_owner(&in_);
      if (without_indexes && table_.indexes() != 0)
        throw std::logic_error(table_.name() +
                               ": change_table() of a table with indexes (expected: a function "
                               "that adds those of the new table)");
      const auto is_index_of_others = [&](const auto& one) {
        return one->indexed() == nullptr && one->indexed_number() != 0 &&
               one->indexed_number() == table_.id() && !one->is_abandoned();
      };
      if (std::any_of(in_.tables_.begin(), in_.tables_.end(), is_index_of_others))
        throw std::logic_error(table_.name() +
                               ": change_table() of a table with indexes of which this program has "
                               "no functions (expected: open(), and add_index() before)");
      if (table_.index_changes() != 0)
        throw std::logic_error(table_.name() +
                               ": change_table() while add_index() or drop_index() is running");
      table_.is_changing() = true;
    }
    ~changing_table() {
      const std::lock_guard guard(in_.tables_mutex_);
      table_.is_changing() = false;
    }
    changing_table(const changing_table&) = delete;
    changing_table& operator=(const changing_table&) = delete;

   private:
    basic_database& in_;
    internal::table_base& table_;
  };
  // From here on add_index() refuses the new table until its columns are those of its name.
  // `written`: of its indexes, those that each copy of a row is written to.
  void keep_indexes(internal::table_base& next, std::size_t written) {
    const std::lock_guard guard(tables_mutex_);
    if (next.index_changes() != 0 || static_cast<std::size_t>(next.indexes()) != written)
      throw std::logic_error(next.name() +
                             ": change_table() with indexes of several indexed_tables, or while "
                             "one is added (expected: one indexed_table, which has all indexes)");
    next.is_changing() = true;
  }
  // The table and its indexes, those included that are no longer used.
  std::vector<internal::table_base*> with_its_indexes(internal::table_base& of) {
    const std::lock_guard guard(tables_mutex_);
    std::vector<internal::table_base*> found{&of};
    for (const auto& one : tables_) {
      if (one->indexed() == &of && one->standing() == of.standing()) found.push_back(one.get());
    }
    return found;
  }
  // An index may have a name of the former ones. No other table has it, nor another new index.
  void check_names(std::span<internal::table_base* const> former,
                   std::span<internal::table_base* const> next) {
    const std::lock_guard guard(tables_mutex_);
    for (std::size_t i = 1; i < next.size(); ++i) {
      const auto is_taken = [&](const internal::table_base* one) {
        return one != next[i] && one->name() == next[i]->name();
      };
      const bool is_other = std::any_of(tables_.begin(), tables_.end(), [&](const auto& one) {
        return one->standing() == internal::table_base::role::current && is_taken(one.get()) &&
               std::find(former.begin() + 1, former.end(), one.get()) == former.end();
      });
      if (is_other || std::any_of(next.begin(), next.end(), is_taken))
        throw db::schema_mismatch(next[i]->name() + ": table exists (expected an unused name)");
    }
  }
  template <class To>
  static db::schema columns_after() {
    return *To("", internal::row_locking()).columns_of_rows();
  }
  template <class To>
  static db::schema columns_after(const db::schema& columns) {
    return columns;
  }
  void give_up(std::span<internal::table_base* const> made) {
    change_.store(nullptr);
    wait_for_transactions();
    const std::lock_guard guard(tables_mutex_);
    for (internal::table_base* const one : made) one->be_former();
  }
  // Tells those who read the log. Called while no transaction runs, so before the first commit that
  // writes the new table only.
  void note_replaced(const internal::table_base& former) {
    const std::lock_guard guard(tables_mutex_);
    if (storage_) storage_->note_state(former);
  }
  // Returns when no transaction runs. Those that begin wait for change.resume(). It lets them pass
  // now and then: a transaction that takes long must not stop all others, and may wait for one.
  void hold_back_all(change_of_columns& change) {
    constexpr std::chrono::milliseconds patience_max{500};
    for (std::chrono::milliseconds patience{5};; patience = std::min(2 * patience, patience_max)) {
      change.hold_back();
      if (transactions_end_before(std::chrono::steady_clock::now() + patience)) return;
      change.resume();
      std::this_thread::sleep_for(patience);
    }
  }
  // Called while no transaction runs. Returns a group. Snapshots of earlier ones may read the
  // former tables.
  std::uint64_t replace(std::span<internal::table_base* const> former,
                        std::span<internal::table_base* const> next) noexcept {
    const std::lock_guard guard(tables_mutex_);
    const std::uint64_t group = clock_.advance();
    for (internal::table_base* const one : former) one->end_before(group);
    for (internal::table_base* const one : next) {
      one->begin_with(group);
      one->is_changing() = false;
    }
    change_.store(nullptr);
    // If another thread has advanced the clock meanwhile, a snapshot of `group` or later may have
    // looked at the former tables before they ended.
    return clock_.advance();
  }
  void wait_for_snapshots_before(std::uint64_t group) {
    for (;;) {
      clock_.advance();
      if (clock_.settled_horizon() >= group) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Frees the rows of tables that nobody uses.
  void clear(std::span<internal::table_base* const> gone) {
    for (internal::table_base* const one : gone) clear(*one);
  }
  void clear(internal::table_base& gone) {
    std::optional<std::string> next;
    do {
      next = gone.clear_some(next);
      collect_absent();
    } while (next);
    // The last records are freed two epochs later, or by a later collection if a thread is pinned.
    for (int attempts = 0; attempts < 100 && !gives_back_memory(gone); ++attempts) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      collect_absent();
    }
  }
  bool gives_back_memory(internal::table_base& gone) {
    const std::lock_guard guard(tables_mutex_);
    return gone.give_back_memory();
  }

  template <class Table>
  Table& find(std::string_view name) {
    const std::lock_guard guard(tables_mutex_);
    for (const auto& one : tables_) {
      if (one->name() != name || one->standing() != internal::table_base::role::current) continue;
      if (auto* const found = dynamic_cast<Table*>(one.get())) return *found;
      throw db::schema_mismatch(
          std::string(name) + ": keys or rows have other types (expected those of create_table())");
    }
    throw db::unknown_table(std::string(name) +
                            ": no such table (expected a name given to create_table())");
  }
  bool is_current(const internal::table_base& one) {
    const std::lock_guard guard(tables_mutex_);
    return one.standing() == internal::table_base::role::current;
  }
  std::vector<internal::table_base*> listed_tables() {
    const std::lock_guard guard(tables_mutex_);
    return all_tables();
  }
  // Under tables_mutex_, or alone.
  std::vector<internal::table_base*> all_tables() const {
    std::vector<internal::table_base*> tables;
    tables.reserve(tables_.size());
    for (const auto& one : tables_) tables.push_back(one.get());
    return tables;
  }
  static internal::row_locking locking_of([[maybe_unused]] std::uint32_t number) noexcept {
    if constexpr (requires { Commit::locking_of(number); }) {
      return Commit::locking_of(number);
    } else {
      return {};
    }
  }
  static void check_may_run(const db::transact_options& options) {
    if (options.stop.stop_requested()) throw db::canceled("elidex: transact() was told to stop");
    if (options.deadline != no_deadline && std::chrono::steady_clock::now() >= options.deadline)
      throw db::timed_out("elidex: transact() has passed its deadline");
  }
  transaction begin(typename transaction::memory& notes, const db::transact_options& options) {
    if constexpr (requires {
                    commit_.begin(notes, options.level, clock_, this, options.deadline);
                  }) {
      return commit_.begin(notes, options.level, clock_, this, options.deadline);
    } else {
      return db::transaction(notes, options.level, this);
    }
  }
  // Returns whether the reads of a function that threw were consistent, so that its exception
  // counts.
  static bool is_believed(const transaction& t) {
    if constexpr (!is_optimistic) {
      return !access::is_doomed(t);
    } else {
      const internal::transaction_context& seen = access::context(t);
      // The order matters. Observations that hold at the second check have held since the first
      // one, so both held when the reads were checked.
      try {
        return internal::reads_hold(seen, false) && seen.observations_hold();
      } catch (const std::bad_alloc&) {
        return true;  // Unknown. A retry might never end.
      }
    }
  }

  // Returns false if the function must run again.
  bool commits(transaction& t) {
    if (const change_of_columns* const change = change_.load(); change != nullptr) [[unlikely]]
      change->copy_writes(t);
    if (commit(t) == internal::commit_result::conflict) {
      roll_back(t);
      conflicts_.add(1);
      return false;
    }
    commits_.add(1);
    collect_after(access::context(t).note_for_collection(true));
    return true;
  }
  internal::commit_result commit(transaction& t) {
    if constexpr (is_optimistic) {
      return commit_(access::context(t), clock_);
    } else {
      return commit_(t, clock_);
    }
  }
  void roll_back(transaction& t) noexcept {
    collect_after(access::context(t).note_for_collection(false));
  }

  // `more`: as note_for_collection() returns it.
  void collect_after(std::size_t more) noexcept {
    if (more == 0 || erased_.fetch_add(more) % erases_per_collection + more < erases_per_collection)
      return;
    try_collect();
  }

  // If another thread is collecting, this one returns.
  void try_collect() noexcept {
    const std::unique_lock guard(tables_mutex_, std::try_to_lock);
    if (!guard.owns_lock()) return;
    try {
      collect_locked();
    } catch (const std::exception&) {
      // There is no memory, or no transaction left of the lock system. The caller's transaction has
      // ended anyway, and the next collection finds the rest.
    }
  }

  // Under tables_mutex_.
  void free_some_versions(std::uint64_t horizon) {
    std::uint64_t wait_for = 0;
    for (const auto& one : tables_)
      wait_for = std::max(wait_for, one->free_some_old_versions(horizon, clock_.now()));
    if (versions_wait_for_.load() != wait_for) versions_wait_for_.store(wait_for);
  }
  // The snapshot of this group has ended.
  void free_versions_after(std::uint64_t group) noexcept {
    if (group >= versions_wait_for_.load()) return;
    const std::unique_lock guard(tables_mutex_, std::try_to_lock);
    if (!guard.owns_lock()) return;
    try {
      free_some_versions(clock_.settled_horizon());
    } catch (const std::bad_alloc&) {
      // A later call continues.
    }
  }

  void collect_locked() {
    clock_.advance();
    std::uint64_t horizon = clock_.settled_horizon();
    free_some_versions(horizon);
    // At level sync a reader must not observe an erase before the erase is durable.
    if (log_ != nullptr && log_->level() == db::durability::sync)
      horizon = std::min(horizon, log_->durable_group());
    const std::uint64_t reclaimed = internal::try_advance_epoch();
    // An old snapshot stops `horizon`, and a long transaction stops `reclaimed`. Rows erased since
    // then are not ripe, and checking all of them each time would take ever longer.
    if (horizon == collected_up_to_ || reclaimed == collected_in_) return;
    if constexpr (requires { commit_.unlinking(); }) {
      auto rule = commit_.unlinking();
      for (const auto& one : tables_) one->collect(horizon, reclaimed, &rule);
    } else {
      for (const auto& one : tables_) one->collect(horizon, reclaimed);
    }
    for (const auto& one : tables_) {
      if (one->standing() == internal::table_base::role::former) one->give_back_memory();
    }
    collected_up_to_ = horizon;
    collected_in_ = reclaimed;
  }

  internal::commit_clock clock_;
  Commit commit_;
  std::mutex tables_mutex_;
  std::vector<std::unique_ptr<internal::table_base>> tables_;
  // The same, for the thread that writes checkpoints. It takes no other mutex of the database: a
  // child of fork() may use those.
  std::mutex published_mutex_;
  std::vector<internal::table_base*> published_;
  std::vector<std::string> dropped_;
  std::uint64_t collected_up_to_ = 0;  // under tables_mutex_, as the next one
  std::uint64_t collected_in_ = 0;     // epoch of reclamation
  std::unique_ptr<internal::storage> storage_;
  internal::redo_log* log_ = nullptr;  // storage_'s
  std::unique_ptr<internal::following> following_;
  std::mutex catching_up_;
  std::atomic<const change_of_columns*> change_{nullptr};  // the running one
  std::mutex changing_;
  // Ended ones stay: a transaction may still be leaving wait().
  std::vector<std::unique_ptr<change_of_columns>> changes_;  // under changing_
  use use_ = use::everything;
  std::atomic<std::size_t> erased_{0};
  // The end of a snapshot of an earlier group may allow to free old versions (table_base).
  std::atomic<std::uint64_t> versions_wait_for_{0};
  internal::busy_counter commits_;
  internal::busy_counter conflicts_;
  internal::slot_array<thread_memory, internal::commit_clock::first_threads> thread_memory_;
};

using database = basic_database<>;

}  // namespace elidex
