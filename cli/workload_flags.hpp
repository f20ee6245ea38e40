#pragma once
// The flags that bench and sim have in common: which indexes do what on which keys.

#include <string>
#include <vector>

#include "bench/runner/bench.hpp"
#include "cli/commands.hpp"

namespace elidex::cli {

/// The parts of a list flag, each there once.
[[nodiscard]] std::vector<std::string> list_of(std::string_view flag, const std::string& text);

/// Checks and reads them; throws bench::bad_input.
[[nodiscard]] bench::workload_choice read_workload_flags(const workload_flags& flags);

}  // namespace elidex::cli
