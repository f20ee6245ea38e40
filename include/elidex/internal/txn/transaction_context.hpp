// What a transaction has read and what it wants to write, for the protocols that commit it
// (commit_protocols.hpp). Users have transaction.hpp in front of it.
//
//   transaction_context& t = transaction_access::context(running);
//   t.sort_writes();
//   for (transaction_context::write& w : t.writes()) ...
//   t.committed_with(stamp);
//
// It notes
//   reads         records and the stamp that they had. An absent record is noted too, so that an
//                 insert by another transaction is detected.
//   writes        records and the new row, none for an erase. An insert puts an absent record into
//                 the index at once.
//   observations  keys that were not in the index, and ranges with the records that were there
//                 (phantoms). They are checked by looking again, which works with any index. The
//                 transaction's own inserts and uncommitted records do not count.
//
// Thread-safety: belongs to one thread. Errors: std::bad_alloc; std::logic_error for a table of
// another database, before anything is noted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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
    std::uint64_t* words;  // null: erase
    bool inserts;          // it was absent when it was first written
    // For the log: the row as it is until this commits; null: not known, or there is no log.
    const std::uint64_t* before = nullptr;
    record::version* spare = nullptr;    // for the row as it was, if a snapshot may want it
    record::version* cut_off = nullptr;  // what no snapshot can want any more
    commit_stamp had{};
  };

  // What it needs, for the next one to use again.
  class memory;

  // `database` is the address of the owner of the tables; null for tables without a database.
  transaction_context(memory& notes, isolation level, const void* database = nullptr);
  ~transaction_context();
  transaction_context(const transaction_context&) = delete;
  transaction_context& operator=(const transaction_context&) = delete;

  // What it has noted; for the protocols.
  isolation level() const noexcept { return level_; }
  const std::vector<read>& reads() const noexcept { return reads_; }
  std::vector<write>& writes() noexcept { return writes_; }
  const write* own(const record& r) const noexcept {
    return const_cast<transaction_context*>(this)->own(r);
  }
  // In the order of addresses, for locking.
  void sort_writes() noexcept {
    std::sort(writes_.begin(), writes_.end(), by_address);
    sorted_ = true;
  }
  // Throws what the map's get() and scan() throw: std::bad_alloc where a scan of 64 records needs
  // memory. The maps of index_sets.hpp need none for that.
  bool observations_hold() const {
    for (const auto& one : observations_) {
      if (!one->holds(*this)) return false;
    }
    return true;
  }

  // Of a database with a log: the worker of this thread.
  void log_with(redo_log::worker& worker) noexcept { log_ = &worker; }
  bool is_logged() const noexcept { return log_ != nullptr && !writes_.empty(); }
  // Its writes as a record of the log, before anything is locked: the last thing that may fail.
  void seal_for_log() {
    if (!is_logged() || logged_) return;
    redo_log::commit& record = logged_.emplace(*log_);
    for (const write& w : writes_) {
      const std::string_view key = w.of->key_bytes(*w.row);
      if (w.words == nullptr) {
        record.erase(w.of->id(), key);
      } else {
        const auto bytes = [&](const std::uint64_t* words) {
          return std::string_view(reinterpret_cast<const char*>(words),
                                  w.of->row_words() * sizeof *words);
        };
        if (w.before == nullptr) {
          record.upsert(w.of->id(), key, bytes(w.words));
        } else {
          record.change(w.of->id(), key, bytes(w.before), bytes(w.words));
        }
      }
    }
    record.seal();
  }
  // In the commit phase in which the epoch of the stamp was read.
  void committed_with(commit_stamp stamp) noexcept {
    committed_ = stamp;
    if (logged_) logged_->keep(stamp);
  }
  std::uint64_t newest_seen() const noexcept { return newest_seen_; }
  // All that this transaction has seen and done survives a crash once this epoch is durable, if
  // erased records stay until they are (level sync). After the commit.
  std::uint64_t epoch_to_be_durable() const noexcept {
    return writes_.empty() ? newest_seen_ : committed_.epoch();
  }
  // The same of what it has done alone; 0: nothing.
  std::uint64_t epoch_of_writes() const noexcept {
    return writes_.empty() ? 0 : committed_.epoch();
  }

  // After the commit, or without one: what is absent now is to leave the indexes. How many records
  // that were.
  std::size_t note_absent_records(bool committed) noexcept {
    std::size_t many = 0;
    for (const write& w : writes_) {
      if (committed ? w.words != nullptr : !w.inserts) continue;
      w.of->note_absent(*w.row);
      ++many;
    }
    return many;
  }

 protected:
  // For a transaction that keeps its records by other means (two_phase_transaction.hpp).
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
  // The records from `from` on, as many as there are in `seen`, and no other before `end`, if there
  // is one, or at all, if it is to the last. There is an end if the walk came to it, or stopped at
  // an insert of its own.
  template <class Table>
  struct range : observation {
    range(const Table& table, typename Table::key_argument begin) : of(table), from(begin) {}
    bool holds(const transaction_context& self) const override;
    const Table& of;
    const typename Table::key_type from;
    std::optional<typename Table::key_type> end;
    bool to_the_last = false;
    std::vector<const record*> seen;
  };
  // Now, because the caller's function may throw while the range is walked.
  template <class Table>
  range<Table>& watch(const Table& table, typename Table::key_argument from) {
    auto made = std::make_unique<range<Table>>(table, from);
    range<Table>& watched = *made;
    observations_.push_back(std::move(made));
    return watched;
  }

  // Throws std::out_of_range for an integer that the table's keys cannot be.
  template <class Table, class Key>
  static typename Table::key_argument argument(const Key& key) {
    return key_words<typename Table::key_type>::argument_of(key);
  }

  template <class Table>
  std::uint64_t* words_of(const Table& table, const typename Table::row_type& row) {
    std::uint64_t* const words = arena_.allocate(table.row_words());
    table.write_words(row, {words, table.row_words()});
    return words;
  }

  // A copy of a row that was read and may be changed; null without a log.
  const std::uint64_t* kept_for_log(std::span<const std::uint64_t> words) {
    if (log_ == nullptr) return nullptr;
    std::uint64_t* const kept = arena_.allocate(words.size());
    std::copy(words.begin(), words.end(), kept);
    return kept;
  }

  // The row as the transaction sees it, valid until the next is read; empty: not there. Its record,
  // if there is one.
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
      const std::optional<std::span<const std::uint64_t>> words = read_record(table, *found, note);
      if (words) return {found, *words};
    }
  }
  // No value: it is dead.
  std::optional<std::span<const std::uint64_t>> read_record(const table_base& table, record& r,
                                                            bool note) {
    if (const write* const mine = own(r)) {
      if (mine->words == nullptr) return std::span<const std::uint64_t>();
      return std::span<const std::uint64_t>(mine->words, table.row_words());
    }
    if (last_row_.size() < table.row_words()) last_row_.resize(table.row_words());
    const std::span<std::uint64_t> into(last_row_.data(), table.row_words());
    const commit_stamp seen = r.read(into);
    if (seen.dead()) return std::nullopt;
    note_seen(seen);
    if (note) reads_.push_back({&r, seen});  // no make_room(): may throw
    if (seen.absent()) return std::span<const std::uint64_t>();
    return into;
  }

  write* own(const record& r) noexcept {
    if (writes_.size() <= unindexed_writes_max) {
      for (write& w : writes_) {
        if (w.row == &r) return &w;
      }
      return nullptr;
    }
    if (sorted_) {
      const auto at = std::lower_bound(
          writes_.begin(), writes_.end(), &r,
          [](const write& w, const record* row) { return std::less<>()(w.row, row); });
      return at != writes_.end() && at->row == &r ? &*at : nullptr;
    }
    const std::uint32_t at = places_.find(r);
    return at == written_records::none ? nullptr : &writes_[at];
  }
  bool inserted(const record& r) const noexcept {
    const write* const mine = own(r);
    return mine != nullptr && mine->inserts;
  }
  // A record that was not in the index at the first look, and was never there in between: an insert
  // of one's own, or of somebody who has not committed. What has ever been committed counts, even
  // if it is absent again: it may have been there at the moment for which this transaction commits,
  // and is in the index as long as this one runs (table.hpp). Who locks it after this look commits
  // after this one.
  bool counts_not(const record& r) const noexcept {
    return r.stamp() == commit_stamp() || inserted(r);
  }
  // So that noting one more read and write does not fail: nothing is left half done in an index
  // then.
  void make_room() {
    const auto one_more = [](auto& notes) {
      if (notes.size() == notes.capacity())
        notes.reserve(std::max<std::size_t>(16, 2 * notes.size()));
    };
    one_more(reads_);
    one_more(writes_);
    if (writes_.size() >= unindexed_writes_max) places_.reserve(writes_.size() + 1);
  }
  // After make_room().
  write& note_write(table_base& table, record& r, std::uint64_t* words, bool inserts) noexcept {
    writes_.push_back({&r, &table, words, inserts, nullptr, nullptr, nullptr, {}});
    if (writes_.size() > unindexed_writes_max) {
      const std::size_t first = writes_.size() == unindexed_writes_max + 1 ? 0 : writes_.size() - 1;
      for (std::size_t i = first; i < writes_.size(); ++i) places_.add(*writes_[i].row, i);
    }
    return writes_.back();
  }
  // After make_room().
  void note_read(record& r, commit_stamp seen) noexcept { reads_.push_back({&r, seen}); }
  void note_seen(commit_stamp seen) noexcept {
    newest_seen_ = std::max(newest_seen_, seen.epoch());
  }
  // As long as the transaction is there; again: nothing.
  void pin() {
    if (!pinned_) pinned_.emplace();
  }

 private:
  static bool by_address(const write& a, const write& b) noexcept {
    return std::less<>()(a.row, b.row);
  }

  // Chosen: so many are found faster by looking at all.
  static constexpr std::size_t unindexed_writes_max = 8;

  const isolation level_;
  const void* const database_;
  std::optional<epoch_pin> pinned_;
  std::vector<read>& reads_;
  std::vector<write>& writes_;
  std::vector<std::unique_ptr<observation>>& observations_;
  bump_arena& arena_;
  written_records& places_;  // of writes_, if there are many, until they are sorted

 protected:
  std::vector<std::uint64_t>& last_row_;  // what was read last

 private:
  bool sorted_ = false;
  redo_log::worker* log_ = nullptr;
  std::optional<redo_log::commit> logged_;
  commit_stamp committed_{};
  std::uint64_t newest_seen_ = 0;  // epoch
};

class transaction_context::memory {
 private:
  friend class transaction_context;
  std::vector<read> reads_;
  std::vector<write> writes_;
  std::vector<std::unique_ptr<observation>> observations_;
  bump_arena arena_;
  written_records places_;
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
      arena_(notes.arena_),
      places_(notes.places_),
      last_row_(notes.last_row_) {}

inline transaction_context::~transaction_context() {
  for (write& w : writes_) {
    w.of->free_versions(w.spare);
    w.of->free_versions(w.cut_off);
  }
  reads_.clear();
  writes_.clear();
  observations_.clear();
  arena_.clear();
  places_.clear();
}

template <class Table>
bool transaction_context::range<Table>::holds(const transaction_context& self) const {
  std::size_t at = 0;
  bool same = true;
  const bool bounded = end || to_the_last;
  if (seen.empty() && !bounded) return true;
  const auto look = [&](const record* one) {
    // First, because what it has inserted later may have lain there already, absent.
    if (at < seen.size() && one == seen[at]) {
      ++at;
      return bounded || at < seen.size();
    }
    if (self.counts_not(*one)) return true;
    same = false;
    return false;
  };
  const bool to_the_end = of.walk(from, end, look);
  return same && at == seen.size() && (to_the_end || !bounded);
}

// How the database and its policies reach what a transaction has noted.
struct transaction_access {
  template <class Transaction>
  static transaction_context& context(Transaction& of) noexcept {
    return of;
  }
  template <class Transaction>
  static const transaction_context& context(const Transaction& of) noexcept {
    return of;
  }
  // A transaction of two-phase locking that gets no lock any more, and so will not commit.
  template <class Transaction>
  static bool is_doomed(const Transaction& of) noexcept {
    return of.is_doomed();
  }
};

}  // namespace elidex::internal
