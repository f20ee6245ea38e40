#include "cli/csv/csv_column.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <istream>
#include <limits>
#include <new>
#include <optional>
#include <system_error>

#include "bench/support/bad_input.hpp"
#include "bench/support/input_file.hpp"
#include "bench/support/near_match.hpp"
#include "cli/csv/csv_parser.hpp"

namespace elidex::cli {
namespace {

// So much of another column's cell is taken as well; more is more likely a quote that is never
// closed.
constexpr std::size_t cell_bytes_max = std::size_t{16} << 20;
constexpr const char* expected_file =
    "expected a CSV file or a pipe whose first row names the columns";

// The first place at which the text is not valid UTF-8.
std::optional<std::size_t> first_bad_utf8(std::string_view text) {
  const auto high = std::find_if(text.begin(), text.end(),
                                 [](char c) { return static_cast<signed char>(c) < 0; });
  auto at = static_cast<std::size_t>(high - text.begin());
  while (at < text.size()) {
    const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at);
    utf8proc_int32_t code_point = 0;
    const auto length =
        utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
    if (length <= 0) return at;
    at += static_cast<std::size_t>(length);
  }
  return std::nullopt;
}

// Fit for one line of UTF-8.
std::string printable(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  while (const auto bad = first_bad_utf8(line)) line[*bad] = '?';
  return line;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t shown_max = 40;
  if (text.size() <= shown_max) return printable(text);
  std::size_t length = shown_max;
  // not within a character
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  return printable(text.substr(0, length)) + "...";
}

// Why a cell cannot be taken; empty where it can.
using reason = std::string;

template <class Number>
reason parse_number(std::string_view cell, std::string_view type, Number& out) {
  const char* const end = cell.data() + cell.size();
  const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
  if (rest == end && error == std::errc{}) return {};
  if (cell.empty()) return "an empty cell is not of type " + std::string(type);
  if (rest == end && error == std::errc::result_out_of_range) {
    return shown(cell) + " is out of the range of " + std::string(type);
  }
  return shown(cell) + " is not of type " + std::string(type);
}

template <class Number>
bool is_number(std::string_view cell) {
  Number number{};
  return parse_number(cell, "", number).empty();
}

// What a number would lose: the leading zeros of a code, the last digits of a whole number of more
// than 64 bits.
bool loses_digits_as_number(std::string_view cell) {
  const std::string_view digits = cell.substr(cell.starts_with('-') ? 1 : 0);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (digits.size() > 1 && digits[0] == '0' && is_digit(digits[1])) return true;
  return !digits.empty() && std::all_of(digits.begin(), digits.end(), is_digit) &&
         !is_number<std::int64_t>(cell);
}

reason why_no_string(std::string_view cell) {
  if (cell.size() > csv_column::string_bytes_max) {
    return "a string of " + std::to_string(cell.size()) + " bytes; " +
           std::to_string(csv_column::string_bytes_max) + " are the most";
  }
  if (const auto bad = first_bad_utf8(cell)) {
    return shown(cell) + " is not valid UTF-8 from byte " + std::to_string(*bad + 1) + " on";
  }
  return {};
}

// Takes the cells one by one and makes values of them.
class value_sink {
 public:
  explicit value_sink(csv_type type) : type_(type) {}

  reason take(std::string_view cell) {
    if (type_ == csv_type::integer) return take_number(cell, "int", ints_);
    if (type_ == csv_type::real) return take_number(cell, "double", reals_);
    if (reason wrong = why_no_string(cell); !wrong.empty()) return wrong;
    if (type_ == csv_type::automatic) {
      all_numbers_ = all_numbers_ && !loses_digits_as_number(cell);
      all_ints_ = all_ints_ && all_numbers_ && is_number<std::int64_t>(cell);
      all_numbers_ = all_numbers_ && (all_ints_ || is_number<double>(cell));
    }
    strings_.push_back(cell);
    return {};
  }

  [[nodiscard]] std::size_t bytes() const {
    return strings_.bytes() + ints_.size() * sizeof(std::int64_t) + reals_.size() * sizeof(double);
  }

  void finish(csv_column& out) {
    const bool decided_here = type_ == csv_type::automatic && strings_.size() > 0;
    if (type_ == csv_type::integer || (decided_here && all_ints_)) {
      if (decided_here) parse_all("int", ints_);
      out.values = std::move(ints_);
    } else if (type_ == csv_type::real || (decided_here && all_numbers_)) {
      if (decided_here) parse_all("double", reals_);
      out.values = std::move(reals_);
    } else {
      out.values = std::move(strings_);
    }
  }

 private:
  template <class Number>
  static reason take_number(std::string_view cell, std::string_view type,
                            std::vector<Number>& numbers) {
    Number number{};
    reason wrong = parse_number(cell, type, number);
    if (wrong.empty()) numbers.push_back(number);
    return wrong;
  }

  template <class Number>
  void parse_all(std::string_view type, std::vector<Number>& numbers) const {
    numbers.reserve(strings_.size());
    for (std::size_t i = 0; i < strings_.size(); ++i) take_number(strings_[i], type, numbers);
  }

  csv_type type_;
  bool all_ints_ = true;
  bool all_numbers_ = true;
  csv_strings strings_;
  std::vector<std::int64_t> ints_;
  std::vector<double> reals_;
};

class column_reader {
 public:
  column_reader(std::string_view name, std::string_view column, const csv_options& options)
      : name_(printable(name)), column_(column), options_(options), sink_(options.type) {}

  csv_column read(std::istream& in) {
    std::vector<char> piece(std::max(options_.piece_bytes, byte_order_mark.size()));
    while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
      std::string_view bytes(piece.data(), static_cast<std::size_t>(in.gcount()));
      const bool first = result_.bytes == 0;
      result_.bytes += bytes.size();
      if (first && bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
      parse(bytes);
      check_size();
      if (options_.progress) options_.progress(result_.bytes);
    }
    if (in.bad()) refuse_file("cannot be read to its end");
    if (result_.bytes == 0) refuse_file("is empty");
    end();
    sink_.finish(result_);
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse_file(const std::string& why) const {
    throw bench::bad_input("FILE: " + name_ + " " + why + " (" + expected_file + ")");
  }

  // What is kept, so that a pipe without end is refused before memory is: blank lines too, though
  // they take none.
  void check_size() const {
    const std::uint64_t kept = sink_.bytes() + result_.skipped.size() * sizeof(std::uint64_t) +
                               header_bytes_ + result_.blank_lines;
    if (kept > options_.kept_bytes_max) {
      refuse_file("has more rows than fit into memory: " +
                  std::to_string(options_.kept_bytes_max / 1'000'000) + " MB are the limit here");
    }
  }

  // --- Stretches of lines to the parser: it says nothing of where it is, and so we know the line
  // ---

  void parse(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t line_end = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
      std::string_view stretch = bytes.substr(0, line_end);
      bytes.remove_prefix(line_end);
      const bool whole = stretch.ends_with('\n');
      row_bytes_ += stretch.size();
      while (!stretch.empty())
        stretch.remove_prefix(dropping_line_ ? drop(stretch) : feed(stretch));
      if (whole) ++line_;
    }
    if (csv_get_buffer_size(&parser_.get()) > cell_bytes_max + csv_parser_state::growth_bytes)
      refuse_long_cell();
    if (row_bytes_ > csv_row_bytes_max) {
      refuse_row("a row of more than " + std::to_string(csv_row_bytes_max >> 20U) +
                 " MiB; is a quote not closed?");
    }
  }

  // Returns how many bytes are done with.
  std::size_t feed(std::string_view stretch) {
    const std::size_t done =
        csv_parse(&parser_.get(), stretch.data(), stretch.size(), on_cell, on_row_end, this);
    failure_.rethrow();
    if (done == stretch.size()) return done;
    if (csv_error(&parser_.get()) != CSV_EPARSE) throw std::bad_alloc();
    bad_quote(stretch[done] == '"' ? "a quote within a cell that does not begin with one"
                                   : "a closing quote with something behind it");
    dropping_line_ = true;
    parser_.restart();
    return done;
  }

  std::size_t drop(std::string_view stretch) {
    const std::size_t end = std::min(stretch.find_first_of("\r\n"), stretch.size());
    if (end == stretch.size()) return end;
    dropping_line_ = false;
    row_ended(stretch[end]);
    return end + 1;
  }

  void end() {
    if (csv_fini(&parser_.get(), on_cell, on_row_end, this) != 0) {
      if (csv_error(&parser_.get()) != CSV_EPARSE) throw std::bad_alloc();
      bad_quote("a quote is not closed");
    }
    failure_.rethrow();
    if (!header_read_) refuse_file("has no header");
  }

  static void on_cell(void* text, std::size_t size, void* self) {
    auto& reader = *static_cast<column_reader*>(self);
    reader.failure_.guard([&] { reader.take_cell({static_cast<const char*>(text), size}); });
  }
  static void on_row_end(int how, void* self) {
    auto& reader = *static_cast<column_reader*>(self);
    reader.failure_.guard([&] { reader.take_row_end(how); });
  }

  // --- Cells and rows from the parser ---

  void take_cell(std::string_view cell) {
    if (cell.size() > cell_bytes_max) refuse_long_cell();
    if (!header_read_) {
      header_.emplace_back(cell);
      header_bytes_ += cell.size() + sizeof(std::string);
    } else if (cells_ == wanted_) {
      cell_ = cell;
    }
    ++cells_;
  }

  void take_row_end(int how) {
    if (cells_ == 0) {
      const bool rest_of_crlf = how == '\n' && last_end_ == '\r';
      if (!rest_of_crlf) ++result_.blank_lines;
    } else if (!header_read_) {
      choose_column();
      header_read_ = true;
    } else {
      take_row();
    }
    row_ended(how);
  }

  void row_ended(int how) {
    last_end_ = how;
    cells_ = 0;
    row_bytes_ = 0;
    row_line_ = how == '\n' ? line_ + 1 : line_;
  }

  void take_row() {
    ++row_;
    if (cells_ != header_.size()) {
      bad_row(std::to_string(cells_) + (cells_ == 1 ? " cell" : " cells") +
              " where the header has " + std::to_string(header_.size()));
    } else if (const reason wrong = sink_.take(cell_); !wrong.empty()) {
      bad_row("column " + shown(column_) + ": " + wrong);
    }
  }

  void choose_column() {
    const auto first = std::find(header_.begin(), header_.end(), column_);
    if (first == header_.end()) {
      constexpr std::size_t name_bytes_max = 100;
      std::vector<std::string> short_names;
      for (const std::string& one : header_) {
        if (one.size() <= name_bytes_max) short_names.push_back(printable(one));
      }
      throw bench::bad_input("--column: " + shown(column_) + " is not a column of " + name_ +
                             " (expected " + first_names() + ")" +
                             bench::did_you_mean(column_, short_names));
    }
    const auto second = std::find(first + 1, header_.end(), column_);
    if (second != header_.end()) {
      throw bench::bad_input("--column: " + shown(column_) + " names two columns of " + name_ +
                             ", " + std::to_string(first - header_.begin() + 1) + " and " +
                             std::to_string(second - header_.begin() + 1) +
                             " (expected a name that occurs once)");
    }
    wanted_ = static_cast<std::size_t>(first - header_.begin());
  }

  // --- What is wrong ---

  // Of the header: at most ten names and 200 bytes.
  [[nodiscard]] std::string first_names() const {
    constexpr std::size_t names_max = 10;
    constexpr std::size_t bytes_max = 200;
    std::string names;
    std::size_t count = 0;
    for (; count < std::min(names_max, header_.size()); ++count) {
      const std::string next = (count == 0 ? "" : ", ") + shortened(header_[count]);
      if (names.size() + next.size() > bytes_max) break;
      names += next;
    }
    const std::size_t more = header_.size() - count;
    return more == 0 ? names : names + " and " + std::to_string(more) + " more";
  }

  [[nodiscard]] std::string where() const {
    return "line " + std::to_string(row_line_) + " (" +
           (row_ == 0 ? "header" : "row " + std::to_string(row_)) + "): ";
  }
  [[noreturn]] void refuse_row(const std::string& why) {
    if (header_read_) ++row_;
    throw bench::bad_input(name_ + ": " + where() + why);
  }

  [[noreturn]] void refuse_long_cell() {
    refuse_row("a cell of more than " + std::to_string(cell_bytes_max >> 20U) +
               " MiB; is a quote not closed?");
  }

  void bad_row(const std::string& why) {
    if (!options_.skip_bad)
      throw bench::bad_input(name_ + ": " + where() + why + " (--skip-bad leaves such rows out)");
    result_.skipped.push_back(row_);
    if (result_.reasons.size() < csv_column::reasons_max) result_.reasons.push_back(where() + why);
  }

  void bad_quote(const std::string& why) {
    if (!header_read_) refuse_row(why);
    ++row_;
    bad_row(why);
  }

  std::string name_;
  std::string column_;
  const csv_options& options_;
  value_sink sink_;
  csv_column result_;
  csv_parser_state parser_;
  csv_failure failure_;

  std::uint64_t line_ = 1;      // of what the parser is being given
  std::uint64_t row_line_ = 1;  // in which the row begins
  std::uint64_t row_ = 0;       // the last one that has ended, from 1 behind the header
  std::size_t cells_ = 0;       // of the row so far
  std::size_t row_bytes_ = 0;   // of the row so far, or of the line where rows share one
  int last_end_ = 0;            // what ended the last row or blank line
  bool dropping_line_ = false;

  bool header_read_ = false;
  std::vector<std::string> header_;
  std::size_t header_bytes_ = 0;
  std::size_t wanted_ = 0;
  std::string cell_;  // in the wanted column
};

}  // namespace

std::string shown(std::string_view text) {
  return std::string("'").append(shortened(text)).append("'");
}

std::size_t csv_column::rows() const {
  return std::visit([](const auto& all) { return all.size(); }, values);
}

std::string_view csv_column::type_name() const {
  constexpr std::array<std::string_view, 3> names{"string", "int", "double"};
  return names[values.index()];
}

std::uint64_t csv_column::row_in_file(std::size_t value) const {
  // The least row that has value + 1 good rows up to itself. Before skipped[i] there are skipped[i]
  // - 1 - i good ones.
  std::size_t low = 0;
  std::size_t high = skipped.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (skipped[middle] - 1 - middle <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return value + 1 + low;
}

csv_column read_csv_column(std::istream& in, std::string_view name, std::string_view column,
                           const csv_options& options) {
  return column_reader(name, column, options).read(in);
}

csv_column read_csv_column(const std::filesystem::path& file, std::string_view column,
                           const csv_options& options) {
  std::string why;
  std::ifstream in = bench::open_input(file, why);
  if (!in.is_open()) {
    throw bench::bad_input("FILE: " + printable(file.string()) + " " + why + " (" + expected_file +
                           ")");
  }
  return read_csv_column(in, file.string(), column, options);
}

}  // namespace elidex::cli
