// How a command declares its flags, over the command-line parser CLI11. Each command's file has
//
//   void add_list_command(command_parser& app) {
//     const auto flags = std::make_shared<list_flags>();
//     command_parser command = app.add_command("list", "the indexes, workloads, distributions");
//     command.add_option("--json", flags->json, json_help).type_name("FILE");
//     command.runs([flags] { return list_command(*flags); });
//   }
//
// A command returns the program's exit status. It throws bench::bad_input for a flag that it cannot
// take: main.cpp prints that as one line and exits with status 2.
//
// Implementation notes
// Only command_line.cpp includes CLI11, all of which is in headers: each file that includes them
// costs several seconds to compile.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace elidex::cli {

/// A flag, or an argument without a name. Each function returns the flag, to go on with.
class flag_parser {
 public:
  explicit flag_parser(CLI::Option& option) : option_(&option) {}

  /// How the help calls the flag's value.
  flag_parser& type_name(const char* name);
  /// The help shows the value that the variable has now.
  flag_parser& shows_default();
  flag_parser& required();
  /// Exactly so many values, once.
  flag_parser& takes(int values);

 private:
  CLI::Option* option_;
};

/// The program, or one of its commands. Copies refer to the same command.
class command_parser {
 public:
  command_parser(const char* name, const std::string& description);  // the program

  command_parser add_command(const char* name, const std::string& description);
  /// For the program itself: no help and no message names it.
  command_parser add_hidden_command(const char* name);
  /// A variable must live until run() returns.
  flag_parser add_option(const char* names, std::string& value, const std::string& help);
  flag_parser add_option(const char* names, std::vector<std::string>& values,
                         const std::string& help);
  void add_flag(const char* name, bool& value, const std::string& help);
  void footer(const std::string& text);
  /// What the command does; it returns the exit status.
  void runs(std::function<int()> what);

  /// Parses the arguments and runs the command: its exit status. Prints --help and --version.
  /// Throws bench::bad_input for what it does not understand, and what the command throws.
  int run(int argc, char** argv);

 private:
  explicit command_parser(const command_parser& of, CLI::App* command)
      : app_(of.app_), command_(command), status_(of.status_) {}

  std::shared_ptr<CLI::App> app_;  // the program
  CLI::App* command_;
  std::shared_ptr<int> status_;
};

void add_doctor_command(command_parser& app);
void add_list_command(command_parser& app);
void add_bench_command(command_parser& app);
void add_sim_command(command_parser& app);
void add_repro_command(command_parser& app);
void add_elide_command(command_parser& app);
void add_column_load_command(command_parser& column);
void add_column_query_command(command_parser& column);
void add_database_commands(command_parser& db);
void add_store_bench_commands(command_parser& db);
void add_report_command(command_parser& app);

// Flags of several commands.
inline constexpr const char* json_help =
    "write the results to FILE as JSON (schema 1); - for standard output";
// more_workloads: of this command alone, behind those that all commands have.
void add_workload_options(command_parser& command, workload_flags& flags,
                          const std::string& more_workloads = "");
void add_column_options(command_parser& command, column_flags& flags);

}  // namespace elidex::cli
