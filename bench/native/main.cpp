// The program that runs the papers' experiments on real threads: reads one request as JSON from
// standard input, in the form that the program on the simulated machine takes, and answers in the
// same form. `elidex repro` starts it.
//
//   {"list": "all"}
//   {"experiment": "S-3.16", "full": false, "seed": 1, "rounds": 5}
//   {"index": "btree/rtm", "workload": "insert-mix:50", "dist": "uniform", "keys": 1000000,
//    "threads": 8, "operations": 100000, "seed": 1}
//
// Exit status as of elidex: 0 done, 1 failed, 2 a request that cannot be run, with one line on
// standard error.

#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "bench/indexes/registry.hpp"
#include "bench/native/run_on_threads.hpp"
#include "bench/runner/machine.hpp"
#include "bench/runner/run_json.hpp"
#include "bench/support/bad_input.hpp"
#include "elidex/htm.hpp"
#include "papers/schrimpf/experiments/experiment.hpp"

namespace {

using namespace elidex;
using namespace elidex::bench;
using nlohmann::ordered_json;

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(": ") + 2));
  }
  return "unknown CPU";
}

ordered_json here() {
  return {{"native", cpu_name()},
          {"cpus", allowed_cpus().size()},
          {"cpu_order", allowed_cpus_by_core()},
          {"allocator", allocator_name()},
          {"hle_advertised", htm::capability().hle_advertised},
          {"rtm_commits", htm::capability().rtm_commits},
          {"htm", htm::capability().reason}};
}

ordered_json listed() {
  ordered_json document = here();
  for (const index_info& one : indexes()) document["indexes"].push_back(one.name);
  for (const native_experiment& one : native_experiments())
    document["experiments"][one.id] = one.threads;
  return document;
}

constexpr std::uint64_t counts_max = 1'000'000'000;  // against slips; memory sets its own limit

// A number of the request, or `otherwise` if it has none of this name.
std::uint64_t count_in(const ordered_json& request, const char* name, std::uint64_t least,
                       std::uint64_t most, std::optional<std::uint64_t> otherwise = {}) {
  if (otherwise && !request.contains(name)) return *otherwise;
  const ordered_json& value = request.at(name);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least ||
      value.get<std::uint64_t>() > most) {
    throw bad_input(std::string(name) + ": invalid value " + value.dump() + " (expected " +
                    std::to_string(least) + " to " + std::to_string(most) + ")");
  }
  return value.get<std::uint64_t>();
}

native_request request_of(const ordered_json& request) {
  native_request wanted{
      .index = request.at("index"),
      .workload = request.at("workload"),
      .dist = request.at("dist"),
      .keys = count_in(request, "keys", 1, counts_max),
      .threads = static_cast<unsigned>(count_in(request, "threads", 1, allowed_cpus().size())),
      .operations = count_in(request, "operations", 1, counts_max),
      .seed = count_in(request, "seed", 0, UINT64_MAX),
      .retries = {},
      .version = parse_leaf_version(request.value("leaf_version", "none"))};
  if (request.contains("retries"))
    wanted.retries = static_cast<std::uint32_t>(count_in(request, "retries", 0, UINT32_MAX));
  return wanted;
}

// The document omits what only the simulated machine records: cycles lost to aborts, where
// transactions met, accesses to memory.
ordered_json document_of(const native_request& wanted, const native_result& result) {
  ordered_json document = measures_of(result.run);
  document.update({{"bytes_per_key", result.run.bytes_per_key},
                   {"seed", wanted.seed},
                   {"keys", result.keys},
                   {"operations_per_thread", wanted.operations},
                   {"requests", result.run.requests},
                   {"misses", result.run.misses},
                   {"cpu_wait_pct", result.run.cpu_wait_pct}});
  return document;
}

ordered_json answer(const ordered_json& request) {
  if (request.contains("list")) return listed();
  if (!request.contains("experiment")) {
    const native_request wanted = request_of(request);
    return document_of(wanted, run_on_threads(wanted));
  }
  ordered_json document = run_native_experiment(
      request.at("experiment"), request.value("full", false),
      count_in(request, "seed", 0, UINT64_MAX, 1), count_in(request, "rounds", 1, 1'000, 5));
  document.update(here());
  return document;
}

}  // namespace

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends with its parent, instead of running on for minutes
  try {
    const ordered_json request = ordered_json::parse(std::cin, nullptr, false);
    if (request.is_discarded() || !request.is_object()) {
      std::fprintf(stderr,
                   "elidex-native: this program runs the papers' experiments; start it with "
                   "'elidex repro'\n");
      return 2;
    }
    std::cout << answer(request).dump() << '\n' << std::flush;
    return std::cout ? 0 : 1;
  } catch (const bad_input& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const ordered_json::exception& error) {
    std::fprintf(stderr, "elidex-native: invalid request: %s\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
