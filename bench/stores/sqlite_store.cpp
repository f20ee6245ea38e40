// The peer SQLite, with a write-ahead log. Each session has a connection of its own. SQLite has one
// writer at a time; a second one polls the file's lock with growing pauses. So that they need not
// poll, the writers of this process wait for a mutex.

#include "bench/stores/store.hpp"

#if !defined(ELIDEX_NO_SQLITE)
#  include <sqlite3.h>

#  include <algorithm>
#  include <limits>
#  include <mutex>
#  include <stdexcept>

#  include "bench/stores/rows.hpp"
#endif

namespace elidex::bench::stores {
namespace {

constexpr level_info levels[] = {
    {durability::async, "WAL, synchronous=NORMAL",
     "SIGKILL; after a power failure it may lack all commits since the last checkpoint"},
    {durability::sync, "WAL, synchronous=FULL", "SIGKILL and a power failure"},
};

#if !defined(ELIDEX_NO_SQLITE)
constexpr int busy_timeout_ms = 60'000;  // of readers while another connection opens or checkpoints
constexpr const char* cache_kib = "262144";

struct closing {
  void operator()(sqlite3* db) const noexcept { sqlite3_close(db); }
};

class connection {
 public:
  connection(const std::string& file, durability level) {
    sqlite3* opened = nullptr;
    const int result =
        sqlite3_open_v2(file.c_str(), &opened,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    db_.reset(opened);
    check(result);
    check(sqlite3_busy_timeout(get(), busy_timeout_ms));
    run("PRAGMA journal_mode=WAL");
    run(level == durability::sync ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    run(std::string("PRAGMA cache_size=-") + cache_kib);
  }

  void run(const std::string& text) {
    check(sqlite3_exec(get(), text.c_str(), nullptr, nullptr, nullptr));
  }
  void check(int result) const {
    if (result == SQLITE_OK || result == SQLITE_DONE || result == SQLITE_ROW) return;
    throw std::runtime_error(std::string("sqlite: ") +
                             (db_ ? sqlite3_errmsg(get()) : sqlite3_errstr(result)));
  }
  [[nodiscard]] sqlite3* get() const noexcept { return db_.get(); }

 private:
  std::unique_ptr<sqlite3, closing> db_;
};

class statement {
 public:
  statement(connection& of, const char* text) : of_(of) {
    of_.check(
        sqlite3_prepare_v3(of_.get(), text, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr));
  }
  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;
  ~statement() { sqlite3_finalize(statement_); }

  statement& bind(int place, std::int64_t value) {
    of_.check(sqlite3_bind_int64(statement_, place, value));
    return *this;
  }
  /// The bytes must stay until reset().
  statement& bind(int place, row_view bytes) {
    of_.check(sqlite3_bind_blob64(statement_, place, bytes.data(), bytes.size(), SQLITE_STATIC));
    return *this;
  }
  /// Whether there is a row.
  bool step() {
    const int result = sqlite3_step(statement_);
    of_.check(result);
    return result == SQLITE_ROW;
  }
  void reset() noexcept { sqlite3_reset(statement_); }
  void run() {
    step();
    of_.check(sqlite3_reset(statement_));
  }
  [[nodiscard]] std::int64_t integer(int place) const {
    return sqlite3_column_int64(statement_, place);
  }
  [[nodiscard]] row_view bytes(int place) const {
    const void* const data = sqlite3_column_blob(statement_, place);
    return {static_cast<const std::byte*>(data),
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, place))};
  }

 private:
  connection& of_;
  sqlite3_stmt* statement_ = nullptr;
};

/// Resets a statement that returned rows.
class resetting {
 public:
  explicit resetting(statement& of) : of_(of) {}
  resetting(const resetting&) = delete;
  resetting& operator=(const resetting&) = delete;
  ~resetting() { of_.reset(); }

 private:
  statement& of_;
};

class sqlite_store final : public store {
 public:
  explicit sqlite_store(const store_setup& setup)
      : file_(setup.directory + "/rows.sqlite"),
        level_(setup.level),
        value_bytes_(setup.value_bytes),
        own_(file_, level_) {
    own_.run("CREATE TABLE IF NOT EXISTS rows (key INTEGER PRIMARY KEY, row BLOB NOT NULL)");
  }

  std::unique_ptr<session> connect() override { return std::make_unique<client>(*this); }
  void settle() override {
    own_.check(sqlite3_wal_checkpoint_v2(own_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                         nullptr));
  }

 private:
  class client final : public session {
   public:
    explicit client(sqlite_store& of)
        : of_(of), db_(of.file_, of.level_), writer_(of.value_bytes_) {}

    bool get(std::uint64_t key, const row_visitor& visit) override {
      const resetting at_end(get_);
      if (!get_.bind(1, static_cast<std::int64_t>(key)).step()) return false;
      visit(key, get_.bytes(0));
      return true;
    }
    std::size_t scan(std::uint64_t from, std::size_t limit, const row_visitor& visit) override {
      const resetting at_end(scan_);
      constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
      scan_.bind(1, static_cast<std::int64_t>(from));
      scan_.bind(2, static_cast<std::int64_t>(std::min(limit, most)));
      std::size_t seen = 0;
      for (; scan_.step(); ++seen)
        visit(static_cast<std::uint64_t>(scan_.integer(0)), scan_.bytes(1));
      return seen;
    }
    void append(std::uint64_t first, std::uint64_t count) override {
      in_transaction([&] {
        for (std::uint64_t key = first; key < first + count; ++key)
          insert_.bind(1, static_cast<std::int64_t>(key)).bind(2, writer_.make(key, 0)).run();
      });
    }
    void put(key_list keys, std::uint64_t version) override {
      in_transaction([&] {
        for (const std::uint64_t key : keys)
          put_.bind(1, static_cast<std::int64_t>(key)).bind(2, writer_.make(key, version)).run();
      });
    }
    void increment(key_list keys) override {
      in_transaction([&] {
        for (const std::uint64_t key : keys) {
          std::uint64_t version = 0;
          const bool found =
              get(key, [&](std::uint64_t, row_view row) { version = next_version(row, key); });
          if (!found) throw std::logic_error("sqlite: no row for a key that was loaded");
          update_.bind(1, static_cast<std::int64_t>(key)).bind(2, writer_.make(key, version));
          update_.run();
        }
      });
    }

   private:
    template <class Fn>
    void in_transaction(Fn&& fn) {
      const std::lock_guard guard(of_.writing_);
      begin_.run();
      try {
        fn();
        commit_.run();
      } catch (...) {
        sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
        throw;
      }
    }

    sqlite_store& of_;
    connection db_;
    row_writer writer_;
    statement begin_{db_, "BEGIN IMMEDIATE"};
    statement commit_{db_, "COMMIT"};
    statement get_{db_, "SELECT row FROM rows WHERE key = ?1"};
    statement scan_{db_, "SELECT key, row FROM rows WHERE key >= ?1 ORDER BY key LIMIT ?2"};
    statement insert_{db_, "INSERT INTO rows VALUES (?1, ?2)"};
    statement put_{db_,
                   "INSERT INTO rows VALUES (?1, ?2) "
                   "ON CONFLICT (key) DO UPDATE SET row = excluded.row"};
    statement update_{db_, "UPDATE rows SET row = ?2 WHERE key = ?1"};
  };

  const std::string file_;
  const durability level_;
  const std::size_t value_bytes_;
  std::mutex writing_;
  connection own_;
};
#endif

}  // namespace

store_info sqlite_store_info() {
  return {.name = "sqlite",
          .description = "peer: SQLite with a write-ahead log; one connection for each thread",
          .levels = levels,
#if defined(ELIDEX_NO_SQLITE)
          .open = {},
          .version = {},
          .not_built = ELIDEX_NO_SQLITE
#else
          .open = [](const store_setup& setup) { return std::make_unique<sqlite_store>(setup); },
          .version = sqlite3_libversion()
#endif
  };
}

}  // namespace elidex::bench::stores
