// Changes the columns of a table while transactions run (database::change_table()).
//
// Thread-safety: any thread may call copy_writes(), holds_back() and wait(). The thread that
// changes the table calls the others. Guarantees and an example: database::change_table().
// Errors: those of the transaction and of the conversion (schema_change.hpp), and std::bad_alloc.
//
// Implementation notes
// The rows with the new columns are a table of their own, which no program has until the end.
//   1. From now on, each transaction that commits writes its rows of the former table to the new
//      one, too, converted (copy_writes()).
//   2. When all transactions have ended that may have begun before 1, other transactions copy the
//      rows, some at a time (copy_some()).
//   3. In a directory a checkpoint stores the new rows under the table's name, and leaves out the
//      former ones.
//   4. Transactions that begin are held back, and the others end. Then the name means the new
//      table, and transactions may no longer use the former one. Nothing else is held back.
//
// Why the tables have the same rows from 2 on: a row is written together with its copy, or copied
// in a transaction that has read it. If a row changes between the copier's read and its commit, the
// copier's transaction fails validation and runs again. If a row changes before that read, both
// tables have the new row. A transaction may erase a row that has no copy yet. It then inserts a
// copy and erases that copy. Below serializable its commit would otherwise miss a copy that the
// copier inserts meanwhile. Now both write the same key, so one of them fails.
//
// Indexes of the new table are empty tables at 1, and are written through an indexed_table together
// with its rows. Steps 3 and 4 treat the indexes like their tables. A transaction may move a unique
// value from one row to another. So if it has written several rows, all their copies are erased
// before new ones are inserted.
//
// Why a transaction sees one of the tables: no transaction runs at 4. A snapshot that began before
// 4 may read the former table, and one that began after 4 the new one. The commit group of 4
// separates the two (table_base::check_snapshot()).
//
// Until 3 the directory has the former table, and from 3 on the new one. Between 3 and 4 each
// commit writes both tables, so both are complete. The catalog lists the one that does not count
// as "NAME (table NUMBER)", marked unfinished. Recovery skips it. A later checkpoint cannot lose
// the change: the tables change places in the catalog while no checkpoint is being written, and
// the one of 3 begins after that.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/bounds.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/fork_generation.hpp"
#include "elidex/internal/sync/parking.hpp"
#include "elidex/internal/txn/errors.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/schema_change.hpp"
#include "elidex/internal/txn/transaction_context.hpp"

namespace elidex::internal {

// What a transaction needs of a change that is running.
template <class Transaction>
class running_change {
 public:
  virtual ~running_change() = default;
  // Writes to the new table what the transaction writes to the former one. To be called before the
  // commit.
  virtual void copy_writes(Transaction& t) const = 0;

  // Whether a transaction that has just begun must end and wait.
  bool holds_back() const noexcept {
    // In a child of fork() no thread ends the pause.
    return paused_.load() && generation_.load() == fork_generation();
  }
  // Waits until resume(), or until gives_up() is true, which it asks now and then. Without
  // `may_give_up` it does not ask.
  template <class Fn>
  void wait(bool may_give_up, const Fn& gives_up) const {
    if (!holds_back()) return;
    if (!may_give_up) {
      wait_while<looks::seldom>(&paused_, [this] { return holds_back(); });
      return;
    }
    while (holds_back() && !gives_up()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void hold_back() noexcept {
    generation_.store(fork_generation());
    paused_.store(true);
  }
  void resume() noexcept {
    paused_.store(false);
    wake_waiters(&paused_);
  }

 private:
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<bool> paused_{false};
};

// What an indexed_table offers, for a table without indexes.
template <class Table>
class rows_alone {
  using key_argument = typename Table::key_argument;
  using row_type = typename Table::row_type;

 public:
  explicit rows_alone(Table& rows) noexcept : rows_(rows) {}
  Table& table() const noexcept { return rows_; }
  std::size_t index_count() const noexcept { return 0; }
  template <class Transaction>
  void insert(Transaction& t, key_argument key, const row_type& row) const {
    t.insert(rows_, key, row);
  }
  template <class Transaction>
  void upsert(Transaction& t, key_argument key, const row_type& row) const {
    t.upsert(rows_, key, row);
  }
  template <class Transaction>
  bool erase(Transaction& t, key_argument key) const {
    return t.erase(rows_, key);
  }

 private:
  Table& rows_;
};

template <class To>
inline constexpr bool is_alone = false;
template <class Table>
inline constexpr bool is_alone<rows_alone<Table>> = true;

// To: an indexed_table, or rows_alone.
template <class Transaction, class From, class To>
class column_change final : public running_change<Transaction> {
 public:
  using key_type = typename From::key_type;
  using key_argument = typename From::key_argument;

  // The tables, and an indexed table, outlive the object.
  column_change(From& from, const To& to, const row_conversion& conversion)
      : from_(from), to_(to), conversion_(conversion) {}

  void copy_writes(Transaction& t) const override {
    struct change {
      const record* of;
      std::span<const std::uint64_t> words;
    };
    std::vector<change> changes;  // because writing appends to writes()
    for (const transaction_context::write& one : transaction_access::context(t).writes()) {
      if (one.of == &from_) changes.push_back({one.row, one.words});
    }
    // If there are several, all copies go before one comes back: it may have a unique value that
    // another row had.
    const bool one_by_one = changes.size() == 1 || to_.table().indexes() == 0;
    for (const change& one : changes) {
      if (one.words.empty() || !one_by_one) erase_copy(t, key_words<key_type>::of(one.of->key()));
    }
    for (const change& one : changes) {
      const key_argument key = key_words<key_type>::of(one.of->key());
      if (!one.words.empty()) to_.upsert(t, key, converted(key, one.words));
    }
  }

  // Copies at most `rows_max` rows behind the key `done`. Returns the last of these rows' keys, or
  // no value if there were none.
  std::optional<key_type> copy_some(Transaction& t, const std::optional<key_type>& done,
                                    std::size_t rows_max) const {
    struct seen_row {
      key_type key;
      std::vector<std::uint64_t> words;
    };
    std::vector<seen_row> rows;
    std::size_t copied_words = 0;
    const auto keep = [&](key_argument key, const typename From::row_type& row) {
      std::vector<std::uint64_t> words(from_.word_count(row));
      from_.write_words(row, words);
      copied_words += words.size();
      rows.push_back({key_type(key), std::move(words)});
      return rows.size() < rows_max && copied_words < words_per_step;
    };
    if (done) {
      t.scan(from_, above(*done), keep);
    } else {
      t.scan(from_, all, keep);
    }
    for (const seen_row& one : rows) {
      if (!t.get(to_.table(), one.key)) to_.insert(t, one.key, converted(one.key, one.words));
    }
    return rows.empty() ? std::nullopt : std::optional(std::move(rows.back().key));
  }

  // Chosen: so short that it rarely collides with writers, so long that its commit does not matter.
  static constexpr std::size_t rows_per_step = 64;

 private:
  static constexpr std::size_t words_per_step = 8192;  // chosen, likewise

  auto converted(key_argument key, std::span<const std::uint64_t> words) const {
    try {
      return to_.table().row_of(conversion_.converted(words).words());
    } catch (const row_too_large& why) {
      throw row_too_large(from_.name() + ": " + text_of(key) + ": " + why.what());
    }
  }
  static std::string text_of(key_argument key) {
    if constexpr (std::integral<key_type>) {
      return "key " + std::to_string(key);
    } else {
      const bool is_text =
          std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c <= '~'; });
      return is_text ? "key '" + std::string(key) + "'"
                     : "a key of " + std::to_string(key.size()) + " bytes";
    }
  }
  void erase_copy(Transaction& t, key_argument key) const {
    while (!to_.erase(t, key)) {
      auto& rows = to_.table();
      try {
        // Without entries in the indexes, which might have the value already.
        t.insert(rows, key, converted(key, row(conversion_.from()).words()));
      } catch (const duplicate_key&) {
        continue;  // the copier has inserted it in between
      }
      t.erase(rows, key);
      return;
    }
  }

  From& from_;
  std::conditional_t<is_alone<To>, const To, const To&> to_;
  const row_conversion conversion_;
};

}  // namespace elidex::internal
