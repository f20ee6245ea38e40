// elidex repro: hands over to the script that runs the experiments, judges and draws.

#include <algorithm>

#include "bench/runner/machine.hpp"
#include "bench/support/bad_input.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/json_output.hpp"
#include "cli/machines.hpp"
#include "cli/process.hpp"
#include "cli/results_json.hpp"

namespace elidex::cli {

int repro_command(const repro_flags& flags) {
  constexpr std::uint64_t jobs_max = 256;
  if (flags.scale != "smoke" && flags.scale != "full") {
    refuse_value("--scale", flags.scale, "smoke or full", {"smoke", "full"});
  }
  const json_output json(flags.json);
  const std::uint64_t jobs = flags.jobs.empty() ? bench::allowed_cpus().size()
                                                : parse_count("--jobs", flags.jobs, 1, jobs_max);
  std::vector<std::string> command{
      python(),   std::string(ELIDEX_SOURCE_DIR) + "/papers/repro/repro.py",
      "--worker", sim_worker().string(),
      "--native", native_structures().string(),
      "--commit", source_commit(),
      "--scale",  flags.scale,
      "--seed",   std::to_string(parse_count("--seed", flags.seed, 0, UINT64_MAX)),
      "--out",    flags.out,
      "--jobs",   std::to_string(jobs)};
  if (!flags.machine.empty())
    command.insert(command.end(), {"--machine", machine_file(flags.machine).string()});
  if (json.wanted()) command.insert(command.end(), {"--json", flags.json});
  command.insert(command.end(), flags.ids.begin(), flags.ids.end());
  return run_program(command);
}

}  // namespace elidex::cli
