#include "cli/flags.hpp"

#include <algorithm>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include "bench/support/bad_input.hpp"
#include "bench/support/near_match.hpp"

namespace elidex::cli {

std::string quoted_text(std::string_view text) {
  constexpr std::size_t shown_max = 60;
  return "'" + std::string(text.substr(0, shown_max)) + (text.size() > shown_max ? "...'" : "'");
}

void refuse(std::string_view flag, std::string_view text, std::string_view wrong,
            std::string_view expected) {
  throw bench::bad_input(std::string(flag)
                             .append(": ")
                             .append(quoted_text(text))
                             .append(" ")
                             .append(wrong)
                             .append(" (expected ")
                             .append(expected) +
                         ")");
}

void refuse_value(std::string_view flag, std::string_view text, std::string_view expected,
                  const std::vector<std::string>& names) {
  throw bench::bad_input(std::string(flag)
                             .append(": invalid value ")
                             .append(quoted_text(text))
                             .append(" (expected ")
                             .append(expected) +
                         ")" + bench::did_you_mean(text, names));
}

std::vector<std::string> split_list(std::string_view flag, std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    if (end == start)
      refuse(flag, text, "has an empty part", "one value or several with commas between them");
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::uint64_t parse_count(std::string_view flag, std::string_view text, std::uint64_t low,
                          std::uint64_t high) {
  const auto wrong = [&] {
    refuse_value(flag, text,
                 "a whole number from " + count_text(low) + " to " + count_text(high) +
                     (high > 1000 ? ", with K, M or G for thousands, millions or billions" : ""));
  };
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) wrong();
  std::uint64_t unit = 1;
  if (rest != end) {
    switch (*rest) {
      case 'k':
      case 'K':
        unit = 1'000;
        break;
      case 'M':
        unit = 1'000'000;
        break;
      case 'G':
        unit = 1'000'000'000;
        break;
      default:
        wrong();
    }
    if (rest + 1 != end || number > std::numeric_limits<std::uint64_t>::max() / unit) wrong();
  }
  number *= unit;
  if (number < low || number > high) wrong();
  return number;
}

double parse_number(std::string_view flag, std::string_view text, double low, double high,
                    const char* of_what) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || rest != end || !(number >= low && number <= high)) {
    refuse_value(flag, text, formatted("%s from %g to %g", of_what, low, high));
  }
  return number;
}

double parse_seconds(std::string_view flag, std::string_view text, double low, double high) {
  return parse_number(flag, text, low, high, "seconds");
}

std::string count_text(std::uint64_t count) {
  if (count >= 1'000'000'000 && count % 1'000'000'000 == 0)
    return std::to_string(count / 1'000'000'000) + "G";
  if (count >= 1'000'000 && count % 1'000'000 == 0) return std::to_string(count / 1'000'000) + "M";
  if (count >= 10'000 && count % 1'000 == 0) return std::to_string(count / 1'000) + "K";
  return std::to_string(count);
}

std::string formatted(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) == EOF || std::fflush(stdout) != 0) {
    throw std::runtime_error("standard output cannot be written");
  }
}

}  // namespace elidex::cli
