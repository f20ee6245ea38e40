// elidex report: hands the result files to the script that draws the page, and says where it is.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "bench/support/bad_input.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/installation.hpp"
#include "cli/process.hpp"

namespace elidex::cli {

struct report_flags {
  std::vector<std::string> files;
  std::string out = "results/report.html";
};

namespace fs = std::filesystem;
namespace {

std::vector<std::string> all_results() {
  std::vector<std::string> files;
  for (const char* const directory : {"results", "docs/results"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void check_input(const std::vector<std::string>& files) {
  if (files.empty()) {
    throw bench::bad_input(
        "files: results/ and docs/results/ hold no *.json (expected result files, which elidex "
        "bench --json "
        "writes)");
  }
  for (const std::string& one : files) {
    std::error_code error;
    if (access(one.c_str(), R_OK) != 0 || fs::is_directory(one, error)) {
      throw bench::bad_input("files: " + one + " cannot be read (expected a result file in JSON)");
    }
  }
}

// Creates nothing: the script creates missing directories when it writes the page.
void check_output(const std::string& name) {
  const fs::path out = name;
  std::error_code error;
  if (!out.has_filename() || fs::is_directory(out, error)) {
    throw bench::bad_input("--out: '" + name +
                           "' is a directory (expected the HTML file to write)");
  }
  fs::path directory = fs::absolute(out, error).parent_path();
  while (!fs::exists(directory, error) && directory.has_relative_path())
    directory = directory.parent_path();
  if (!fs::is_directory(directory, error) || access(directory.c_str(), W_OK) != 0) {
    throw bench::bad_input("--out: " + name +
                           " cannot be written (expected the HTML file to write)");
  }
}

std::string last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

// The script reports an error in one line. Python and its libraries print several lines if they run
// out of memory or the script has a bug. The last line then has the reason.
[[noreturn]] void tell_failure(const std::string& program, const program_result& drawn) {
  constexpr int refused = 2;
  constexpr int first_signal = 128;
  constexpr std::string_view own = "report: ";
  if (drawn.status == status_not_started)
    throw std::runtime_error(python_not_started("report", program));
  if (drawn.status > first_signal) {
    throw std::runtime_error("report: " + program + " was ended by signal " +
                             std::to_string(drawn.status - first_signal) + " (out of memory?)");
  }
  std::string said = last_line(drawn.errors);
  if (said.empty()) said = program + " ended with status " + std::to_string(drawn.status);
  if (!said.starts_with(own)) said = "report: the page cannot be drawn: " + said;
  if (drawn.status == refused) throw bench::bad_input(said);
  throw std::runtime_error(said);
}

}  // namespace

static int report_command(const report_flags& flags) {
  const std::vector<std::string> files = flags.files.empty() ? all_results() : flags.files;
  check_input(files);
  check_output(flags.out);
  std::error_code error;
  const fs::path script = data_path("cli/report/report.py");
  if (!fs::exists(script, error)) throw std::runtime_error(script.string() + " is missing");

  std::vector<std::string> command{python(), script.string()};
  command.insert(command.end(), files.begin(), files.end());
  command.insert(command.end(), {"--out", flags.out});
  const program_result drawn = converse(command, "");
  if (drawn.status != 0) tell_failure(command.front(), drawn);
  print(fs::absolute(flags.out, error).string() + "\n");
  return 0;
}

void add_report_command(command_parser& app) {
  const auto flags = std::make_shared<report_flags>();
  command_parser command = app.add_command("report", "write one HTML page with all stored results");
  command
      .add_option("files", flags->files, "results in JSON [results/*.json and docs/results/*.json]")
      .type_name("FILE");
  command.add_option("--out", flags->out, "the page").type_name("FILE").shows_default();
  command.runs([flags] { return report_command(*flags); });
}

}  // namespace elidex::cli
