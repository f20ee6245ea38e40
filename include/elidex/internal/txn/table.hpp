// A table: records by key, in an index of any kind.
//
//   auto& accounts = db.create_table<std::uint64_t, account>("accounts");       // database.hpp
//   db.transact([&](auto& t) { t.insert(accounts, 7, account{.balance = 70}); });
//
// A row is trivially copyable, or has registered members (row_members.hpp), or a schema
// (schema.hpp). A key is an integer or a std::string. The table is ordered by its keys.
//
// Thread-safety: all members except the destructor, from any thread.
// Errors: std::bad_alloc. Then nothing has changed.
//
// Implementation notes
// The index holds a pointer to each record, including absent ones. An absent record is not
// committed yet, or it is erased and a snapshot may still need it. The function collect() unlinks
// all other absent records.
//
// An erased record stays until every transaction that was running at the erase has ended. Such a
// transaction may look again for phantoms. Without the record it could miss a row that was inserted
// and erased since its first look. But the row may have been present at the moment for which the
// transaction commits.
//
// Why unlinking is right: collect() locks the record in the state in which it was erased, so no
// transaction has inserted it again. Then it unlinks the record, and marks it dead. A transaction
// that found the record before saw it absent, and fails to validate it or to lock the dead record.
// A later transaction makes a new record. The memory goes to the retire list, because every thread
// that found the record had an epoch_pin and still has it. Under two-phase locking an
// unlinking_rule checks the locks while the record's word is locked (two_phase_transaction.hpp).
//
// The next write of a row frees its old versions. A row that is not written again would keep one
// forever. So commits count the versions that they keep. When the count reaches 4096, and half the
// rows of the last walk, collections walk through the table and free the versions that no snapshot
// needs. Each collection walks a part of the table, so none takes long.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
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
#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/tree_range.hpp"
#include "elidex/internal/txn/errors.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/record_memory.hpp"
#include "elidex/internal/txn/row_members.hpp"
#include "elidex/internal/txn/schema.hpp"
#include "elidex/internal/txn/schema_change.hpp"

namespace elidex::internal {

// Conversions of keys. A record and a transaction's notes have a key as a word. The log has it as
// bytes: an integer as eight bytes in this machine's order.
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
  // Throws std::out_of_range for a number outside the range of Key.
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
  // Returns no value if the bytes are no key.
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

// What the lock system needs of a table (two_phase_transaction.hpp). Zero without locks.
struct row_locking {
  std::uint32_t space = 0;           // the table's number
  std::size_t words_behind_row = 0;  // 1: each record names its implicit locker
};

class table_base;

// Decides which erased records may leave the index. allows() is called while the record's word is
// locked, in the state in which it was erased. If it returns false, the record stays until the next
// collection.
struct unlinking_rule {
  virtual ~unlinking_rule() = default;
  virtual bool allows(const table_base& table, record& erased) = 0;
};

// The part of a table that a transaction's notes and the storage need.
class table_base {
 public:
  // The size of rows that have no common size.
  static constexpr std::size_t varying = 0;
  static_assert(words_for(varying) == record_memory::any_room);
  static_assert(words_for(row_bytes_max) <= record::room_max);

  // `row_bytes`: of each row, or `varying`.
  table_base(std::string name, std::size_t row_bytes, std::string schema_text, row_locking locking)
      : name_(std::move(name)),
        schema_text_(std::move(schema_text)),
        row_bytes_(row_bytes),
        locking_(locking),
        memory_(words_for(row_bytes), locking.words_behind_row),
        retire_list_(this) {
    name_memory(this, sizeof *this, "table");
  }
  virtual ~table_base() = default;
  table_base(const table_base&) = delete;
  table_base& operator=(const table_base&) = delete;

  // Returns the name that create_table() was given.
  const std::string& name() const noexcept { return name_; }
  // The table's number in the log, from 1 on. Set before transactions use the table.
  std::uint32_t id() const noexcept { return id_; }
  void set_id(std::uint32_t id) noexcept { id_ = id; }
  // The commit group in which the table was declared in the log. With the number it identifies the
  // table: a number may be used again when a table was dropped. Set before transactions use the
  // table.
  std::uint64_t declared_in() const noexcept { return declared_in_; }
  void set_declared_in(std::uint64_t group) noexcept { declared_in_ = group; }
  // The address of the database that made the table, or null for a table without a database. Set
  // before transactions use the table.
  void set_owner(const void* database) noexcept {
    owner_ = database;
    writer_.store(database);
  }
  // Throws std::logic_error if another database made the table, or schema_mismatch if
  // change_table() has replaced it.
  void check_owner(const void* database) const {
    // relaxed, here and in check_snapshot(): ordered by the begin of the next transaction, because
    // none runs while they change (basic_database::change_table()). A snapshot may read the former
    // values. It then belongs to one of the groups for which they hold.
    if (writer_.load(std::memory_order_relaxed) != database) [[unlikely]]
      refuse(database);
  }
  // The same for a snapshot of a commit group: schema_mismatch if the table got its rows later, or
  // was replaced before.
  void check_snapshot(const void* database, std::uint64_t group) const {
    // relaxed: ordered by the snapshot's group, as above.
    if (owner_ != database || group < first_group_.load(std::memory_order_relaxed) ||
        group >= end_group_.load(std::memory_order_relaxed)) [[unlikely]]
      refuse(database);
  }
  // Where the table stands in a change of columns (column_change.hpp). Only the current table of a
  // name is found by it. Under the database's mutex.
  enum class role : std::uint8_t { current, next, former };
  role standing() const noexcept { return role_; }
  void be_next() noexcept {
    role_ = role::next;
    apart_.store(true);
    first_group_.store(std::numeric_limits<std::uint64_t>::max());
  }
  // At the end of a change: all that is committed in `group` and later is in the next tables only.
  void end_before(std::uint64_t group) noexcept {
    be_former();
    end_group_.store(group);
  }
  void begin_with(std::uint64_t group) noexcept {
    role_ = role::current;
    first_group_.store(group - 1);
  }
  void be_former() noexcept {
    role_ = role::former;
    writer_.store(&writer_);  // no database
  }
  // How many indexes the table has, how many threads are adding or dropping one, and whether its
  // columns are being changed. Under the database's mutex.
  int& indexes() noexcept { return indexes_; }
  int& index_changes() noexcept { return index_changes_; }
  bool& is_changing() noexcept { return is_changing_; }
  // Whether the directory has the table under catalog_name() instead of its name, and none of its
  // rows.
  bool is_apart() const noexcept { return apart_.load(); }
  void set_apart(bool is) noexcept { apart_.store(is); }
  std::string catalog_name() const {
    return is_apart() ? name_ + " (table " + std::to_string(id_) + ")" : name_;
  }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  bool rows_vary() const noexcept { return row_bytes_ == varying; }
  // Empty if the rows are of a C++ type without registered members.
  const std::string& schema_text() const noexcept { return schema_text_; }
  const row_locking& locking() const noexcept { return locking_; }
  // The distance between two records' addresses is at least this.
  std::size_t record_distance() const noexcept { return memory_.record_distance(); }
  // The columns of the rows, or no value if they are of a C++ type without registered members.
  virtual std::optional<schema> columns_of_rows() const { return std::nullopt; }
  // What has changed since earlier versions of the program. Set before open().
  const schema_change& changes() const noexcept { return changes_; }
  void set_changes(schema_change since) noexcept { changes_ = std::move(since); }
  // Returns an empty table of the same keys for rows with these columns.
  virtual std::unique_ptr<table_base> make_with(const schema& columns) const = 0;
  // Calls fn(record) for all records. The caller is pinned.
  virtual void for_each_record(const std::function<void(const record&)>& fn) const = 0;
  // Whether words from a file are a row of this table.
  virtual bool is_row(std::span<const std::uint64_t> words) const noexcept {
    return words.size() == words_for(row_bytes_);
  }

  virtual key_type_info key_type_of() const noexcept = 0;
  virtual std::string_view key_bytes(const record& one) const noexcept = 0;
  virtual bool has_rows() const = 0;
  // The table that this table indexes. Null: this is no index.
  const table_base* indexed() const noexcept { return indexed_; }
  // `fill` makes the entries of all rows, when a directory has rows and not the index.
  void set_indexed(const table_base& table, std::function<void()> fill) {
    indexed_ = &table;
    fill_ = std::move(fill);
  }
  void fill() const { fill_(); }
  // The number of the table that this table indexes, as the program or the directory says. 0 for
  // other tables, and for an index in a directory that an earlier version wrote.
  std::uint32_t indexed_number() const noexcept {
    return indexed_ != nullptr ? indexed_->id() : indexed_number_;
  }
  // Set before transactions use the table.
  void set_indexed_number(std::uint32_t number) noexcept { indexed_number_ = number; }
  // Whether the table is an index that is still being built, or that was dropped. open() does not
  // use what a directory has of it.
  bool is_unfinished() const noexcept { return unfinished_.load(); }
  void set_unfinished(bool is) noexcept { unfinished_.store(is); }
  // Whether the table is the rest of an index that the program does not have. Checkpoints leave it
  // out. Set before transactions use the table.
  bool is_abandoned() const noexcept { return abandoned_; }
  void abandon() noexcept { abandoned_ = true; }
  // Find a record by the bytes of its key. find_by_bytes() returns null if there is none.
  // get_or_create_by_bytes() returns null if the bytes are no key. The caller is pinned.
  virtual record* find_by_bytes(std::string_view key) const = 0;
  // `row_words`: of the row that a new record is for.
  virtual record* get_or_create_by_bytes(std::string_view key, std::size_t row_words) = 0;
  // Writes all rows, each as some commit has left it, while other threads commit.
  virtual void write_rows(checkpoint_writer& to) = 0;
  // Counts a version that a commit has kept for snapshots.
  void count_kept_version() noexcept { kept_versions_.add(1); }
  // Frees old versions that no snapshot from `horizon` on can need, of some rows if the table has
  // many versions. Returns whether there is more to do when all snapshots of groups before the
  // returned one have ended: 0 if not, and the largest number if they have ended already. `now`:
  // the clock's. Under the database's mutex, as the next two. Throws std::bad_alloc.
  std::uint64_t free_some_old_versions(std::uint64_t horizon, std::uint64_t now) {
    if (!trim_.runs) {
      const std::size_t kept = kept_versions_.count();
      if (kept < trim_.counted + std::max(versions_per_walk_min, trim_.rows / 2)) return 0;
      // While the snapshots run for which the versions were kept, a walk would free nothing.
      if (trim_.due_in == 0) trim_.due_in = now;
      if (horizon < trim_.due_in) return trim_.due_in;
      trim_.begin(kept);
    }
    return continue_to_free_versions(horizon) ? std::numeric_limits<std::uint64_t>::max() : 0;
  }
  // The same for all rows of a table that has any: the first call, and the further ones. Returns
  // whether another call is necessary.
  bool begin_to_free_versions() {
    const std::size_t kept = kept_versions_.count();
    if (kept != trim_.counted || trim_.runs) trim_.begin(kept);
    return trim_.runs;
  }
  bool continue_to_free_versions(std::uint64_t horizon) {
    for (std::size_t i = 0; i < pins_per_part && trim_.runs; ++i) continue_walk(horizon);
    return trim_.runs;
  }
  // Erases some rows of a table that no transaction and no snapshot uses, from the key `next` on,
  // or from the first one. Returns the bytes of the key at which to continue, or no value at the
  // table's end.
  virtual std::optional<std::string> clear_some(const std::optional<std::string>& next) = 0;

  // Makes a version for a row of this record.
  record::version* make_version(const record& of) {
    auto* const made = new (memory_.allocate(of.room())) record::version;
    made->room = static_cast<std::uint32_t>(of.room());
    return made;
  }
  // Frees versions that no thread can reach, and their bodies.
  void free_versions(record::version* first) noexcept {
    while (first != nullptr) {
      record::version* const older = first->older.load();
      delete[] first->body();
      memory_.deallocate(first, first->room);
      first = older;
    }
  }
  // Frees a record that no thread can reach, with its versions and bodies.
  void destroy(record* one) noexcept {
    free_versions(one->cut_versions(std::uint64_t(-1), one->stamp()));
    delete[] one->body().data();
    memory_.deallocate(one, one->room());
  }
  // For the commits of rows with bodies. A thread that read a body without a snapshot may still
  // read it, so bodies are retired. One reservation allows both calls of retire_*() once. Null is
  // nothing. reserve_retirement() throws std::bad_alloc.
  void reserve_retirement() { retire_list_.reserve(); }
  void unreserve_retirement() noexcept { retire_list_.unreserve(); }
  void retire_versions(record::version* first) noexcept {
    std::size_t words = 0;  // of bodies
    for (const record::version* v = first; v != nullptr; v = v->older.load())
      words += v->body() != nullptr ? v->row_words : 0;
    if (words == 0) {
      free_versions(first);
    } else {
      retire(first, words, [](void* self, void* dead) noexcept {
        static_cast<table_base*>(self)->free_versions(static_cast<record::version*>(dead));
      });
    }
  }
  void retire_body(std::span<std::uint64_t> body) noexcept {
    if (body.empty()) return;
    retire(body.data(), body.size(), [](void*, void* dead) noexcept {  //
      delete[] static_cast<std::uint64_t*>(dead);
    });
  }

  // Puts an absent record on the list of records to unlink. A record is on the list at most once: a
  // second entry would outlive it. The caller has been pinned since it found the record. Cannot
  // fail.
  void note_absent(record& absent) noexcept {
    if (absent.waits_for_unlinking().exchange(true)) return;
    const absent_record one{&absent, absent.stamp(), epoch_after_unlinking()};
    const std::lock_guard guard(absent_mutex_);
    try {
      absent_.push_back(one);
    } catch (const std::bad_alloc&) {
      // The record stays in the index, where the next insert of its key finds it.
      absent.waits_for_unlinking().store(false);
    }
  }
  // Unlinks the records that no snapshot from `horizon` on can need and that were absent before
  // every running transaction began. `horizon`: commit_clock::settled_horizon(). A new record of
  // the same key begins without a stamp, so in the same group the log could take the insert for
  // older than the erase. `now` is the epoch of reclamation, which the caller has tried to advance.
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
          // A second look: another thread may have erased the record in between while it was still
          // on the list.
          if (one.row->stamp().absent()) note_absent(*one.row);
          continue;
        }
        if (state != one.since) {
          one.since = state;
          one.epoch = epoch_after_unlinking();
        } else if (now >= one.epoch + 2 && state.group() <= horizon &&
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
  // Gives back the memory of a former table's records and returns true, or returns false if a
  // record is left. Under the database's mutex.
  bool give_back_memory() noexcept {
    if (!gave_back_) {
      retire_list_.sweep_all();
      gave_back_ = memory_.give_back_unused();
    }
    return gave_back_;
  }
  std::size_t absent_records() const noexcept {
    const std::lock_guard guard(absent_mutex_);
    return absent_.size();
  }

 protected:
  // Unlinks the record if it is still in this state and the rule allows it. Returns whether it did.
  virtual bool unlink(record& one, commit_stamp state, unlinking_rule* rule) = 0;

  // A walk that frees old versions.
  struct walk_for_versions {
    std::optional<std::string> next;  // the bytes of the key at which it continues
    std::size_t rows = 0;             // how many it has visited
    std::size_t left = 0;             // of which so many may still have versions
  };
  // Visits the next rows.
  virtual void continue_walk(walk_for_versions& walk, std::uint64_t horizon) = 0;
  // Frees the record's old versions that no snapshot from `horizon` on can need. Returns false if
  // it may have others, or if a commit is writing the row. The caller is pinned. Throws
  // std::bad_alloc.
  bool free_old_versions_of(record& one, std::uint64_t horizon) {
    const commit_stamp seen = one.stamp();
    if (seen.locked() || seen.group() > horizon) return false;
    if (rows_vary()) reserve_retirement();
    const bool is_mine = one.try_lock(seen);
    if (is_mine) {
      record::version* const gone = one.cut_versions(horizon, seen);
      one.unlock(seen);
      if (rows_vary()) {
        retire_versions(gone);
      } else {
        free_versions(gone);
      }
    }
    if (rows_vary()) unreserve_retirement();
    return is_mine;
  }

  record_memory& memory() noexcept { return memory_; }
  const record_memory& memory() const noexcept { return memory_; }
  void retire(record& unlinked, retire_list::destroyer free) noexcept {
    retire(&unlinked, unlinked.body().size(), free);
  }

 private:
  // Chosen: so many times 256 rows are visited in a fraction of a millisecond.
  static constexpr std::size_t pins_per_part = 16;
  // Chosen: fewer versions are not worth a walk.
  static constexpr std::size_t versions_per_walk_min = 4096;
  // The list sweeps after a number of objects. Bodies may be long, so their words count as well.
  static constexpr std::size_t retired_words_per_sweep = (std::size_t{1} << 20) / 8;  // chosen
  void retire(void* object, std::size_t words_of_bodies, retire_list::destroyer free) noexcept {
    retire_list_.retire(object, free);
    if (words_of_bodies == 0) return;
    // relaxed, without a partner: a sweep too many or too few does no harm.
    const std::size_t before = retired_words_.fetch_add(words_of_bodies, std::memory_order_relaxed);
    if (before + words_of_bodies < retired_words_per_sweep) return;
    // relaxed, without a partner: as above.
    retired_words_.store(0, std::memory_order_relaxed);
    retire_list_.sweep_all();
  }

  struct absent_record {
    record* row;
    commit_stamp since;   // its state, which is absent
    std::uint64_t epoch;  // an epoch at or after the change to it (internal/memory/epoch.hpp)
  };

  // The walks that free old versions.
  struct trimming {
    bool runs = false;
    std::uint64_t due_in = 0;  // the group in which it was seen that a walk is due, or 0
    std::size_t counted = 0;   // of kept_versions_, by the walks until now
    std::size_t rows = 0;      // of the last walk
    walk_for_versions walk;
    void begin(std::size_t kept) {
      runs = true;
      due_in = 0;
      counted = kept;
      walk = {};
    }
  };
  void continue_walk(std::uint64_t horizon) {
    continue_walk(trim_.walk, horizon);
    if (trim_.walk.next) return;
    trim_.runs = false;
    trim_.rows = trim_.walk.rows;
    trim_.counted -= std::min(trim_.counted, trim_.walk.left);
  }

  [[noreturn]] void refuse(const void* database) const;

  void keep_absent(std::vector<absent_record> more) noexcept {
    const std::lock_guard guard(absent_mutex_);
    if (absent_.empty()) {
      absent_ = std::move(more);
      return;
    }
    try {
      absent_.insert(absent_.end(), more.begin(), more.end());
    } catch (const std::bad_alloc&) {
      // The records stay in the index, where the next insert of their keys finds them.
      for (const absent_record& one : more) one.row->waits_for_unlinking().store(false);
    }
  }

  const std::string name_;
  const std::string schema_text_;
  std::uint32_t id_ = 0;
  std::uint64_t declared_in_ = 1;
  const table_base* indexed_ = nullptr;
  std::uint32_t indexed_number_ = 0;  // as the directory says
  std::function<void()> fill_;
  std::atomic<bool> unfinished_{false};
  bool abandoned_ = false;
  const std::size_t row_bytes_;
  const void* owner_ = nullptr;
  std::atomic<const void*> writer_{nullptr};  // the owner, while transactions may use the table
  std::atomic<std::uint64_t> first_group_{0};
  std::atomic<std::uint64_t> end_group_{std::numeric_limits<std::uint64_t>::max()};
  std::atomic<bool> apart_{false};
  role role_ = role::current;
  bool gave_back_ = false;
  bool is_changing_ = false;
  int indexes_ = 0;
  int index_changes_ = 0;
  schema_change changes_;
  const row_locking locking_;
  record_memory memory_;
  mutable std::mutex absent_mutex_;
  std::vector<absent_record> absent_;
  trimming trim_;  // under the database's mutex
  busy_counter kept_versions_;
  retire_list retire_list_;  // has records that the index no longer has, versions and bodies
  std::atomic<std::size_t> retired_words_{0};  // of bodies, since the last sweep for their sake
};

// What the caller of keyed_table::get_or_create() expects.
enum class key_likely_is : bool { absent, present };

// What the function that is passed to keyed_table::walk() reads of the records.
enum class walk_reads : bool { stamps, rows };

// The records by key. Map is an index with get(), insert(), erase() and scan(). If its scan() takes
// no tree_range, a descending scan of the table reads its whole range first.
template <class Key, class Map>
class keyed_table : public table_base {
 public:
  using key_type = Key;
  using key_argument = typename key_words<Key>::argument;
  using range = tree_range<key_argument>;
  struct nothing {
    void operator()(record&) const noexcept {}
  };

  keyed_table(std::string name, std::size_t row_bytes, std::string schema_text, row_locking locking)
      : table_base(std::move(name), row_bytes, std::move(schema_text), locking) {}
  ~keyed_table() override {
    map_.scan(key_words<Key>::least(), std::size_t(-1), [&](auto&&, record* one) {
      key_words<Key>::drop(one->key());
      destroy(one);
    });
  }

  // Returns null if there is no such record. The caller is pinned.
  record* find(key_argument key) const {
    const auto found = map_.get(key);
    return found ? *found : nullptr;
  }
  // The same for several keys, and prefetches the records.
  std::vector<std::optional<record*>> find_all(std::span<const key_argument> keys) const {
    std::vector<std::optional<record*>> found(keys.size());
    if constexpr (requires { map_.multi_get(keys, std::span(found)); }) {
      map_.multi_get(keys, std::span(found));
    } else {
      std::transform(keys.begin(), keys.end(), found.begin(),
                     [this](key_argument key) { return map_.get(key); });
    }
    for (const std::optional<record*>& one : found) {
      if (one) (*one)->prefetch(this->row_bytes());
    }
    return found;
  }
  // Returns the record of `key`, and makes one if there is none, for a row of so many words.
  // `likely` only affects speed: it chooses what is tried first. prepare(record&) runs on each new
  // record before it becomes visible. It may run several times, and may throw.
  template <class Prepare = nothing>
  record* get_or_create(key_likely_is likely, key_argument key, std::size_t row_words,
                        const Prepare& prepare = {}) {
    if (likely == key_likely_is::present) {
      if (record* const found = find(key)) return found;
    }
    for (;;) {
      if (record* const made = try_make(key, row_words, prepare)) return made;
      if (record* const found = find(key)) return found;
    }
  }

  // Calls fn(record*) for the keys of a range, in its direction, until fn returns false. Returns
  // whether the walk reached its end. The walk reads groups of a few records, each group at one
  // moment, and prefetches what fn reads of them. An ascending walk allocates nothing. The caller
  // is pinned.
  template <walk_reads Reads = walk_reads::stamps, class Fn>
  bool walk(const range& which, Fn&& fn) const {
    if constexpr (!scans_ranges) {
      if (which.descends) return walk_back(which, fn);
    }
    return walk_in_groups<Reads>(which, fn);
  }
  // The same for all keys from `first` on.
  template <walk_reads Reads = walk_reads::stamps, class Fn>
  bool walk(key_argument first, Fn&& fn) const {
    range which;
    which.lower.emplace(first);
    return walk<Reads>(which, fn);
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
  record* get_or_create_by_bytes(std::string_view key, std::size_t row_words) override {
    const auto found = key_words<Key>::from_bytes(key);
    return found ? get_or_create(key_likely_is::present, *found, row_words) : nullptr;
  }
  bool has_rows() const override {
    const epoch_pin pinned;
    return !walk(Key(key_words<Key>::least()),
                 [](const record* one) { return one->stamp().absent(); });
  }
  std::unique_ptr<table_base> make_with(const schema& columns) const override;
  void for_each_record(const std::function<void(const record&)>& fn) const override {
    walk<walk_reads::rows>(Key(key_words<Key>::least()), [&](const record* one) {
      fn(*one);
      return true;
    });
  }
  void write_rows(checkpoint_writer& to) override {
    std::vector<std::uint64_t> buffer;
    Key next(key_words<Key>::least());
    for (bool more = true; more;) {
      const epoch_pin pinned;  // for rows_per_pin rows only
      std::size_t rows = 0;
      more = !walk<walk_reads::rows>(next, [&](const record* one) {
        if (rows++ == rows_per_pin) {
          next = Key(key_words<Key>::of(one->key()));
          return false;
        }
        const record::seen_row row = one->read(buffer);
        if (row.stamp.absent()) return true;
        to.add_row(id(), key_bytes(*one), bytes_of(row.words), row.stamp.word());
        return true;
      });
    }
  }

  std::optional<std::string> clear_some(const std::optional<std::string>& next) override {
    const epoch_pin pinned;
    std::optional<std::string> rest;
    std::size_t rows = 0;
    const auto found = next ? key_words<Key>::from_bytes(*next) : std::nullopt;
    walk(found ? *found : key_argument(key_words<Key>::least()), [&](record* one) {
      if (rows++ == rows_per_part) {
        rest.emplace(key_bytes(*one));
        return false;
      }
      if (one->stamp().absent()) return true;
      one->unlock(one->lock().as_absent());
      note_absent(*one);
      return true;
    });
    return rest;
  }

  void continue_walk(table_base::walk_for_versions& state, std::uint64_t horizon) override {
    const epoch_pin pinned;
    const std::optional<std::string> from = std::exchange(state.next, std::nullopt);
    std::size_t rows = 0;
    const auto found = from ? key_words<Key>::from_bytes(*from) : std::nullopt;
    walk(found ? *found : key_argument(key_words<Key>::least()), [&](record* one) {
      if (rows == rows_per_pin) {
        state.next.emplace(key_bytes(*one));
        return false;
      }
      ++rows;
      if (one->has_versions() && !this->free_old_versions_of(*one, horizon)) ++state.left;
      return true;
    });
    state.rows += rows;
  }

  std::size_t memory_bytes() const noexcept {
    return map_.memory_bytes() + memory().reserved_bytes();
  }
  Map& map() noexcept { return map_; }

 private:
  static constexpr bool scans_ranges =
      requires(const Map& map, const range& which) { map.scan(which, 1, [](auto&&...) {}); };

  // An ascending group may have one record before the range, and records behind it.
  template <class Fn>
  void read_group(const range& which, std::size_t wanted, const Fn& fn) const {
    if constexpr (scans_ranges) {
      if (which.descends) {
        map_.scan(which, wanted, fn);
        return;
      }
    }
    map_.scan(which.lower ? *which.lower : key_argument(key_words<Key>::least()), wanted, fn);
  }
  template <walk_reads Reads, class Fn>
  bool walk_in_groups(const range& which, Fn& fn) const {
    const std::size_t row_bytes_read = Reads == walk_reads::rows ? row_bytes() : 0;
    std::array<record*, group_max> group;
    std::size_t wanted = group_first;
    for (range rest = which;;) {
      std::size_t found = 0;
      read_group(rest, wanted, [&](auto&&, record* one) {
        if (found < prefetched_ahead) one->prefetch(row_bytes_read);
        group[found++] = one;
      });
      for (std::size_t i = 0; i < found; ++i) {
        if (i + prefetched_ahead < found) group[i + prefetched_ahead]->prefetch(row_bytes_read);
        const key_argument key = key_words<Key>::of(group[i]->key());
        if (rest.begins_behind(key)) continue;
        if (rest.ends_before(key)) return true;
        if (!fn(group[i])) return false;
      }
      if (found < wanted) return true;
      rest.continue_behind(key_words<Key>::of(group[found - 1]->key()));
      wanted = std::min(wanted * 2, group_max);
    }
  }
  // For a map that scans in ascending order only. Reads the whole range first.
  template <class Fn>
  bool walk_back(range which, Fn& fn) const {
    std::vector<record*> all;
    which.descends = false;
    const auto keep = [&](record* one) {
      all.push_back(one);
      return true;
    };
    walk_in_groups<walk_reads::stamps>(which, keep);
    return std::all_of(all.rbegin(), all.rend(), std::ref(fn));
  }

  // Returns null if there is a record already.
  template <class Prepare>
  record* try_make(key_argument key, std::size_t row_words, const Prepare& prepare) {
    const std::size_t room = memory().room_for(row_words);
    void* const place = memory().allocate(room);
    std::uint64_t word = 0;
    bool kept = false;
    try {
      word = key_words<Key>::keep(key);
      kept = true;
      record* const made = record::make(place, room, word);
      if (locking().words_behind_row != 0) made->make_writer();
      prepare(*made);
      if (map_.insert(key, made)) return made;
    } catch (...) {
      if (kept) key_words<Key>::drop(word);
      memory().deallocate(place, room);
      throw;
    }
    key_words<Key>::drop(word);
    memory().deallocate(place, room);
    return nullptr;
  }

  bool unlink(record& one, commit_stamp state, unlinking_rule* rule) override {
    reserve_retirement();
    if (state.locked() || !one.try_lock(state)) {
      unreserve_retirement();
      return false;
    }
    try {
      if (rule != nullptr && !rule->allows(*this, one)) {
        one.unlock(state);
        unreserve_retirement();
        return false;
      }
      map_.erase(key_words<Key>::of(one.key()));
    } catch (...) {
      one.unlock(state);
      unreserve_retirement();
      throw;
    }
    one.unlock(state.as_dead());
    retire(one, [](void* self, void* dead) noexcept {
      auto* const gone = static_cast<record*>(dead);
      key_words<Key>::drop(gone->key());
      static_cast<table_base*>(self)->destroy(gone);
    });
    unreserve_retirement();
    return true;
  }

  static constexpr std::size_t group_first = 8;
  static constexpr std::size_t group_max = 64;
  // Chosen: a walk that ends early has prefetched so many records in vain.
  static constexpr std::size_t prefetched_ahead = 4;
  // Chosen: a checkpoint or a walk delays reclamation for at most so many rows.
  static constexpr std::size_t rows_per_pin = 256;
  // Chosen: a collection visits so many in some milliseconds.
  static constexpr std::size_t rows_per_part = 4096;

  Map map_;
};

template <class Key>
concept table_key = integer_key<Key> || std::same_as<Key, std::string>;

// A table whose rows are of a C++ type.
template <class Key, class Row, class Map>
class table : public keyed_table<Key, Map> {
  static_assert(
      table_key<Key>,
      "a key is an integer of at most 8 bytes, or std::string (ordered_key encodes others)");
  static_assert(table_row<Row>,
                "a row is trivially copyable, or ELIDEX_ROW has registered it in the namespace of "
                "its type; it has a default constructor and can be copied");
  using codec = row_codec<Row>;

 public:
  using row_type = Row;
  explicit table(std::string name, row_locking locking = {})
      : keyed_table<Key, Map>(std::move(name), codec::row_bytes, codec::schema_text(), locking) {}

  // Convert between a row and its words. word_count() throws row_too_large.
  static Row row_of(std::span<const std::uint64_t> words) { return codec::row_of(words); }
  static std::size_t word_count(const Row& row) { return codec::word_count(row); }
  static void write_words(const Row& from, std::span<std::uint64_t> to) noexcept {
    codec::write_words(from, to);
  }
  // Inserts a row of one size without a transaction, before other threads have the table. Returns
  // false if the key is present. The caller is pinned.
  bool load_row(typename table::key_argument key, const Row& row, commit_stamp stamp) {
    static_assert(codec::row_bytes != table_base::varying);
    std::vector<std::uint64_t> words(word_count(row));
    write_words(row, words);
    record& one = *this->get_or_create(key_likely_is::absent, key, words.size());
    if (!one.stamp().absent()) return false;
    one.lock();
    one.write(words, nullptr);
    one.unlock(stamp);
    return true;
  }
  std::optional<schema> columns_of_rows() const override {
    if (!registered_row<Row>) return std::nullopt;
    return schema::of_directory(this->schema_text(), this->row_bytes());
  }
  bool is_row(std::span<const std::uint64_t> words) const noexcept override {
    return codec::is_row(words);
  }
};

// A table whose rows have a schema.
template <table_key Key, class Map>
class schema_table : public keyed_table<Key, Map> {
 public:
  using row_type = row;
  schema_table(std::string name, const schema& columns, row_locking locking = {})
      : keyed_table<Key, Map>(std::move(name), columns.row_bytes(), columns.text(), locking),
        columns_(columns) {}

  // Returns the schema of the rows.
  const schema& columns() const noexcept { return columns_; }
  // Returns a row of zeros and empty texts. Columns that may be null are null.
  row make_row() const { return row(columns_); }

  row row_of(std::span<const std::uint64_t> words) const { return row(columns_, words); }
  // Throws schema_mismatch.
  std::size_t word_count(const row& from) const {
    if (from.columns() != columns_)
      throw schema_mismatch(this->name() + ": a row of another schema");
    if (from.words().empty()) throw schema_mismatch(this->name() + ": a row that was moved from");
    return from.words().size();
  }
  void write_words(const row& from, std::span<std::uint64_t> to) const noexcept {
    std::copy(from.words().begin(), from.words().end(), to.begin());
  }
  std::optional<schema> columns_of_rows() const override { return columns_; }
  bool is_row(std::span<const std::uint64_t> words) const noexcept override {
    return columns_.is_row(words);
  }

 private:
  const schema columns_;
};

template <class Key, class Map>
std::unique_ptr<table_base> keyed_table<Key, Map>::make_with(const schema& columns) const {
  return std::make_unique<schema_table<Key, Map>>(name(), columns, locking());
}

}  // namespace elidex::internal
