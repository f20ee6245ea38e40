#pragma once
// Reads rows into the tables of a directory: what `elidex db dump` wrote, or a CSV file.
//
//   stored_tables into("copy", stored_tables::use::write);
//   const std::uint64_t rows = load_json_lines(into, std::cin);
//
// Writes a transaction for each 1,000 rows. A row whose key is present is overwritten.
//
// Thread-safety: none.
// Errors: std::runtime_error, "line N: ...", for text that is not as expected. Rows of earlier
// transactions stay. schema_mismatch if the directory has the table with other columns or keys.

#include <cstdint>
#include <iosfwd>
#include <string>

#include "cli/database/stored_tables.hpp"

namespace elidex::cli {

/// Returns the number of rows. Everything is durable then.
std::uint64_t load_json_lines(stored_tables& into, std::istream& from);
/// The same from a CSV file with the rows of one table.
std::uint64_t load_csv(stored_tables& into, const stored_tables::table& table, std::istream& from);

}  // namespace elidex::cli
