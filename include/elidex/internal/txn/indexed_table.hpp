// A table with secondary indexes. The functions that change its rows keep the indexes up to date.
//
//   auto& accounts = db.create_table<std::uint64_t, account>("accounts");
//   elidex::db::indexed_table by(db, accounts);
//   const auto owner = by.add_index<std::string>(
//       "accounts by owner", [](std::uint64_t, const account& a) { return a.owner_name(); });
//   const auto number = by.add_unique_index<std::int64_t>("accounts by number", number_of);
//   db.transact([&](auto& t) {
//     // also update, upsert, erase: indexes and table together, or nothing (duplicate_key)
//     by.insert(t, 7, ada);
//     by.find(t, owner, "Ada", [&](std::uint64_t key, const account& row) { ...; return true; });
//     by.scan(t, number, between(100, 200), fn);         // in the index's order
//   });
//
// An index's function maps a row to the value that the index orders. The function must always
// return the same value for the same row. A change of the table that bypasses this class does not
// update the indexes. The database's Indexes must support string keys.
//
// Thread-safety: after the last add_index(), all members from any thread, each in a transaction of
// its own.
// Lifetime: table and database outlive the indexed table.
// Errors:
//   duplicate_key     Also for a value that a unique index already has. Row and indexes are
//                     unchanged, and a function that catches it may continue.
//   std::logic_error  A transaction of another database, or an index of another indexed_table. The
//                     call changes nothing.
//   std::bad_alloc    The transaction must not be committed.
//   others            Those of the transaction and of the caller's functions.
//
// Implementation notes
// An index is a table of its own. Its key (ordered_key) is the value that the function returns,
// followed by the row's key. So entries with equal values are adjacent, in the order of the rows'
// keys. Phantoms are detected as in any table. In a unique index the value is the whole key, so a
// second row with the value causes duplicate_key at every isolation level.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/tree/map_bounds.hpp"
#include "elidex/internal/tree/value_change.hpp"
#include "elidex/internal/txn/errors.hpp"
#include "elidex/internal/txn/ordered_key.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/table.hpp"
#include "elidex/internal/txn/table_scans.hpp"
#include "elidex/internal/visitor.hpp"

namespace elidex {

template <class Commit, class Indexes>
class basic_database;

namespace internal {

// The mark by which tables identify their database, also if a class is derived from it.
template <class Commit, class Indexes>
const void* owner_mark(const basic_database<Commit, Indexes>& database) noexcept {
  return &database;
}

template <class Database, class Table>
class indexed_table {
  // The values of an index as keys of a range.
  template <class Value>
  using range_value =
      std::conditional_t<std::is_convertible_v<const Value&, std::string_view>, std::string, Value>;
  // Identifies the row of an entry. A string key does not fit in here: it is the end of the index's
  // key.
  struct integer_entry {
    typename Table::key_type key;
  };
  struct string_entry {
    std::uint32_t value_bytes;
  };
  using entry =
      std::conditional_t<std::integral<typename Table::key_type>, integer_entry, string_entry>;
  using index_table = typename Database::template table<std::string, entry>;

 public:
  using key_type = typename Table::key_type;
  using key_argument = typename Table::key_argument;
  using row_type = typename Table::row_type;

  // A handle to an index of values of this type.
  template <class Value>
  class index_of {
    friend class indexed_table;
    explicit index_of(const index_table& entries) noexcept : entries_(&entries) {}
    const index_table* entries_;
  };

  // Throws std::logic_error if another database made the table.
  indexed_table(Database& db, Table& table) : db_(db), table_(table) {
    table.check_owner(owner_mark(db));
  }

  // Adds an index. Call it before the table's first row, and before open(). Throws what
  // create_table() throws, and std::logic_error if the table has rows. If the directory has rows
  // but not the index, open() makes the index from the rows. open() then throws duplicate_key if
  // two rows have one value of a unique index, and leaves the directory as it was.
  template <class Value, class Fn>
  index_of<Value> add_index(std::string name, Fn value_of) {
    return add<Value>(std::move(name), std::move(value_of), false);
  }
  // The same, for an index in which each value occurs once. The table's keys must be integers.
  template <class Value, class Fn>
    requires std::integral<key_type>
  index_of<Value> add_unique_index(std::string name, Fn value_of) {
    return add<Value>(std::move(name), std::move(value_of), true);
  }

  // Returns a copy of the row, or std::nullopt.
  template <class Transaction>
  std::optional<row_type> get(Transaction& t, key_argument key) const {
    return t.get(table_, key);
  }
  // Adds the row and its entries. Throws duplicate_key if the key, or a value of a unique index, is
  // present.
  template <class Transaction>
  void insert(Transaction& t, key_argument key, const row_type& row) const {
    t.insert(table_, key, row);
    add_entries(t, key, row);
  }
  // Returns false if the key is absent. Like the table's update(), it notes its read at every
  // isolation level, so that table and indexes agree. `change` must not write the same row: the
  // indexes would keep entries of the row's value in between.
  template <class Transaction, value_change<row_type> Fn>
  bool update(Transaction& t, key_argument key, Fn&& change) const {
    return t.update(table_, key, [&](row_type& row) {
      const row_type before = row;
      change(row);
      move_entries(t, key, &before, row);  // if it throws, the row is unchanged, too
    });
  }
  // Writes the row whether or not the key is present.
  template <class Transaction>
  void upsert(Transaction& t, key_argument key, const row_type& row) const {
    for (;;) {
      if (update(t, key, [&](row_type& there) { there = row; })) return;
      bool came_in_between = false;  // possible below serializable
      try {
        t.insert(table_, key, row);
      } catch (const duplicate_key&) {
        came_in_between = true;
      }
      if (came_in_between) continue;
      add_entries(t, key, row);
      return;
    }
  }
  // Returns false if the key is absent.
  template <class Transaction>
  bool erase(Transaction& t, key_argument key) const {
    std::optional<row_type> before;
    if (!t.update(table_, key, [&](row_type& row) { before = row; })) return false;
    std::vector<std::string> values;  // before any change, because value_of may throw
    values.reserve(indexes_.size());
    for (const index& one : indexes_) values.push_back(one.value_of(key, *before));
    t.erase(table_, key);
    for (std::size_t i = 0; i < values.size(); ++i) erase_entry(t, indexes_[i], key, values[i]);
    return true;
  }

  // Erases the rows of a range of keys, and their entries. Returns their number.
  template <class Transaction, class Bounds>
    requires bounds_of<Bounds, key_type>
  std::size_t erase(Transaction& t, const Bounds& which) const {
    return erase_range(t, table_, which, [&](const key_type& key) { return erase(t, key); });
  }

  // Calls fn(key, row) for the rows with that value, in the order of their keys. fn may return
  // false to end the search. Works in snapshots, too.
  template <class Transaction, class Value, class Fn>
  void find(Transaction& t, index_of<Value> in, const std::type_identity_t<Value>& value,
            Fn&& fn) const {
    const std::string from = ordered_key().add(value).take();
    t.scan(entries_of(in), from, end_of_prefix(from), row_of_entry(t, fn));
  }
  // The same for the values of a range, in the order of the values, or in the opposite order of
  // bounds.descending(). Rows with equal values come in the order of their keys, or its opposite.
  template <class Transaction, class Value, class Bounds, class Fn>
    requires bounds_of<Bounds, range_value<Value>>
  void scan(Transaction& t, index_of<Value> in, const Bounds& which, Fn&& fn) const {
    t.scan(entries_of(in), entries_between(map_bounds<range_value<Value>>(which)),
           row_of_entry(t, fn));
  }
  // The same for values in [from, to).
  template <class Transaction, class Value, class Fn>
  void scan(Transaction& t, index_of<Value> in, const std::type_identity_t<Value>& from,
            const std::type_identity_t<Value>& to, Fn&& fn) const {
    t.scan(entries_of(in), ordered_key().add(from).take(), ordered_key().add(to).take(),
           row_of_entry(t, fn));
  }
  // The same for all values from `from` on.
  template <class Transaction, class Value, class Fn>
  void scan(Transaction& t, index_of<Value> in, const std::type_identity_t<Value>& from,
            Fn&& fn) const {
    t.scan(entries_of(in), ordered_key().add(from).take(), row_of_entry(t, fn));
  }

 private:
  struct index {
    index_table* entries;
    std::function<std::string(key_argument, const row_type&)> value_of;
    bool unique;
  };

  template <class Value, class Fn>
  index_of<Value> add(std::string name, Fn value_of, bool unique) {
    if (table_.has_rows())
      throw std::logic_error(name +
                             ": the table has rows (expected an index before the first row)");
    auto& entries = db_.template create_table<std::string, entry>(std::move(name));
    const index& added = indexes_.emplace_back(
        index{&entries,
              [value_of = std::move(value_of)](key_argument key, const row_type& row) {
                return ordered_key().add(Value(value_of(key, row))).take();
              },
              unique});
    // The indexed_table may be gone when open() fills the index.
    entries.set_indexed(table_, [&table = table_, in = added] { fill(table, in); });
    return index_of<Value>(entries);
  }
  // Throws std::logic_error for an index of another indexed_table.
  template <class Value>
  index_table& entries_of(index_of<Value> in) const {
    for (const index& one : indexes_) {
      if (one.entries == in.entries_) return *one.entries;
    }
    throw std::logic_error(table_.name() + ": an index of another indexed_table");
  }

  // The keys of the entries whose values are in the range.
  template <class Value>
  static map_bounds<std::string> entries_between(const map_bounds<Value>& which) {
    const auto values = which.get();
    const auto image = [](const auto& value, bool behind_its_entries) {
      std::string bytes = ordered_key().add(map_key<Value>::decoded(value)).take();
      return behind_its_entries ? end_of_prefix(bytes) : bytes;
    };
    std::optional<std::string> lower;
    std::optional<std::string> upper;
    if (values.lower) lower = image(*values.lower, values.without_lower);
    if (values.upper) upper = image(*values.upper, values.with_upper);
    return map_bounds<std::string>::of_tree_keys(std::move(lower), std::move(upper),
                                                 values.descends);
  }

  // Makes the entries of all rows, before other threads have the tables.
  static void fill(const Table& table, const index& in) {
    const epoch_pin pinned;
    std::vector<std::uint64_t> buffer;
    table.for_each_record([&](const record& one) {
      const record::seen_row seen = one.read(buffer);
      if (seen.stamp.absent()) return;
      const key_argument key = key_words<key_type>::of(one.key());
      const std::string value = in.value_of(key, table.row_of(seen.words));
      if (!in.entries->load_row(entry_key(in, key, value), make_entry(key, value), seen.stamp))
        throw duplicate_key(in.entries->name() +
                            ": two rows of the directory have one value (expected: unique)");
    });
  }
  static entry make_entry(key_argument key, const std::string& value) {
    entry made;
    if constexpr (std::integral<key_type>) {
      made.key = key;
    } else {
      made.value_bytes = static_cast<std::uint32_t>(value.size());
    }
    return made;
  }
  static std::string entry_key(const index& in, key_argument key, const std::string& value) {
    return in.unique ? value : value + ordered_key().add(key).take();
  }
  static key_type row_key(std::string_view entry_key, const entry& one) {
    if constexpr (std::integral<key_type>) {
      return one.key;
    } else {
      return string_of_image(entry_key.substr(one.value_bytes));
    }
  }

  template <class Transaction>
  static void add_entry(Transaction& t, const index& to, key_argument key,
                        const std::string& value) {
    t.insert(*to.entries, entry_key(to, key, value), make_entry(key, value));
  }
  // Adds the entries of a row that the transaction has just inserted. If a unique index already has
  // one of the values, it erases the row again and throws.
  template <class Transaction>
  void add_entries(Transaction& t, key_argument key, const row_type& row) const {
    try {
      move_entries(t, key, nullptr, row);
    } catch (...) {
      t.erase(table_, key);
      throw;
    }
  }
  // Replaces the entries of the row `before` (null: no row) by those of `after`. It adds the new
  // entries first. If a unique index already has one of them, it restores the old state and throws.
  template <class Transaction>
  void move_entries(Transaction& t, key_argument key, const row_type* before,
                    const row_type& after) const {
    struct move {
      const index* of;
      std::optional<std::string> from;
      std::string to;
    };
    std::vector<move> moves;
    moves.reserve(indexes_.size());
    for (const index& one : indexes_) {
      move made{&one, std::nullopt, one.value_of(key, after)};
      if (before != nullptr) made.from = one.value_of(key, *before);
      if (made.from != made.to) moves.push_back(std::move(made));
    }
    std::size_t added = 0;
    try {
      for (; added < moves.size(); ++added) add_entry(t, *moves[added].of, key, moves[added].to);
    } catch (...) {
      for (; added > 0; --added) erase_entry(t, *moves[added - 1].of, key, moves[added - 1].to);
      throw;
    }
    for (const move& one : moves) {
      if (one.from) erase_entry(t, *one.of, key, *one.from);
    }
  }
  template <class Transaction>
  static void erase_entry(Transaction& t, const index& of, key_argument key,
                          const std::string& value) {
    t.erase(*of.entries, entry_key(of, key, value));
  }
  // The visitor of an index's scan: calls fn with the row of each entry.
  template <class Transaction, class Fn>
  auto row_of_entry(Transaction& t, Fn& fn) const {
    return [this, &t, &fn](std::string_view at, const entry& one) {
      const key_type key = row_key(at, one);
      const std::optional<row_type> row = t.get(table_, key);
      // Below serializable, another transaction may have erased the row in between.
      if (!row) return true;
      const key_argument at_key = key;
      return visits_on(fn, at_key, *row);
    };
  }

  Database& db_;
  Table& table_;
  std::deque<index> indexes_;
};

}  // namespace internal

}  // namespace elidex
