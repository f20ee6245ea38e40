#pragma once
// Rows of a table as CSV (RFC 4180).
//
//   key,customer,note,discount,seal
//   1,7,"a ""note"", short",0.25,00ff
//
// dump writes the column "key" first. load accepts it at any place. An empty cell is null, "" is an
// empty text. Texts are written as their bytes, bytes as hexadecimal digits.
//
// Thread-safety: any thread.
// Errors: std::runtime_error with a reason, for a cell that does not fit its column. Those of
// db::row::set().

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli/csv/csv_rows.hpp"
#include "cli/database/stored_tables.hpp"

namespace elidex::cli {

[[nodiscard]] std::string csv_header(const stored_tables::table& about);
[[nodiscard]] std::string csv_row(const stored_key& key, const db::row& row);

/// Reads rows by a header, which names the columns in any order. Columns that the header lacks
/// become null, 0 or empty.
class csv_row_reader {
 public:
  /// Throws std::runtime_error if the header has no column "key", an unknown one, or one twice.
  csv_row_reader(const stored_tables::table& of, const csv_cells& header);
  [[nodiscard]] std::pair<stored_key, db::row> row(const csv_cells& cells) const;

 private:
  stored_tables::table of_;
  std::size_t key_ = 0;                                // its place in the header
  std::vector<const db::column_definition*> columns_;  // of of_, by place; null: the key
};

}  // namespace elidex::cli
