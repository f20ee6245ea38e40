#pragma once
// The tables of a database's directory, whatever their keys: what `elidex db` reads and writes.
//
//   stored_tables in("bank", stored_tables::use::read);
//   for (const stored_tables::table& one : in.tables())
//     in.scan(one.name, [&](const stored_key& key, const db::row& row) { ... });
//
// Thread-safety: none.
// Errors: those of database::open(). Lifetime: rows and keys are valid until the function returns.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "elidex/database.hpp"

namespace elidex::cli {

using stored_key = std::variant<std::uint64_t, std::int64_t, std::string>;

class stored_tables {
 public:
  // read: nothing is written. If a program has the directory open, the tables have what that
  // program has made durable. write: a directory that does not exist is made.
  enum class use : bool { read, write };
  struct table {
    std::string name;
    std::string key_type;  // "string", or int8 to int64 and uint8 to uint64
    db::schema columns;
    std::size_t row_bytes;  // 0: rows vary in length
  };
  using row_reader = std::function<void(const stored_key&, const db::row&)>;
  // Returns false to end the scan.
  using row_visitor = std::function<bool(const stored_key&, const db::row&)>;
  using row_list = std::vector<std::pair<stored_key, db::row>>;

  stored_tables(const std::string& directory, use as);
  ~stored_tables();

  [[nodiscard]] static bool is_key_type(std::string_view name);
  [[nodiscard]] const db::recovered_log& found() const noexcept { return *found_; }
  // Whether a program has the directory open.
  [[nodiscard]] bool is_in_use() const noexcept { return is_in_use_; }
  // In the order of their names.
  [[nodiscard]] std::vector<table> tables() const;
  /// Null if there is none.
  [[nodiscard]] const table* find(std::string_view name) const;
  /// Visits the rows in the order of their keys, in one snapshot. Returns their number.
  std::uint64_t scan(std::string_view name, const row_reader& fn) const;
  /// The same from a key on (null: from the first one), until fn returns false.
  std::uint64_t scan_from(std::string_view name, const stored_key* from,
                          const row_visitor& fn) const;
  /// Returns the row with this key, or std::nullopt. For a key of the wrong type, get(),
  /// scan_from() and erase() throw what upsert() throws.
  [[nodiscard]] std::optional<db::row> get(std::string_view name, const stored_key& key) const;
  /// Throws bench::bad_input for an unknown type of keys, and db::schema_mismatch.
  const table& create(const std::string& name, const std::string& key_type,
                      const db::schema& columns);
  /// In one transaction. Throws std::out_of_range for a key outside the table's key type, and
  /// std::bad_variant_access for one of another kind.
  void upsert(std::string_view name, const row_list& rows);
  /// Returns whether the key was present.
  bool erase(std::string_view name, const stored_key& key);
  /// Makes everything durable.
  void close();

 private:
  struct entry;
  entry& entry_of(std::string_view name) const;
  template <class Table>
  const table& add(Table& made);

  void read(const std::string& directory);

  std::unique_ptr<database> db_;
  const db::recovered_log* found_ = nullptr;
  bool is_in_use_ = false;
  std::vector<std::unique_ptr<entry>> entries_;
};

}  // namespace elidex::cli
