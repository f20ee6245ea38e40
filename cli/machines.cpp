#include "cli/machines.hpp"

#include <algorithm>

#include "bench/support/bad_input.hpp"
#include "cli/flags.hpp"
#include "cli/installation.hpp"

namespace elidex::cli {

namespace fs = std::filesystem;

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(data_path("machine/machines"), error)) {
    if (entry.path().extension() == ".machine") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path machine_file(const std::string& name_or_file) {
  const auto names = machine_names();
  if (std::find(names.begin(), names.end(), name_or_file) != names.end()) {
    return data_path("machine/machines") / (name_or_file + ".machine");
  }
  std::error_code error;
  if (fs::is_regular_file(name_or_file, error)) return fs::absolute(name_or_file);
  refuse_value("--machine", name_or_file, "a machine that 'elidex list' prints, or a machine file",
               names);
}

fs::path sim_worker() {
#if defined(ELIDEX_SIM_WORKER)
  return helper_program(ELIDEX_SIM_WORKER);
#else
  throw bench::bad_input(
      "sim: this build has no simulated machine (expected a build by GCC on x86-64 Linux)");
#endif
}

fs::path native_worker() {
#if defined(ELIDEX_NATIVE_WORKER)
  return helper_program(ELIDEX_NATIVE_WORKER);
#else
  throw bench::bad_input(
      "sim: this build has no simulated machine (expected a build by GCC on x86-64 Linux)");
#endif
}

}  // namespace elidex::cli
