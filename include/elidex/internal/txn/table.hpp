// A table: records by key, in an index of any kind.
//
//   auto& accounts = db.create_table<std::uint64_t, account>("accounts");       // database.hpp
//   db.transact([&](auto& t) { t.insert(accounts, 7, account{.balance = 70}); });
//
// Row is trivially copyable, or rows have a schema (schema.hpp). Key is an integer or std::string;
// keys order the table. The index holds a pointer to each record, also to absent ones: those that
// nobody has committed yet, and those erased that a snapshot may still want. collect() unlinks the
// others.
//
// An erased record stays until all transactions have ended that ran when it was erased: else one
// that looks again for phantoms could miss a row that had come and gone since its first look,
// though it was there at the moment for which the transaction commits.
//
// Why unlinking is right: it locks the record as it was erased (so nobody has inserted it again),
// unlinks it, and then marks it dead. A transaction that found it before saw an absent record, and
// fails to validate or to lock the dead one; one that comes later makes a new record. Memory goes
// to the retire list: whoever found the record had an epoch_pin then, and has it still. Where there
// are locks, an unlinking_rule asks for them while the record is locked
// (two_phase_transaction.hpp).
//
// Thread-safety: all members but the destructor. Errors: std::bad_alloc, and then nothing has
// changed.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/log/checkpoint.hpp"
#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/txn/errors.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/schema.hpp"

namespace elidex::internal {

// Keys as the records and the transactions' notes have them; and as the log has them: an integer as
// eight bytes of this machine's order.
template <class Key>
struct key_words {
  using argument = Key;
  template <class Number>
  static bool is_negative(Number number) noexcept {
    if constexpr (std::is_signed_v<Number>) {
      return number < 0;
    } else {
      return false;
    }
  }
  // Throws std::out_of_range for what Key cannot be.
  template <class Other>
  static Key argument_of(const Other& key) {
    if constexpr (std::integral<Other> && !std::same_as<Key, Other>) {
      const Key made = static_cast<Key>(key);
      if (static_cast<Other>(made) != key || is_negative(made) != is_negative(key))
        throw std::out_of_range("elidex: a number that is no key of its table's type");
    }
    return static_cast<Key>(key);
  }
  static constexpr Key least() noexcept { return std::numeric_limits<Key>::min(); }
  static std::string_view bytes_of(const std::uint64_t& word) noexcept {
    return {reinterpret_cast<const char*>(&word), sizeof word};
  }
  // Nothing: these are not a key's.
  static std::optional<argument> from_bytes(std::string_view bytes) noexcept {
    std::uint64_t word = 0;
    if (bytes.size() != sizeof word) return std::nullopt;
    std::memcpy(&word, bytes.data(), sizeof word);
    return of(word);
  }
  static std::uint64_t keep(Key key) { return static_cast<std::uint64_t>(key); }
  static Key of(std::uint64_t word) noexcept { return static_cast<Key>(word); }
  static void drop(std::uint64_t) noexcept {}
};

template <>
struct key_words<std::string> {
  using argument = std::string_view;
  static std::string_view argument_of(std::string_view key) noexcept { return key; }
  static constexpr std::string_view least() noexcept { return {}; }
  static std::string_view bytes_of(const std::uint64_t& word) noexcept { return of(word); }
  static std::optional<argument> from_bytes(std::string_view bytes) noexcept { return bytes; }
  static std::uint64_t keep(std::string_view key) {
    return reinterpret_cast<std::uintptr_t>(new std::string(key));
  }
  static std::string_view of(std::uint64_t word) noexcept {
    return *reinterpret_cast<const std::string*>(word);
  }
  static void drop(std::uint64_t word) noexcept { delete reinterpret_cast<std::string*>(word); }
};

struct key_type_info {
  std::uint32_t bytes;  // 0: a string
  bool is_signed;
};

// How the lock system knows a table (two_phase_transaction.hpp); where there are no locks, nothing.
struct row_locking {
  std::uint32_t space = 0;           // the table's number
  std::size_t words_behind_row = 0;  // 1: each record says who has locked it implicitly
};

class table_base;

// Somebody else's say in which erased records may leave the index. Asked while the record's word is
// locked as it was erased; with false it stays until the next collection.
struct unlinking_rule {
  virtual ~unlinking_rule() = default;
  virtual bool allows(const table_base& table, record& erased) = 0;
};

// What a transaction's notes and the storage know of a table.
class table_base {
 public:
  table_base(std::string name, std::size_t row_bytes, std::string schema_text, row_locking locking)
      : name_(std::move(name)),
        schema_text_(std::move(schema_text)),
        row_bytes_(row_bytes),
        row_words_(words_for(row_bytes)),
        locking_(locking),
        pool_(record::bytes_for(words_for(row_bytes) + locking.words_behind_row), "record",
              record::bytes_for(0)) {}
  virtual ~table_base() = default;
  table_base(const table_base&) = delete;
  table_base& operator=(const table_base&) = delete;

  const std::string& name() const noexcept { return name_; }
  // Its number in the log, from 1 on. Set before transactions use the table.
  std::uint32_t id() const noexcept { return id_; }
  void set_id(std::uint32_t id) noexcept { id_ = id; }
  // The database that made the table, by its address; null for a table without a database. Set
  // before transactions use the table.
  const void* owner() const noexcept { return owner_; }
  void set_owner(const void* database) noexcept { owner_ = database; }
  // Throws std::logic_error if another database made the table.
  void check_owner(const void* database) const {
    if (owner_ != database) [[unlikely]]
      refuse_other_database();
  }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  // Empty if rows are of a type.
  const std::string& schema_text() const noexcept { return schema_text_; }
  std::size_t row_words() const noexcept { return row_words_; }
  const row_locking& locking() const noexcept { return locking_; }

  virtual key_type_info key_type_of() const noexcept = 0;
  virtual std::string_view key_bytes(const record& one) const noexcept = 0;
  virtual bool has_rows() const = 0;
  // For an index: whose rows it tells of. Null: it is none.
  const table_base* indexed() const noexcept { return indexed_; }
  void set_indexed(const table_base& table) noexcept { indexed_ = &table; }
  // By the bytes of a key. Null: there is none; or, get_or_create_by_bytes(), these are no key's.
  // The caller is pinned.
  virtual record* find_by_bytes(std::string_view key) const = 0;
  virtual record* get_or_create_by_bytes(std::string_view key) = 0;
  // All rows, each as some commit has left it, while others commit.
  virtual void write_rows(checkpoint_writer& to) = 0;

  record::version* make_version() { return new (pool_.allocate()) record::version; }
  void free_versions(record::version* first) noexcept {
    while (first != nullptr) pool_.deallocate(std::exchange(first, first->older.load()));
  }

  // An absent record, which is to be unlinked. On the list once at most: the second entry would
  // outlive the record. The caller is pinned since it found it. Cannot fail.
  void note_absent(record& absent) noexcept {
    if (absent.waits_for_unlinking().exchange(true)) return;
    const absent_record one{&absent, absent.stamp(), epoch_after_unlinking()};
    const std::lock_guard guard(absent_mutex_);
    try {
      absent_.push_back(one);
    } catch (const std::bad_alloc&) {
      // It stays in the index, where the next insert of its key finds it.
      absent.waits_for_unlinking().store(false);
    }
  }
  // Unlinks those that no snapshot from `horizon` on can want, and that have been absent since
  // before every running transaction. `now` is the epoch of reclamation, which the caller has tried
  // to move on.
  void collect(std::uint64_t horizon, std::uint64_t now, unlinking_rule* rule = nullptr) {
    const epoch_pin pinned;
    std::vector<absent_record> listed;
    {
      const std::lock_guard guard(absent_mutex_);
      listed.swap(absent_);
    }
    std::size_t kept = 0;
    std::size_t at = 0;
    try {
      for (; at < listed.size(); ++at) {
        absent_record one = listed[at];
        const commit_stamp state = one.row->stamp();
        if (!state.absent()) {
          one.row->waits_for_unlinking().store(false);
          // Looked at again: it may have been erased in between, by somebody who found it on the
          // list.
          if (one.row->stamp().absent()) note_absent(*one.row);
          continue;
        }
        if (state != one.since) {
          one.since = state;
          one.epoch = epoch_after_unlinking();
        } else if (now >= one.epoch + 2 && state.epoch() <= horizon &&
                   unlink(*one.row, state, rule)) {
          continue;
        }
        listed[kept++] = one;
      }
    } catch (...) {
      while (at < listed.size()) listed[kept++] = listed[at++];
      listed.resize(kept);
      keep_absent(std::move(listed));
      throw;
    }
    listed.resize(kept);
    keep_absent(std::move(listed));
  }
  std::size_t absent_records() const noexcept {
    const std::lock_guard guard(absent_mutex_);
    return absent_.size();
  }

 protected:
  // As it is in this state. False: it is not any more, or must not.
  virtual bool unlink(record& one, commit_stamp state, unlinking_rule* rule) = 0;

  void destroy(record* one) noexcept {
    free_versions(one->cut_versions(std::uint64_t(-1), one->stamp()));
    pool_.deallocate(one);
  }

  block_pool& pool() noexcept { return pool_; }
  const block_pool& pool() const noexcept { return pool_; }

 private:
  struct absent_record {
    record* row;
    commit_stamp since;   // absent, and in this state
    std::uint64_t epoch;  // since this one at least (internal/memory/epoch.hpp)
  };

  [[noreturn]] void refuse_other_database() const;

  void keep_absent(std::vector<absent_record> more) noexcept {
    const std::lock_guard guard(absent_mutex_);
    if (absent_.empty()) {
      absent_ = std::move(more);
      return;
    }
    try {
      absent_.insert(absent_.end(), more.begin(), more.end());
    } catch (const std::bad_alloc&) {
      // They stay in the index, where the next insert of their keys finds them.
      for (const absent_record& one : more) one.row->waits_for_unlinking().store(false);
    }
  }

  const std::string name_;
  const std::string schema_text_;
  std::uint32_t id_ = 0;
  const table_base* indexed_ = nullptr;
  const std::size_t row_bytes_;
  const void* owner_ = nullptr;  // beside row_words_, which every operation reads as well
  const std::size_t row_words_;
  const row_locking locking_;
  block_pool pool_;
  mutable std::mutex absent_mutex_;
  std::vector<absent_record> absent_;
};

// What keyed_table::get_or_create() expects.
enum class key_likely_is : bool { absent, present };

// The records by key. Map is an index of the registry's kind: get, insert, erase, scan.
template <class Key, class Map>
class keyed_table : public table_base {
 public:
  using key_type = Key;
  using key_argument = typename key_words<Key>::argument;
  struct nothing {
    void operator()(record&) const noexcept {}
  };

  keyed_table(std::string name, std::size_t row_bytes, std::string schema_text, row_locking locking)
      : table_base(std::move(name), row_bytes, std::move(schema_text), locking),
        retire_list_(this) {}
  ~keyed_table() override {
    map_.scan(key_words<Key>::least(), std::size_t(-1), [&](auto&&, record* one) {
      key_words<Key>::drop(one->key());
      destroy(one);
    });
  }

  // Null: there is none. The caller is pinned.
  record* find(key_argument key) const {
    const auto found = map_.get(key);
    return found ? *found : nullptr;
  }
  // The record of `key`, made if there is none. `likely` says which is tried first: it makes a
  // difference in speed alone. prepare(record&) is called with what is made before anybody can see
  // it, perhaps several times; it may throw.
  template <class Prepare = nothing>
  record* get_or_create(key_likely_is likely, key_argument key, const Prepare& prepare = {}) {
    if (likely == key_likely_is::present) {
      if (record* const found = find(key)) return found;
    }
    for (;;) {
      if (record* const made = try_make(key, prepare)) return made;
      if (record* const found = find(key)) return found;
    }
  }

  // Calls fn(record*) in the keys' order, from `from` on, up to but without `end` if there is one,
  // until it says false; whether it got to the end. A few records at a time: those of a group as
  // they were at one moment. Allocates nothing. The caller is pinned.
  template <class Fn>
  bool walk(key_argument from, const std::optional<Key>& end, Fn&& fn) const {
    return walk_to(from, end ? &*end : nullptr, fn);
  }
  template <class Fn>
  bool walk(key_argument from, Fn&& fn) const {
    return walk_to(from, nullptr, fn);
  }

  key_type_info key_type_of() const noexcept override {
    if constexpr (std::integral<Key>) {
      return {sizeof(Key), std::is_signed_v<Key>};
    } else {
      return {0, false};
    }
  }
  std::string_view key_bytes(const record& one) const noexcept override {
    return key_words<Key>::bytes_of(one.key());
  }
  record* find_by_bytes(std::string_view key) const override {
    const auto found = key_words<Key>::from_bytes(key);
    return found ? find(*found) : nullptr;
  }
  record* get_or_create_by_bytes(std::string_view key) override {
    const auto found = key_words<Key>::from_bytes(key);
    return found ? get_or_create(key_likely_is::present, *found) : nullptr;
  }
  bool has_rows() const override {
    const epoch_pin pinned;
    return !walk(Key(key_words<Key>::least()),
                 [](const record* one) { return one->stamp().absent(); });
  }
  void write_rows(checkpoint_writer& to) override {
    std::vector<std::uint64_t> row(row_words());
    Key next(key_words<Key>::least());
    for (bool more = true; more;) {
      const epoch_pin pinned;  // for so many rows only
      std::size_t rows = 0;
      more = !walk(next, [&](const record* one) {
        if (rows++ == rows_per_pin) {
          next = Key(key_words<Key>::of(one->key()));
          return false;
        }
        const commit_stamp stamp = one->read(row);
        if (stamp.absent()) return true;
        to.add_row(id(), key_bytes(*one),
                   {reinterpret_cast<const char*>(row.data()), row.size() * sizeof row[0]},
                   stamp.word());
        return true;
      });
    }
  }

  std::size_t memory_bytes() const noexcept {
    return map_.memory_bytes() + pool().reserved_bytes();
  }
  Map& map() noexcept { return map_; }

 private:
  // `end` may be null.
  template <class Fn>
  bool walk_to(key_argument from, const Key* end, Fn& fn) const {
    std::array<record*, group_max> group;
    std::size_t wanted = group_first;
    const record* last = nullptr;  // where the group before ended: the next one begins with it
    for (;;) {
      std::size_t found = 0;
      map_.scan(last == nullptr ? from : key_words<Key>::of(last->key()), wanted,
                [&](auto&&, record* one) { group[found++] = one; });
      for (std::size_t i = 0; i < found; ++i) {
        if (group[i] == last) continue;
        const key_argument key = key_words<Key>::of(group[i]->key());
        // it was erased and inserted again
        if (last != nullptr && key == key_words<Key>::of(last->key())) continue;
        if (end != nullptr && !(key < key_argument(*end))) return true;
        if (!fn(group[i])) return false;
      }
      if (found < wanted) return true;
      last = group[found - 1];
      wanted = std::min(wanted * 2, group_max);
    }
  }

  // Null: there is one.
  template <class Prepare>
  record* try_make(key_argument key, const Prepare& prepare) {
    void* const memory = pool().allocate();
    std::uint64_t word = 0;
    bool kept = false;
    try {
      word = key_words<Key>::keep(key);
      kept = true;
      record* const made = record::make(memory, row_words(), word);
      if (locking().words_behind_row != 0) made->make_writer(row_words());
      prepare(*made);
      if (map_.insert(key, made)) return made;
    } catch (...) {
      if (kept) key_words<Key>::drop(word);
      pool().deallocate(memory);
      throw;
    }
    key_words<Key>::drop(word);
    pool().deallocate(memory);
    return nullptr;
  }

  bool unlink(record& one, commit_stamp state, unlinking_rule* rule) override {
    retire_list_.reserve();
    if (state.locked() || !one.try_lock(state)) {
      retire_list_.unreserve();
      return false;
    }
    try {
      if (rule != nullptr && !rule->allows(*this, one)) {
        one.unlock(state);
        retire_list_.unreserve();
        return false;
      }
      map_.erase(key_words<Key>::of(one.key()));
    } catch (...) {
      one.unlock(state);
      retire_list_.unreserve();
      throw;
    }
    one.unlock(state.as_dead());
    retire_list_.retire(&one, [](void* self, void* dead) noexcept {
      auto* const gone = static_cast<record*>(dead);
      key_words<Key>::drop(gone->key());
      static_cast<keyed_table*>(self)->destroy(gone);
    });
    retire_list_.unreserve();
    return true;
  }

  static constexpr std::size_t group_first = 8;
  static constexpr std::size_t group_max = 64;
  // Chosen: a checkpoint holds back reclamation for as long only.
  static constexpr std::size_t rows_per_pin = 256;

  Map map_;
  retire_list retire_list_;  // behind the map, whose records it no longer has
};

template <class Key>
concept table_key =
    (std::integral<Key> && !std::same_as<Key, bool>) || std::same_as<Key, std::string>;

// With rows of a type.
template <table_key Key, class Row, class Map>
class table : public keyed_table<Key, Map> {
  static_assert(std::is_trivially_copyable_v<Row>, "rows are trivially copyable");
  static_assert(sizeof(Row) <= row_bytes_max, "a row that is larger than row_bytes_max");

 public:
  using row_type = Row;
  explicit table(std::string name, row_locking locking = {})
      : keyed_table<Key, Map>(std::move(name), sizeof(Row), {}, locking) {}

  // Between a row and its words.
  static Row row_of(std::span<const std::uint64_t> words) noexcept {
    Row made;
    std::memcpy(static_cast<void*>(&made), words.data(), sizeof made);
    return made;
  }
  static void write_words(const Row& from, std::span<std::uint64_t> to) noexcept {
    to.back() = 0;
    std::memcpy(to.data(), &from, sizeof from);
  }
};

// With rows of a schema.
template <table_key Key, class Map>
class schema_table : public keyed_table<Key, Map> {
 public:
  using row_type = row;
  schema_table(std::string name, const schema& columns, row_locking locking = {})
      : keyed_table<Key, Map>(std::move(name), columns.row_bytes(), columns.text(), locking),
        columns_(columns) {}

  const schema& columns() const noexcept { return columns_; }
  row make_row() const { return row(columns_); }

  row row_of(std::span<const std::uint64_t> words) const { return row(columns_, words); }
  // Throws schema_mismatch.
  void write_words(const row& from, std::span<std::uint64_t> to) const {
    if (from.columns() != columns_)
      throw schema_mismatch(this->name() + ": a row of another schema");
    if (from.words().empty()) throw schema_mismatch(this->name() + ": a row that was moved from");
    std::copy(from.words().begin(), from.words().end(), to.begin());
  }

 private:
  const schema columns_;
};

}  // namespace elidex::internal
