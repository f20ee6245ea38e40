#pragma once
// An experiment of the papers on the simulated machine: one source file for each figure or group of
// figures, which registers what it can run.
//
// An experiment gives named series of points, as the figure has them:
// {"series":[{"name":..,"points":[[x,y],..]}]}. Thread-safety: one at a time in a process.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/series.hpp"
#include "machine/simulation.hpp"

namespace elidex::bench {

struct experiment_scale {
  bool full = false;
  std::uint64_t seed = 1;
  /// How often to repeat: `few` in a smoke run, more in a full one.
  [[nodiscard]] std::uint64_t times(std::uint64_t few, std::uint64_t many) const {
    return full ? many : few;
  }
};

struct experiment {
  std::string_view id;  // of the claim or the figure
  std::vector<series> (*run)(const sim::machine& which, const experiment_scale& scale);
};

/// Throws bad_input for an id that no experiment has.
[[nodiscard]] nlohmann::ordered_json run_experiment(const std::string& id,
                                                    const sim::machine& which, bool full,
                                                    std::uint64_t seed);

[[nodiscard]] std::vector<experiment> transaction_limits();
[[nodiscard]] std::vector<experiment> lock_overheads();
[[nodiscard]] std::vector<experiment> abort_costs();
[[nodiscard]] std::vector<experiment> structures();

}  // namespace elidex::bench
