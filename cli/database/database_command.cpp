// elidex db: looks into a database's directory, writes it as text, reads such text, checks it and
// copies it. The directory must not be open in a program that writes to it.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/support/bad_input.hpp"
#include "cli/command_line.hpp"
#include "cli/database/row_text.hpp"
#include "cli/database/stored_tables.hpp"
#include "cli/flags.hpp"
#include "cli/json_output.hpp"
#include "cli/results_json.hpp"
#include "cli/table.hpp"
#include "elidex/internal/log/backup.hpp"

namespace elidex::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct database_flags {
  std::string directory;
  std::string to;     // of backup
  std::string file;   // of load
  std::string table;  // of dump
  std::string format = "jsonl";
  std::string json;
};

void check_directory(const std::string& directory) {
  using internal::file_kind;
  if (!fs::is_directory(directory))
    refuse("DIR", directory, "is not a directory", "the directory of a database");
  for (const auto& one : fs::directory_iterator(directory)) {
    const std::string name = one.path().filename().string();
    if (internal::number_of(file_kind::segment, name) ||
        internal::number_of(file_kind::checkpoint, name))
      return;
  }
  refuse("DIR", directory, "has neither a log nor a checkpoint", "the directory of a database");
}

// Results of dump and verify are long, so they go out as they come.
void write_line(std::string line) {
  line.push_back('\n');
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size())
    throw std::runtime_error("standard output: cannot be written");
}
void flush_lines() {
  if (std::fflush(stdout) != 0) throw std::runtime_error("standard output: cannot be written");
}

std::string text_of_columns(const db::schema& columns) {
  std::string text;
  for (const db::column_definition& one : columns.columns()) {
    text += (text.empty() ? "" : ", ") + one.name + " " + db::name_of(one.type);
    if (one.text_bytes_max != 0) text += "(" + std::to_string(one.text_bytes_max) + ")";
    if (one.nullable) text += " null";
  }
  return text;
}

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
                               std::to_string(found.checkpoint_rows) + " rows";
  text += ", " + std::to_string(found.entries) + " log entries";
  if (found.torn_bytes != 0)
    text += ", " + std::to_string(found.torn_bytes) + " bytes of a commit that a crash cut off";
  return text;
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
  document["log"] = json_of_log(in.found());
  document["tables"] = std::move(tables);
  if (json.wanted()) json.write(dump(document));
  if (!json.to_stdout())
    print(flags.directory + ": " + text_of_log(in.found()) + "\n" + shown.text());
  return 0;
}

int dump_command(const database_flags& flags) {
  check_directory(flags.directory);
  if (flags.format != "jsonl" && flags.format != "csv")
    refuse_value("--format", flags.format, "jsonl or csv", {"jsonl", "csv"});
  const stored_tables in(flags.directory, stored_tables::use::read);
  const auto all = in.tables();
  if (!flags.table.empty() && in.find(flags.table) == nullptr) {
    std::vector<std::string> names;
    for (const auto& one : all) names.push_back(one.name);
    refuse_value("--table", flags.table, "a table that 'elidex db info' lists", names);
  }
  const bool csv = flags.format == "csv";
  if (csv && flags.table.empty() && all.size() != 1)
    throw bench::bad_input("--format: csv takes one table (expected --table NAME)");
  for (const stored_tables::table& one : all) {
    if (!flags.table.empty() && one.name != flags.table) continue;
    write_line(csv ? csv_header(one) : table_json(one).dump());
    in.scan(one.name, [&](const stored_key& key, const db::row& row) {
      write_line(csv ? csv_row(key, row) : row_json(key, row).dump());
    });
  }
  flush_lines();
  return 0;
}

// Reads what dump wrote, a transaction for each `rows_at_once` rows.
class loader {
 public:
  explicit loader(stored_tables& into) : into_(into) {}

  void line(const std::string& text) {
    ++line_;
    if (text.empty()) return;
    try {
      const ordered_json read = ordered_json::parse(text);
      if (read.is_object() && read.contains("table")) {
        begin_table(read);
      } else {
        add_row(read);
      }
    } catch (const ordered_json::exception&) {
      throw std::runtime_error(place() + "not a line of a dump (expected JSON that dump writes)");
    } catch (const std::exception& error) {
      throw std::runtime_error(place() + error.what());
    }
  }
  void finish() {
    write_rows();
    into_.close();
  }
  std::uint64_t rows() const noexcept { return rows_; }

 private:
  static constexpr std::size_t rows_at_once = 1'000;

  std::string place() const { return "line " + std::to_string(line_) + ": "; }
  void begin_table(const ordered_json& read) {
    write_rows();
    if (!read["table"].is_string() || !read.contains("key") || !read["key"].is_string())
      throw std::runtime_error("a table (expected \"table\", \"key\" and \"columns\")");
    const auto name = read["table"].get<std::string>();
    const db::schema columns = columns_of_json(read);
    table_ = into_.find(name);
    if (table_ == nullptr) {
      table_ = &into_.create(name, read["key"].get<std::string>(), columns);
    } else if (table_->columns != columns || table_->key_type != read["key"]) {
      throw db::schema_mismatch(
          name + ": the directory has this table with other columns or keys (expected the same)");
    }
  }
  void add_row(const ordered_json& read) {
    if (!read.is_object() || !read.contains("key") || !read.contains("row"))
      throw std::runtime_error(
          "neither a table nor a row (expected \"table\", or \"key\" and \"row\")");
    if (table_ == nullptr)
      throw std::runtime_error("a row before the first table (expected a table first)");
    list_.emplace_back(key_of_json(read["key"], *table_), row_of_json(read["row"], *table_));
    if (list_.size() == rows_at_once) write_rows();
  }
  void write_rows() {
    if (list_.empty()) return;
    into_.upsert(table_->name, list_);
    rows_ += list_.size();
    list_.clear();
  }

  stored_tables& into_;
  const stored_tables::table* table_ = nullptr;
  stored_tables::row_list list_;
  std::uint64_t line_ = 0;
  std::uint64_t rows_ = 0;
};

int load_command(const database_flags& flags) {
  std::ifstream file;
  if (flags.file != "-") {
    file.open(flags.file);
    if (!file) refuse("FILE", flags.file, "cannot be read", "a file that 'elidex db dump' wrote");
  }
  std::istream& from = flags.file == "-" ? std::cin : file;
  stored_tables into(flags.directory, stored_tables::use::write);
  loader rows(into);
  for (std::string line; std::getline(from, line);) rows.line(line);
  if (from.bad()) throw std::runtime_error(flags.file + ": cannot be read");
  rows.finish();
  print(flags.directory + ": " + std::to_string(rows.rows()) + " rows loaded\n");
  return 0;
}

int verify_command(const database_flags& flags) {
  check_directory(flags.directory);
  const stored_tables in(flags.directory, stored_tables::use::read);
  std::uint64_t rows = 0;
  const auto all = in.tables();
  for (const stored_tables::table& one : all) rows += count_rows(in, one.name).rows;
  print(flags.directory + ": no damage; " + std::to_string(all.size()) + " tables, " +
        std::to_string(rows) + " rows, " + text_of_log(in.found()) + "\n");
  return 0;
}

// Copies the files while a lock keeps writers out, then reads the copy.
int backup_command(const database_flags& flags) {
  check_directory(flags.directory);
  if (fs::exists(flags.to) && !fs::is_empty(flags.to))
    refuse("TO", flags.to, "exists and is not empty", "a directory that does not exist yet");
  const auto from = internal::open_log_directory(flags.directory, internal::directory_use::read);
  const auto to = internal::open_log_directory(flags.to);
  std::error_code error;
  for (const std::string& name : from->names(error)) {
    using internal::file_kind;
    if (internal::number_of(file_kind::segment, name) ||
        internal::number_of(file_kind::checkpoint, name))
      internal::copy_file(*from, name, *to, name);
  }
  if (!error) to->sync(error);
  if (error) throw std::system_error(error, "elidex: cannot copy " + flags.directory);
  return 0;
}

int backup_and_verify(const database_flags& flags) {
  backup_command(flags);
  database_flags copy = flags;
  copy.directory = flags.to;
  return verify_command(copy);
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
      add("dump", "write all rows to standard output, as JSON lines or CSV", dump_command);
  dump.add_option("--table", dump_flags->table, "only this table").type_name("NAME");
  dump.add_option("--format", dump_flags->format, "jsonl or csv").shows_default();
  auto [load, load_flags] = add(
      "load", "read what dump wrote as JSON lines, and insert or overwrite its rows", load_command);
  load.add_option("file", load_flags->file, "the file; - for standard input")
      .type_name("FILE")
      .required();
  add("verify", "read everything and name the first damage", verify_command);
  auto [backup, backup_flags] =
      add("backup", "copy the directory, and read the copy", backup_and_verify);
  backup.add_option("to", backup_flags->to, "the copy, a directory that does not exist yet")
      .type_name("TO")
      .required();
}

}  // namespace elidex::cli
