#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "bench/support/bad_input.hpp"
#include "bench/support/near_match.hpp"
#include "cli/flags.hpp"
#include "elidex/version.hpp"

namespace elidex::cli {
namespace {

// What the parser would only call a missing subcommand.
void check_commands(const CLI::App& app, char** words, char** end) {
  const std::string word = words >= end ? "" : *words;
  if (word.starts_with("-")) return;
  std::vector<std::string> names;
  std::string list;
  for (const CLI::App* const one : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (one->check_name(word)) {
      if (one->get_require_subcommand_min() > 0) check_commands(*one, words + 1, end);
      return;
    }
    if (one->get_group().empty()) continue;
    names.push_back(one->get_name());
    list += (list.empty() ? "" : ", ") + one->get_name();
  }
  throw bench::bad_input(
      (word.empty() ? "a command is missing" : quoted_text(word) + " is not a command") +
      " (expected " + list + ")" + bench::did_you_mean(word, names));
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += part;
  return all;
}

// How a message calls the value that an option takes.
std::string expected_value(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type == " " ? "a file" : type;
}

// A value that a column is asked for may be empty, and an argument of another program.
void refuse_empty_values(CLI::App& app) {
  constexpr std::string_view may_be_empty[] = {"--find", "--range", "--count", "PROGRAM"};
  for (CLI::Option* const one : app.get_options()) {
    const std::string name = one->get_name();
    if (std::find(std::begin(may_be_empty), std::end(may_be_empty), name) != std::end(may_be_empty))
      continue;
    const std::string missing =
        joined({name, ": value missing (expected ", expected_value(*one), ")"});
    one->check([missing](const std::string& text) {
      if (text.empty()) throw bench::bad_input(missing);
      return std::string();
    });
  }
  for (CLI::App* const one : app.get_subcommands([](const CLI::App*) { return true; }))
    refuse_empty_values(*one);
}

// A command that was asked for, and its name with those of the commands that it is part of.
struct named_command {
  const CLI::App* app;
  std::string name;
};

std::vector<named_command> commands_asked_for(const CLI::App& program) {
  std::vector<named_command> all{{&program, program.get_name()}};
  for (;;) {
    const std::vector<CLI::App*> next = all.back().app->get_subcommands();
    if (next.empty()) return all;
    all.push_back({next.front(), all.back().name + " " + next.front()->get_name()});
  }
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* const one : command.get_options()) {
    for (const std::string& name : one->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

// The first word that looks like a flag and is none; otherwise the first argument too many.
std::optional<std::string> unknown_word_text(const std::vector<named_command>& commands) {
  for (const bool flag : {true, false}) {
    for (const auto& [app, name] : commands) {
      for (const std::string& word : app->remaining()) {
        if (word == "--" || word.starts_with("-") != flag) continue;
        if (!flag) {
          return joined({quoted_text(word), " is one argument too many (expected what '", name,
                         " --help' lists)"});
        }
        const std::string typed = word.substr(0, word.find('='));
        return joined({quoted_text(typed), " is not a flag of ", name, " (expected one that '",
                       name, " --help' lists)", bench::did_you_mean(typed, flags_of(*app))});
      }
    }
  }
  return std::nullopt;
}

// What the parser has to say of the option that its text begins with.
std::optional<std::string> option_text(const named_command& command, const CLI::ParseError& error) {
  const std::string_view said = error.what();
  for (const CLI::Option* const one : command.app->get_options()) {
    const std::string name = one->get_name();
    const std::string wanted = expected_value(*one);
    if (said == name + " is required") {
      return joined(
          {name, " is missing (expected ", wanted, ", as '", command.name, " --help' describes)"});
    }
    if (error.get_name() != "ArgumentMismatch" || !said.starts_with(name + ": ")) continue;
    if (said.ends_with(" missing") || one->count() == 0)
      return joined({name, ": value missing (expected ", wanted, ")"});
    return joined({name, ": ", std::to_string(one->count()),
                   one->count() == 1 ? " value" : " values", " given (expected ", wanted, ")"});
  }
  return std::nullopt;
}

std::string parse_error_text(const CLI::App& program, const CLI::ParseError& error) {
  const std::vector<named_command> commands = commands_asked_for(program);
  if (const auto text = unknown_word_text(commands)) return *text;
  if (const auto text = option_text(commands.back(), error)) return *text;
  return std::string(error.what()) + " (expected what '" + commands.back().name +
         " --help' describes)";
}

}  // namespace

flag_parser& flag_parser::type_name(const char* name) {
  option_->type_name(name);
  return *this;
}

flag_parser& flag_parser::shows_default() {
  option_->capture_default_str();
  return *this;
}

flag_parser& flag_parser::required() {
  option_->required();
  return *this;
}

flag_parser& flag_parser::takes(int values) {
  option_->expected(values)->allow_extra_args(false);
  return *this;
}

command_parser::command_parser(const char* name, const std::string& description)
    : app_(std::make_shared<CLI::App>(description, name)),
      command_(app_.get()),
      status_(std::make_shared<int>(0)) {
  app_->set_version_flag("--version", std::string("elidex ") + version);
  app_->failure_message(CLI::FailureMessage::simple);
}

command_parser command_parser::add_command(const char* name, const std::string& description) {
  command_->require_subcommand(1);
  return command_parser(*this, command_->add_subcommand(name, description));
}

command_parser command_parser::add_hidden_command(const char* name) {
  const command_parser made = add_command(name, "");
  made.command_->group("");
  return made;
}

flag_parser command_parser::add_option(const char* names, std::string& value,
                                       const std::string& help) {
  return flag_parser(*command_->add_option(names, value, help));
}

flag_parser command_parser::add_option(const char* names, std::vector<std::string>& values,
                                       const std::string& help) {
  return flag_parser(*command_->add_option(names, values, help));
}

void command_parser::add_flag(const char* name, bool& value, const std::string& help) {
  command_->add_flag(name, value, help);
}

void command_parser::footer(const std::string& text) {
  command_->footer(text);
}

void command_parser::runs(std::function<int()> what) {
  command_->callback([what = std::move(what), status = status_] { *status = what(); });
}

int command_parser::run(int argc, char** argv) {
  refuse_empty_values(*app_);
  check_commands(*app_, argv + 1, argv + argc);
  try {
    app_->parse(argc, argv);
    return *status_;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help and --version
      std::ostringstream text;
      app_->exit(error, text, text);
      print(text.str());
      return 0;
    }
    throw bench::bad_input(parse_error_text(*app_, error));
  }
}

void add_workload_options(command_parser& command, workload_flags& flags,
                          const std::string& more_workloads) {
  command.add_option("--index", flags.index, "names from 'elidex list'")
      .type_name("A,B")
      .shows_default();
  command
      .add_option(
          "--workload", flags.workload,
          "a|b|c|d|e|f|load|bulk-load|delete|churn|mix:N (N % read, the rest "
          "update)|insert-mix:N (N % insert, the rest read)|multi-get:N|multi-upsert:N (N keys "
          "with one call); of paper 003: put:THETA|eunomia:THETA and others ('elidex list')" +
              more_workloads)
      .type_name("A,B")
      .shows_default();
  command
      .add_option("--dist", flags.dist,
                  "uniform | zipf:THETA[:scrambled], THETA 0 to 1.2 | hot:THETA, 0 to 1")
      .type_name("A,B")
      .shows_default();
  command.add_option("--keys", flags.keys, "keys to load, such as 10M [1M, or the whole key file]")
      .type_name("N");
  command
      .add_option("--key-type", flags.key_type,
                  "u64 | string [u64, or string with --key-file]; string: URLs of 30-80 bytes")
      .type_name("T");
  command
      .add_option("--key-file", flags.key_file,
                  "string keys, one per line, in place of URLs: at most 64 KiB each, 1 GiB and "
                  "100M together")
      .type_name("FILE");
  command
      .add_option("--scan-length", flags.scan_length,
                  "of workload e: N, or LOW-HIGH drawn uniformly (YCSB: 1-100)")
      .type_name("N")
      .shows_default();
  command.add_option("--order", flags.order, "of load and delete: random | ascending | interleaved")
      .type_name("O")
      .shows_default();
  command.add_option("--seed", flags.seed, "equal seeds give equal requests")
      .type_name("N")
      .shows_default();
  command.add_option("--json", flags.json, json_help).type_name("FILE");
}

void add_column_options(command_parser& command, column_flags& flags) {
  command.add_option("FILE", flags.file, "a CSV file whose first row names the columns")
      .type_name(" ")
      .required();
  command.add_option("--column", flags.column, "which column, by its name")
      .type_name("NAME")
      .required();
  command
      .add_option("--type", flags.type,
                  "auto | int | double | string; auto: the first of the others that fits all cells")
      .type_name("T")
      .shows_default();
  command.add_flag("--skip-bad", flags.skip_bad,
                   "leave out wrong rows, with a note, instead of refusing the file");
  command.add_option("--json", flags.json, json_help).type_name("FILE");
}

}  // namespace elidex::cli
