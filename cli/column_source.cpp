#include "cli/column_source.hpp"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "bench/runner/machine.hpp"
#include "cli/flags.hpp"

namespace elidex::cli {

show_progress phase(progress_bar& bar, double from, double to) {
  constexpr double shown_every_seconds = 0.05;
  return [&bar, from, to, last = stopwatch(), shown = false](double done,
                                                             const std::string& doing) mutable {
    if (shown && last.seconds() < shown_every_seconds) return;
    bar.show(from + done * (to - from), doing);
    last = stopwatch();
    shown = true;
  };
}

csv_type parse_csv_type(const std::string& text) {
  if (text == "auto") return csv_type::automatic;
  if (text == "int") return csv_type::integer;
  if (text == "double") return csv_type::real;
  if (text == "string") return csv_type::text;
  refuse_value("--type", text, "auto, int, double or string", {"auto", "int", "double", "string"});
}

column_source read_source(const column_flags& flags, const show_progress& show) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(flags.file, error);
  const double bytes = error || size == 0 ? 0 : static_cast<double>(size);  // unknown of pipes
  csv_options options;
  options.type = parse_csv_type(flags.type);
  options.skip_bad = flags.skip_bad;
  // Values take up to three times their size: while their vector grows, and once more in the
  // column.
  // where the free memory is unknown
  constexpr std::uint64_t kept_bytes_max = std::uint64_t{4} << 30U;
  const std::uint64_t available = bench::available_memory_bytes();
  options.kept_bytes_max = available == 0 ? kept_bytes_max : available / 3;
  options.progress = [&](std::uint64_t done) {
    show(bytes > 0 ? static_cast<double>(done) / bytes : 0, "reading " + flags.file);
  };
  const stopwatch watch;
  column_source source{read_csv_column(flags.file, flags.column, options), 0};
  source.read_seconds = watch.seconds();
  return source;
}

void tell_left_out(const column_flags& flags, const csv_column& csv) {
  if (csv.blank_lines > 0) {
    std::fprintf(stderr, "note: %s has %llu blank line%s, which %s no row%s\n", flags.file.c_str(),
                 static_cast<unsigned long long>(csv.blank_lines), csv.blank_lines == 1 ? "" : "s",
                 csv.blank_lines == 1 ? "is" : "are", csv.blank_lines == 1 ? "" : "s");
  }
  if (csv.skipped.empty()) return;
  std::fprintf(stderr, "note: %zu row%s of %s left out\n", csv.skipped.size(),
               csv.skipped.size() == 1 ? "" : "s", flags.file.c_str());
  for (const std::string& reason : csv.reasons) std::fprintf(stderr, "  %s\n", reason.c_str());
  if (csv.skipped.size() > csv.reasons.size()) {
    std::fprintf(stderr, "  and %zu more\n", csv.skipped.size() - csv.reasons.size());
  }
}

}  // namespace elidex::cli
