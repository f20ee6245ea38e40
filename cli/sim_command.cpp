// elidex sim: runs every combination on a simulated machine, each in a process of its own, and
// prints what came out.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "bench/runner/machine.hpp"
#include "bench/support/bad_input.hpp"
#include "bench/support/input_file.hpp"
#include "bench/support/near_match.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/json_output.hpp"
#include "cli/machines.hpp"
#include "cli/process.hpp"
#include "cli/progress.hpp"
#include "cli/results_json.hpp"
#include "cli/sim_databases.hpp"
#include "cli/table.hpp"
#include "cli/workload_flags.hpp"
#include "machine/machine.hpp"

namespace elidex::cli {

struct sim_flags : workload_flags {
  std::string machine = "haswell-ep-2x10";
  std::string cores;
  std::string threads;
  sim_database_flags databases;
  std::string operations = "2000";
  std::string retries;
  std::string leaf_version = "none";
  std::string quantum = "0";
  std::vector<std::string> set;
  std::string trace;
  std::string jobs;
};

namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t operations_max = 100'000'000;
constexpr std::uint64_t cycles_max = 1'000'000'000;
constexpr std::uint64_t retries_max = 1'000'000'000;
constexpr std::uint64_t jobs_max = 256;
constexpr std::uint64_t sim_keys_default = 1'000'000;

// What --cores and --threads ask for together.
std::vector<threads_on_cores> places_of(const sim_flags& flags, std::uint64_t cores_max) {
  const auto counts = [](const char* flag, const std::string& list, std::uint64_t max) {
    std::vector<unsigned> result;
    for (const std::string& one : list_of(flag, list))
      result.push_back(static_cast<unsigned>(parse_count(flag, one, 1, max)));
    return result;
  };
  std::vector<threads_on_cores> places;
  if (flags.threads.empty()) {
    const std::string cores = flags.cores.empty() ? "1" : flags.cores;
    for (const unsigned n : counts("--cores", cores, cores_max)) places.push_back({n, n});
    return places;
  }
  for (const unsigned n : counts("--threads", flags.threads, sim::threads_max)) {
    if (flags.cores.empty()) places.push_back({n, std::min(n, static_cast<unsigned>(cores_max))});
    if (flags.cores.empty()) continue;
    for (const unsigned cores : counts("--cores", flags.cores, cores_max))
      places.push_back({n, cores});
  }
  return places;
}

ordered_json parameter_changes(const std::vector<std::string>& settings, sim::machine& which) {
  ordered_json changes = ordered_json::object();
  for (const std::string& one : settings) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos) refuse_value("--set", one, "NAME=N, such as abort_cycles=300");
    if (one.find(',') != std::string::npos)
      refuse_value("--set", one, "one NAME=N; repeat --set for another parameter");
    const std::string name = one.substr(0, equals);
    const std::uint64_t value = parse_count("--set", one.substr(equals + 1), 0, UINT64_MAX);
    try {
      sim::set_parameter(which, name, value);
    } catch (const std::invalid_argument& error) {
      throw bench::bad_input("--set: invalid value '" + one + "' (" + error.what() + ")" +
                             bench::did_you_mean(name, names_of(sim::parameters())));
    }
    changes[name] = value;
  }
  return changes;
}

// Every run opens the key file again.
void check_key_file(const std::filesystem::path& file, std::size_t runs) {
  if (file.empty()) return;
  std::string why = bench::input_problem(file);
  if (file == "/dev/stdin") why = "is reserved for the request of the simulated program";
  if (why.empty() && runs > 1 && !std::filesystem::is_regular_file(file)) {
    why = "is a pipe, which only the first of several runs could read";
  }
  if (why.empty() && access(file.c_str(), R_OK) != 0) why = "cannot be read";
  if (!why.empty()) refuse("--key-file", file.string(), why, "a file of keys, one per line");
}

// Adds what the run was asked for and its answer does not say.
ordered_json with_request(ordered_json answer, const ordered_json& request) {
  if (request["leaf_version"] != "none") answer["leaf_version"] = request["leaf_version"];
  if (request.contains("retries")) answer["retries"] = request["retries"];
  return answer;
}

// What every request has.
ordered_json base_of(const sim_flags& flags, const ordered_json& common) {
  ordered_json base = common;
  base["operations"] = parse_count("--ops", flags.operations, 1, operations_max);
  base["seed"] = parse_count("--seed", flags.seed, 0, UINT64_MAX);
  base["quantum"] = parse_count("--quantum", flags.quantum, 0, cycles_max);
  if (!flags.retries.empty())
    base["retries"] = parse_count("--retries", flags.retries, 0, retries_max);
  if (flags.leaf_version != "none" && flags.leaf_version != "head" &&
      flags.leaf_version != "line") {
    refuse_value("--leaf-version", flags.leaf_version, "none, head or line",
                 {"none", "head", "line"});
  }
  base["leaf_version"] = flags.leaf_version;
  return base;
}

// The requests to the program on the machine, one for each run over indexes.
std::vector<ordered_json> plan(const sim_flags& flags, const sim::machine& which, ordered_json base,
                               std::vector<std::string>& skipped) {
  const bench::workload_choice choice = read_workload_flags(flags);
  base["string_keys"] = choice.keys_are == bench::key_type::string;
  base["key_file"] =
      choice.key_file.empty() ? "" : std::filesystem::absolute(choice.key_file).string();
  base["keys"] = choice.keys.value_or(sim_keys_default);
  base["scan_length_min"] = choice.scan_length_min;
  base["scan_length_max"] = choice.scan_length_max;
  base["order"] = bench::to_string(choice.order);
  const std::vector<threads_on_cores> places = places_of(flags, which.hardware_threads());
  std::vector<ordered_json> requests;
  for (const bench::workload* what : choice.workloads) {
    for (const bench::distribution& where : choice.distributions) {
      for (const auto [n, cores] : places) {
        for (const bench::index_info* index : choice.indexes) {
          if (auto why = bench::why_not(*index, *what, n, choice.keys_are)) {
            skipped.push_back(*why + " (workload " + std::string(what->name) + ", " +
                              std::to_string(n) + " threads)");
            continue;
          }
          ordered_json request = base;
          request["index"] = index->name;
          request["workload"] = what->name;
          request["dist"] = what->drains() ? std::string(what->distribution_name()) : where.name;
          request["threads"] = n;
          if (cores < n) request["cpus"] = cores;
          requests.push_back(std::move(request));
        }
      }
      if (what->drains()) break;
    }
  }
  if (requests.empty()) throw bench::bad_input("--index: " + skipped.front());
  check_key_file(choice.key_file, requests.size());
  return requests;
}

// What the program said went wrong, as one line of ours.
[[noreturn]] void fail(const program_result& result) {
  std::string why = result.errors;
  if (why.ends_with('\n')) why.pop_back();
  if (result.status == 2) throw bench::bad_input(why);
  if (why.empty()) why = "the simulated run ended with status " + std::to_string(result.status);
  throw std::runtime_error(why);
}

// Before anything runs: whether the program on the machine has all databases.
void check_databases(const std::vector<ordered_json>& requests, workload_family family) {
  const program_result result =
      converse({sim_worker()}, ordered_json{{"list", "databases"}}.dump());
  if (result.status != 0) fail(result);
  const ordered_json all = ordered_json::parse(result.output).at("databases");
  const std::vector<std::string> known =
      all.at(family == workload_family::tpcc ? "tpcc" : "ycsb-txn");
  std::string names;
  for (const std::string& one : known) names += (names.empty() ? "" : ", ") + one;
  for (const ordered_json& one : requests) {
    const std::string name = one["index"];
    if (std::find(known.begin(), known.end(), name) == known.end())
      refuse_value("--index", name, "for this workload one of " + names, known);
  }
}

std::vector<ordered_json> run_all(const std::vector<ordered_json>& requests, std::size_t jobs) {
  const std::string worker = sim_worker();
  std::vector<ordered_json> answers(requests.size());
  std::vector<program_result> failures(requests.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::size_t done = 0;
  std::mutex mutex;
  progress_bar bar;
  bar.show(0, "simulating");
  const auto work = [&] {
    for (std::size_t i = next++; i < requests.size() && !failed; i = next++) {
      program_result result = converse({worker}, requests[i].dump());
      if (result.status == 0) answers[i] = ordered_json::parse(result.output, nullptr, false);
      if (answers[i].is_object()) answers[i] = with_request(std::move(answers[i]), requests[i]);
      const std::lock_guard guard(mutex);
      if (result.status != 0 || answers[i].is_discarded()) {
        if (result.status == 0) result.status = 1;
        failures[i] = std::move(result);
        failed = true;
      }
      bar.show(
          static_cast<double>(++done) / static_cast<double>(requests.size()),
          requests[i]["index"].get<std::string>() + ", " + requests[i]["dist"].get<std::string>());
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < std::min(jobs, requests.size()); ++i) workers.emplace_back(work);
  }
  for (const program_result& one : failures) {
    if (one.status != 127 || !one.errors.empty()) fail(one);
  }
  if (failed) throw std::runtime_error(worker + " cannot be started");
  return answers;
}

// The heading of a column of threads: with one core for each, they are the machine's.
const char* threads_heading(const std::vector<ordered_json>& runs) {
  const bool take_turns = std::any_of(runs.begin(), runs.end(),
                                      [](const ordered_json& run) { return run.contains("cpus"); });
  return take_turns ? "threads" : "cores";
}

std::string percent(const ordered_json& run, const char* field) {
  return formatted("%.1f", run[field].get<double>());
}

std::string tables(const std::vector<ordered_json>& runs) {
  std::string text;
  for (auto first = runs.begin(); first != runs.end();) {
    const auto last = std::find_if(first, runs.end(), [&](const ordered_json& run) {
      return run["workload"] != (*first)["workload"] || run["dist"] != (*first)["dist"];
    });
    table out({{"index"},
               {threads_heading(runs), table::right},
               {"Mops/s", table::right},
               {"aborts/op", table::right},
               {"conflict", table::right},
               {"capacity", table::right},
               {"explicit", table::right},
               {"interrupt", table::right},
               {"fallback %", table::right},
               {"wasted %", table::right},
               {"accesses/op", table::right}});
    for (auto run = first; run != last; ++run) {
      if (run != first && (*run)["threads"] != (*std::prev(run))["threads"]) out.gap();
      const double operations = (*run)["requests"];
      const auto cause = [&](const char* name) {
        return formatted("%.3f", (*run)["aborts"][name].get<double>() / operations);
      };
      out.row({(*run)["index"], std::to_string((*run)["threads"].get<int>()),
               formatted("%.3f", (*run)["mops"].get<double>()),
               formatted("%.3f", (*run)["aborts_per_op"].get<double>()), cause("conflict"),
               cause("capacity"), cause("explicit"), cause("interrupt"),
               percent(*run, "fallback_pct"), percent(*run, "wasted_pct"),
               formatted("%.0f", (*run)["accesses_per_op"].get<double>())});
    }
    text += "\nworkload " + (*first)["workload"].get<std::string>() + "; " +
            (*first)["dist"].get<std::string>() + "\n" + out.text();
    first = last;
  }
  return text;
}

// Where the conflicts were, of the runs that had enough of them to matter.
std::string conflict_tables(const std::vector<ordered_json>& runs) {
  constexpr double conflicts_shown_min = 0.01;  // of an operation; chosen
  constexpr std::size_t places_max = 5;
  table out({{"index"},
             {threads_heading(runs), table::right},
             {"where"},
             {"of all conflicts %", table::right},
             {"same bytes %", table::right}});
  bool any = false;
  for (const ordered_json& run : runs) {
    if (run["aborts"]["conflict"].get<double>() <
        conflicts_shown_min * run["requests"].get<double>())
      continue;
    double sum = 0;
    for (const auto& c : run["conflicts"])
      sum += c["true_sharing"].get<double>() + c["false_sharing"].get<double>();
    if (any) out.gap();
    any = true;
    for (std::size_t i = 0; i < std::min(places_max, run["conflicts"].size()); ++i) {
      const auto& c = run["conflicts"][i];
      const double both = c["true_sharing"].get<double>() + c["false_sharing"].get<double>();
      out.row(
          {i == 0 ? run["index"].get<std::string>() + ", " + run["dist"].get<std::string>() : "",
           i == 0 ? std::to_string(run["threads"].get<int>()) : "", c["where"],
           formatted("%.1f", 100 * both / sum),
           formatted("%.1f", 100 * c["true_sharing"].get<double>() / both)});
    }
  }
  return any ? "\nwhere transactions met\n" + out.text() : "";
}

// One row of accesses that the cores' own caches did not serve: the place, its share of the cores'
// time, fetches per operation, and the share that other cores caused.
std::vector<std::string> fetch_cells(const std::string& where, const ordered_json& fetched,
                                     const ordered_json& of_run) {
  const double accesses = fetched["accesses"];
  const double share = fetched["cycles"].get<double>() / of_run["perf"]["cycles"].get<double>();
  const double per_operation = accesses / of_run["requests"].get<double>();
  const double met_others = fetched["met_others"].get<double>() / accesses;
  const std::string share_text = formatted("%.1f", 100 * share);
  return {where, share_text, formatted("%.3f", per_operation), formatted("%.0f", 100 * met_others)};
}

// The rows of one run, without its name. Their shares of the time are disjoint and sum to 100 %.
std::vector<std::vector<std::string>> fetch_rows(const ordered_json& run) {
  constexpr std::size_t places_max = 6;
  std::vector<std::vector<std::string>> rows;
  ordered_json others = run["fetched"];
  for (const ordered_json& f : run["fetches"]) {
    if (rows.size() == places_max) break;
    const std::string where = f["where"];
    rows.push_back(fetch_cells(where + ", line " + f["line"].dump(), f, run));
    for (const char* const what : {"accesses", "met_others", "cycles"}) {
      others[what] = others[what].get<std::uint64_t>() - f[what].get<std::uint64_t>();
    }
  }
  const std::size_t other_lines = others["lines"].get<std::size_t>() - rows.size();
  if (other_lines != 0) {
    rows.push_back(fetch_cells(count_text(other_lines) + " other lines", others, run));
  }
  const double fetched = run["fetched"]["cycles"];
  const double rest = 1 - fetched / run["perf"]["cycles"].get<double>();
  rows.push_back({"own caches, computing, waiting", formatted("%.1f", 100 * rest), "", ""});
  return rows;
}

// Where the cores' time went, of runs in which cores met often enough to matter.
std::string fetch_tables(const std::vector<ordered_json>& runs) {
  constexpr double meetings_shown_min = 0.05;  // of an operation; chosen
  table out({{"index"},
             {threads_heading(runs), table::right},
             {"where"},
             {"of the cores' time %", table::right},
             {"an op", table::right},
             {"met others %", table::right}});
  bool any = false;
  for (const ordered_json& run : runs) {
    const double met = run["fetched"]["met_others"];
    if (met < meetings_shown_min * run["requests"].get<double>()) continue;
    if (any) out.gap();
    any = true;
    std::string name = run["index"].get<std::string>() + ", " + run["dist"].get<std::string>();
    std::string cores = run["threads"].dump();
    for (std::vector<std::string>& cells : fetch_rows(run)) {
      cells.insert(cells.begin(), {std::exchange(name, ""), std::exchange(cores, "")});
      out.row(std::move(cells));
    }
  }
  if (!any) return "";
  const std::string title = "where the cores' time went: lines from outside of their own caches";
  return "\n" + title + ", and the rest\n" + out.text();
}

}  // namespace

// How many keys the run begins with. Empty if that is none.
static std::string keys_told(const ordered_json& request) {
  if (request["workload"] == "tpcc") {
    return request["customers"].dump() + " customers of each district, " +
           count_text(request["items"]) + " items, ";
  }
  const bench::workload* const what = bench::find_workload(request["workload"].get<std::string>());
  if (what != nullptr && what->loads() && !what->visits_all_keys()) return "";
  return count_text(request["keys"]) + " keys, ";
}

static int sim_command(const sim_flags& flags) {
  const json_output json(flags.json);
  const std::filesystem::path file = machine_file(flags.machine);
  sim::machine which;
  try {
    which = sim::read_machine(file);
  } catch (const sim::bad_machine& error) {
    throw bench::bad_input(std::string("--machine: ") + error.what());
  }
  ordered_json common{{"machine_file", file.string()},
                      {"set", parameter_changes(flags.set, which)}};
  std::vector<std::string> skipped;
  const workload_family family = family_on_machine(flags, flags.databases);
  const ordered_json base = base_of(flags, common);
  std::vector<ordered_json> requests =
      family == workload_family::keys
          ? plan(flags, which, base, skipped)
          : database_requests(flags, flags.databases, family, base,
                              places_of(flags, which.hardware_threads()));
  if (family != workload_family::keys) check_databases(requests, family);
  if (!flags.trace.empty()) {
    if (requests.size() != 1)
      refuse("--trace", flags.trace, "cannot record several runs", "flags that give one run");
    if (flags.trace == "-") refuse_value("--trace", flags.trace, "a file to write");
  }
  const json_output trace(flags.trace, "--trace");
  const std::size_t jobs = flags.jobs.empty() ? bench::allowed_cpus().size()
                                              : parse_count("--jobs", flags.jobs, 1, jobs_max);
  std::vector<ordered_json> runs;
  const auto run = [&] { runs = run_all(requests, jobs); };
  if (trace.wanted()) {
    trace.write_by([&](const std::filesystem::path& timeline) {
      requests.front()["trace_file"] = std::filesystem::absolute(timeline).string();
      run();
    });
  } else {
    run();
  }

  if (json.wanted()) {
    ordered_json document = results_document();
    document["machine"] = {{"simulated", which.name}};
    for (const sim::parameter& p : sim::parameters())
      document["machine"][std::string(p.name)] = which.*p.value;
    document["runs"] = runs;
    document["skipped"] = skipped;
    json.write(document.dump(2));
    if (json.to_stdout()) return 0;
  }
  std::string text = "simulated: " + which.name;
  for (const auto& [name, value] : common["set"].items()) text += ", " + name + " " + value.dump();
  for (const char* const name : {"leaf_version", "retries"}) {
    if (runs.front().contains(name))
      text += ", " + std::string(name) + " " + runs.front()[name].dump();
  }
  text += "; " + keys_told(requests.front()) + count_text(requests.front()["operations"]) +
          " operations of each thread, seed " + requests.front()["seed"].dump() + ", commit " +
          source_commit() + "\n";
  text += family == workload_family::keys ? tables(runs) : database_tables(runs);
  text += conflict_tables(runs) + fetch_tables(runs);
  for (const std::string& one : skipped) text += "\nskipped: " + one;
  print(text + (skipped.empty() ? "" : "\n"));
  return 0;
}

void add_sim_command(command_parser& app) {
  const auto flags = std::make_shared<sim_flags>();
  command_parser command = app.add_command("sim",
                                           "compare indexes on a simulated machine with hardware "
                                           "transactions; equal flags give equal runs");
  add_workload_options(command, *flags);
  command.add_option("--machine", flags->machine, "a name from 'elidex list', or a machine file")
      .type_name("M")
      .shows_default();
  command
      .add_option("--cores", flags->cores,
                  "simulated hardware threads [the value of --threads, or 1]")
      .type_name("N,M");
  command
      .add_option("--threads", flags->threads,
                  "program threads; if more than --cores, they are scheduled in turn [the value of "
                  "--cores]")
      .type_name("N,M");
  command.add_option("--ops", flags->operations, "operations of each thread")
      .type_name("N")
      .shows_default();
  add_options(command, flags->databases);
  command
      .add_option("--retries", flags->retries,
                  "retries after a conflict, of every index with RTM except ordered_map, db/occ "
                  "and */rtm-noretry [each index's own: */rtm 8, euno-btree+ 12, all others 128]")
      .type_name("N");
  command
      .add_option("--leaf-version", flags->leaf_version,
                  "only btree/htm-dbx: a version in each leaf that every write increments: none | "
                  "head (in the header's line) | line (on a line of its own)")
      .type_name("V")
      .shows_default();
  command
      .add_option("--quantum", flags->quantum,
                  "cycles by which a core's clock may lead the others; published numbers use 0")
      .type_name("N")
      .shows_default();
  command
      .add_option("--set", flags->set, "another value for a machine's parameter; may be repeated")
      .type_name("NAME=N");
  command
      .add_option(
          "--trace", flags->trace,
          "write a timeline of all transactions to FILE; Perfetto (ui.perfetto.dev) opens it")
      .type_name("FILE");
  command.add_option("--jobs", flags->jobs, "runs at the same time [the CPUs here]").type_name("N");
  command.runs([flags] { return sim_command(*flags); });
}

}  // namespace elidex::cli
