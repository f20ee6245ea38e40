// What the CSV reader takes must be what RFC 4180 says, and what it refuses must be wrong.
//
// Two bytes say with which options, the rest is a file behind the header "a,b", or a whole one. A
// second reader, which is short because it has the text as a whole, says what must come out. Cells
// that were taken are written in quotes and must be read equal. The first difference aborts, and
// libFuzzer keeps the input.
#include "cli/csv/csv_column.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bench/support/bad_input.hpp"

namespace {

using elidex::cli::csv_column;
using elidex::cli::csv_options;
using elidex::cli::csv_strings;
using elidex::cli::csv_type;

void demand(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "columns differ: " << what << '\n';
  std::abort();
}

// --- The short reader ---

using row = std::optional<std::vector<std::string>>;  // nothing: a quote where none may be

class short_reader {
 public:
  explicit short_reader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  std::vector<row> rows() {
    std::vector<row> all;
    while (true) {
      while (at_line_end() && at_ < text_.size()) ++at_;
      if (at_ == text_.size()) return all;
      all.push_back(one_row());
      if (!all.back()) at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
    }
  }

 private:
  bool at_line_end() const {
    return at_ == text_.size() || text_[at_] == '\r' || text_[at_] == '\n';
  }

  row one_row() {
    std::vector<std::string> cells;
    while (true) {
      std::string cell;
      if (at_ < text_.size() && text_[at_] == '"') {
        for (++at_;; ++at_) {
          if (at_ == text_.size()) return std::nullopt;
          if (text_[at_] == '"' && text_.substr(at_, 2) != "\"\"") break;
          cell += text_[at_];
          if (text_[at_] == '"') ++at_;
        }
        ++at_;
        if (!at_line_end() && text_[at_] != ',') return std::nullopt;
      } else {
        for (; !at_line_end() && text_[at_] != ','; ++at_) {
          if (text_[at_] == '"') return std::nullopt;
          cell += text_[at_];
        }
      }
      cells.push_back(cell);
      if (at_line_end()) return cells;
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_int(const std::string& cell) {
  const std::string digits = cell.starts_with('-') ? cell.substr(1) : cell;
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return false;
  errno = 0;
  (void)std::strtoll(cell.c_str(), nullptr, 10);
  return errno == 0;
}

bool is_double(const std::string& cell) {
  if (cell.empty() || cell.find_first_of("+xX() \t\r\n\v\f") == 0 ||
      cell.find_first_of("xX") != std::string::npos)
    return false;
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(cell.c_str(), &end);
  if (end != cell.c_str() + cell.size()) return false;
  return errno == 0 || (std::isfinite(value) && value != 0);
}

// A number would not show all of its digits: 007, or more than 64 bits.
bool is_code(const std::string& cell) {
  const std::size_t begin = !cell.empty() && cell[0] == '-' ? 1 : 0;
  const std::size_t digits =
      std::min(cell.find_first_not_of("0123456789", begin), cell.size()) - begin;
  if (digits >= 2 && cell[begin] == '0') return true;
  return digits > 0 && begin + digits == cell.size() && !is_int(cell);
}

bool is_utf8(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) {
      return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    };
    const unsigned first = byte(i);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xC2 ? 0
                               : first < 0xE0 ? 2
                               : first < 0xF0 ? 3
                               : first < 0xF5 ? 4
                                              : 0;
    if (length == 0) return false;
    std::uint32_t code_point = length == 1 ? first : first & (0x7FU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0U) != 0x80U) return false;
      code_point = code_point << 6U | (byte(i + k) & 0x3FU);
    }
    if ((length == 3 && code_point < 0x800) ||
        (length == 4 && (code_point < 0x10000 || code_point > 0x10FFFF)) ||
        (code_point >= 0xD800 && code_point < 0xE000)) {
      return false;
    }
    i += length;
  }
  return true;
}

bool fits(csv_type type, const std::string& cell) {
  if (type == csv_type::integer) return is_int(cell);
  if (type == csv_type::real) return is_double(cell);
  return is_utf8(cell) && cell.size() <= csv_column::string_bytes_max;
}

struct expectation {
  std::vector<std::string> cells;
  std::vector<std::uint64_t> bad_rows;
};

// Nothing where the header is no good.
std::optional<expectation> expected(const std::string& text, csv_type type) {
  const std::vector<row> rows = short_reader(text).rows();
  if (rows.empty() || !rows[0] || std::count(rows[0]->begin(), rows[0]->end(), "b") != 1)
    return std::nullopt;
  const auto wanted =
      static_cast<std::size_t>(std::find(rows[0]->begin(), rows[0]->end(), "b") - rows[0]->begin());
  expectation all;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] && rows[i]->size() == rows[0]->size() && fits(type, (*rows[i])[wanted])) {
      all.cells.push_back((*rows[i])[wanted]);
    } else {
      all.bad_rows.push_back(i);
    }
  }
  return all;
}

// --- The comparison ---

std::optional<csv_column> read(const std::string& text, const csv_options& options) {
  std::istringstream in(text);
  try {
    return elidex::cli::read_csv_column(in, "fuzz.csv", "b", options);
  } catch (const elidex::bench::bad_input& error) {
    const std::string_view line = error.what();
    demand(!line.empty() && line.find_first_of("\r\n") == std::string_view::npos &&
               is_utf8(std::string(line)),
           "the message");
    return std::nullopt;
  }
}

std::vector<std::string> strings(const csv_column& column) {
  std::vector<std::string> all;
  const auto& values = std::get<csv_strings>(column.values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    all.emplace_back(values[i]);
#if defined(ELIDEX_PLANTED_BUG)
    if (all.back().size() > 1 && all.back().ends_with('"'))
      all.back().pop_back();  // not taken for a doubled one
#endif
  }
  return all;
}

void compare_values(const csv_column& column, const expectation& want, csv_type type) {
  demand(column.rows() == want.cells.size(), "rows");
  const bool decides = type == csv_type::automatic &&
                       std::none_of(want.cells.begin(), want.cells.end(), is_code) &&
                       !want.cells.empty();
  const bool ints = type == csv_type::integer ||
                    (decides && std::all_of(want.cells.begin(), want.cells.end(), is_int));
  const bool reals =
      !ints && (type == csv_type::real ||
                (decides && std::all_of(want.cells.begin(), want.cells.end(), is_double)));
  demand(column.type_name() == (ints ? "int" : reals ? "double" : "string"), "type");
  for (std::size_t i = 0; i < want.cells.size(); ++i) {
    const char* const cell = want.cells[i].c_str();
    if (ints) {
      demand(
          std::get<std::vector<std::int64_t>>(column.values)[i] == std::strtoll(cell, nullptr, 10),
          "int");
    } else if (reals) {
      const double got = std::get<std::vector<double>>(column.values)[i];
      const double number = std::strtod(cell, nullptr);
      demand(got == number || (std::isnan(got) && std::isnan(number)), "double");
    }
  }
  if (!ints && !reals) demand(strings(column) == want.cells, "strings");
  std::uint64_t row = 0;
  for (std::size_t i = 0; i < want.cells.size(); ++i) {
    do ++row;
    while (std::binary_search(want.bad_rows.begin(), want.bad_rows.end(), row));
    demand(column.row_in_file(i) == row, "row in the file");
  }
}

void write_and_read_again(const std::vector<std::string>& cells) {
  std::string text = "\"b\"\r\n";
  for (const std::string& cell : cells) {
    text += '"';
    for (const char c : cell) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    text += "\"\r\n";
  }
  csv_options options;
  options.type = csv_type::text;
  const auto again = read(text, options);
  demand(again && strings(*again) == cells, "written and read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const unsigned flags = data[0];
  csv_options options;
  options.type = static_cast<csv_type>(flags % 4);
  options.skip_bad = (flags & 4U) != 0;
  options.piece_bytes = 1 + data[1];
  std::string text;
  if ((flags & 8U) != 0) text = "a,b\n";
  text.append(reinterpret_cast<const char*>(data) + 2, size - 2);

  const auto want = expected(text, options.type);
  const auto got = read(text, options);
  const bool taken = want && (options.skip_bad || want->bad_rows.empty());
  demand(got.has_value() == taken, "taken or refused");
  if (!taken) return 0;
  demand(got->skipped == want->bad_rows, "rows left out");
  demand(got->reasons.size() == std::min(want->bad_rows.size(), csv_column::reasons_max),
         "reasons");
  demand(got->bytes == text.size(), "bytes");
  compare_values(*got, *want, options.type);
  if (options.type == csv_type::text) write_and_read_again(want->cells);
  return 0;
}
