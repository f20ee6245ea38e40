// An in-memory database: tables with typed rows, and transactions over them.
//
//   struct account { std::int64_t balance; };
//   elidex::database db;
//   auto& accounts = db.create_table<std::uint64_t, account>("accounts");
//   db.transact([&](auto& t) {                                          // all of it or nothing; may run several times
//     const auto from = t.get(accounts, 1);
//     if (!from || from->balance < 5) return false;
//     t.update(accounts, 1, [](account& a) { a.balance -= 5; });
//     t.update(accounts, 2, [](account& a) { a.balance += 5; });
//     return true;
//   });
//   db.read_only([&](auto& t) { t.scan(accounts, 0, 100, [&](auto key, const account& a) { sum += a.balance; return true; }); });
//
// What a transaction can do: db/transaction.hpp; one that only reads: db/snapshot_transaction.hpp. Both are templates' `auto&`, so that
// the same function runs under every concurrency control.
//
// transact() runs the function, commits, and returns what the function returned; after a conflict it backs off and runs it again. So the
// function must be harmless to repeat, and keep nothing of what it has seen but its result. An exception rolls the transaction back and
// comes out, unless what it had read was out of date: then it is run again. Transactions don't nest in one thread.
//
// Isolation: serializable unless asked otherwise (db/transaction.hpp says what each level lets through). Commits are strictly
// serializable: what has committed before transact() or read_only() is called is seen. read_only() sees one moment, never aborts, and no writer
// waits for it.
//
// `database` is basic_database<capability_commit>: DBX's regions where this CPU commits them, Silo's locks where it doesn't
// (db/commit_protocols.hpp). Indexes says which maps the tables have: those below, or a set of db/index_sets.hpp.
//
// Thread-safety: all members but constructor and destructor, from any thread. A table lives as long as its database.
// Errors: db/errors.hpp; std::bad_alloc; std::out_of_range with more than 512 threads, std::logic_error for a
// transaction inside a transaction. All leave the database as it was.
// From: papers/003 section 7 (DBX); Silo (Tu et al., SOSP 2013). Deviations stand at the parts.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/db/commit_protocols.hpp"
#include "elidex/db/errors.hpp"
#include "elidex/db/snapshot_transaction.hpp"
#include "elidex/db/table.hpp"
#include "elidex/db/transaction.hpp"
#include "elidex/memory_name.hpp"
#include "elidex/ordered_map.hpp"
#include "elidex/sharded_counter.hpp"
#include "elidex/sync/backoff.hpp"
#include "elidex/thread_slot.hpp"

namespace elidex {

using db::isolation;

// Tables over ordered_map.
struct ordered_map_indexes {
  template <class Key>
  using map = ordered_map<Key, db::record*>;
};

// What transactions did.
struct database_stats {
  std::size_t commits = 0;
  std::size_t conflicts = 0;  // attempts that had to be repeated
};

template <class Commit = db::capability_commit, class Indexes = ordered_map_indexes>
class basic_database {
 public:
  template <class Key, class Row>
  using table = db::table<Key, Row, typename Indexes::template map<Key>>;

  basic_database() { detail::name_memory(&epochs_, sizeof epochs_, "epochs"); }
  basic_database(const basic_database&) = delete;
  basic_database& operator=(const basic_database&) = delete;

  // Throws schema_mismatch if there is a table of that name.
  template <class Key, class Row>
  table<Key, Row>& create_table(std::string name) {
    const std::lock_guard guard(tables_mutex_);
    for (const auto& one : tables_) {
      if (one->name() == name) throw db::schema_mismatch(name + ": there is a table of that name");
    }
    auto made = std::make_unique<table<Key, Row>>(std::move(name), static_cast<std::uint32_t>(tables_.size()));
    auto& result = *made;
    tables_.push_back(std::move(made));
    return result;
  }
  // Throws unknown_table; schema_mismatch if its keys or rows are of other types.
  template <class Key, class Row>
  table<Key, Row>& find_table(std::string_view name) {
    const std::lock_guard guard(tables_mutex_);
    for (const auto& one : tables_) {
      if (one->name() != name) continue;
      if (auto* const found = dynamic_cast<table<Key, Row>*>(one.get())) return *found;
      throw db::schema_mismatch(std::string(name) + ": its keys or rows are of other types");
    }
    throw db::unknown_table(std::string(name) + ": there is no table of that name");
  }

  template <class Fn>
  auto transact(isolation level, Fn&& fn) -> std::invoke_result_t<Fn&, db::transaction&> {
    const borrowed_memory memory(*this);
    for (backoff wait;; wait.once()) {
      db::transaction t(*memory, level);
      try {
        if constexpr (std::is_void_v<std::invoke_result_t<Fn&, db::transaction&>>) {
          fn(t);
          if (commits(t)) return;
        } else {
          auto result = fn(t);
          if (commits(t)) return result;
        }
      } catch (...) {
        // In this order: what holds at the second look has held since the first one, so both held when the reads were looked at.
        const bool believed = db::detail::reads_hold(t, false) && t.observations_hold();
        t.note_absent_records(false);
        if (believed) throw;
        conflicts_.add(1);
      }
    }
  }
  template <class Fn>
  auto transact(Fn&& fn) {
    return transact(isolation::serializable, std::forward<Fn>(fn));
  }

  // Must not be called inside read_only().
  template <class Fn>
  auto read_only(Fn&& fn) {
    db::snapshot_transaction t(epochs_);
    return fn(t);
  }

  // Unlinks what has been erased and frees versions' memory as far as snapshots allow it. Happens now and then by itself.
  void collect() {
    const std::lock_guard guard(tables_mutex_);
    collect_locked();
  }

  // Exact when nothing runs.
  database_stats stats() const noexcept { return {commits_.count(), conflicts_.count()}; }
  Commit& protocol() noexcept { return commit_; }

 private:
  // A collection looks at all tables; scans step over what is erased. Measured with TPC-C: 64 takes 12 % fewer instructions than 1024, 256 9 %.
  static constexpr std::size_t erases_per_collection = 128;

  // A thread's, from one transaction to the next.
  struct alignas(64) thread_memory {
    std::unique_ptr<db::transaction::memory> notes;
    bool in_use = false;
  };
  class borrowed_memory {
   public:
    explicit borrowed_memory(basic_database& from) : mine_(from.thread_memory_.at(this_thread_slot())) {
      if (mine_.in_use) throw std::logic_error("elidex::database: a transaction inside a transaction");
      if (!mine_.notes) mine_.notes = std::make_unique<db::transaction::memory>();
      mine_.in_use = true;
    }
    ~borrowed_memory() { mine_.in_use = false; }
    borrowed_memory(const borrowed_memory&) = delete;
    borrowed_memory& operator=(const borrowed_memory&) = delete;
    db::transaction::memory& operator*() const noexcept { return *mine_.notes; }

   private:
    thread_memory& mine_;
  };

  // False: run it again.
  bool commits(db::transaction& t) {
    if (commit_(t, epochs_) == db::commit_result::conflict) {
      t.note_absent_records(false);
      conflicts_.add(1);
      return false;
    }
    commits_.add(1);
    const std::size_t erased = t.note_absent_records(true);
    if (erased != 0 && erased_.fetch_add(erased) % erases_per_collection + erased >= erases_per_collection) {
      // Who finds somebody collecting leaves it to them.
      const std::unique_lock guard(tables_mutex_, std::try_to_lock);
      if (!guard.owns_lock()) return true;
      try {
        collect_locked();
      } catch (const std::bad_alloc&) {
        // The transaction has been committed whatever becomes of this; the next collection finds the rest.
      }
    }
    return true;
  }

  void collect_locked() {
    epochs_.advance();
    epochs_.move_horizon();
    const std::uint64_t horizon = epochs_.horizon();
    // An old snapshot holds it: what has been erased since is of later epochs, and looking at all of it each time would take ever longer.
    if (horizon == collected_up_to_) return;
    for (const auto& one : tables_) one->collect(horizon);
    collected_up_to_ = horizon;
  }

  db::commit_epochs epochs_;
  Commit commit_;
  std::mutex tables_mutex_;
  std::vector<std::unique_ptr<db::table_base>> tables_;
  std::uint64_t collected_up_to_ = 0;  // under tables_mutex_
  std::atomic<std::size_t> erased_{0};
  detail::sharded_counter commits_;
  detail::sharded_counter conflicts_;
  std::array<thread_memory, db::commit_epochs::threads_max> thread_memory_;
};

using database = basic_database<>;

}  // namespace elidex
