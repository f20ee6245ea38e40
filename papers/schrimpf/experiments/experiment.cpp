#include "papers/schrimpf/experiments/experiment.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/support/bad_input.hpp"

namespace elidex::bench {

nlohmann::ordered_json run_experiment(const std::string& id, const sim::machine& which, bool full,
                                      std::uint64_t seed) {
  if (which.rtm == 0)
    throw bad_input("--machine: " + which.name + " has no transactions; " + id +
                    " takes one that has");
  for (const auto& group :
       {transaction_limits(), lock_overheads(), elision_failures(), abort_costs(), structures()}) {
    const auto found =
        std::find_if(group.begin(), group.end(), [&](const experiment& e) { return e.id == id; });
    if (found == group.end()) continue;
    nlohmann::ordered_json document{
        {"id", id}, {"machine", which.name}, {"series", nlohmann::ordered_json::array()}};
    for (const series& s : found->run(which, {.full = full, .seed = seed})) {
      document["series"].push_back({{"name", s.name}, {"points", s.points}});
    }
    return document;
  }
  throw bad_input("no experiment on the machine is called '" + id + "'");
}

}  // namespace elidex::bench
