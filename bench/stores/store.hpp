#pragma once
// A store of rows on disk, as `elidex db bench` uses it: one table with 64-bit keys and rows of
// bytes.
//
//   const store_info& info = *find_store("sqlite");
//   std::unique_ptr<store> rows = info.open({.directory = "rows", .level = durability::sync});
//   std::unique_ptr<session> mine = rows->connect();  // one for each thread
//   mine->append(0, 1'000);                           // rows 0 to 999, one transaction
//   const std::uint64_t keys[] = {7, 8};
//   mine->increment(keys);                            // one transaction
//   mine->get(7, [](std::uint64_t key, row_view row) { .. });
//
// A store makes its rows with row_writer (rows.hpp), so that a reader can check each row. Each call
// that writes is one transaction. It returns when the store has acknowledged the commit. What an
// acknowledged commit survives depends on the level (level_info).
//
// Thread-safety: connect() may be called from any thread. A session belongs to the thread that
// created it, and is destroyed by that thread, before its store. settle() and quiesce() run alone.
// Errors: std::runtime_error with the store's own message, or what the store throws.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bench/support/durability_names.hpp"

namespace elidex::bench::stores {

using internal::durability;

using row_view = std::span<const std::byte>;
/// Called while the store reads: it must not call the session. The view is valid until it returns.
using row_visitor = std::function<void(std::uint64_t key, row_view row)>;
using key_list = std::span<const std::uint64_t>;

class session {
 public:
  virtual ~session() = default;

  /// Returns false, without a call of `visit`, if the key has no row.
  virtual bool get(std::uint64_t key, const row_visitor& visit) = 0;
  /// Visits up to `limit` rows of one snapshot in ascending order, from the first key that is not
  /// less than `from`. Returns how many.
  virtual std::size_t scan(std::uint64_t from, std::size_t limit, const row_visitor& visit) = 0;
  /// Inserts `count` rows of version 0 with the keys from `first`. All other keys are smaller.
  virtual void append(std::uint64_t first, std::uint64_t count) = 0;
  /// Inserts or overwrites these rows.
  virtual void put(key_list keys, std::uint64_t version) = 0;
  /// Reads these rows and writes each with the next version. Throws std::logic_error if a key has
  /// no row.
  virtual void increment(key_list keys) = 0;
};

class store {
 public:
  virtual ~store() = default;  // closes it

  [[nodiscard]] virtual std::unique_ptr<session> connect() = 0;
  /// Makes everything durable, and moves it from the log to where the store keeps it for long.
  virtual void settle() = 0;
  /// Waits for the end of the work that the store does in the background.
  virtual void quiesce() {}
  /// How many attempts of transactions were repeated so far.
  [[nodiscard]] virtual std::uint64_t retries() const { return 0; }
};

struct store_setup {
  std::string directory;  // exists; empty at level none
  durability level = durability::sync;
  std::size_t value_bytes = 100;  // of a row
  std::uint64_t rows = 0;         // at first, about
};

/// One way to run a store.
struct level_info {
  durability level = durability::sync;
  std::string_view configuration;  // the settings of the store
  std::string_view survives;       // what an acknowledged commit survives
};

struct store_info {
  std::string_view name;
  std::string_view description;
  std::span<const level_info> levels;
  std::function<std::unique_ptr<store>(const store_setup&)> open;
  std::string version;
  /// Why this program lacks it, in words that follow "NAME is not built: "; empty: it is there.
  /// Otherwise `open` is empty.
  std::string not_built = {};

  /// Null if the store has no such level.
  [[nodiscard]] const level_info* find_level(durability level) const {
    for (const level_info& one : levels) {
      if (one.level == level) return &one;
    }
    return nullptr;
  }
};

inline constexpr std::string_view own_store = "elidex";

/// elidex's own first, then its peers.
[[nodiscard]] std::span<const store_info> stores();
/// Null if there is none.
[[nodiscard]] const store_info* find_store(std::string_view name);

// One in each file NAME_store.cpp.
[[nodiscard]] store_info elidex_store_info();
[[nodiscard]] store_info sqlite_store_info();
[[nodiscard]] store_info lmdb_store_info();
[[nodiscard]] store_info rocksdb_store_info();

}  // namespace elidex::bench::stores
