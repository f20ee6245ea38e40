// What a transaction has read and what it will write, for the protocols that commit it
// (commit_protocols.hpp). Users have the interface in transaction.hpp.
//
//   transaction_context& t = transaction_access::context(running);
//   t.sort_writes();
//   for (const auto& [row, write] : t.writes_to_lock()) write->had = row->lock();
//   t.committed_with(stamp);
//
// A transaction notes
//   reads         Records and the stamps that they had. Absent records are noted too, so that an
//                 insert by another transaction is detected.
//   writes        Records and their new rows, or null for an erase. An insert puts an absent record
//                 into the index at once.
//   observations  Keys that were not in the index, and ranges with the records that were there
//                 (phantoms). A protocol validates them by looking again, which works with any
//                 index. The transaction's own inserts and uncommitted records do not count.
//
// Thread-safety: belongs to one thread.
// Errors: std::bad_alloc, and std::logic_error for a table of another database, before anything is
// noted.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "elidex/internal/log/redo_log.hpp"
#include "elidex/internal/memory/bump_arena.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/table.hpp"
#include "elidex/internal/txn/written_records.hpp"

namespace elidex::internal {

enum class isolation : std::uint8_t {
  read_uncommitted,
  read_committed,
  repeatable_read,
  serializable
};

class transaction_context {
 public:
  struct read {
    record* row;
    commit_stamp seen;
  };
  struct write {
    record* row;
    table_base* of;
    std::span<const std::uint64_t> words;  // empty: erase
    bool inserts;                          // the record was absent when it was first written
    // For rows with bodies: the table has reserved room for what this write retires.
    bool may_retire = false;
    bool keeps_version = false;  // the commit kept the former row for snapshots
    // For the log: the row as it is until this commits. Empty: unknown, or there is no log.
    std::span<const std::uint64_t> before{};
    record::version* spare = nullptr;     // for the old row, if a snapshot may need it
    record::version* cut_off = nullptr;   // versions that no snapshot can need any more
    std::uint64_t* body = nullptr;        // a copy of `words`, if they are longer than the room
    std::span<std::uint64_t> old_body{};  // of the row that was overwritten, if no version has it
    commit_stamp had{};

    bool erases() const noexcept { return words.empty(); }
  };

  struct write_to_lock {
    record* row;
    write* of;
  };

  // The memory of a transaction, for the next one to use again.
  class memory;

  // A moment in a transaction, to which rollback_to() returns.
  class savepoint {
    friend class transaction_context;
    savepoint(const transaction_context& of, std::uint64_t number) : of_(&of), number_(number) {}
    const transaction_context* of_;
    std::uint64_t number_;
  };
  // Valid until the transaction ends or rolls back to an earlier savepoint. Throws std::bad_alloc.
  savepoint set_savepoint() {
    static constinit std::atomic<std::uint64_t> last{0};  // numbers never repeat in a process
    const std::uint64_t number = last.fetch_add(1);
    savepoints_.push_back({number, writes_.size(), overwritten_.size()});
    return {*this, number};
  }
  // Undoes what the transaction has written since then. Its reads still count: the commit validates
  // them. Under two-phase locking it keeps its locks. `to` stays valid. Throws std::logic_error if
  // `to` is not valid, or inside a function of update(), and changes nothing.
  void rollback_to(const savepoint& to);

  // `database` is the address of the owner of the tables, or null for tables without a database.
  transaction_context(memory& notes, isolation level, const void* database = nullptr);
  ~transaction_context();
  transaction_context(const transaction_context&) = delete;
  transaction_context& operator=(const transaction_context&) = delete;

  // The notes, for the protocols.
  isolation level() const noexcept { return level_; }
  const std::vector<read>& reads() const noexcept { return reads_; }
  std::vector<write>& writes() noexcept { return writes_; }
  const write* own(const record& r) const noexcept {
    return const_cast<transaction_context*>(this)->own(r);
  }
  // Sorts the writes by their records' addresses, which is the order of locking. Throws
  // std::bad_alloc.
  void sort_writes() {
    to_lock_.clear();
    to_lock_.reserve(writes_.size());
    for (write& w : writes_) to_lock_.push_back({w.row, &w});
    std::sort(to_lock_.begin(), to_lock_.end(), [](const write_to_lock& a, const write_to_lock& b) {
      return std::less<>()(a.row, b.row);
    });
  }
  // The writes in the order of locking. sort_writes() has been called since the last write.
  std::span<const write_to_lock> writes_to_lock() const noexcept { return to_lock_; }
  // Throws what the map's get() and scan() throw: std::bad_alloc if a scan of 64 records needs
  // memory. The maps of index_sets.hpp need none.
  bool observations_hold() const {
    for (const auto& one : observations_) {
      if (!one->holds(*this)) return false;
    }
    return true;
  }

  // For a database with a log. `worker` is this thread's.
  void log_with(redo_log::worker& worker) noexcept { log_ = &worker; }
  bool is_logged() const noexcept { return log_ != nullptr && !writes_.empty(); }
  // Stages the writes as a record of the log, before anything is locked. This is the last step that
  // may fail.
  void seal_for_log() {
    if (!is_logged() || logged_) return;
    redo_log::commit& record = logged_.emplace(*log_);
    for (const write& w : writes_) {
      const std::string_view key = w.of->key_bytes(*w.row);
      if (w.erases()) {
        record.erase(w.of->id(), key);
      } else if (w.before.empty()) {
        record.upsert(w.of->id(), key, bytes_of(w.words));
      } else {
        record.change(w.of->id(), key, bytes_of(w.before), bytes_of(w.words));
      }
    }
  }
  // To be called in the commit phase in which the stamp's group was read.
  void committed_with(commit_stamp stamp) noexcept {
    committed_ = stamp;
    if (logged_) logged_->keep(stamp);
  }
  std::uint64_t newest_seen() const noexcept { return newest_seen_; }
  // Everything that this transaction has seen and written survives a crash once this group is
  // durable. This requires that erased records stay until their erase is durable (level sync). To
  // be called after the commit.
  std::uint64_t group_to_be_durable() const noexcept {
    return writes_.empty() ? newest_seen_ : committed_.group();
  }
  // The same for the writes alone. 0: there are none.
  std::uint64_t group_of_writes() const noexcept {
    return writes_.empty() ? 0 : committed_.group();
  }

  // Whether its commit should look for the end of the snapshots for which this thread's commits
  // keep versions, although another commit of the group has looked. Now and then, because the group
  // may not change for long.
  bool should_look_at_snapshots() noexcept { return std::exchange(kept_.looks, false); }

  // Puts the records that are absent now on the lists of records to unlink, and counts the versions
  // that the commit has kept. To be called after the commit, or without one. Returns how much work
  // this is for a collection: 1 for each absent record, and for each versions_per_work versions of
  // this thread.
  std::size_t note_for_collection(bool committed) noexcept {
    std::size_t work = 0;
    for (const write& w : writes_) {
      if (committed && w.keeps_version) {
        w.of->count_kept_version();
        if (++kept_.versions % versions_per_work == 0) ++work;
        if (kept_.versions % versions_per_look == 0) kept_.looks = true;
      }
      if (committed ? !w.erases() : !w.inserts) continue;
      w.of->note_absent(*w.row);
      ++work;
    }
    return work;
  }

 protected:
  // For a transaction that keeps its records by other means than a pin (two_phase_transaction.hpp).
  struct unpinned {};
  transaction_context(memory& notes, isolation level, const void* database, unpinned);

  void check_is_ours(const table_base& table) const { table.check_owner(database_); }

  struct observation {
    virtual ~observation() = default;
    virtual bool holds(const transaction_context& self) const = 0;
  };
  template <class Table>
  struct absence : observation {
    absence(const Table& table, typename Table::key_argument missing) : of(table), key(missing) {}
    bool holds(const transaction_context& self) const override {
      const record* const now = of.find(key);
      return now == nullptr || self.counts_not(*now);
    }
    const Table& of;
    const typename Table::key_type key;
  };
  // Holds if the records of the range are those of `seen`. A scan that is not complete has read the
  // range up to `last`, which is null if it has read nothing.
  template <class Table>
  struct range : observation {
    range(const Table& table, const typename Table::range& which)
        : of(table), lower(which.lower), upper(which.upper), scanned(which) {
      if (lower) scanned.lower.emplace(*lower);
      if (upper) scanned.upper.emplace(*upper);
    }
    bool holds(const transaction_context& self) const override;
    const Table& of;
    const std::optional<typename Table::key_type> lower;
    const std::optional<typename Table::key_type> upper;
    typename Table::range scanned;  // with the bounds above
    bool complete = false;
    const record* last = nullptr;
    std::vector<const record*> seen;  // in the direction of the scan
  };
  // Exists while the caller's function of update() runs.
  class running_update {
   public:
    explicit running_update(transaction_context& of) noexcept : of_(of) { ++of_.updates_running_; }
    ~running_update() { --of_.updates_running_; }
    running_update(const running_update&) = delete;
    running_update& operator=(const running_update&) = delete;

   private:
    transaction_context& of_;
  };
  // Replaces what the transaction writes to a row. To be called after make_room().
  void overwrite(write& mine, std::span<const std::uint64_t> words) noexcept {
    if (!savepoints_.empty())
      overwritten_.push_back({static_cast<std::size_t>(&mine - writes_.data()), mine.words});
    mine.words = words;
  }
  // Registers the range before the walk, because the caller's function may throw during it.
  template <class Table>
  range<Table>& watch(const Table& table, const typename Table::range& which) {
    auto made = std::make_unique<range<Table>>(table, which);
    range<Table>& watched = *made;
    observations_.push_back(std::move(made));
    return watched;
  }

  // Throws std::out_of_range for an integer outside the range of the table's keys.
  template <class Table, class Key>
  static typename Table::key_argument argument(const Key& key) {
    return key_words<typename Table::key_type>::argument_of(key);
  }

  template <class Table>
  std::span<const std::uint64_t> words_of(const Table& table, const typename Table::row_type& row) {
    const std::size_t many = table.word_count(row);
    const std::span<std::uint64_t> words(arena_.allocate(many), many);
    table.write_words(row, words);
    return words;
  }

  // Returns a copy of a row that was read and may be changed. Empty without a log.
  std::span<const std::uint64_t> kept_for_log(std::span<const std::uint64_t> words) {
    return log_ == nullptr ? std::span<const std::uint64_t>() : copy_of(words);
  }
  // The copy is valid until the transaction ends.
  std::span<const std::uint64_t> copy_of(std::span<const std::uint64_t> words) {
    std::uint64_t* const kept = arena_.allocate(words.size());
    std::copy(words.begin(), words.end(), kept);
    return {kept, words.size()};
  }

  // The row as the transaction sees it, and its record if there is one. `words` is valid until the
  // next read, and empty if there is no row.
  struct found_row {
    record* of;
    std::span<const std::uint64_t> words;
  };
  template <class Table>
  found_row find_row(Table& table, typename Table::key_argument key, bool note) {
    for (;;) {
      record* const found = table.find(key);
      if (found == nullptr) {
        if (note && level_ == isolation::serializable)
          observations_.push_back(std::make_unique<absence<Table>>(table, key));
        return {nullptr, {}};
      }
      const std::optional<std::span<const std::uint64_t>> words = read_record(*found, note);
      if (words) return {found, *words};
    }
  }
  // The same, if find_all() has returned `found` for the key.
  template <class Table>
  found_row find_row(Table& table, typename Table::key_argument key,
                     const std::optional<record*>& found, bool note) {
    if (found) {
      if (const auto words = read_record(**found, note)) return {*found, *words};
    }
    // No record, or a dead one: this notes the absence, or finds a new record.
    return find_row(table, key, note);
  }
  // Returns no value if the record is dead.
  std::optional<std::span<const std::uint64_t>> read_record(record& r, bool note) {
    if (const write* const mine = own(r)) return mine->words;
    const record::seen_row seen = r.read(last_row_);
    if (seen.stamp.dead()) return std::nullopt;
    note_seen(seen.stamp);
    if (note) reads_.push_back({&r, seen.stamp});  // may throw: no make_room() before
    return seen.words;
  }

  write* own(const record& r) noexcept { return written_.may_have(r) ? find_own(r) : nullptr; }
  bool inserted(const record& r) const noexcept {
    const write* const mine = own(r);
    return mine != nullptr && mine->inserts;
  }
  // Whether the record does not count for an observation. Such a record was not in the index at the
  // first look, and has never been present since. It is an insert of this transaction, or of one
  // that has not committed. A record that was ever committed counts, even if it is absent again. It
  // may have been present at the moment for which this transaction commits, and it stays in the
  // index while this transaction runs (table.hpp). A transaction that locks the record after this
  // look commits after this one.
  bool counts_not(const record& r) const noexcept {
    return r.stamp() == commit_stamp() || inserted(r);
  }
  // Reserves memory, so that noting one more read and write does not fail. A failure would leave a
  // change to an index half done.
  void make_room() {
    const auto one_more = [](auto& notes) {
      if (notes.size() == notes.capacity())
        notes.reserve(std::max<std::size_t>(16, 2 * notes.size()));
    };
    one_more(reads_);
    one_more(writes_);
    if (!savepoints_.empty()) one_more(overwritten_);
    if (writes_.size() >= unindexed_writes_max) places_.reserve(writes_.size() + 1);
  }
  // To be called after make_room().
  write& note_write(table_base& table, record& r, std::span<const std::uint64_t> words,
                    bool inserts) noexcept {
    writes_.push_back({.row = &r, .of = &table, .words = words, .inserts = inserts});
    written_.add(r);
    index_writes(writes_.size() == unindexed_writes_max + 1 ? 0 : writes_.size() - 1);
    return writes_.back();
  }
  // To be called after make_room().
  void note_read(record& r, commit_stamp seen) noexcept { reads_.push_back({&r, seen}); }
  void note_seen(commit_stamp seen) noexcept {
    newest_seen_ = std::max(newest_seen_, seen.group());
  }
  // Pins this thread until the transaction is destroyed. A second call does nothing.
  void pin() {
    if (!pinned_) pinned_.emplace();
  }

 private:
  // A transaction does not write most of the records that it reads. This set of bits finds that out
  // without a search.
  class set_of_writes {
   public:
    // May be true for a record that was not added.
    bool may_have(const record& one) const noexcept { return (bits_[index(one)] & mask(one)) != 0; }
    void add(const record& one) noexcept { bits_[index(one)] |= mask(one); }

   private:
    static std::size_t index(const record& one) noexcept { return hash_of(&one) >> 62U; }
    static std::uint64_t mask(const record& one) noexcept {
      return std::uint64_t{1} << (hash_of(&one) >> 56U & 63U);
    }
    std::array<std::uint64_t, 4> bits_{};
  };

  write* find_own(const record& r) noexcept {
    if (writes_.size() <= unindexed_writes_max) {
      for (write& w : writes_) {
        if (w.row == &r) return &w;
      }
      return nullptr;
    }
    const std::uint32_t at = places_.find(r);
    return at == written_records::none ? nullptr : &writes_[at];
  }

  struct mark {
    std::uint64_t number;  // of the savepoint
    std::size_t writes;    // how many there were
    std::size_t overwritten;
  };
  struct overwritten {
    std::size_t at;  // in writes_
    std::span<const std::uint64_t> words;
  };
  // Adds the writes from `first` on to places_, if they are many. There is room.
  void index_writes(std::size_t first) noexcept {
    if (writes_.size() <= unindexed_writes_max) return;
    for (std::size_t i = first; i < writes_.size(); ++i) places_.add(*writes_[i].row, i);
  }
  // Chosen: a linear search is faster for up to so many.
  static constexpr std::size_t unindexed_writes_max = 8;

  // Chosen: scans skip absent records, and nothing is slower because of a version.
  static constexpr std::uint32_t versions_per_work = 16;
  static constexpr std::uint32_t versions_per_look = 64;  // chosen

  const isolation level_;
  const void* const database_;
  std::optional<epoch_pin> pinned_;
  std::vector<read>& reads_;
  std::vector<write>& writes_;
  std::vector<std::unique_ptr<observation>>& observations_;
  std::vector<mark>& savepoints_;
  std::vector<overwritten>& overwritten_;  // since the first savepoint
  bump_arena& arena_;
  written_records& places_;  // the index of writes_, if they are many
  std::vector<write_to_lock>& to_lock_;
  struct kept_by_thread {
    std::uint32_t versions = 0;  // of this thread's commits, modulo 2^32
    bool looks = false;          // should_look_at_snapshots()
  };
  kept_by_thread& kept_;

 protected:
  std::vector<std::uint64_t>& last_row_;  // the row that was read last

 private:
  set_of_writes written_;
  std::size_t updates_running_ = 0;
  redo_log::worker* log_ = nullptr;
  std::optional<redo_log::commit> logged_;
  commit_stamp committed_{};
  std::uint64_t newest_seen_ = 0;  // a commit group
};

class transaction_context::memory {
 private:
  friend class transaction_context;
  std::vector<read> reads_;
  std::vector<write> writes_;
  std::vector<std::unique_ptr<observation>> observations_;
  std::vector<mark> savepoints_;
  std::vector<overwritten> overwritten_;
  bump_arena arena_;
  written_records places_;
  std::vector<write_to_lock> to_lock_;
  kept_by_thread kept_;
  std::vector<std::uint64_t> last_row_;
};

inline transaction_context::transaction_context(memory& notes, isolation level,
                                                const void* database)
    : transaction_context(notes, level, database, unpinned()) {
  pin();
}

inline transaction_context::transaction_context(memory& notes, isolation level,
                                                const void* database, unpinned)
    : level_(level),
      database_(database),
      reads_(notes.reads_),
      writes_(notes.writes_),
      observations_(notes.observations_),
      savepoints_(notes.savepoints_),
      overwritten_(notes.overwritten_),
      arena_(notes.arena_),
      places_(notes.places_),
      to_lock_(notes.to_lock_),
      kept_(notes.kept_),
      last_row_(notes.last_row_) {}

inline transaction_context::~transaction_context() {
  for (write& w : writes_) {
    w.of->free_versions(w.spare);
    if (!w.may_retire) {
      w.of->free_versions(w.cut_off);
      continue;
    }
    delete[] w.body;
    w.of->retire_body(w.old_body);
    w.of->retire_versions(w.cut_off);
    w.of->unreserve_retirement();
  }
  reads_.clear();
  writes_.clear();
  observations_.clear();
  savepoints_.clear();
  overwritten_.clear();
  arena_.clear();
  places_.clear();
}

// An insert that is undone stays among the writes, and erases its row. Its record stays in the
// index until the transaction ends, and observations must skip it (counts_not()).
inline void transaction_context::rollback_to(const savepoint& to) {
  const auto found = std::find_if(savepoints_.begin(), savepoints_.end(),
                                  [&](const mark& one) { return one.number == to.number_; });
  if (updates_running_ != 0)
    throw std::logic_error("elidex: rollback_to() inside a function of update()");
  if (to.of_ != this || found == savepoints_.end())
    throw std::logic_error(
        "elidex: rollback_to() with a savepoint of another or a finished transaction, or one that "
        "an earlier rollback_to() has undone");
  savepoints_.erase(std::next(found), savepoints_.end());
  for (; overwritten_.size() > found->overwritten; overwritten_.pop_back())
    writes_[overwritten_.back().at].words = overwritten_.back().words;
  const auto since = writes_.begin() + static_cast<std::ptrdiff_t>(found->writes);
  writes_.erase(std::remove_if(since, writes_.end(), [](const write& w) { return !w.inserts; }),
                writes_.end());
  for (auto w = since; w != writes_.end(); ++w) w->words = {};
  places_.clear();
  index_writes(0);
}

// Looks again in ascending order, which allocates nothing.
template <class Table>
bool transaction_context::range<Table>::holds(const transaction_context& self) const {
  if (!complete && last == nullptr) return true;
  typename Table::range again = scanned;
  again.descends = false;
  if (!complete) {
    const typename Table::key_argument key = key_words<typename Table::key_type>::of(last->key());
    (scanned.descends ? again.lower : again.upper).emplace(key);
    (scanned.descends ? again.without_lower : again.with_upper) = !scanned.descends;
  }
  const record* const end = complete || scanned.descends ? nullptr : last;
  std::size_t at = 0;
  bool same = true;
  of.walk(again, [&](const record* one) {
    // This check comes first: the walk may have seen a record, absent, that the transaction
    // inserted later.
    if (at < seen.size() && one == seen[scanned.descends ? seen.size() - 1 - at : at]) {
      ++at;
      return one != end;
    }
    same = self.counts_not(*one);
    return same;
  });
  return same && at == seen.size();
}

// Gives the database and its policies access to a transaction's notes.
struct transaction_access {
  template <class Transaction>
  static transaction_context& context(Transaction& of) noexcept {
    return of;
  }
  template <class Transaction>
  static const transaction_context& context(const Transaction& of) noexcept {
    return of;
  }
  // Whether a transaction of two-phase locking gets no more locks, and so will not commit.
  template <class Transaction>
  static bool is_doomed(const Transaction& of) noexcept {
    return of.is_doomed();
  }
};

}  // namespace elidex::internal
