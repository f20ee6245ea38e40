// One column of a CSV file, chosen by its name in the header and read as a stream.
//
//   const csv_column cities = read_csv_column("places.csv", "city", {});
//   if (const auto* names = std::get_if<csv_strings>(&cities.values)) std::cout << (*names)[0];
//
// What is taken (RFC 4180): commas between cells; cells in quotes, which may have commas, line
// breaks and, doubled, quotes in them; rows that end with LF, CRLF or CR, the last one also
// without; blanks are a part of their cell. A UTF-8 byte order mark at the beginning is skipped.
// The first row names the columns. A blank line is no row: it is passed over and counted, as
// Python, pandas and Arrow do; an empty cell in a file of one column is written as "".
//
// Types. int: std::int64_t; double; string: UTF-8 of at most 64 KiB, NUL bytes too. Automatic: int
// if all cells are ints, else double if all are numbers, else string, which it also is without any
// cell. Numbers are read as std::from_chars reads them, from the first character of the cell to its
// last, in decimal; an empty cell is not of type number.
//
// Errors: bench::bad_input with one line that names the file, its line (from 1; lines end with LF),
// the row (from 1 behind the header) and the column, whatever of these there is; std::bad_alloc.
// Nothing is returned then. With `skip_bad`, rows that are wrong are left out instead, numbered and
// counted. After a misplaced quote, reading continues with the next line, whatever that line is
// a part of. A row that ends the file within quotes is wrong as well. A device, a
// cell of more than 16 MiB, a row of more than 64 MiB and more values than `kept_bytes_max` are
// refused while they are read, also with `skip_bad`: a pipe may have no end.
//
// Thread-safety: none; read in one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace elidex::cli {

// Strings behind one another in one piece of memory.
class csv_strings {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  void push_back(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_.size() + ends_.size() * sizeof(std::size_t);
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

enum class csv_type : std::uint8_t { automatic, integer, real, text };

struct csv_options {
  csv_type type = csv_type::automatic;
  bool skip_bad = false;
  // Read at once; a test makes this small.
  std::size_t piece_bytes = std::size_t{256} << 10;
  // How much of the file may be kept in memory, in bytes of values; a file with more is refused as
  // soon as it is known to have.
  std::uint64_t kept_bytes_max = UINT64_MAX;
  // Called after each piece with the bytes that have been read.
  std::function<void(std::uint64_t)> progress = {};
};

struct csv_column {
  static constexpr std::size_t string_bytes_max = 65'536;
  static constexpr std::size_t reasons_max = 5;

  std::variant<csv_strings, std::vector<std::int64_t>, std::vector<double>> values;
  std::uint64_t bytes = 0;  // of the file
  std::uint64_t blank_lines = 0;
  std::vector<std::uint64_t> skipped;  // numbers of the rows that were left out, ascending
  std::vector<std::string> reasons;    // why, for the first of them

  [[nodiscard]] std::size_t rows() const;
  // "int", "double" or "string".
  [[nodiscard]] std::string_view type_name() const;
  // The row of the file that the value comes from, from 1.
  [[nodiscard]] std::uint64_t row_in_file(std::size_t value) const;
};

[[nodiscard]] csv_column read_csv_column(const std::filesystem::path& file, std::string_view column,
                                         const csv_options& options);
// The same from a stream. Error messages use `name` as the file's name.
[[nodiscard]] csv_column read_csv_column(std::istream& in, std::string_view name,
                                         std::string_view column, const csv_options& options);

// The text in quotes, fit for a line on a terminal: its first 40 bytes or so, without control
// characters, and UTF-8 whatever it was.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace elidex::cli
