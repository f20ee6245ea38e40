#pragma once
// Parses flag values. Each function throws bench::bad_input, which names the flag and what is
// expected.
//
//   parse_count("--keys", "10M", 1, 1'000'000'000);           // 10000000
//   split_list("--threads", "1,2");                           // {"1", "2"}

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace elidex::cli {

/// 'text', shortened to fit into a message.
[[nodiscard]] std::string quoted_text(std::string_view text);

/// "--flag: 'text' WRONG (expected EXPECTED)"
[[noreturn]] void refuse(std::string_view flag, std::string_view text, std::string_view wrong,
                         std::string_view expected);

/// "--flag: invalid value 'text' (expected EXPECTED)", and " Did you mean 'name'?" where one of the
/// names is near.
[[noreturn]] void refuse_value(std::string_view flag, std::string_view text,
                               std::string_view expected,
                               const std::vector<std::string>& names = {});

/// The names of a table's entries, for refuse_value().
template <class Table>
[[nodiscard]] std::vector<std::string> names_of(const Table& entries) {
  std::vector<std::string> names;
  names.reserve(std::size(entries));
  for (const auto& one : entries) names.emplace_back(one.name);
  return names;
}

/// The parts between commas; none may be empty.
[[nodiscard]] std::vector<std::string> split_list(std::string_view flag, std::string_view text);

/// A whole number from low to high; K, M and G after it mean thousands, millions and billions.
[[nodiscard]] std::uint64_t parse_count(std::string_view flag, std::string_view text,
                                        std::uint64_t low, std::uint64_t high);

/// A number, with a fraction, from low to high. The error message contains `of_what`.
[[nodiscard]] double parse_number(std::string_view flag, std::string_view text, double low,
                                  double high, const char* of_what = "a number");

/// Seconds, with a fraction, from low to high.
[[nodiscard]] double parse_seconds(std::string_view flag, std::string_view text, double low,
                                   double high);

/// 1000000 as "1M", 345123 as "345123".
[[nodiscard]] std::string count_text(std::uint64_t count);

/// printf into a string.
[[nodiscard]] [[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

/// To standard output, whole; throws std::runtime_error where that cannot be written.
void print(const std::string& text);

}  // namespace elidex::cli
