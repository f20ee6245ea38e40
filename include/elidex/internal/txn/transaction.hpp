// An optimistic transaction: the argument of the function that is passed to transact().
//
//   db.transact([&](auto& t) {  // database.hpp; the function may run several times
//     auto a = t.get(accounts, 1);                   // std::optional<account>
//     t.update(accounts, 1, [](account& row) { row.balance -= 5; });
//     t.insert(accounts, 3, account{});              // duplicate_key if the key is present
//     t.erase(accounts, 2);
//     t.scan(accounts, between(10, 20), [](std::uint64_t key, const account& row) { ... });
//   });
//
// database.hpp says what each isolation level permits. The commit validates that everything that
// the transaction has read belongs together. An exception that the function throws is passed on
// only if everything that it has read is still valid.
//
// Thread-safety: belongs to one thread.
// Lifetime: the transaction ends when its function returns. Keep no pointer to it.
// Complexity: O(log n) for one key of a table of n rows, and a copy of the row. A scan adds O(1)
// for each row.
// Errors:
//   those of errors.hpp
//   std::logic_error  a table of another database, before anything is noted
//   std::bad_alloc
//   others            what Key and the caller's functions throw
//
// Implementation notes
// transaction_context.hpp: what a transaction notes, and how a protocol validates it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "elidex/internal/tree/value_change.hpp"
#include "elidex/internal/txn/errors.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/table.hpp"
#include "elidex/internal/txn/table_scans.hpp"
#include "elidex/internal/txn/transaction_context.hpp"
#include "elidex/internal/visitor.hpp"

namespace elidex::internal {

class transaction : private transaction_context, public table_scans<transaction> {
 public:
  // The memory of a transaction, for the next one to use again.
  using memory = transaction_context::memory;

  // The database makes transactions.
  using transaction_context::transaction_context;

  using savepoint = transaction_context::savepoint;
  // Returns a moment to which rollback_to() can return. Throws std::bad_alloc.
  savepoint set_savepoint() { return transaction_context::set_savepoint(); }
  // Undoes what the transaction has written since then. Its reads still count. `to` stays valid.
  // Throws std::logic_error inside a function of update(), and for a savepoint of another
  // transaction, or one that an earlier rollback_to() has undone. Then nothing changes.
  void rollback_to(const savepoint& to) { transaction_context::rollback_to(to); }

  // Returns a copy of the row, or std::nullopt.
  template <class Table, class Key>
  std::optional<typename Table::row_type> get(Table& table, const Key& key) {
    check_is_ours(table);
    const std::span<const std::uint64_t> words =
        find_row(table, argument<Table>(key), level() >= isolation::repeatable_read).words;
    if (words.empty()) return std::nullopt;
    return table.row_of(words);
  }

  // Throws duplicate_key if the key is present.
  template <class Table, class Key>
  void insert(Table& table, const Key& key, const typename Table::row_type& row) {
    check_is_ours(table);
    make_room();
    const std::span<const std::uint64_t> words = words_of(table, row);
    for (;;) {
      record& r = *table.get_or_create(key_likely_is::absent, argument<Table>(key), words.size());
      if (write* const mine = own(r)) {
        if (!mine->erases())
          throw duplicate_key(table.name() +
                              ": insert: key is present (expected an absent key, or upsert())");
        overwrite(*mine, words);
        return;
      }
      const commit_stamp seen = r.unlocked_stamp();
      if (seen.dead()) continue;
      note_read(r, seen);
      note_seen(seen);
      if (!seen.absent())
        throw duplicate_key(table.name() +
                            ": insert: key is present (expected an absent key, or upsert())");
      note_write(table, r, words, true);
      return;
    }
  }

  // Writes the row whether or not the key is present.
  template <class Table, class Key>
  void upsert(Table& table, const Key& key, const typename Table::row_type& row) {
    check_is_ours(table);
    make_room();
    const std::span<const std::uint64_t> words = words_of(table, row);
    for (;;) {
      record& r = *table.get_or_create(key_likely_is::present, argument<Table>(key), words.size());
      if (write* const mine = own(r)) {
        overwrite(*mine, words);
        return;
      }
      const commit_stamp seen = r.unlocked_stamp();
      if (seen.dead()) continue;
      // Observations skip the records that this transaction inserts. So the absence of the row is
      // noted as a read.
      if (seen.absent()) note_read(r, seen);
      note_write(table, r, words, seen.absent());
      return;
    }
  }

  // Returns false if the key is absent. `change` may use the transaction.
  template <class Table, class Key, value_change<typename Table::row_type> Fn>
  bool update(Table& table, const Key& key, Fn&& change) {
    check_is_ours(table);
    return change_row(table, find_row(table, argument<Table>(key), true), change);
  }
  // Calls change(i, row&) for each key that is present, in the order of `keys`. `i` is the key's
  // index in the range. Returns how many keys are present. The look-ups of one call overlap, so it
  // takes less time than an update() for each key. If `change` throws, the transaction keeps the
  // changes of earlier rows. A key that occurs twice is changed twice.
  template <class Table, std::ranges::input_range Keys, change_of_many<typename Table::row_type> Fn>
  std::size_t multi_update(Table& table, Keys&& keys, Fn&& change) {
    check_is_ours(table);
    const auto wanted = arguments_of<Table>(keys);
    const std::vector<std::optional<record*>> found = table.find_all(wanted);
    std::size_t present = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto change_this = [&](typename Table::row_type& row) { change(i, row); };
      if (change_row(table, find_row(table, wanted[i], found[i], true), change_this)) ++present;
    }
    return present;
  }

  // Erases the rows of a range. Returns their number.
  template <class Table, class Bounds>
    requires bounds_of<Bounds, typename Table::key_type>
  std::size_t erase(Table& table, const Bounds& which) {
    return erase_range(*this, table, which, [&](const auto& key) { return erase(table, key); });
  }
  // Returns false if the key is absent.
  template <class Table, class Key>
  bool erase(Table& table, const Key& key) {
    check_is_ours(table);
    const auto [r, words] = find_row(table, argument<Table>(key), true);
    if (r == nullptr || words.empty()) return false;
    make_room();
    if (write* const mine = own(*r)) {
      overwrite(*mine, {});
    } else {
      note_write(table, *r, {}, false);
    }
    return true;
  }

 private:
  friend transaction_access;
  friend table_scans<transaction>;

  template <class Table, class Fn>
  void scan_range(Table& table, const typename Table::range& which, Fn& fn);
  template <class Table, class Fn>
  void get_all(Table& table, std::span<const typename Table::key_argument> keys, Fn&& fn);
  // Changes the row that find_row() returned. Returns false if there is none.
  template <class Table, class Fn>
  bool change_row(Table& table, const found_row& found, Fn&& change);
};

template <class Table, class Fn>
void transaction::get_all(Table& table, std::span<const typename Table::key_argument> keys,
                          Fn&& fn) {
  check_is_ours(table);
  const bool note = level() >= isolation::repeatable_read;
  const std::vector<std::optional<record*>> found = table.find_all(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::span<const std::uint64_t> words = find_row(table, keys[i], found[i], note).words;
    if (!words.empty()) fn(i, table.row_of(words));
  }
}

template <class Table, class Fn>
bool transaction::change_row(Table& table, const found_row& found, Fn&& change) {
  if (found.words.empty()) return false;
  const std::span<const std::uint64_t> before = kept_for_log(found.words);
  auto row = table.row_of(found.words);
  {
    const running_update guard(*this);
    change(row);
  }
  make_room();
  const std::span<const std::uint64_t> changed = words_of(table, row);
  if (write* const mine = own(*found.of)) {
    overwrite(*mine, changed);
  } else {
    // the noted read guarantees that `before` is still the row when this commits
    note_write(table, *found.of, changed, false).before = before;
  }
  return true;
}

template <class Table, class Fn>
void transaction::scan_range(Table& table, const typename Table::range& which, Fn& fn) {
  using key_type = typename Table::key_type;
  check_is_ours(table);
  const bool note = level() >= isolation::repeatable_read;
  range<Table>* watched = nullptr;
  if (level() == isolation::serializable) watched = &watch(table, which);
  const bool to_the_end = table.template walk<walk_reads::rows>(which, [&](record* one) {
    if (watched != nullptr) {
      if (!inserted(*one)) watched->seen.push_back(one);  // may throw
      watched->last = one;
    }
    const auto words = read_record(*one, note);
    // A dead record has left the index. The range has changed, so it will not validate.
    if (!words || words->empty()) return true;
    const typename Table::key_argument key = key_words<key_type>::of(one->key());
    const auto row = table.row_of(*words);
    return visits_on(fn, key, row);
  });
  if (watched != nullptr) watched->complete = to_the_end;
}

}  // namespace elidex::internal
