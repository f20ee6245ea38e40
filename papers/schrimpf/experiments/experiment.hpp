#pragma once
// An experiment of the papers: one source file for each figure or group of figures, which registers
// what it can run. The same sources run on the simulated machine and on real threads. `host`
// names `sim` (machine/simulation.hpp) or `native` (native_machine.hpp).
//
// An experiment gives named series of points, as the figure has them:
// {"series":[{"name":..,"points":[[x,y],..]}]}. Thread-safety: one at a time in a process.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/series.hpp"
#if defined(ELIDEX_SIMULATED)
#  include "machine/simulation.hpp"
#else
#  include "papers/schrimpf/experiments/native_machine.hpp"
#endif

namespace elidex::bench {

#if defined(ELIDEX_SIMULATED)
namespace host = sim;
inline constexpr std::uint64_t times_longer = 1;
inline std::size_t more_than_the_caches() {
  return 8 * 1024 * 1024;  // of the thesis's machine, 6 MB
}
#else
namespace host = native;
using native::more_than_the_caches;
using native::times_longer;
#endif

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
  std::vector<series> (*run)(const host::machine& which, const experiment_scale& scale);
  unsigned threads = 1;  // at a time
};

[[nodiscard]] std::vector<experiment> transaction_limits();
[[nodiscard]] std::vector<experiment> lock_overheads();
[[nodiscard]] std::vector<experiment> abort_costs();

#if defined(ELIDEX_SIMULATED)
[[nodiscard]] std::vector<experiment> elision_failures();
[[nodiscard]] std::vector<experiment> structures();

/// Throws bad_input for an id that no experiment has.
[[nodiscard]] nlohmann::ordered_json run_experiment(const std::string& id,
                                                    const sim::machine& which, bool full,
                                                    std::uint64_t seed);
#else
struct native_experiment {
  std::string_view id;
  unsigned threads;  // at a time
};

/// What runs on real threads.
[[nodiscard]] std::vector<native_experiment> native_experiments();

/// Each point is the median of `rounds` runs. Throws bad_input for an id that no experiment has.
[[nodiscard]] nlohmann::ordered_json run_native_experiment(const std::string& id, bool full,
                                                           std::uint64_t seed,
                                                           std::uint64_t rounds);
#endif

}  // namespace elidex::bench
