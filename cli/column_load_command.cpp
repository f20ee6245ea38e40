// elidex column load: fills a column with the cells of a CSV file, merges it, and says how fast and
// how small.

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/runner/machine.hpp"
#include "bench/support/bad_input.hpp"
#include "cli/column_source.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/json_output.hpp"
#include "cli/results_json.hpp"
#include "cli/table.hpp"
#include "elidex/column.hpp"
#include "elidex/internal/column/packed_ids.hpp"

namespace elidex::cli {

using namespace internal;

struct column_load_flags : column_flags {
  std::string rows;
  std::string threads = "1";
};

namespace {

// A limit against slips of the keyboard: IDs of 32 bits would not do for more different values.
constexpr std::uint64_t rows_max = 4'000'000'000;
// What a row takes at least while it is merged: an ID in the delta, one on its way into the main,
// one packed there; measured: 8.3.
constexpr std::uint64_t row_bytes_min = 9;

struct load_result {
  std::uint64_t rows = 0;
  std::size_t distinct = 0;
  unsigned id_bits = 0;
  unsigned threads = 1;
  double read_mb_s = 0;
  double insert_mrows_s = 0;
  double merge_seconds = 0;
  double delta_bytes_per_row = 0;
  double main_bytes_per_row = 0;
  double vector_bytes_per_row = 0;

  [[nodiscard]] double distinct_share() const {
    return rows == 0 ? 0 : static_cast<double>(distinct) / static_cast<double>(rows);
  }
};

unsigned threads_of(const column_load_flags& flags) {
  return static_cast<unsigned>(
      parse_count("--threads", flags.threads, 1, bench::allowed_cpus().size()));
}

std::optional<std::uint64_t> rows_of(const column_load_flags& flags) {
  if (flags.rows.empty()) return std::nullopt;
  const std::uint64_t rows = parse_count("--rows", flags.rows, 1, rows_max);
  const std::size_t available = bench::available_memory_bytes();
  if (available > 0 && rows > available / row_bytes_min) {
    refuse("--rows", flags.rows,
           "rows do not fit into the " + std::to_string(available / 1'000'000) +
               " MB of memory that are free",
           "at most " + std::to_string(available / row_bytes_min) + " here");
  }
  return rows;
}

std::string percent(double share) {
  constexpr double shown_min = 0.0001;
  return share > 0 && share < shown_min ? formatted("<%g", 100 * shown_min)
                                        : formatted("%.2f", 100 * share);
}

double per_row(double amount, std::uint64_t rows) {
  return rows == 0 ? 0 : amount / static_cast<double>(rows);
}

template <class T>
double vector_bytes(const std::vector<T>&, std::uint64_t rows) {
  return static_cast<double>(sizeof(T)) * static_cast<double>(rows);
}

// Strings that do not fit into std::string itself have memory of their own, with a NUL byte behind
// them.
double vector_bytes(const csv_strings& values, std::uint64_t rows) {
  const auto bytes_of = [&](std::size_t count) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      bytes += sizeof(std::string) +
               (values[i].size() > std::string().capacity() ? values[i].size() + 1 : 0);
    }
    return static_cast<double>(bytes);
  };
  if (values.size() == 0) return 0;
  const std::uint64_t times = rows / values.size();
  return bytes_of(values.size()) * static_cast<double>(times) + bytes_of(rows % values.size());
}

template <class Values>
load_result load(const Values& values, std::uint64_t rows, unsigned threads, progress_bar& bar) {
  load_result result;
  result.rows = rows;
  result.threads = threads;
  result.vector_bytes_per_row = per_row(vector_bytes(values, rows), rows);
  column<value_of<Values>> filled;
  if (rows > 0) {
    const stopwatch watch;
    insert_rows(filled, values, rows, threads, phase(bar, 0.3, 0.7));
    result.insert_mrows_s = static_cast<double>(rows) / watch.seconds() / 1e6;
  }
  result.delta_bytes_per_row = per_row(static_cast<double>(filled.stats().delta.bytes), rows);
  const stopwatch watch;
  merge_rows(filled, phase(bar, 0.7, 1));
  result.merge_seconds = watch.seconds();
  const auto main = filled.stats().main;
  result.distinct = main.distinct;
  result.id_bits =
      main.distinct == 0 ? 0 : packed_ids::bits_for(static_cast<std::uint32_t>(main.distinct - 1));
  result.main_bytes_per_row = per_row(static_cast<double>(main.bytes), rows);
  return result;
}

std::string text_of(const column_load_flags& flags, const csv_column& csv,
                    const load_result& result) {
  using enum table::alignment;
  table what({{"type"},
              {"rows", right},
              {"distinct", right},
              {"distinct %", right},
              {"left out", right},
              {"ID bits", right}});
  what.row({std::string(csv.type_name()), std::to_string(result.rows),
            std::to_string(result.distinct), percent(result.distinct_share()),
            std::to_string(csv.skipped.size()), std::to_string(result.id_bits)});
  table speed({{"work"}, {"speed", right}, {""}});
  speed.row({"reading", formatted("%.1f", result.read_mb_s), "MB/s"});
  speed.row({"inserting", formatted("%.3f", result.insert_mrows_s),
             "M rows/s, " + std::to_string(result.threads) +
                 (result.threads == 1 ? " thread" : " threads")});
  speed.row({"merging", formatted("%.3f", result.merge_seconds), "s"});
  table size({{"memory"}, {"bytes/row", right}});
  size.row({"delta, before the merge", formatted("%.2f", result.delta_bytes_per_row)});
  size.row({"main, after it", formatted("%.2f", result.main_bytes_per_row)});
  size.row({"std::vector", formatted("%.2f", result.vector_bytes_per_row)});
  std::string heading = flags.file + ", column " + shown(flags.column);
  if (!flags.rows.empty() && csv.rows() < result.rows) {
    heading += "; its " + std::to_string(csv.rows()) + " rows repeated";
  }
  return heading + "\n" + machine_line() + ", commit " + source_commit() + "\n\n" + what.text() +
         "\n" + speed.text() + "\n" + size.text();
}

nlohmann::ordered_json json_of(const column_load_flags& flags, const csv_column& csv,
                               const load_result& result) {
  nlohmann::ordered_json document = document_head();
  document["columns"].push_back({{"file", flags.file},
                                 {"column", flags.column},
                                 {"type", csv.type_name()},
                                 {"rows", result.rows},
                                 {"distinct", result.distinct},
                                 {"skipped", csv.skipped.size()},
                                 {"read_mb_s", result.read_mb_s},
                                 {"insert_mrows_s", result.insert_mrows_s},
                                 {"threads", result.threads},
                                 {"merge_s", result.merge_seconds},
                                 {"delta_bytes_per_row", result.delta_bytes_per_row},
                                 {"main_bytes_per_row", result.main_bytes_per_row},
                                 {"vector_bytes_per_row", result.vector_bytes_per_row},
                                 {"id_bits", result.id_bits}});
  return document;
}

}  // namespace

static int column_load_command(const column_load_flags& flags) {
  const unsigned threads = threads_of(flags);
  const std::optional<std::uint64_t> rows = rows_of(flags);
  const json_output json(flags.json);
  load_result result;
  column_source source;
  {
    progress_bar bar;
    source = read_source(flags, phase(bar, 0, 0.3));
    if (rows && source.csv.rows() == 0) {
      refuse("--rows", flags.rows, "is not possible: " + flags.file + " has no row to repeat",
             "a file with rows");
    }
    result = std::visit(
        [&](const auto& values) {
          return load(values, rows.value_or(values.size()), threads, bar);
        },
        source.csv.values);
  }
  result.read_mb_s = static_cast<double>(source.csv.bytes) / 1e6 / source.read_seconds;
  tell_left_out(flags, source.csv);
  if (json.wanted()) json.write(dump(json_of(flags, source.csv, result)));
  if (!json.to_stdout()) print(text_of(flags, source.csv, result));
  return 0;
}

void add_column_load_command(command_parser& app) {
  const auto flags = std::make_shared<column_load_flags>();
  command_parser command = app.add_command(
      "load", "insert the cells into a column and merge it; print speed and memory");
  command.footer(
      R"(Columns: distinct % is a share of the rows. CSV MB/s counts the file's bytes. M rows/s is
millions of insertions a second, all threads together. bytes/row is the memory of the delta
before the merge, of the main after it, and of a std::vector of the same values. ID bits is the
number of bits that a row takes in the main, without the dictionary.)");
  add_column_options(command, *flags);
  command
      .add_option(
          "--rows", flags->rows,
          "rows to insert, such as 10M; the file's rows are repeated [the file's rows, once]")
      .type_name("N");
  command.add_option("--threads", flags->threads, "threads that insert")
      .type_name("N")
      .shows_default();
  command.runs([flags] { return column_load_command(*flags); });
}

}  // namespace elidex::cli
