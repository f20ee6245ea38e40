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
// Indexes may be added and dropped at any time, while other threads use the indexed table:
//
//   const auto city = by.add_index<std::string>("accounts by city", city_of);  // reads all rows
//   by.drop_index(owner);
//
// Thread-safety: all members, from any thread, each in a transaction of its own. The handle of an
// index may be used in transactions and snapshots that begin after add_index() has returned, and
// until drop_index() is called.
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
//
// How an index is built while transactions run. First the index is put on the list, so that
// changes of rows change its entries, too. When all transactions have ended that may have begun
// without it, other transactions add the missing entries, some rows at a time. Why no entry is
// wrong in the end: each row is changed together with its entries, or read together with the
// insertion of its entry, each time in one transaction. If a row changes between the builder's read
// and its commit, the builder's transaction fails validation and runs again. If a row changes
// before the builder reads it, the change finds no entry of the old value. Below serializable the
// commit would not detect that the builder inserts that entry in between. So the change inserts the
// entry and erases it, and one of the two transactions fails.
//
// In a directory the index is unfinished until all entries are there. After a crash open() makes
// the entries of an unfinished index again, or drops it if the program no longer has it. A dropped
// index becomes unfinished before its entries go.
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
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

// What an indexed table needs of its database, to add and drop indexes while others use it.
struct index_access {
  // Throws std::logic_error inside a transaction of the calling thread.
  template <class Database>
  static void check_may_change(const Database& db, const char* function) {
    db.check_not_in_transaction(function);
    db.check_does_not_follow(function);
  }
  // Whether the database has no directory, and no transaction that could miss what the caller has
  // written before the call: none has begun yet.
  template <class Database>
  static bool is_new(const Database& db) {
    return db.storage_ == nullptr && !db.has_begun();
  }
  // Creates an unfinished table.
  template <class Table, class Database>
  static Table& create(Database& db, std::string name) {
    return db.template add_as<Table>(Database::made_as::unfinished_index, std::move(name));
  }
  // Whether change_table() has made the table and has not used it yet. Then its indexes are made
  // with create_next(), and are empty.
  template <class Database>
  static bool is_next(Database& db, const table_base& table) {
    const std::lock_guard guard(db.tables_mutex_);
    return table.standing() == table_base::role::next;
  }
  template <class Table, class Database>
  static Table& create_next(Database& db, std::string name) {
    return db.template add_as<Table>(Database::made_as::next_of_its_name, std::move(name));
  }
  template <class Database>
  static void set_unfinished(Database& db, table_base& entries, bool is) {
    const std::lock_guard guard(db.tables_mutex_);
    db.set_unfinished(entries, is);
  }
  // Lives while an index of a table is added or dropped. Throws std::logic_error while the table's
  // columns are being changed, and schema_mismatch after that.
  template <class Database>
  class index_change {
   public:
    index_change(Database& db, table_base& of, const char* function) : db_(db), of_(of) {
      const std::lock_guard guard(db_.tables_mutex_);
      of_.check_owner(&db_);
      if (of_.is_changing())
        throw std::logic_error(of_.name() + ": " + function +
                               " while change_table() changes the columns");
      ++of_.index_changes();
    }
    ~index_change() {
      const std::lock_guard guard(db_.tables_mutex_);
      --of_.index_changes();
      of_.indexes() += more_;
    }
    index_change(const index_change&) = delete;
    index_change& operator=(const index_change&) = delete;
    // There is one index more, or one less.
    void note(int more) noexcept { more_ = more; }

   private:
    Database& db_;
    table_base& of_;
    int more_ = 0;
  };
  template <class Database>
  static void wait_for_transactions(const Database& db) {
    db.wait_for_transactions();
  }
};

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
  indexed_table(const indexed_table&) = delete;
  indexed_table& operator=(const indexed_table&) = delete;

  // Adds an index, and returns when each row has its entry. Other threads may change rows
  // meanwhile. A program that has the index when it starts calls this before open(). If the
  // directory has rows but not the index, open() makes the index from the rows. open() then throws
  // duplicate_key if two rows have one value of a unique index, and leaves the directory as it was.
  // Throws std::logic_error at once in a transaction of the calling thread, while change_table()
  // changes the table, or after follow(), and what create_table() throws. It has added nothing
  // then. Otherwise it waits for all running transactions. If it throws after that, there is no
  // index, but only add_index() of this indexed_table can use the name:
  //   duplicate_key      two rows have one value of a unique index. Until then, transactions that
  //                      write one of them may have thrown it
  //   std::system_error  the log failed
  //   others             what value_of throws
  // Complexity: O(n log n) for n rows.
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

  // Drops an index. Other threads may use the indexed table meanwhile. A later use of the handle
  // throws std::logic_error. add_index() of this indexed_table can use the name again. Waits for
  // all running transactions. Throws std::logic_error in a transaction of the calling thread, while
  // change_table() changes the table, or for an index of another indexed_table. Throws
  // std::system_error if the log failed.
  template <class Value>
  void drop_index(index_of<Value> in) {
    index_access::check_may_change(db_, "drop_index()");
    const std::lock_guard guard(changing_);
    index_access::index_change change(db_, table_, "drop_index()");
    const index& dropped = index_behind(in);
    dropped_.reserve(dropped_.size() + 1);
    index_access::set_unfinished(db_, *dropped.entries, true);
    take_off(dropped);
    dropped_.push_back(dropped.entries);
    change.note(-1);
    erase_entries(*dropped.entries);
  }

  // Returns the table of the rows.
  Table& table() const noexcept { return table_; }
  // Returns how many indexes there are. They may change meanwhile.
  std::size_t index_count() const noexcept { return list().size(); }

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
    const index_list& indexes = list();
    std::vector<std::string> values;  // before any change, because value_of may throw
    values.reserve(indexes.size());
    for (const index* const one : indexes) values.push_back(one->value_of(key, *before));
    t.erase(table_, key);
    for (std::size_t i = 0; i < values.size(); ++i) erase_entry(t, *indexes[i], key, values[i]);
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
  struct definition {
    index_table* entries;
    std::function<std::string(key_argument, const row_type&)> value_of;
    bool unique;
  };
  struct index : definition {
    explicit index(definition what) : definition(std::move(what)) {}
    std::atomic<bool> complete{false};  // each row has its entry
  };
  using index_list = std::vector<const index*>;

  template <class Value, class Fn>
  index_of<Value> add(std::string name, Fn value_of, bool unique) {
    static_assert(
        requires(ordered_key key, const Value& value) { key.add(value); },
        "an index has integers, doubles or strings, such as ordered_key's");
    index_access::check_may_change(db_, "add_index()");
    const std::lock_guard guard(changing_);
    index_access::index_change change(db_, table_, "add_index()");
    const bool is_next = index_access::is_next(db_, table_);
    const bool is_new = index_access::is_new(db_);
    dropped_.reserve(dropped_.size() + 1);
    index_table& entries = !is_next && is_new
                               ? db_.template create_table<std::string, entry>(std::move(name))
                               : unused_table(std::move(name), is_next);
    const definition what{&entries,
                          [value_of = std::move(value_of)](key_argument key, const row_type& row) {
                            return ordered_key().add(Value(value_of(key, row))).take();
                          },
                          unique};
    index& added = indexes_.emplace_back(what);
    // The indexed_table may be gone when open() fills the index.
    entries.set_indexed(table_, [&table = table_, what] { fill(table, what); });
    try {
      if (!is_next && !is_new) erase_entries(entries);  // that the drop of an index has left
      put_on(added);
      if (!is_next && (!is_new || !index_access::is_new(db_))) build(added);
    } catch (...) {
      dropped_.push_back(&entries);
      throw;
    }
    change.note(1);
    added.complete.store(true);
    return index_of<Value>(entries);
  }
  // Returns a new table, or one of this name that is no longer in use. It is unfinished, unless it
  // belongs to a table that is_next().
  index_table& unused_table(std::string name, bool is_next) {
    const auto found = std::find_if(dropped_.begin(), dropped_.end(),
                                    [&](const index_table* one) { return one->name() == name; });
    if (found == dropped_.end()) {
      return is_next ? index_access::create_next<index_table>(db_, std::move(name))
                     : index_access::create<index_table>(db_, std::move(name));
    }
    index_table& entries = **found;
    if (is_next) index_access::set_unfinished(db_, entries, false);
    dropped_.erase(found);
    return entries;
  }

  // The list of indexes is replaced as a whole. A transaction that has begun with the former list
  // may still use that.
  const index_list& list() const noexcept {
    // acquire: pairs with the store in replace_list().
    return *list_.load(std::memory_order_acquire);
  }
  void put_on(const index& added) {
    auto next = std::make_unique<index_list>(list());
    next->push_back(&added);
    replace_list(std::move(next));
  }
  // Returns when no transaction uses the index any more.
  void take_off(const index& dropped) {
    auto next = std::make_unique<index_list>(list());
    std::erase(*next, &dropped);
    replace_list(std::move(next));
    index_access::wait_for_transactions(db_);
  }
  void replace_list(std::unique_ptr<const index_list> next) {
    lists_.push_back(std::move(next));
    list_.store(lists_.back().get());
  }

  void build(index& made) {
    try {
      index_access::wait_for_transactions(db_);
      std::optional<key_type> done;
      do {
        done = db_.transact([&](auto& t) { return add_missing(t, made, done); });
      } while (done);
      index_access::set_unfinished(db_, *made.entries, false);
    } catch (...) {
      give_up(made);
      throw;
    }
  }
  void give_up(const index& made) {
    take_off(made);
    try {
      erase_entries(*made.entries);
    } catch (const std::exception&) {
      // The entries stay. The next add_index() or open() removes them.
    }
  }
  // Adds the entries of some rows behind the key `done`. Returns the last of these rows' keys, or
  // no value if there were none.
  template <class Transaction>
  std::optional<key_type> add_missing(Transaction& t, const index& to,
                                      const std::optional<key_type>& done) const {
    std::vector<std::pair<key_type, row_type>> rows;
    const auto keep = [&](key_argument key, const row_type& row) {
      rows.emplace_back(key_type(key), row);
      return rows.size() < rows_per_step;
    };
    if (done) {
      t.scan(table_, above(*done), keep);
    } else {
      t.scan(table_, all, keep);
    }
    for (const auto& [key, row] : rows) {
      const std::string value = to.value_of(key, row);
      const auto there = t.get(*to.entries, entry_key(to, key, value));
      if (!there) {
        add_entry(t, to, key, value);
      } else if (!is_of(*there, key)) {
        throw duplicate_key(to.entries->name() + ": row " + text_of(key) +
                            " has the value of another row (expected: unique)");
      }
    }
    return rows.empty() ? std::nullopt : std::optional(rows.back().first);
  }
  void erase_entries(index_table& of) {
    for (bool more = true; more;) {
      more = db_.transact([&](auto& t) {
        std::vector<std::string> keys;
        t.scan(of, all, [&](std::string_view key, const entry&) {
          keys.emplace_back(key);
          return keys.size() < rows_per_step;
        });
        for (const std::string& key : keys) t.erase(of, key);
        return !keys.empty();
      });
    }
  }

  // Throws std::logic_error for an index of another indexed_table, or one that was dropped.
  template <class Value>
  const index& index_behind(index_of<Value> in) const {
    for (const index* const one : list()) {
      if (one->entries == in.entries_) return *one;
    }
    throw std::logic_error(table_.name() +
                           ": an index of another indexed_table, or one that was dropped");
  }
  template <class Value>
  index_table& entries_of(index_of<Value> in) const {
    return *index_behind(in).entries;
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
  static void fill(const Table& table, const definition& in) {
    const epoch_pin pinned;
    std::vector<std::uint64_t> buffer;
    table.for_each_record([&](const record& one) {
      const record::seen_row seen = one.read(buffer);
      if (seen.stamp.absent()) return;
      const key_argument key = key_words<key_type>::of(one.key());
      const std::string value = in.value_of(key, table.row_of(seen.words));
      if (!in.entries->load_row(entry_key(in, key, value), make_entry(key, value), seen.stamp))
        throw duplicate_key(in.entries->name() + ": row " + text_of(key) +
                            " of the directory has the value of another row (expected: unique)");
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
  static bool is_same(const entry& a, const entry& b) {
    if constexpr (std::integral<key_type>) {
      return a.key == b.key;
    } else {
      return true;  // an entry's key contains the row's
    }
  }
  static bool is_of(const entry& one, const key_type& key) {
    if constexpr (std::integral<key_type>) {
      return one.key == key;
    } else {
      return true;
    }
  }
  static std::string entry_key(const definition& in, key_argument key, const std::string& value) {
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
    try {
      t.insert(*to.entries, entry_key(to, key, value), make_entry(key, value));
    } catch (const duplicate_key&) {
      throw duplicate_key(to.entries->name() + ": another row has the value of row " +
                          text_of(key) + " (expected: unique)");
    }
  }
  static std::string text_of(key_argument key) {
    if constexpr (std::integral<key_type>) {
      return std::to_string(key);
    } else {
      return "'" + std::string(key) + "'";
    }
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
    const index_list& indexes = list();
    moves.reserve(indexes.size());
    for (const index* const one : indexes) {
      move made{one, std::nullopt, one->value_of(key, after)};
      if (before != nullptr) made.from = one->value_of(key, *before);
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
    const std::string at = entry_key(of, key, value);
    if (of.complete.load()) {
      t.erase(*of.entries, at);
    } else {
      erase_if_its(t, *of.entries, at, make_entry(key, value));
    }
  }
  // Erases an entry that may be missing, or that of another row. The transaction then depends on
  // what was there, at every isolation level: update() and insert() note their read.
  template <class Transaction>
  static void erase_if_its(Transaction& t, index_table& entries, const std::string& at,
                           const entry& its) {
    for (;;) {
      bool is_its = false;
      if (t.update(entries, at, [&](entry& there) { is_its = is_same(there, its); })) {
        if (is_its) t.erase(entries, at);
        return;
      }
      try {
        t.insert(entries, at, its);
      } catch (const duplicate_key&) {
        continue;  // another transaction has inserted it in between
      }
      t.erase(entries, at);
      return;
    }
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

  // Chosen: so short that it rarely collides with writers, so long that its commit does not matter.
  static constexpr std::size_t rows_per_step = 64;

  Database& db_;
  Table& table_;
  std::mutex changing_;
  std::deque<index> indexes_;  // under changing_, as the next one
  std::vector<std::unique_ptr<const index_list>> lists_;
  std::vector<index_table*> dropped_;  // the entries of indexes that are no longer there
  const index_list none_;
  std::atomic<const index_list*> list_{&none_};
};

}  // namespace internal

}  // namespace elidex
