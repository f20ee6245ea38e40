#pragma once
// libcsv as our readers use it: quotes only where RFC 4180 has them, blanks are a part of their
// cell, and all ends of lines are reported. Included by csv_column.cpp and csv_rows.cpp.
//
//   csv_parser_state parser(CSV_EMPTY_IS_NULL);
//   csv_failure failure;
//   failure.guard([&] { ... });  // in a callback
//   failure.rethrow();           // after csv_parse()
//
// Thread-safety: none. Errors: std::bad_alloc.

#include <csv.h>

#include <cstddef>
#include <exception>
#include <new>
#include <string_view>

namespace elidex::cli {

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
inline constexpr std::size_t csv_row_bytes_max = std::size_t{64} << 20;

class csv_parser_state {
 public:
  static constexpr std::size_t growth_bytes = std::size_t{64} << 10;

  // `more`: options of libcsv besides ours.
  explicit csv_parser_state(unsigned char more = 0) : more_(more) { start(); }
  csv_parser_state(const csv_parser_state&) = delete;
  csv_parser_state& operator=(const csv_parser_state&) = delete;
  ~csv_parser_state() { csv_free(&parser_); }

  void restart() {
    csv_free(&parser_);
    start();
  }
  csv_parser& get() noexcept { return parser_; }

 private:
  void start() {
    const auto options =
        static_cast<unsigned char>(CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL | more_);
    if (csv_init(&parser_, options) != 0) throw std::bad_alloc();
    csv_set_space_func(&parser_, [](unsigned char) { return 0; });
    csv_set_blk_size(&parser_, growth_bytes);
  }

  const unsigned char more_;
  csv_parser parser_{};
};

// Carries an exception past the parser, which is C code.
class csv_failure {
 public:
  // After the first exception it does nothing.
  template <class Fn>
  void guard(Fn&& fn) noexcept {
    if (failure_) return;
    try {
      fn();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
};

}  // namespace elidex::cli
