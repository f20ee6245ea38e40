// elidex db: looks into a database's directory, writes and reads its rows, checks it and copies it.
// `load`, `backup` and `shell --write` refuse a directory that a program has open. The other
// commands read what that program has made durable.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/support/bad_input.hpp"
#include "bench/support/input_file.hpp"
#include "cli/command_line.hpp"
#include "cli/database/row_csv.hpp"
#include "cli/database/row_loader.hpp"
#include "cli/database/row_text.hpp"
#include "cli/database/shell.hpp"
#include "cli/database/stored_tables.hpp"
#include "cli/flags.hpp"
#include "cli/installation.hpp"
#include "cli/json_output.hpp"
#include "cli/process.hpp"
#include "cli/results_json.hpp"
#include "cli/table.hpp"
#include "elidex/internal/log/backup.hpp"

namespace elidex::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct database_flags {
  std::string directory;
  std::string to;     // of backup and restore
  std::string file;   // of load
  std::string out;    // of dump
  std::string table;  // of dump and load
  std::string format;
  std::string columns;  // of a new table, of load
  std::string key = "uint64";
  std::string json;
  bool write = false;   // of shell
  bool update = false;  // of backup
  std::string group;    // of restore
};

void check_directory(const std::string& directory, const char* argument = "DIR") {
  using internal::file_kind;
  constexpr const char* expected = "the directory of a database";
  std::error_code error;
  const bool is_directory = fs::is_directory(directory, error);
  if (!error && !is_directory) refuse(argument, directory, "is not a directory", expected);
  bool has_log = false;
  if (!error) {
    for (fs::directory_iterator one(directory, error); !error && one != fs::directory_iterator();
         one.increment(error)) {
      const std::string name = one->path().filename().string();
      has_log = has_log || internal::number_of(file_kind::segment, name) ||
                internal::number_of(file_kind::checkpoint, name);
    }
  }
  if (error == std::errc::no_such_file_or_directory)
    refuse(argument, directory, "is not a directory", expected);
  if (error) refuse(argument, directory, "cannot be read: " + error.message(), expected);
  if (!has_log) refuse(argument, directory, "has neither a log nor a checkpoint", expected);
}

// Lines for standard output, or for a file that appears when finish() is called.
class output_lines {
 public:
  explicit output_lines(const std::string& file) : name_(file) {
    if (file.empty()) return;
    std::error_code error;
    final_ = fs::weakly_canonical(file, error);  // a link stays a link
    const fs::file_status there = fs::status(final_, error);
    is_replaced_ = !fs::exists(there) || fs::is_regular_file(there);
    own_.reset(std::fopen(written_name().c_str(), is_replaced_ ? "wbx" : "wb"));
    if (!own_) throw bench::bad_input("--out: " + file + " cannot be written (expected a file)");
    to_ = own_.get();
  }
  ~output_lines() {
    if (own_) discard();
  }
  output_lines(const output_lines&) = delete;
  output_lines& operator=(const output_lines&) = delete;

  void line(std::string text) {
    text.push_back('\n');
    if (std::fwrite(text.data(), 1, text.size(), to_) != text.size()) failed();
  }
  void finish() {
    if (std::fflush(to_) != 0) failed();
    if (!own_) return;
    std::error_code error;
    if (std::fclose(own_.release()) != 0) error = std::make_error_code(std::errc::io_error);
    if (is_replaced_ && !error) fs::rename(written_name(), final_, error);
    if (!error) return;
    discard();
    failed();
  }

 private:
  struct closing {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void discard() {
    own_.reset();
    std::error_code ignored;
    if (is_replaced_) fs::remove(written_name(), ignored);
  }
  // A device is written at once. A file appears under its name when it is whole.
  std::string written_name() const {
    return is_replaced_ ? final_.string() + "." + std::to_string(getpid()) + ".tmp" : name_;
  }
  [[noreturn]] void failed() const {
    throw std::runtime_error((name_.empty() ? "standard output" : name_) + ": cannot be written");
  }

  std::string name_;
  fs::path final_;
  bool is_replaced_ = false;
  std::unique_ptr<std::FILE, closing> own_;
  std::FILE* to_ = stdout;
};

struct counted {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};

counted count_rows(const stored_tables& in, const std::string& table) {
  counted sum;
  sum.rows = in.scan(
      table, [&](const stored_key&, const db::row& row) { sum.bytes += row.words().size_bytes(); });
  return sum;
}

ordered_json json_of_log(const db::recovered_log& found) {
  return {{"checkpoint", found.checkpoint},
          {"checkpoint_rows", found.checkpoint_rows},
          {"log_entries", found.entries},
          {"last_group", found.durable_group},
          {"torn_bytes", found.torn_bytes}};
}

std::string text_of_log(const db::recovered_log& found) {
  std::string text = found.checkpoint == 0
                         ? "no checkpoint"
                         : "checkpoint " + std::to_string(found.checkpoint) + " with " +
                               std::to_string(found.checkpoint_rows) + " rows, with the catalog's";
  text += ", " + std::to_string(found.entries) + " log entries";
  if (found.torn_bytes != 0)
    text += ", " + std::to_string(found.torn_bytes) + " bytes of a commit that a crash cut off";
  return text;
}

std::string text_of_use(const stored_tables& in) {
  return in.is_in_use() ? "; a program has the directory open: these are its durable rows" : "";
}

int info_command(const database_flags& flags) {
  check_directory(flags.directory);
  const json_output json(flags.json);
  const stored_tables in(flags.directory, stored_tables::use::read);
  table shown({{"table"}, {"key"}, {"rows", table::right}, {"bytes", table::right}, {"columns"}});
  ordered_json tables = ordered_json::array();
  for (const stored_tables::table& one : in.tables()) {
    const counted sum = count_rows(in, one.name);
    shown.row({one.name, one.key_type, std::to_string(sum.rows), std::to_string(sum.bytes),
               text_of_columns(one.columns)});
    ordered_json about = table_json(one);
    about["rows"] = sum.rows;
    about["bytes"] = sum.bytes;
    tables.push_back(std::move(about));
  }
  ordered_json document = document_head();
  document["directory"] = flags.directory;
  document["in_use"] = in.is_in_use();
  document["log"] = json_of_log(in.found());
  document["tables"] = std::move(tables);
  if (json.wanted()) json.write(dump(document));
  if (!json.to_stdout())
    print(flags.directory + ": " + text_of_log(in.found()) + text_of_use(in) + "\n" + shown.text());
  return 0;
}

// Returns the format of --format, or else that of the file's extension.
std::string format_of(const std::string& wanted, const std::string& file) {
  static const std::vector<std::string> formats{"jsonl", "csv", "arrow", "parquet"};
  if (!wanted.empty()) {
    if (std::find(formats.begin(), formats.end(), wanted) == formats.end())
      refuse_value("--format", wanted, "jsonl, csv, arrow or parquet", formats);
    return wanted;
  }
  const std::string extension = fs::path(file).extension().string();
  for (const std::string& one : formats) {
    if (extension == "." + one) return one;
  }
  return "jsonl";
}

bool is_arrow(const std::string& format) {
  return format == "arrow" || format == "parquet";
}

// A script reads and writes Apache Arrow and Parquet, with pyarrow. It runs `elidex db`, which
// writes or reads JSON lines.
int run_arrow_script(const char* direction, const database_flags& flags, const std::string& format,
                     const std::string& file) {
  std::error_code error;
  const fs::path script = data_path("cli/database/arrow_rows.py");
  if (!fs::exists(script, error)) throw std::runtime_error(script.string() + " is missing");
  std::vector<std::string> command{python(), script.string()};
  if (!flags.table.empty()) command.push_back("--table=" + flags.table);
  // A name may begin with a hyphen.
  command.insert(command.end(), {"--", direction, (program_directory() / "elidex").string(),
                                 flags.directory, format, file});
  const int status = run_program(command);
  if (status == status_not_started)
    throw std::runtime_error(python_not_started("db", command.front()));
  return status;
}

// The tables that a dump has: all, or the one of --table.
std::vector<stored_tables::table> chosen_tables(const stored_tables& in,
                                                const database_flags& flags) {
  auto all = in.tables();
  if (flags.table.empty()) return all;
  if (const stored_tables::table* const one = in.find(flags.table)) return {*one};
  refuse_value("--table", flags.table, "a table that 'elidex db info' lists", names_of(all));
}

void dump_lines(const stored_tables& in, const std::vector<stored_tables::table>& tables, bool csv,
                const std::string& file) {
  output_lines out(file);
  for (const stored_tables::table& one : tables) {
    out.line(csv ? csv_header(one) : table_json(one).dump());
    in.scan(one.name, [&](const stored_key& key, const db::row& row) {
      out.line(csv ? csv_row(key, row) : row_json(key, row).dump());
    });
  }
  out.finish();
}

int dump_command(const database_flags& flags) {
  check_directory(flags.directory);
  const std::string format = format_of(flags.format, flags.out);
  if (is_arrow(format) && flags.out.empty())
    throw bench::bad_input("--out: is missing (expected a file for " + format + ")");
  database_flags one_table = flags;
  {
    const stored_tables in(flags.directory, stored_tables::use::read);
    const auto tables = chosen_tables(in, flags);
    if (format != "jsonl" && tables.size() != 1)
      throw bench::bad_input("--format: " + format + " takes one table (expected --table NAME)");
    if (!is_arrow(format)) {
      dump_lines(in, tables, format == "csv", flags.out);
      return 0;
    }
    one_table.table = tables.front().name;
  }  // another process reads the directory now
  return run_arrow_script("dump", one_table, format, flags.out);
}

[[noreturn]] void refuse_without_columns(const database_flags& flags) {
  throw bench::bad_input(
      "--columns: is missing, and there is no table '" + flags.table +
      "' yet (expected its columns, such as 'name text, balance integer, note text null')");
}

// What can be checked before the directory is made.
void check_csv_flags(const database_flags& flags) {
  if (flags.table.empty())
    throw bench::bad_input("--table: is missing (expected the name of the rows' table)");
  if (!stored_tables::is_key_type(flags.key))
    refuse("--key", flags.key, "is not a key type", "string, int8 to int64, or uint8 to uint64");
  if (!flags.columns.empty()) {
    static_cast<void>(columns_of_text(flags.columns));
  } else if (!fs::exists(flags.directory)) {
    refuse_without_columns(flags);
  }
}

const stored_tables::table& table_for_csv(stored_tables& into, const database_flags& flags) {
  if (const stored_tables::table* const there = into.find(flags.table)) {
    if (!flags.columns.empty() && there->columns != columns_of_text(flags.columns))
      throw bench::bad_input("--columns: table '" + flags.table + "' has other columns (expected " +
                             text_of_columns(there->columns) + ")");
    return *there;
  }
  if (flags.columns.empty()) refuse_without_columns(flags);
  return into.create(flags.table, flags.key, columns_of_text(flags.columns));
}

int load_command(const database_flags& flags) {
  const std::string format = format_of(flags.format, flags.file);
  if (is_arrow(format)) return run_arrow_script("load", flags, format, flags.file);
  const bool csv = format == "csv";
  if (csv) check_csv_flags(flags);
  std::ifstream file;
  if (flags.file != "-") {
    std::string why;
    file = bench::open_input(flags.file, why);
    if (!file.is_open()) refuse("FILE", flags.file, why, "a file with rows");
  }
  std::istream& from = flags.file == "-" ? std::cin : file;
  stored_tables into(flags.directory, stored_tables::use::write);
  const std::uint64_t rows =
      csv ? load_csv(into, table_for_csv(into, flags), from) : load_json_lines(into, from);
  if (from.bad()) throw std::runtime_error(flags.file + ": cannot be read");
  print(flags.directory + ": " + std::to_string(rows) + " rows loaded\n");
  return 0;
}

int shell_command(const database_flags& flags) {
  check_directory(flags.directory);
  stored_tables in(flags.directory,
                   flags.write ? stored_tables::use::write : stored_tables::use::read);
  return run_shell(in, std::cin, flags.write);
}

// Reads everything. Returns what `verify` prints.
std::string verified(const std::string& directory) {
  const stored_tables in(directory, stored_tables::use::read);
  std::uint64_t rows = 0;
  const auto all = in.tables();
  for (const stored_tables::table& one : all) rows += count_rows(in, one.name).rows;
  return directory + ": no damage; " + std::to_string(all.size()) + " tables, " +
         std::to_string(rows) + " rows, " + text_of_log(in.found()) + text_of_use(in) + "\n";
}

int verify_command(const database_flags& flags) {
  check_directory(flags.directory);
  print(verified(flags.directory));
  return 0;
}

void check_copy(const std::string& copy, const char* expected) {
  std::error_code error;
  const fs::file_status there = fs::status(copy, error);
  if (!fs::exists(there) && there.type() != fs::file_type::none) return;
  if (there.type() == fs::file_type::none)
    refuse("TO", copy, "cannot be read: " + error.message(), expected);
  if (!fs::is_directory(there)) refuse("TO", copy, "is not a directory", expected);
  const bool is_empty = fs::is_empty(copy, error);
  if (error) refuse("TO", copy, "cannot be read: " + error.message(), expected);
  if (!is_empty) refuse("TO", copy, "exists and is not empty", expected);
}

// Returns a message about damage in the copy as one about the file that it was copied from.
std::string about_original(const std::string& what, internal::log_directory& copy,
                           const internal::log_directory& original) {
  std::error_code error;
  std::vector<std::string> names = copy.names(error);
  names.emplace_back();  // the directory: last, because its name begins those of its files
  for (const std::string& name : names) {
    const std::string begin = "elidex: " + copy.shown(name);
    if (what.starts_with(begin))
      return "elidex: " + original.shown(name) + what.substr(begin.size());
  }
  return what;
}

// Reads a copy that was made just now. If it is damaged, so is the file that it was copied from:
// the message names that file, and the copy is removed.
std::string verified_copy(const database_flags& flags) {
  try {
    return verified(flags.to);
  } catch (const db::log_error& error) {
    if (error.problem() != db::log_problem::damaged) throw;
    std::string what = error.what();
    try {
      const auto copy = internal::open_log_directory(flags.to, internal::directory_use::extend);
      const auto original =
          internal::open_log_directory(flags.directory, internal::directory_use::follow);
      what = about_original(what, *copy, *original);
      internal::remove_copy(*copy);
    } catch (const std::system_error&) {
      // The copy stays. Its damage is what matters.
    }
    std::error_code ignored;
    if (fs::is_empty(flags.to, ignored)) what += "; the copy was removed";
    throw db::log_error(error.problem(), what);
  }
}

int backup_command(const database_flags& flags) {
  check_directory(flags.directory);
  if (flags.update) {
    check_directory(flags.to, "TO");
    const auto from = internal::open_log_directory(flags.directory, internal::directory_use::read);
    const std::uint64_t added = internal::update_copy(
        *from, internal::whole_file, internal::log_fingerprint,
        *internal::open_log_directory(flags.to, internal::directory_use::extend));
    print(flags.to + ": " + std::to_string(added) + " bytes added\n");
    print(verified(flags.to));
    return 0;
  }
  check_copy(flags.to, "a directory that does not exist yet, or --update for a copy of DIR");
  {  // a lock keeps writers out
    const auto from = internal::open_log_directory(flags.directory, internal::directory_use::read);
    internal::copy_all(*from, *internal::open_log_directory(flags.to));
  }
  print(verified_copy(flags));
  return 0;
}

int restore_command(const database_flags& flags) {
  check_directory(flags.directory);
  check_copy(flags.to, "a directory that does not exist yet");
  const std::uint64_t wanted = parse_count("--group", flags.group, 0, internal::whole_file);
  const std::uint64_t group = db::restore(flags.directory, flags.to, wanted);
  const std::string report = verified_copy(flags);
  print(flags.to + ": the state after group " + std::to_string(group) + "\n" + report);
  return 0;
}

// When the file was written last, as UTC.
std::string time_of(const fs::path& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return "?";
  std::tm utc{};
  ::gmtime_r(&status.st_mtime, &utc);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text.data(), length};
}

int history_command(const database_flags& flags) {
  check_directory(flags.directory);
  const json_output json(flags.json);
  const auto from = internal::open_log_directory(flags.directory, internal::directory_use::follow);
  table shown({{"file"}, {"groups"}, {"bytes", table::right}, {"last written"}});
  ordered_json files = ordered_json::array();
  for (const internal::kept_file& one : internal::kept_files(*from, internal::log_fingerprint)) {
    const std::string name = internal::name_of(one.kind, one.number);
    const std::string written = time_of(fs::path(flags.directory) / name);
    const bool is_checkpoint = one.kind == internal::file_kind::checkpoint;
    const bool is_empty = one.last_group < one.first_group;
    const std::string from_group = std::to_string(one.first_group);
    shown.row({name,
               is_checkpoint ? "from " + from_group + " on"
               : is_empty    ? "none"
                             : from_group + " to " + std::to_string(one.last_group),
               std::to_string(one.bytes), written});
    files.push_back({{"file", name},
                     {"first_group", one.first_group},
                     {"last_group", one.last_group},
                     {"bytes", one.bytes},
                     {"last_written", written}});
  }
  ordered_json document = document_head();
  document["directory"] = flags.directory;
  document["files"] = std::move(files);
  if (json.wanted()) json.write(dump(document));
  if (!json.to_stdout()) print(shown.text());
  return 0;
}

}  // namespace

void add_database_commands(command_parser& db) {
  const auto add = [&](const char* name, const std::string& help,
                       int (*run)(const database_flags&)) {
    const auto flags = std::make_shared<database_flags>();
    command_parser command = db.add_command(name, help);
    command.add_option("dir", flags->directory, "the database's directory")
        .type_name("DIR")
        .required();
    command.runs([flags, run] { return run(*flags); });
    return std::pair(command, flags);
  };
  auto [info, info_flags] = add("info", "list the tables, their columns and sizes", info_command);
  info.add_option("--json", info_flags->json, json_help).type_name("FILE");
  auto [dump, dump_flags] =
      add("dump", "write all rows, as JSON lines, CSV, Arrow or Parquet", dump_command);
  dump.add_option("--table", dump_flags->table, "only this table").type_name("NAME");
  const char* const format_help =
      "jsonl, csv, arrow or parquet [by the file's extension, otherwise jsonl]";
  dump.add_option("--format", dump_flags->format, format_help).type_name("NAME");
  dump.add_option("--out", dump_flags->out, "the file [standard output]").type_name("FILE");
  auto [load, load_flags] = add(
      "load", "read what dump wrote, or a CSV file, and insert or overwrite rows", load_command);
  load.add_option("file", load_flags->file, "the file; - for standard input")
      .type_name("FILE")
      .required();
  load.add_option("--format", load_flags->format, format_help).type_name("NAME");
  load.add_option("--table", load_flags->table, "the table of a CSV, Arrow or Parquet file")
      .type_name("NAME");
  load.add_option("--columns", load_flags->columns,
                  "the columns of a new table for a CSV file, such as 'name text, note text null'")
      .type_name("LIST");
  load.add_option(
          "--key", load_flags->key,
          "the key type of a new table for a CSV file: string, int8 to int64, or uint8 to uint64")
      .type_name("TYPE")
      .shows_default();
  auto [shell, shell_flags] =
      add("shell", "look up and change rows, by commands on standard input ('help' lists them)",
          shell_command);
  shell.add_flag("--write", shell_flags->write, "allow put and erase");
  add("verify", "read everything and name the first damage", verify_command);
  const auto add_copy = [&](const char* name, const std::string& help, const std::string& copy,
                            int (*run)(const database_flags&)) {
    auto added = add(name, help, run);
    added.first.add_option("to", added.second->to, copy).type_name("TO").required();
    return added;
  };
  auto [backup, backup_flags] = add_copy(
      "backup", "copy the directory, and read the copy",
      "the copy: an empty or new directory; with --update, an earlier copy", backup_command);
  backup.add_flag("--update", backup_flags->update,
                  "add to an earlier copy what the log has gained since");
  auto [history, history_flags] =
      add("history", "list the files that earlier states can be restored from", history_command);
  history.add_option("--json", history_flags->json, json_help).type_name("FILE");
  auto [restore, restore_flags] =
      add_copy("restore", "copy an earlier state of the directory, and read it",
               "the copy: an empty or new directory", restore_command);
  restore
      .add_option("--group", restore_flags->group,
                  "the state after this commit group (see history)")
      .type_name("N")
      .required();
}

}  // namespace elidex::cli
