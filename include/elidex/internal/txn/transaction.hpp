// An optimistic transaction: what a function that is given to transact() works with.
//
//   db.transact([&](auto& t) {  // database.hpp; the function may run several times
//     auto a = t.get(accounts, 1);                   // std::optional<account>
//     t.update(accounts, 1, [](account& row) { row.balance -= 5; });
//     t.insert(accounts, 3, account{});              // duplicate_key if it is there
//     t.erase(accounts, 2);
//     // [10, 20), until false
//     t.scan(accounts, 10, 20, [](std::uint64_t key, const account& row) { return true; });
//   });
//
// No other transaction sees its writes before it commits; it sees them itself. It reads committed
// rows, each one whole, but of different moments: whether they belong together is checked when it
// commits. So a function may see a state that never was. Its loops must end in such a state, too.
// An exception that the function throws is passed on only if what it has read still holds.
//
// Isolation levels leave out some checks:
//   serializable      none
//   repeatable_read   allows phantoms, and write skew through them
//   read_committed    also allows non-repeatable reads, lost updates of get() and upsert(), read
//                     and write skew
//   read_uncommitted  as read_committed: nothing uncommitted can be seen
// update() of one row is atomic at every level.
//
// Thread-safety: belongs to one thread, and ends with the function that it was given to: a pointer
// to it must not be kept.
// Errors: errors.hpp; std::logic_error for a table of another database, before anything is noted;
// std::bad_alloc; what Key and the caller's functions throw.
//
// Implementation notes
// What it notes, and how a protocol checks that: transaction_context.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "elidex/internal/tree/value_change.hpp"
#include "elidex/internal/txn/call_visitor.hpp"
#include "elidex/internal/txn/errors.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/table.hpp"
#include "elidex/internal/txn/transaction_context.hpp"

namespace elidex::internal {

class transaction : private transaction_context {
 public:
  // What it needs, for the next one to use again.
  using memory = transaction_context::memory;

  // Made by the database.
  using transaction_context::transaction_context;

  template <class Table, class Key>
  std::optional<typename Table::row_type> get(Table& table, const Key& key) {
    check_is_ours(table);
    const std::span<const std::uint64_t> words =
        find_row(table, argument<Table>(key), level() >= isolation::repeatable_read).words;
    if (words.empty()) return std::nullopt;
    return table.row_of(words);
  }

  // Throws duplicate_key.
  template <class Table, class Key>
  void insert(Table& table, const Key& key, const typename Table::row_type& row) {
    check_is_ours(table);
    make_room();
    std::uint64_t* const words = words_of(table, row);
    for (;;) {
      record& r = *table.get_or_create(key_likely_is::absent, argument<Table>(key));
      if (write* const mine = own(r)) {
        if (mine->words != nullptr)
          throw duplicate_key(table.name() + ": insert of a key that is there");
        mine->words = words;
        return;
      }
      const commit_stamp seen = r.unlocked_stamp();
      if (seen.dead()) continue;
      note_read(r, seen);
      note_seen(seen);
      if (!seen.absent()) throw duplicate_key(table.name() + ": insert of a key that is there");
      note_write(table, r, words, true);
      return;
    }
  }

  // Whether it was there or not.
  template <class Table, class Key>
  void upsert(Table& table, const Key& key, const typename Table::row_type& row) {
    check_is_ours(table);
    make_room();
    std::uint64_t* const words = words_of(table, row);
    for (;;) {
      record& r = *table.get_or_create(key_likely_is::present, argument<Table>(key));
      if (write* const mine = own(r)) {
        mine->words = words;
        return;
      }
      const commit_stamp seen = r.unlocked_stamp();
      if (seen.dead()) continue;
      // Observations step over what this transaction inserts; so that it was absent has to hold by
      // itself.
      if (seen.absent()) note_read(r, seen);
      note_write(table, r, words, seen.absent());
      return;
    }
  }

  // False: not there. `change` may use the transaction.
  template <class Table, class Key, value_change<typename Table::row_type> Fn>
  bool update(Table& table, const Key& key, Fn&& change) {
    check_is_ours(table);
    const auto [r, words] = find_row(table, argument<Table>(key), true);
    if (words.empty()) return false;
    const std::uint64_t* const before = kept_for_log(words);
    auto row = table.row_of(words);
    change(row);
    make_room();
    std::uint64_t* const changed = words_of(table, row);
    if (write* const mine = own(*r)) {
      mine->words = changed;
    } else {
      // the read that was noted guarantees that it still is so when this commits
      note_write(table, *r, changed, false).before = before;
    }
    return true;
  }

  // False: not there.
  template <class Table, class Key>
  bool erase(Table& table, const Key& key) {
    check_is_ours(table);
    const auto [r, words] = find_row(table, argument<Table>(key), true);
    if (words.empty()) return false;
    make_room();
    if (write* const mine = own(*r)) {
      mine->words = nullptr;
    } else {
      note_write(table, *r, nullptr, false);
    }
    return true;
  }

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

  template <class Table, class Fn>
  void scan_up_to(Table& table, typename Table::key_argument from,
                  const std::optional<typename Table::key_type>& to, Fn& fn);
};

template <class Table, class Fn>
void transaction::scan_up_to(Table& table, typename Table::key_argument from,
                             const std::optional<typename Table::key_type>& to, Fn& fn) {
  using key_type = typename Table::key_type;
  check_is_ours(table);
  const bool note = level() >= isolation::repeatable_read;
  range<Table>* watched = nullptr;
  if (level() == isolation::serializable) watched = &watch(table, from);
  const bool to_the_end = table.walk(from, to, [&](record* one) {
    // As if it ended here: with a record of others, which is seen, or before one of its own.
    if (watched != nullptr && inserted(*one)) {
      watched->end = key_type(key_words<key_type>::of(one->key()));
    } else if (watched != nullptr) {
      watched->seen.push_back(one);
      watched->end.reset();
    }
    const auto words = read_record(table, *one, note);
    // A dead one is gone from the index by now: the range has changed, and so will not hold.
    if (!words || words->empty()) return true;
    return call_visitor(fn, key_words<key_type>::of(one->key()), table.row_of(*words));
  });
  if (watched == nullptr || !to_the_end) return;
  watched->end = to;
  watched->to_the_last = !to;
}

}  // namespace elidex::internal
