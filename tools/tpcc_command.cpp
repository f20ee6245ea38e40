// elidex bench --workload tpcc: databases in place of indexes, warehouses in place of keys.

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lab/bad_input.hpp"
#include "lab/runner/machine.hpp"
#include "lab/tpcc/bench.hpp"
#include "tools/commands.hpp"
#include "tools/flags.hpp"
#include "tools/json_output.hpp"
#include "tools/progress.hpp"
#include "tools/results_json.hpp"
#include "tools/table.hpp"
#include "tools/workload_flags.hpp"

namespace elidex::tools {
namespace {

namespace tpcc = lab::tpcc;

std::string database_names() {
  std::string names;
  for (const auto& one : tpcc::databases()) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

// What speaks of keys has no meaning here; silence would look like obedience.
void refuse_flags_of_keys(const bench_flags& flags) {
  const workload_flags none;
  const auto foreign = [](std::string_view flag, const std::string& text, const std::string& usual) {
    if (text != usual) refuse(flag, text, "does not go with --workload tpcc; it takes workloads of keys");
  };
  foreign("--dist", flags.dist, none.dist);
  foreign("--keys", flags.keys, none.keys);
  foreign("--key-type", flags.key_type, none.key_type);
  foreign("--key-file", flags.key_file, none.key_file);
  foreign("--scan-length", flags.scan_length, none.scan_length);
  foreign("--order", flags.order, none.order);
}

constexpr std::array<std::string_view, 3> level_names{"none", "async", "sync"};

std::string_view name_of(db::durability level) {
  return level_names[static_cast<std::size_t>(level)];
}
db::durability level_of(const std::string& text) {
  for (std::size_t i = 0; i < level_names.size(); ++i) {
    if (level_names[i] == text) return static_cast<db::durability>(i);
  }
  refuse("--durability", text, "is unknown; it takes none, async or sync");
}

tpcc::bench_options options_of(const bench_flags& flags, const bench_time& time) {
  refuse_flags_of_keys(flags);
  tpcc::bench_options options;
  if (flags.index == bench_index_default) {
    for (const auto& one : tpcc::databases()) options.databases.push_back(&one);
  } else {
    for (const std::string& name : list_of("--index", flags.index)) {
      const tpcc::database_info* const found = tpcc::find_database(name);
      if (found == nullptr)
        refuse("--index", name, "is no database; with --workload tpcc it takes " + database_names());
      options.databases.push_back(found);
    }
  }
  options.warehouses.clear();
  for (const std::string& one : list_of("--warehouses", flags.warehouses.empty() ? "1" : flags.warehouses)) {
    options.warehouses.push_back(static_cast<std::uint32_t>(parse_count("--warehouses", one, 1, tpcc::warehouses_max)));
  }
  if (!flags.customers.empty())
    options.size.customers = static_cast<std::uint32_t>(parse_count("--customers", flags.customers, 1, 3'000));
  if (!flags.items.empty())
    options.size.items = static_cast<std::uint32_t>(parse_count("--items", flags.items, tpcc::lines_max, 100'000));
  if (flags.readers == "transactions") {
    options.how = tpcc::readers::as_transactions;
  } else if (!flags.readers.empty() && flags.readers != "snapshots") {
    refuse("--readers", flags.readers, "is unknown; it takes snapshots or transactions");
  }
  if (!flags.durability.empty()) {
    options.levels.clear();
    for (const std::string& one : list_of("--durability", flags.durability)) options.levels.push_back(level_of(one));
  }
  options.folder = flags.folder;
  options.threads = time.threads;
  options.seconds = time.seconds;
  options.warm_up_seconds = time.warm_up_seconds;
  options.rounds = time.rounds;
  options.seed = parse_count("--seed", flags.seed, 0, UINT64_MAX);
  return options;
}

double per_transaction(const tpcc::bench_run& run, std::uint64_t many) {
  return static_cast<double>(many) / static_cast<double>(std::max<std::uint64_t>(run.outcome.all_transactions, 1));
}

nlohmann::ordered_json run_document(const tpcc::bench_options& options, const tpcc::bench_run& run) {
  const tpcc::run_outcome& sum = run.outcome;
  const lock_counts& regions = sum.regions;
  const std::uint64_t aborts = regions.aborts_total() + sum.conflicts;
  const std::uint64_t attempts = sum.all_transactions + aborts;
  nlohmann::ordered_json raw = nlohmann::ordered_json::array();
  for (const double one : run.raw_tps) raw.push_back(one / 1e6);
  nlohmann::ordered_json by_type;
  for (std::size_t k = 0; k < tpcc::kinds; ++k) {
    const double share =
        static_cast<double>(sum.transactions[k]) / static_cast<double>(std::max<std::uint64_t>(run.transactions(), 1));
    by_type[std::string(tpcc::kind_names[k])] = {{"mops", share * run.tps / 1e6},
                                                 {"transactions", sum.transactions[k]},
                                                 {"ns_p50", sum.latency[k].percentile(50)},
                                                 {"ns_p99", sum.latency[k].percentile(99)}};
  }
  nlohmann::ordered_json violations = nlohmann::ordered_json::array();
  for (const tpcc::violation& one : sum.violations) violations.push_back(one.text);
  return {{"index", run.what->name},
          {"workload", "tpcc"},
          {"dist", "nurand"},
          {"threads", run.threads},
          {"mops", run.tps / 1e6},
          {"mops_min", run.tps_min / 1e6},
          {"mops_max", run.tps_max / 1e6},
          {"ns_p50", run.latency.percentile(50)},
          {"ns_p99", run.latency.percentile(99)},
          {"aborts_per_op", per_transaction(run, aborts)},
          {"aborts",
           {{"conflict", regions.aborts_by(htm::abort_cause::conflict) + sum.conflicts},
            {"capacity", regions.aborts_by(htm::abort_cause::capacity)},
            {"explicit", regions.aborts_by(htm::abort_cause::explicit_)},
            {"interrupt", regions.aborts_by(htm::abort_cause::interrupt)},
            {"other", regions.aborts_by(htm::abort_cause::other)}}},
          {"fallback_pct", regions.fallback_pct()},
          {"wasted_pct", attempts == 0 ? 0 : 100 * static_cast<double>(aborts) / static_cast<double>(attempts)},
          {"bytes_per_key", run.bytes_per_row},
          {"seed", options.seed},
          {"raw_mops", std::move(raw)},
          {"ratio_to_first", run.ratio_to_first},
          {"warehouses", run.warehouses},
          {"customers", options.size.customers},
          {"items", options.size.items},
          {"durability", name_of(run.level)},
          {"readers", options.how == tpcc::readers::as_snapshots ? "snapshots" : "transactions"},
          {"seconds", sum.seconds},
          {"requests", run.transactions()},
          {"misses", sum.violations.size()},
          {"conflicts_per_op", per_transaction(run, sum.conflicts)},
          {"rolled_back", sum.rolled_back},
          {"by_type", std::move(by_type)},
          {"violations", std::move(violations)},
          {"cpu_wait_pct", sum.cpu_wait_pct},
          {"latency_samples", run.latency.samples()}};
}

std::string heading(const tpcc::bench_options& options) {
  std::string text = "TPC-C, standard mix, " + std::to_string(options.size.customers) + " customers in a district, " +
                     count_text(options.size.items) + " items, no users' pauses; readers as " +
                     (options.how == tpcc::readers::as_snapshots ? "snapshots" : "transactions") + "\n";
  if (options.rounds > 1) text += "medians of " + std::to_string(options.rounds) + " interleaved rounds, ";
  text += formatted("%g s each after %g s of warm-up; seed %llu\n", options.seconds, options.warm_up_seconds,
                    static_cast<unsigned long long>(options.seed));
  return text + machine_line() + ", commit " + source_commit() + "\n";
}

std::string tables(const tpcc::bench_options& options, const std::vector<tpcc::bench_run>& runs) {
  const bool ratios = options.databases.size() * options.levels.size() > 1;
  std::vector<table::column> columns{
      {"database"}, {"durability"}, {"warehouses", table::right}, {"threads", table::right}};
  std::vector<table::column> kind_columns = columns;
  columns.push_back({"tps", table::right});
  if (options.rounds > 1) columns.push_back({"min..max", table::right});
  if (ratios) columns.push_back({"x first", table::right});
  for (const char* const title : {"p50 us", "p99 us", "conflicts %", "bytes/row"})
    columns.push_back({title, table::right});
  for (const std::string_view name : tpcc::kind_names) kind_columns.push_back({std::string(name), table::right});
  table all(std::move(columns));
  table kinds(std::move(kind_columns));
  for (auto run = runs.begin(); run != runs.end(); ++run) {
    if (run != runs.begin() && ratios &&
        (run->threads != std::prev(run)->threads || run->warehouses != std::prev(run)->warehouses)) {
      all.gap();
      kinds.gap();
    }
    std::vector<std::string> cells{std::string(run->what->name), std::string(name_of(run->level)),
                                   std::to_string(run->warehouses), std::to_string(run->threads)};
    std::vector<std::string> kind_cells = cells;
    cells.push_back(formatted("%.0f", run->tps));
    if (options.rounds > 1) cells.push_back(formatted("%.0f..%.0f", run->tps_min, run->tps_max));
    if (ratios) cells.push_back(formatted("%.2f", run->ratio_to_first));
    cells.push_back(formatted("%.1f", run->latency.percentile(50) / 1e3));
    cells.push_back(formatted("%.1f", run->latency.percentile(99) / 1e3));
    cells.push_back(formatted("%.2f", 100 * per_transaction(*run, run->outcome.conflicts)));
    cells.push_back(formatted("%.0f", run->bytes_per_row));
    all.row(std::move(cells));
    for (const lab::latency_histogram& one : run->outcome.latency)
      kind_cells.push_back(formatted("%.1f / %.1f", one.percentile(50) / 1e3, one.percentile(99) / 1e3));
    kinds.row(std::move(kind_cells));
  }
  return "\n" + all.text() + "\nmicroseconds, p50 / p99, from the first attempt to the commit\n" + kinds.text();
}

std::string notes(const tpcc::bench_options& options, const std::vector<tpcc::bench_run>& runs) {
  std::string text;
  constexpr double cpu_wait_pct_max = 5;  // as for indexes
  const std::size_t cpus = lab::allowed_cpus().size();
  std::ptrdiff_t disturbed = 0;
  for (const tpcc::bench_run& run : runs) {
    for (const tpcc::violation& one : run.outcome.violations)
      text += "WRONG: " + std::string(run.what->name) + ": " + one.text + "\n";
    if (run.threads <= cpus && run.outcome.cpu_wait_pct > cpu_wait_pct_max) ++disturbed;
  }
  if (disturbed > 0) {
    text += formatted(
        "note: in %td of %zu runs other programs kept the threads waiting for more than %g %% of the time: "
        "these rates are too low\n",
        disturbed, runs.size(), cpu_wait_pct_max);
  }
  for (const tpcc::database_info* one : options.databases) {
    const std::string remark = one->remark == nullptr ? std::string() : one->remark();
    if (!remark.empty()) text += "note: " + std::string(one->name) + " " + remark + "\n";
  }
  return text;
}

}  // namespace

int tpcc_bench_command(const bench_flags& flags, const bench_time& time) {
  const tpcc::bench_options options = options_of(flags, time);
  const json_output json(flags.json);
  std::vector<tpcc::bench_run> runs;
  {
    progress_bar bar;
    runs = tpcc::run_bench(options, [&](const tpcc::bench_progress& at) { bar.show(at.done, at.doing); });
  }
  const bool right =
      std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.outcome.violations.empty(); });
  if (json.wanted()) {
    nlohmann::ordered_json document = results_document();
    for (const tpcc::bench_run& run : runs) document["runs"].push_back(run_document(options, run));
    json.write(document.dump(2));
  }
  const std::string remarks = notes(options, runs);
  if (json.to_stdout()) {
    std::fputs(remarks.c_str(), stderr);
  } else {
    print(heading(options) + tables(options, runs) + (remarks.empty() ? "" : "\n" + remarks));
  }
  return right ? 0 : 1;
}

}  // namespace elidex::tools
