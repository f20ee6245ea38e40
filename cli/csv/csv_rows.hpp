#pragma once
// All cells of a CSV file, row by row (RFC 4180). csv_column.hpp reads one column, and guesses its
// type.
//
//   read_csv_rows(std::cin, [&](std::uint64_t line, const csv_cells& cells) { ... });
//
// Commas separate cells. A cell in quotes may contain commas, line breaks and doubled quotes. Rows
// end with LF, CRLF or CR. The function skips blank lines and a UTF-8 byte order mark.
//
// Thread-safety: a function without state.
// Errors: the rows before an error have been visited.
//   std::runtime_error  "line N: ..." for a misplaced quote, or a row of more than 64 MiB
//                       or 65,536 cells
//   others              what fn throws

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace elidex::cli {

/// std::nullopt is an empty cell without quotes.
using csv_cells = std::vector<std::optional<std::string>>;

/// Calls fn(line, cells) for each row, the header too. `line` is the line in which the row begins,
/// from 1. Only LF counts as the end of a line there.
void read_csv_rows(std::istream& in,
                   const std::function<void(std::uint64_t, const csv_cells&)>& fn);

}  // namespace elidex::cli
