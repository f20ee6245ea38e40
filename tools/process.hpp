#pragma once
// Running other programs, without a shell.

#include <optional>
#include <string>
#include <vector>

namespace elidex::tools {

/// Runs it with our standard streams; its exit status, 127 where it could not be started, 128 + the signal
/// that ended it.
[[nodiscard]] int run_program(const std::vector<std::string>& command);

/// Its standard output without the last newline; nothing unless it ends with status 0. Its errors go nowhere.
[[nodiscard]] std::optional<std::string> output_of(const std::vector<std::string>& command);

}  // namespace elidex::tools
