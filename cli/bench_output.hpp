#pragma once
// Where the results of benches go: the document to --json, its runs to --csv. The line about runs
// that other programs disturbed.
//
//   const bench_output output(flags);  // before the runs: the load average is read here
//   ...
//   output.write(document);
//
// Thread-safety: none.

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "bench/runner/machine.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/json_output.hpp"

namespace elidex::cli {

class bench_output {
 public:
  /// Throws bench::bad_input where a file could not be written later, or where both are the same.
  explicit bench_output(const bench_flags& flags) : bench_output(flags.json, flags.csv) {}
  explicit bench_output(const std::string& json, const std::string& csv = "");

  [[nodiscard]] bool wanted() const noexcept { return json_.wanted() || csv_.wanted(); }
  [[nodiscard]] bool to_stdout() const noexcept { return json_.to_stdout() || csv_.to_stdout(); }
  /// Adds the machine's load at the start and now, where the kernel tells it.
  void write(nlohmann::ordered_json document) const;

 private:
  json_output json_;
  json_output csv_;
  std::optional<double> load_at_start_;
};

/// A run whose threads were ready to run without a CPU for a larger share of the time is disturbed.
/// Chosen: below it the disturbance is smaller than what rounds differ by anyhow. More threads than
/// CPUs wait for each other.
inline constexpr double cpu_wait_pct_max = 5;

/// The line behind the tables about disturbed runs; empty if there are none. A run has `threads`
/// and, by `waited(run)`, the percentage.
template <class Runs, class Waited>
[[nodiscard]] std::string disturbed_runs_text(const Runs& runs, Waited&& waited) {
  const std::size_t cpus = bench::allowed_cpus().size();
  const auto disturbed = std::count_if(runs.begin(), runs.end(), [&](const auto& run) {
    return run.threads <= cpus && waited(run) > cpu_wait_pct_max;
  });
  if (disturbed == 0) return "";
  return formatted(
      "note: in %td of %zu runs other programs kept the threads waiting for more than %g %% of "
      "the time: these rates are too low\n",
      disturbed, runs.size(), cpu_wait_pct_max);
}

}  // namespace elidex::cli
