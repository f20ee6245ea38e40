// The experiments of paper 004 on real threads of this machine.

#include <array>
#include <nlohmann/json.hpp>

#include "bench/support/bad_input.hpp"
#include "elidex/htm.hpp"
#include "papers/schrimpf/experiments/experiment.hpp"
#include "papers/schrimpf/structures/figures.hpp"
#include "papers/schrimpf/structures/native_runner.hpp"

namespace elidex::bench {
namespace {

constexpr unsigned thesis_cores = 4;

struct structure_figure {
  std::string_view id;
  std::vector<series> (*run)(const native_runner&);
};

constexpr std::array structure_figures{
    structure_figure{"S-3.12", figure_3_12<native_runner>},
    structure_figure{"S-3.13", figure_3_13<native_runner>},
    structure_figure{"S-3.14", figure_3_14<native_runner>},
    structure_figure{"S-3.15", figure_3_15<native_runner>},
    structure_figure{"S-3.16", figure_3_16<native_runner>},
    structure_figure{"S-3.17", figure_3_17<native_runner>},
    structure_figure{"S-3.18", figure_3_18<native_runner>},
    structure_figure{"S-3.19", figure_3_19<native_runner>},
    structure_figure{"S-C.10", figure_c_10<native_runner>},
    structure_figure{"S-D.5", figure_d_5<native_runner>},
    structure_figure{"S-D.6", figure_d_6<native_runner>},
};

std::vector<experiment> others() {
  std::vector<experiment> all = transaction_limits();
  for (const auto& group : {lock_overheads(), abort_costs()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<series> run_once(const std::string& id, bool full, std::uint64_t seed) {
  for (const structure_figure& one : structure_figures) {
    if (one.id == id) return one.run(native_runner({1, 2, 4}, full, seed));
  }
  for (const experiment& one : others()) {
    if (one.id != id) continue;
    if (!htm::enabled())
      throw bad_input(id + " needs hardware transactions: " + htm::capability().reason);
    return one.run(host::this_machine(), {.full = full, .seed = seed});
  }
  throw bad_input("no native experiment is called '" + id + "'");
}

}  // namespace

std::vector<native_experiment> native_experiments() {
  std::vector<native_experiment> all;
  const std::vector<experiment> rest = others();
  all.reserve(structure_figures.size() + rest.size());
  for (const structure_figure& one : structure_figures) all.push_back({one.id, thesis_cores});
  for (const experiment& one : rest) all.push_back({one.id, one.threads});
  return all;
}

nlohmann::ordered_json run_native_experiment(const std::string& id, bool full, std::uint64_t seed,
                                             std::uint64_t rounds) {
  std::vector<std::vector<series>> all;
  all.reserve(rounds);
  for (std::uint64_t round = 0; round < rounds; ++round)
    all.push_back(run_once(id, full, seed + round));
  nlohmann::ordered_json document{
      {"id", id}, {"rounds", rounds}, {"series", nlohmann::ordered_json::array()}};
  for (const series& s : medians(all))
    document["series"].push_back({{"name", s.name}, {"points", s.points}});
  return document;
}

}  // namespace elidex::bench
