// What has changed in a table's rows since a directory was written.
//
//   db::schema_change since;
//   since.rename("owner", "holder").drop("rate").add("country", "FI");
//   auto& accounts = database.create_table<std::uint64_t, account>("accounts", since);
//   database.open("bank");   // converts the rows if the directory has the earlier ones
//
// open() converts the rows and writes a checkpoint before it returns. After a crash the directory
// is either unchanged or completely converted. open() applies a change only to a directory that
// needs it. So the changes of several versions may stay in the program.
// database::change_table() applies a change while transactions run.
//
// open() accepts these differences without a change: another order of columns, a new column that is
// nullable (it is null), a column that became nullable, and a column whose new type has all values
// of the old one: a larger integer, real for float32 and for integers of up to 4 bytes, a text with
// a larger limit or none. Any other difference throws schema_mismatch.
//
// Indexes stay as they are. If the change gives an index other values, drop the index
// (database::drop_table()) and add one of another name.
//
// The directory has no column names for a C++ type without ELIDEX_ROW. If the program registers the
// members without changing them, open() adds the names.
//
// Thread-safety: a schema_change is a value, as std::vector is.
// Errors: std::bad_alloc. If the value of add() does not fit its column, open() throws
// schema_mismatch, row_too_large or std::out_of_range.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elidex/internal/txn/schema.hpp"

namespace elidex::internal {

class schema_change {
 public:
  // The column `from` is now named `to`.
  schema_change& rename(std::string from, std::string to) {
    renamed_.emplace_back(std::move(from), std::move(to));
    return *this;
  }
  // The column is no longer there. Its values are lost.
  schema_change& drop(std::string column) {
    dropped_.push_back(std::move(column));
    return *this;
  }
  // The column is new. Rows that were there have this value: a number, a text or bytes.
  template <class Value>
  schema_change& add(std::string column, Value value) {
    std::function<void(row&)> set;
    if constexpr (std::is_arithmetic_v<Value>) {
      set = [column, value](row& in) { in.set(column, value); };
    } else if constexpr (std::convertible_to<Value, std::string_view>) {
      set = [column, text = std::string(std::string_view(value))](row& in) {
        in.set(column, text);
      };
    } else {
      set = [column, value = std::move(value)](row& in) {
        in.set(column, std::span<const std::byte>(value));
      };
    }
    added_.emplace_back(std::move(column), std::move(set));
    return *this;
  }

 private:
  friend class row_conversion;
  std::vector<std::pair<std::string, std::string>> renamed_;
  std::vector<std::string> dropped_;
  std::vector<std::pair<std::string, std::function<void(row&)>>> added_;
};

// Converts rows of one schema to rows of another.
class row_conversion {
 public:
  // Throws schema_mismatch, with a reason, if the change does not explain all differences.
  row_conversion(const schema& from, const schema& to, const schema_change& change);

  // Returns the row in the new schema. Throws schema_mismatch, row_too_large or std::out_of_range
  // if the value of add() does not fit its column. Any number of threads may call it.
  row converted(std::span<const std::uint64_t> before) const;
  const schema& from() const noexcept { return from_; }

 private:
  struct column {
    std::string from;
    std::string to;
    column_type from_type;
  };
  void copy(const row& from, const column& which, row& to) const;

  const schema from_;
  const schema to_;
  std::vector<column> copied_;
  std::vector<std::function<void(row&)>> set_;
};

}  // namespace elidex::internal
