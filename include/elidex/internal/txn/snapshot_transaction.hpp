// A transaction that only reads: it sees the database as it was when it began. It never aborts, and
// writers never wait for it.
//
//   db.read_only([&](auto& t) { ... t.get(accounts, 1) ... t.scan(accounts, from(10), fn) ... });
//
// Thread-safety: belongs to one thread.
// Complexity: O(log n) for one key of a table of n rows, and a copy of the row. A scan adds O(1)
// for each row. Both also step over the versions that are newer than the snapshot. Memory is not
// reclaimed while the function of a scan runs.
// Errors: std::logic_error for a table of another database, schema_mismatch for one whose columns
// were changed since or before (column_change.hpp), std::bad_alloc, and what Key and the caller's
// functions throw.
//
// Implementation notes
// It reads the versions of its commit group (commit_clock.hpp) and notes nothing. While it lives,
// the versions that it can read are kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/txn/commit_clock.hpp"
#include "elidex/internal/txn/table.hpp"
#include "elidex/internal/txn/table_scans.hpp"
#include "elidex/internal/visitor.hpp"

namespace elidex::internal {

class snapshot_transaction : public table_scans<snapshot_transaction> {
 public:
  // `database` is the address of the owner of the tables, or null for tables without a database.
  explicit snapshot_transaction(commit_clock& clock, const void* database = nullptr)
      : database_(database), snapshot_(clock) {}

  // Returns a copy of the row, or std::nullopt.
  template <class Table, class Key>
  std::optional<typename Table::row_type> get(const Table& table, const Key& key) {
    table.check_snapshot(database_, snapshot_.group());
    const epoch_pin pinned;
    const record* const found = table.find(key_words<typename Table::key_type>::argument_of(key));
    return found == nullptr ? std::nullopt : read(table, *found);
  }

  // Returns the commit group that the snapshot shows.
  std::uint64_t group() const noexcept { return snapshot_.group(); }
  // Everything that the transaction has seen survives a crash once this group is durable. This
  // requires that erased records stay until their erase is durable (level sync).
  std::uint64_t group_to_be_durable() const noexcept { return newest_seen_; }

 private:
  friend table_scans<snapshot_transaction>;

  template <class Table, class Fn>
  void scan_range(const Table& table, const typename Table::range& which, Fn& fn) {
    table.check_snapshot(database_, snapshot_.group());
    const epoch_pin pinned;
    table.template walk<walk_reads::rows>(which, [&](const record* one) {
      const std::optional<const typename Table::row_type> row = read(table, *one);
      if (!row) return true;
      const typename Table::key_argument key = key_words<typename Table::key_type>::of(one->key());
      return visits_on(fn, key, *row);
    });
  }
  template <class Table, class Fn>
  void get_all(const Table& table, std::span<const typename Table::key_argument> keys, Fn&& fn) {
    table.check_snapshot(database_, snapshot_.group());
    const epoch_pin pinned;
    const auto found = table.find_all(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!found[i]) continue;
      if (auto row = read(table, **found[i])) fn(i, *std::move(row));
    }
  }
  template <class Table>
  std::optional<typename Table::row_type> read(const Table& table, const record& from) {
    const record::seen_row seen = from.read_as_of(snapshot_.group(), buffer_);
    newest_seen_ = std::max(newest_seen_, seen.stamp.group());
    if (seen.stamp.absent()) return std::nullopt;
    return table.row_of(seen.words);
  }

  const void* const database_;
  const commit_clock::snapshot snapshot_;
  std::vector<std::uint64_t> buffer_;
  std::uint64_t newest_seen_ = 0;
};

}  // namespace elidex::internal
