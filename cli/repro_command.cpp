// elidex repro: hands over to the script that runs the experiments, judges and draws.

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/runner/machine.hpp"
#include "bench/support/bad_input.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/installation.hpp"
#include "cli/json_output.hpp"
#include "cli/machines.hpp"
#include "cli/process.hpp"
#include "cli/results_json.hpp"

namespace elidex::cli {

struct repro_flags {
  std::vector<std::string> ids;
  std::string scale = "smoke";
  std::string machine;
  std::string seed = "1";
  std::string seeds;
  std::string out = "results";
  std::string jobs;
  std::string answers;
  std::string json;
  bool native = false;
  bool verify = false;
};

static int repro_command(const repro_flags& flags) {
  constexpr std::uint64_t jobs_max = 256;
  constexpr std::uint64_t seeds_max = 1000;
  if (flags.scale != "smoke" && flags.scale != "settled" && flags.scale != "full") {
    refuse_value("--scale", flags.scale, "smoke, settled or full", {"smoke", "settled", "full"});
  }
  const json_output json(flags.json);
  const std::uint64_t jobs = flags.jobs.empty() ? bench::allowed_cpus().size()
                                                : parse_count("--jobs", flags.jobs, 1, jobs_max);
  std::vector<std::string> command{
      python(),          data_path("papers/repro/repro.py").string(),
      "--worker",        sim_worker().string(),
      "--native-worker", native_worker().string(),
      "--commit",        source_commit(),
      "--scale",         flags.scale,
      "--seed",          std::to_string(parse_count("--seed", flags.seed, 0, UINT64_MAX)),
      "--out",           flags.out,
      "--jobs",          std::to_string(jobs)};
  if (flags.native) {
    command.insert(command.end(), {"--native", "--facts", document_head().at("machine").dump()});
  }
  if (!flags.machine.empty())
    command.insert(command.end(), {"--machine", machine_file(flags.machine).string()});
  if (!flags.answers.empty()) command.insert(command.end(), {"--answers", flags.answers});
  if (!flags.seeds.empty()) {
    command.insert(command.end(),
                   {"--seeds", std::to_string(parse_count("--seeds", flags.seeds, 1, seeds_max))});
  }
  if (flags.verify) command.emplace_back("--verify");
  if (json.wanted()) command.insert(command.end(), {"--json", flags.json});
  command.insert(command.end(), flags.ids.begin(), flags.ids.end());
  const int status = run_program(command);
  if (status == status_not_started)
    throw std::runtime_error(python_not_started("repro", command.front()));
  return status;
}

void add_repro_command(command_parser& app) {
  const auto flags = std::make_shared<repro_flags>();
  command_parser command =
      app.add_command("repro", "repeat the papers' figures and tables, and judge their claims");
  command
      .add_option("id", flags->ids,
                  "a claim (S-3.5, E-M1), a figure (E-F2), a paper (K, E or S), or all")
      .type_name("ID")
      .required();
  command
      .add_option("--scale", flags->scale,
                  "smoke: short runs, provisional verdicts (E: half an hour) | settled: the same "
                  "points, long runs (E: 12 hours of CPU time) | full: more points and seeds, long "
                  "runs (E: days)")
      .type_name("S")
      .shows_default();
  command
      .add_option("--machine", flags->machine,
                  "another machine than the paper's; not with --native")
      .type_name("M");
  command.add_flag("--native", flags->native,
                   "use this CPU's own hardware transactions, not the simulated machine");
  command
      .add_option("--seed", flags->seed,
                  "the first seed; equal seeds give equal results, except with --native")
      .type_name("N")
      .shows_default();
  command
      .add_option("--seeds", flags->seeds,
                  "number of seeds of each point [by --scale]; not with --native")
      .type_name("N");
  command.add_option("--out", flags->out, "the directory for plots")
      .type_name("DIR")
      .shows_default();
  command
      .add_option("--jobs", flags->jobs, "runs at the same time [the CPUs here]; 1 with --native")
      .type_name("N");
  command
      .add_option("--answers", flags->answers,
                  "append each run's result to FILE; runs already in FILE are not repeated")
      .type_name("FILE");
  command.add_flag(
      "--verify", flags->verify,
      "repeat a tenth of the runs in --answers, which must have all, and compare them");
  command.add_option("--json", flags->json, json_help).type_name("FILE");
  command.runs([flags] { return repro_command(*flags); });
}

}  // namespace elidex::cli
