// elidex column query: fills a column with the cells of a CSV file, merges it, and asks it what the
// flags say.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <queue>

#include "bench/support/bad_input.hpp"
#include "cli/column_source.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/json_output.hpp"
#include "cli/results_json.hpp"
#include "cli/table.hpp"
#include "elidex/column.hpp"

namespace elidex::cli {

// Queries with their values; empty where not asked.
struct column_query_flags : column_flags {
  std::vector<std::string> find;   // one value
  std::vector<std::string> range;  // lowest, highest
  std::vector<std::string> count;  // lowest, highest
  bool distinct = false;
  std::string top;
  std::string limit = "20";
};

namespace {

using nlohmann::ordered_json;

// A limit against slips of the keyboard.
constexpr std::uint64_t listed_max = 1'000'000;

// --- Values as they are typed and shown ---

template <class T>
T parse_value(std::string_view flag, const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (text.size() > csv_column::string_bytes_max) {
      refuse(flag, text, "is too long",
             "at most " + std::to_string(csv_column::string_bytes_max) + " bytes");
    }
    return text;
  } else {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || rest != end) {
      refuse_value(flag, text,
                   std::is_same_v<T, double>
                       ? "a number: the column is of type double"
                       : "a whole number of 64 bits: the column is of type int");
    }
    return value;
  }
}

template <class T>
struct value_range {
  T lowest;
  T highest;
};

// As columns order values: NaN behind all numbers.
template <class T>
bool comes_before(const T& a, const T& b) {
  return elidex::internal::value_image<T>::of(a) < elidex::internal::value_image<T>::of(b);
}

template <class T>
value_range<T> parse_range(std::string_view flag, const std::vector<std::string>& texts) {
  value_range<T> range{parse_value<T>(flag, texts.at(0)), parse_value<T>(flag, texts.at(1))};
  if (comes_before(range.highest, range.lowest)) {
    refuse(flag, texts.at(0), "is above " + shown(texts.at(1)),
           "the lowest value, then the highest");
  }
  return range;
}

template <class Number>
std::string text_of(Number value) {
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), value).ptr};
}
std::string text_of(const std::string& value) {
  return shown(value);
}

template <class T>
ordered_json json_value(const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    if (!std::isfinite(value)) return text_of(value);  // JSON has no such numbers
  }
  return value;
}

// --- Queries ---

struct answer {
  std::string text;
  ordered_json json;
};

class listing {
 public:
  listing(const csv_column& csv, std::size_t limit) : csv_(csv), limit_(limit) {}

  // Row numbers as the file has them, the first ones.
  [[nodiscard]] std::vector<std::uint64_t> in_file(const std::vector<std::uint64_t>& rows) const {
    std::vector<std::uint64_t> all(
        rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min(limit_, rows.size())));
    for (std::uint64_t& row : all) row = csv_.row_in_file(row);
    return all;
  }
  [[nodiscard]] std::string text(const std::vector<std::uint64_t>& rows) const {
    std::string line;
    for (const std::uint64_t row : in_file(rows))
      line += (line.empty() ? "  " : ", ") + std::to_string(row);
    if (rows.size() > limit_) {
      line += (line.empty() ? "  " : ", ") + ("and " + std::to_string(rows.size() - limit_)) +
              " more (--limit)";
    }
    return line.empty() ? "" : line + "\n";
  }

 private:
  const csv_column& csv_;
  std::size_t limit_;
};

std::string rows_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " row" : " rows");
}

std::string line(const std::string& query, const std::string& found, double seconds) {
  return query + ": " + found + formatted(", %.3f ms\n", seconds * 1e3);
}

template <class T>
struct frequent {
  T value;
  std::size_t rows;
};

template <class T>
std::vector<frequent<T>> most_frequent(const column<T>& in, std::size_t limit) {
  // On top the one to give up: fewest rows, among these the greatest value.
  const auto better = [](const frequent<T>& a, const frequent<T>& b) {
    return a.rows != b.rows ? a.rows > b.rows : comes_before(a.value, b.value);
  };
  std::priority_queue<frequent<T>, std::vector<frequent<T>>, decltype(better)> best(better);
  in.scan(elidex::all, [&](typename column<T>::argument value, std::size_t rows) {
    if (best.size() == limit && rows <= best.top().rows) return;  // values ascend
    best.push({T(value), rows});
    if (best.size() > limit) best.pop();
  });
  std::vector<frequent<T>> all;
  for (; !best.empty(); best.pop()) all.push_back(best.top());
  std::reverse(all.begin(), all.end());
  return all;
}

template <class T>
answer ask_top(const column<T>& in, std::size_t limit) {
  const stopwatch watch;
  const auto found = most_frequent(in, limit);
  const double seconds = watch.seconds();
  table values({{"rows", table::right}, {"value"}});
  ordered_json list = ordered_json::array();
  for (const auto& one : found) {
    values.row({std::to_string(one.rows), text_of(one.value)});
    list.push_back({{"value", json_value(one.value)}, {"rows", one.rows}});
  }
  return {line("top " + std::to_string(limit),
               std::to_string(found.size()) + (found.size() == 1 ? " value" : " values"), seconds) +
              (found.empty() ? "" : values.text()),
          {{"query", "top"}, {"values", std::move(list)}, {"seconds", seconds}}};
}

template <class T>
answer ask_distinct(const column<T>& in) {
  const stopwatch watch;
  const std::size_t count = in.distinct();
  const double seconds = watch.seconds();
  return {line("distinct", std::to_string(count) + (count == 1 ? " value" : " values"), seconds),
          {{"query", "distinct"}, {"count", count}, {"seconds", seconds}}};
}

template <class T>
answer ask_find(const column<T>& in, const T& value, const listing& rows) {
  const stopwatch watch;
  const auto found = in.find(value);
  const double seconds = watch.seconds();
  return {line("find " + text_of(value), rows_text(found.size()), seconds) + rows.text(found),
          {{"query", "find"},
           {"value", json_value(value)},
           {"count", found.size()},
           {"rows", rows.in_file(found)},
           {"seconds", seconds}}};
}

template <class T>
answer ask_range(const column<T>& in, const value_range<T>& range, const listing& rows) {
  const stopwatch watch;
  const auto found = in.range(elidex::closed(range.lowest, range.highest));
  const double seconds = watch.seconds();
  return {line("range " + text_of(range.lowest) + " to " + text_of(range.highest),
               rows_text(found.size()), seconds) +
              rows.text(found),
          {{"query", "range"},
           {"lowest", json_value(range.lowest)},
           {"highest", json_value(range.highest)},
           {"count", found.size()},
           {"rows", rows.in_file(found)},
           {"seconds", seconds}}};
}

template <class T>
answer ask_count(const column<T>& in, const value_range<T>& range) {
  const stopwatch watch;
  const std::size_t count = in.count(elidex::closed(range.lowest, range.highest));
  const double seconds = watch.seconds();
  return {line("count " + text_of(range.lowest) + " to " + text_of(range.highest), rows_text(count),
               seconds),
          {{"query", "count"},
           {"lowest", json_value(range.lowest)},
           {"highest", json_value(range.highest)},
           {"count", count},
           {"seconds", seconds}}};
}

// --- The command ---

struct limits {
  std::size_t listed;
  std::optional<std::size_t> top;
};

limits limits_of(const column_query_flags& flags) {
  if (flags.find.empty() && flags.range.empty() && flags.count.empty() && !flags.distinct &&
      flags.top.empty()) {
    throw bench::bad_input(
        "a query is missing (expected --find V, --range LO HI, --count LO HI, --distinct or --top "
        "N)");
  }
  limits all{parse_count("--limit", flags.limit, 0, listed_max), std::nullopt};
  if (!flags.top.empty()) all.top = parse_count("--top", flags.top, 1, listed_max);
  return all;
}

template <class Values>
std::vector<answer> ask(const column_query_flags& flags, const limits& most, const csv_column& csv,
                        const Values& values, progress_bar& bar) {
  using value = value_of<Values>;
  // All that was typed is looked at before the work begins.
  std::vector<std::function<answer(const column<value>&)>> queries;
  const listing rows(csv, most.listed);
  if (!flags.find.empty()) {
    queries.push_back([&, wanted = parse_value<value>("--find", flags.find.front())](
                          const auto& in) { return ask_find(in, wanted, rows); });
  }
  if (!flags.range.empty()) {
    queries.push_back([&, range = parse_range<value>("--range", flags.range)](const auto& in) {
      return ask_range(in, range, rows);
    });
  }
  if (!flags.count.empty()) {
    queries.push_back([range = parse_range<value>("--count", flags.count)](const auto& in) {
      return ask_count(in, range);
    });
  }
  if (flags.distinct) queries.push_back([](const auto& in) { return ask_distinct(in); });
  if (most.top) queries.push_back([&](const auto& in) { return ask_top(in, *most.top); });

  column<value> filled;
  if (values.size() > 0) insert_rows(filled, values, values.size(), 1, phase(bar, 0.4, 0.8));
  merge_rows(filled, phase(bar, 0.8, 1));
  std::vector<answer> answers;
  answers.reserve(queries.size());
  for (const auto& query : queries) answers.push_back(query(filled));
  return answers;
}

}  // namespace

static int column_query_command(const column_query_flags& flags) {
  const limits most = limits_of(flags);
  const json_output json(flags.json);
  column_source source;
  std::vector<answer> answers;
  {
    progress_bar bar;
    source = read_source(flags, phase(bar, 0, 0.4));
    answers =
        std::visit([&](const auto& values) { return ask(flags, most, source.csv, values, bar); },
                   source.csv.values);
  }
  tell_left_out(flags, source.csv);
  std::string text = flags.file + ", column " + shown(flags.column) + ": " +
                     rows_text(source.csv.rows()) + " of type " +
                     std::string(source.csv.type_name()) + "\n";
  ordered_json document = document_head();
  document["columns"].push_back({{"file", flags.file},
                                 {"column", flags.column},
                                 {"type", source.csv.type_name()},
                                 {"rows", source.csv.rows()},
                                 {"skipped", source.csv.skipped.size()}});
  for (answer& one : answers) {
    text += one.text;
    document["queries"].push_back(std::move(one.json));
  }
  if (json.wanted()) json.write(dump(document));
  if (!json.to_stdout()) print(text);
  return 0;
}

void add_column_query_command(command_parser& app) {
  const auto flags = std::make_shared<column_query_flags>();
  command_parser command =
      app.add_command("query", "insert the cells into a column, merge it and query it");
  command.footer(
      R"(Row numbers begin at 1 behind the header, and count the rows that are left out. LO and HI
are included. Strings are compared as bytes.)");
  add_column_options(command, *flags);
  command.add_option("--find", flags->find, "the rows with value V").type_name("V").takes(1);
  command.add_option("--range", flags->range, "the rows with values from LO to HI")
      .type_name("LO HI")
      .takes(2);
  command.add_option("--count", flags->count, "how many rows have values from LO to HI")
      .type_name("LO HI")
      .takes(2);
  command.add_flag("--distinct", flags->distinct, "how many different values there are");
  command.add_option("--top", flags->top, "the N most frequent values").type_name("N");
  command.add_option("--limit", flags->limit, "rows to list at most, of --find and of --range")
      .type_name("N")
      .shows_default();
  command.runs([flags] { return column_query_command(*flags); });
}

}  // namespace elidex::cli
