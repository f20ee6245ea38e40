#pragma once
// The simulated machines: their data files, and the program that runs on them.

#include <filesystem>
#include <string>
#include <vector>

namespace elidex::cli {

/// The names of the machines that come with the project, in alphabetical order.
[[nodiscard]] std::vector<std::string> machine_names();

/// The file of a machine by name, or the file itself; throws bench::bad_input.
[[nodiscard]] std::filesystem::path machine_file(const std::string& name_or_file);

/// The program; throws bench::bad_input where this build has none.
[[nodiscard]] std::filesystem::path sim_worker();

/// The program that runs the papers' experiments on real threads; throws as sim_worker() does.
[[nodiscard]] std::filesystem::path native_worker();

}  // namespace elidex::cli
