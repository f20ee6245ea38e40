// elidex report: hands the result files to the script that draws the page, and says where it is.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "lab/bad_input.hpp"
#include "tools/commands.hpp"
#include "tools/flags.hpp"
#include "tools/process.hpp"

namespace elidex::tools {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> all_results() {
  std::vector<std::string> files;
  for (const char* const folder : {"results", "docs/results"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int report_command(const report_flags& flags) {
  const std::vector<std::string> files = flags.files.empty() ? all_results() : flags.files;
  if (files.empty()) {
    throw lab::bad_input(
        "files: results/ and docs/results/ hold no *.json; it takes result files, which elidex bench --json "
        "writes");
  }
  for (const std::string& one : files) {
    if (access(one.c_str(), R_OK) != 0 || fs::is_directory(one)) {
      throw lab::bad_input("files: " + one + " cannot be read; it takes result files in JSON");
    }
  }
  std::error_code error;
  const fs::path out = flags.out;
  if (!out.has_filename() || fs::is_directory(out, error)) {
    throw lab::bad_input("--out: '" + flags.out + "' is a directory; it takes the HTML file to write");
  }
  if (out.has_parent_path()) fs::create_directories(out.parent_path(), error);
  if (access(out.has_parent_path() ? out.parent_path().c_str() : ".", W_OK) != 0) {
    throw lab::bad_input("--out: " + flags.out + " cannot be written; it takes the HTML file to write");
  }
  const fs::path script = fs::path(ELIDEX_SOURCE_DIR) / "tools/report/report.py";
  if (!fs::exists(script, error)) throw std::runtime_error(script.string() + " is missing");

  std::vector<std::string> command{python(), script.string()};
  command.insert(command.end(), files.begin(), files.end());
  command.insert(command.end(), {"--out", flags.out});
  const int status = run_program(command);
  if (status == 127)
    throw std::runtime_error(command.front() + " could not be started; ELIDEX_PYTHON names another one");
  if (status != 0) return status;
  print(fs::absolute(out, error).string() + "\n");
  return 0;
}

}  // namespace elidex::tools
