// The figures of paper 004 section 3.3 on real threads: reads one request as JSON from standard
// input, the same as for the program on the simulated machine, and answers in the same form.
// `elidex repro` starts it.
//
//   {"experiment": "S-3.16", "full": false, "seed": 1, "rounds": 5}
//   {"list": "experiments"}
//
// Each point is the median of the rounds; a round runs all variants of the figure once, one after
// the other.
//
// Exit status as of elidex: 0 done, 1 failed, 2 a request that cannot be run, with one line on
// standard error.

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/bad_input.hpp"
#include "papers/schrimpf/structures/figures.hpp"
#include "papers/schrimpf/structures/native_runner.hpp"

namespace {

using namespace elidex;
using namespace elidex::bench;
using nlohmann::ordered_json;

struct native_figure {
  std::string_view id;
  std::vector<series> (*run)(const native_runner&);
};

constexpr std::array figures{
    native_figure{"S-3.12", figure_3_12<native_runner>},
    native_figure{"S-3.13", figure_3_13<native_runner>},
    native_figure{"S-3.14", figure_3_14<native_runner>},
    native_figure{"S-3.15", figure_3_15<native_runner>},
    native_figure{"S-3.16", figure_3_16<native_runner>},
    native_figure{"S-3.17", figure_3_17<native_runner>},
    native_figure{"S-3.18", figure_3_18<native_runner>},
    native_figure{"S-3.19", figure_3_19<native_runner>},
    native_figure{"S-C.10", figure_c_10<native_runner>},
    native_figure{"S-D.5", figure_d_5<native_runner>},
    native_figure{"S-D.6", figure_d_6<native_runner>},
};

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(": ") + 2));
  }
  return "unknown CPU";
}

ordered_json answer(const ordered_json& request) {
  ordered_json document;
  if (request.contains("list")) {
    for (const native_figure& one : figures) document["experiments"].push_back(one.id);
    return document;
  }
  const std::string id = request.at("experiment");
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const native_figure& f) { return f.id == id; });
  if (found == figures.end()) throw bad_input("no native experiment is called '" + id + "'");
  const std::uint64_t rounds = request.value("rounds", std::uint64_t{5});
  if (rounds == 0) throw bad_input("rounds: invalid value '0' (expected 1 or more)");
  const std::uint64_t seed = request.value("seed", std::uint64_t{1});
  std::vector<std::vector<series>> all;
  std::size_t cpus = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const native_runner run({1, 2, 4}, request.value("full", false), seed + round);
    cpus = run.cpus();
    all.push_back(found->run(run));
  }
  document = {{"id", id},         {"native", cpu_name()},
              {"cpus", cpus},     {"htm", htm::capability().reason},
              {"rounds", rounds}, {"series", ordered_json::array()}};
  for (const series& s : medians(all))
    document["series"].push_back({{"name", s.name}, {"points", s.points}});
  return document;
}

}  // namespace

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends with its parent, instead of running on for minutes
  try {
    const ordered_json request = ordered_json::parse(std::cin, nullptr, false);
    if (request.is_discarded() || !request.is_object()) {
      std::fprintf(stderr,
                   "elidex-structures: this program runs figures of the thesis; start it with "
                   "'elidex repro'\n");
      return 2;
    }
    std::cout << answer(request).dump() << '\n' << std::flush;
    return std::cout ? 0 : 1;
  } catch (const bench::bad_input& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
