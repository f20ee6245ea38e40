#include "cli/database/shell.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "bench/support/near_match.hpp"
#include "cli/database/row_text.hpp"
#include "cli/flags.hpp"

namespace elidex::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t rows_shown = 10;
constexpr std::string_view blanks = " \t\r";
constexpr std::string_view help =
    "tables                   the tables, with their columns\n"
    "count TABLE              the number of its rows\n"
    "get TABLE KEY            the row with this key\n"
    "scan TABLE [KEY [N]]     N rows (10 if not given) from this key on, or from the first\n"
    "put TABLE KEY {...}      inserts a row, or changes the named columns (needs --write)\n"
    "erase TABLE KEY          erases the row (needs --write)\n"
    "help                     this text\n"
    "quit                     ends the shell, as the end of the input does\n"
    "Write a table or key with blanks as a JSON string: \"open orders\".\n"
    "Write a row as a JSON object: {\"owner\": \"Ada\"}.\n";

// The words of a command.
class words {
 public:
  explicit words(std::string_view line) : rest_(line) { skip_blanks(); }

  bool empty() const noexcept { return rest_.empty(); }
  // A word without its quotes. `what` is what the command needs here.
  std::string next(const char* what) {
    if (rest_.empty()) refuse("the command ends here", what);
    if (rest_.front() != '"') return std::string(take(rest_.find_first_of(blanks)));
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2U : 1U;
    if (end >= rest_.size())
      refuse("a quote is not closed", "\" at the end of " + std::string(what));
    const ordered_json text = ordered_json::parse(rest_.substr(0, end + 1), nullptr, false);
    if (text.is_discarded()) refuse("text in quotes that is not a JSON string", what);
    take(end + 1);
    return text.get<std::string>();
  }
  std::string_view rest() const noexcept { return rest_; }
  void end() const {
    if (!rest_.empty()) refuse("'" + std::string(rest_) + "' after the last argument", "nothing");
  }

 private:
  std::string_view take(std::size_t bytes) {
    const std::string_view word = rest_.substr(0, bytes);
    rest_.remove_prefix(word.size());
    skip_blanks();
    return word;
  }
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size()));
    while (!rest_.empty() && blanks.find(rest_.back()) != std::string_view::npos)
      rest_.remove_suffix(1);
  }

  std::string_view rest_;
};

class shell {
 public:
  shell(stored_tables& in, bool may_write) : in_(in), may_write_(may_write) {}

  // Returns false for quit.
  bool run(std::string_view line) {
    words rest(line);
    if (rest.empty()) return true;
    const std::string name = rest.next("a command");
    if (name == "quit" || name == "exit") return false;
    for (const command& one : commands) {
      if (one.name == name) {
        (this->*one.run)(rest);
        return true;
      }
    }
    std::vector<std::string> names = names_of(commands);
    names.emplace_back("quit");
    throw std::runtime_error("unknown command '" + name +
                             "' (expected a command that 'help' lists)" +
                             bench::did_you_mean(name, names));
  }

 private:
  struct command {
    std::string_view name;
    void (shell::*run)(words&);
  };
  static const std::array<command, 7> commands;

  void show_help(words& rest) {
    rest.end();
    print(std::string(help));
  }
  void tables(words& rest) {
    rest.end();
    for (const auto& one : in_.tables()) {
      print(one.name + ": key " + one.key_type + "; " + text_of_columns(one.columns) + "\n");
    }
  }
  void count(words& rest) {
    const auto& table = next_table(rest);
    rest.end();
    print(std::to_string(in_.scan(table.name, [](const stored_key&, const db::row&) {})) + "\n");
  }
  void get(words& rest) {
    const auto& table = next_table(rest);
    const stored_key key = next_key(rest, table);
    rest.end();
    const auto row = in_.get(table.name, key);
    if (!row) refuse_absent(key);
    print(row_json(key, *row).dump() + "\n");
  }
  void scan(words& rest) {
    const auto& table = next_table(rest);
    std::optional<stored_key> from;
    std::uint64_t many = rows_shown;
    if (!rest.empty()) from = next_key(rest, table);
    if (!rest.empty()) many = parse_count("N", rest.next("a number of rows"), 1, UINT64_MAX);
    rest.end();
    in_.scan_from(table.name, from ? &*from : nullptr,
                  [&](const stored_key& key, const db::row& row) {
                    print(row_json(key, row).dump() + "\n");
                    return --many != 0;
                  });
  }
  void put(words& rest) {
    check_may_write();
    const auto& table = next_table(rest);
    const stored_key key = next_key(rest, table);
    const ordered_json values = ordered_json::parse(rest.rest(), nullptr, false);
    if (!values.is_object()) refuse("a row that is not a JSON object", "{\"column\": value, ...}");
    db::row row = in_.get(table.name, key).value_or(db::row(table.columns));
    set_values(row, values, table);
    in_.upsert(table.name, {{key, row}});
  }
  void erase(words& rest) {
    check_may_write();
    const auto& table = next_table(rest);
    const stored_key key = next_key(rest, table);
    rest.end();
    if (!in_.erase(table.name, key)) refuse_absent(key);
  }

  void check_may_write() const {
    if (!may_write_)
      throw std::runtime_error("the shell only reads (expected: elidex db shell --write)");
  }
  [[noreturn]] static void refuse_absent(const stored_key& key) {
    throw std::runtime_error("no row with the key " + key_json(key).dump());
  }
  const stored_tables::table& next_table(words& rest) const {
    const std::string name = rest.next("a table");
    if (const auto* const found = in_.find(name)) return *found;
    throw std::runtime_error("no table '" + name + "' (expected one that 'tables' lists)" +
                             bench::did_you_mean(name, names_of(in_.tables())));
  }
  static stored_key next_key(words& rest, const stored_tables::table& table) {
    std::string word = rest.next("a key");
    if (table.key_type == "string") return word;
    return key_of_json(ordered_json::parse(word, nullptr, false), table);
  }

  stored_tables& in_;
  const bool may_write_;
};

const std::array<shell::command, 7> shell::commands{{
    {"tables", &shell::tables},
    {"count", &shell::count},
    {"get", &shell::get},
    {"scan", &shell::scan},
    {"put", &shell::put},
    {"erase", &shell::erase},
    {"help", &shell::show_help},
}};

}  // namespace

int run_shell(stored_tables& in, std::istream& commands, bool may_write) {
  const bool prompts = isatty(STDIN_FILENO) != 0;
  shell one(in, may_write);
  std::uint64_t line = 0;
  int status = 0;
  if (prompts) print("elidex db: help lists the commands\n> ");
  for (std::string text; std::getline(commands, text);) {
    ++line;
    try {
      if (!one.run(text)) break;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "elidex: %s%s\n",
                   prompts ? "" : ("line " + std::to_string(line) + ": ").c_str(),
                   reason_of(error).c_str());
      if (!prompts) {
        status = 1;
        break;
      }
    }
    if (prompts) print("> ");
  }
  if (may_write) in.close();
  return status;
}

}  // namespace elidex::cli
