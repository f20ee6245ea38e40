#pragma once
// Running other programs, without a shell. None outlives this program (bench/support/cleanup.hpp).

#include <optional>
#include <string>
#include <vector>

namespace elidex::cli {

/// Runs it with our standard streams; its exit status, 127 where it could not be started, 128 + the
/// signal that ended it.
[[nodiscard]] int run_program(const std::vector<std::string>& command);

/// Its standard output without the last newline; nothing unless it ends with status 0. Its errors
/// go nowhere.
[[nodiscard]] std::optional<std::string> output_of(const std::vector<std::string>& command);

/// The Python to run scripts with: the one that is asked for (ELIDEX_PYTHON), the project's own, or
/// the system's.
[[nodiscard]] std::string python();

/// What `command` reports where `program`, a Python, ends with status 127 before its script runs.
[[nodiscard]] std::string python_not_started(const std::string& command,
                                             const std::string& program);

inline constexpr int status_not_started = 127;

struct program_result {
  int status = status_not_started;  // as of run_program()
  std::string output;
  std::string errors;
};
/// Gives it `input` on its standard input and collects what it says. May be called from several
/// threads at once.
[[nodiscard]] program_result converse(const std::vector<std::string>& command,
                                      const std::string& input);

}  // namespace elidex::cli
