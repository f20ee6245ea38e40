#include "cli/csv/csv_rows.hpp"

#include <algorithm>
#include <istream>
#include <new>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "cli/csv/csv_parser.hpp"

namespace elidex::cli {
namespace {

constexpr std::size_t cells_max = 65'536;
constexpr std::size_t piece_bytes = std::size_t{64} << 10;

class row_reader {
 public:
  explicit row_reader(const std::function<void(std::uint64_t, const csv_cells&)>& fn) : fn_(fn) {}

  void read(std::istream& in) {
    std::vector<char> piece(piece_bytes);
    bool first = true;
    while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
      std::string_view bytes(piece.data(), static_cast<std::size_t>(in.gcount()));
      if (first && bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
      first = false;
      while (!bytes.empty()) {
        const std::size_t end = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
        line(bytes.substr(0, end));
        bytes.remove_prefix(end);
      }
    }
    if (csv_fini(&parser_.get(), on_cell, on_row_end, this) != 0) {
      if (csv_error(&parser_.get()) != CSV_EPARSE) throw std::bad_alloc();
      refuse("a quote is not closed");
    }
    failure_.rethrow();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error("line " + std::to_string(row_line_) + ": " + why);
  }

  // A line, or a part of one.
  void line(std::string_view bytes) {
    row_bytes_ += bytes.size();
    if (row_bytes_ > csv_row_bytes_max)
      refuse("a row of more than 64 MiB (is a quote not closed?)");
    parse(bytes);
    if (!bytes.ends_with('\n')) return;
    ++line_;
    if (row_bytes_ == 0) row_line_ = line_;
  }

  void parse(std::string_view bytes) {
    const std::size_t done =
        csv_parse(&parser_.get(), bytes.data(), bytes.size(), on_cell, on_row_end, this);
    failure_.rethrow();
    if (done == bytes.size()) return;
    if (csv_error(&parser_.get()) != CSV_EPARSE) throw std::bad_alloc();
    refuse(bytes[done] == '"' ? "a quote inside a cell that does not begin with a quote"
                              : "text behind a closing quote");
  }

  static void on_cell(void* text, std::size_t size, void* self) {
    auto& reader = *static_cast<row_reader*>(self);
    reader.failure_.guard([&] {
      if (reader.cells_.size() == cells_max) reader.refuse("a row of more than 65536 cells");
      if (text == nullptr) {
        reader.cells_.emplace_back();
      } else {
        reader.cells_.emplace_back(std::string(static_cast<const char*>(text), size));
      }
    });
  }
  static void on_row_end(int, void* self) {
    auto& reader = *static_cast<row_reader*>(self);
    reader.failure_.guard([&] {
      if (!reader.cells_.empty()) reader.fn_(reader.row_line_, reader.cells_);
      reader.cells_.clear();
      reader.row_bytes_ = 0;
    });
  }

  const std::function<void(std::uint64_t, const csv_cells&)>& fn_;
  csv_parser_state parser_{CSV_EMPTY_IS_NULL};
  csv_failure failure_;
  csv_cells cells_;             // of the row so far
  std::uint64_t line_ = 1;      // that is being read
  std::uint64_t row_line_ = 1;  // in which the row begins
  std::size_t row_bytes_ = 0;
};

}  // namespace

void read_csv_rows(std::istream& in,
                   const std::function<void(std::uint64_t, const csv_cells&)>& fn) {
  row_reader(fn).read(in);
}

}  // namespace elidex::cli
