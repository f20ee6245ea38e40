// How commands are declared to the command-line parser, CLI11. Each command's file declares its own
// flags:
//
//   void add_list_command(CLI::App& app, int& status);   // in list_command.cpp
//
// The function adds the command to `app`. When the parser has met the command, it runs it and sets
// `status`. A command throws bench::bad_input for a flag it cannot take: main.cpp prints that as
// one line and exits with status 2.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"

namespace elidex::cli {

void add_doctor_command(CLI::App& app, int& status);
void add_list_command(CLI::App& app, int& status);
void add_bench_command(CLI::App& app, int& status);
void add_sim_command(CLI::App& app, int& status);
void add_repro_command(CLI::App& app, int& status);
void add_elide_command(CLI::App& app, int& status);
void add_column_load_command(CLI::App& app, int& status);
void add_column_query_command(CLI::App& app, int& status);
void add_report_command(CLI::App& app, int& status);

// Flags of several commands.
inline constexpr const char* json_help =
    "write the results to FILE as JSON (schema 1); - for standard output";
void add_workload_options(CLI::App& command, workload_flags& flags);
void add_column_options(CLI::App& command, column_flags& flags);

// What main.cpp asks of the parser.

/// Throws bench::bad_input unless `first` is a command of `app` or a flag.
void check_command(const CLI::App& app, const char* first);

/// No flag takes nothing: an empty file name, for one, would look like a flag that was not given.
void refuse_empty_values(CLI::App& app);

/// The parser's error in one line, with the command whose --help says more.
std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error);

}  // namespace elidex::cli
