#include "cli/database_bench.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "bench/support/bad_input.hpp"
#include "bench/support/durability_names.hpp"
#include "cli/bench_output.hpp"
#include "cli/flags.hpp"
#include "cli/progress.hpp"
#include "cli/results_json.hpp"
#include "cli/workload_flags.hpp"

namespace elidex::cli {

using namespace internal;

namespace {

namespace store = bench::table_store;

constexpr std::array<std::string_view, 4> isolation_names{"read-uncommitted", "read-committed",
                                                          "repeatable-read", "serializable"};

double per_transaction(const store::bench_run& run, std::uint64_t many) {
  return static_cast<double>(many) /
         static_cast<double>(std::max<std::uint64_t>(run.outcome.all_transactions, 1));
}

nlohmann::ordered_json run_document(const database_bench& bench, const store::bench_run& run) {
  const told_point& told = bench.told[run.group][run.point];
  const store::run_outcome& sum = run.outcome;
  const lock_counts& regions = sum.regions;
  const std::uint64_t aborts = regions.aborts_total() + sum.conflicts;
  const std::uint64_t attempts = sum.all_transactions + aborts;
  nlohmann::ordered_json raw = nlohmann::ordered_json::array();
  for (const double one : run.raw_tps) raw.push_back(one / 1e6);
  nlohmann::ordered_json by_type;
  for (std::size_t k = 0; k < sum.latency.size(); ++k) {
    const std::uint64_t many = sum.latency[k].samples();
    const double share = static_cast<double>(many) /
                         static_cast<double>(std::max<std::uint64_t>(run.transactions(), 1));
    by_type[std::string(bench.kinds[k])] = {{"mops", share * run.tps / 1e6},
                                            {"transactions", many},
                                            {"ns_p50", sum.latency[k].percentile(50)},
                                            {"ns_p99", sum.latency[k].percentile(99)},
                                            {"ns_p999", sum.latency[k].percentile(99.9)}};
  }
  nlohmann::ordered_json document{
      {"index", run.what->name},
      {"workload", told.workload},
      {"dist", told.dist},
      {"threads", run.threads},
      {"mops", run.tps / 1e6},
      {"mops_min", run.tps_min / 1e6},
      {"mops_max", run.tps_max / 1e6},
      {"ns_p50", run.latency.percentile(50)},
      {"ns_p99", run.latency.percentile(99)},
      {"ns_p999", run.latency.percentile(99.9)},
      {"aborts_per_op", per_transaction(run, aborts)},
      {"aborts",
       {{"conflict", regions.aborts_by(htm::abort_cause::conflict) + sum.conflicts},
        {"capacity", regions.aborts_by(htm::abort_cause::capacity)},
        {"explicit", regions.aborts_by(htm::abort_cause::explicit_)},
        {"interrupt", regions.aborts_by(htm::abort_cause::interrupt)},
        {"other", regions.aborts_by(htm::abort_cause::other)}}},
      {"fallback_pct", regions.fallback_pct()},
      {"wasted_pct",
       attempts == 0 ? 0 : 100 * static_cast<double>(aborts) / static_cast<double>(attempts)},
      {"bytes_per_key", run.bytes_per_row},
      {"seed", bench.options.seed},
      {"raw_mops", std::move(raw)},
      {"ratio_to_first", run.ratio_to_first}};
  document.update(told.fields);
  document.update({{"durability", bench::name_of(run.level)},
                   {"seconds", sum.seconds},
                   {"requests", run.transactions()},
                   {"misses", sum.violations.size()},
                   {"conflicts_per_op", per_transaction(run, sum.conflicts)},
                   {"rolled_back", sum.rolled_back},
                   {"by_type", std::move(by_type)},
                   {"violations", sum.violations},
                   {"cpu_wait_pct", sum.cpu_wait_pct},
                   {"latency_samples", run.latency.samples()}});
  if (!bench.missing.empty()) document["missing"] = sum.missing;
  return document;
}

std::string heading(const database_bench& bench) {
  const store::bench_options& options = bench.options;
  std::string text = bench.heading + "\n";
  if (options.rounds > 1)
    text += "medians of " + std::to_string(options.rounds) + " interleaved rounds, ";
  text += formatted("%g s each after %g s of warm-up; seed %llu\n", options.seconds,
                    options.warm_up_seconds, static_cast<unsigned long long>(options.seed));
  return text + machine_line() + ", commit " + source_commit() + "\n";
}

std::string tables(const database_bench& bench, const std::vector<store::bench_run>& runs) {
  const store::bench_options& options = bench.options;
  const auto group_size = [&](const store::bench_run& run) {
    return options.databases.size() * options.levels.size() * options.groups[run.group].size();
  };
  const bool ratios =
      std::any_of(runs.begin(), runs.end(), [&](const auto& run) { return group_size(run) > 1; });
  std::vector<table::column> columns{{"database"}, {"durability"}};
  columns.insert(columns.end(), bench.columns.begin(), bench.columns.end());
  columns.push_back({"threads", table::right});
  std::vector<table::column> kind_columns = columns;
  columns.push_back({"tps", table::right});
  if (options.rounds > 1) columns.push_back({"min..max", table::right});
  if (ratios) columns.push_back({"x first", table::right});
  for (const char* const title : {"p50 us", "p99 us", "p99.9 us", "conflicts %", "bytes/row"})
    columns.push_back({title, table::right});
  if (!bench.missing.empty()) columns.push_back({bench.missing, table::right});
  for (const std::string_view name : bench.kinds)
    kind_columns.push_back({std::string(name), table::right});
  table all(std::move(columns));
  table kinds(std::move(kind_columns));
  for (auto run = runs.begin(); run != runs.end(); ++run) {
    if (run != runs.begin() && ratios &&
        (run->threads != std::prev(run)->threads || run->group != std::prev(run)->group)) {
      all.gap();
      kinds.gap();
    }
    std::vector<std::string> cells{std::string(run->what->name),
                                   std::string(bench::name_of(run->level))};
    const std::vector<std::string>& told = bench.told[run->group][run->point].cells;
    cells.insert(cells.end(), told.begin(), told.end());
    cells.push_back(std::to_string(run->threads));
    std::vector<std::string> kind_cells = cells;
    cells.push_back(formatted("%.0f", run->tps));
    if (options.rounds > 1) cells.push_back(formatted("%.0f..%.0f", run->tps_min, run->tps_max));
    if (ratios) cells.push_back(formatted("%.2f", run->ratio_to_first));
    cells.push_back(formatted("%.1f", run->latency.percentile(50) / 1e3));
    cells.push_back(formatted("%.1f", run->latency.percentile(99) / 1e3));
    cells.push_back(formatted("%.1f", run->latency.percentile(99.9) / 1e3));
    cells.push_back(formatted("%.2f", 100 * per_transaction(*run, run->outcome.conflicts)));
    cells.push_back(formatted("%.0f", run->bytes_per_row));
    if (!bench.missing.empty()) cells.push_back(std::to_string(run->outcome.missing));
    all.row(std::move(cells));
    for (std::size_t k = 0; k < bench.kinds.size(); ++k) {
      if (k >= run->outcome.latency.size() || run->outcome.latency[k].samples() == 0) {
        kind_cells.emplace_back("-");
        continue;
      }
      const bench::latency_histogram& one = run->outcome.latency[k];
      kind_cells.push_back(
          formatted("%.1f / %.1f", one.percentile(50) / 1e3, one.percentile(99) / 1e3));
    }
    kinds.row(std::move(kind_cells));
  }
  std::string text = "\n";
  text += all.text();
  text += "\nmicroseconds, p50 / p99, from the first attempt to the commit\n";
  return text += kinds.text();
}

std::string notes(const store::bench_options& options, const std::vector<store::bench_run>& runs) {
  std::string text;
  for (const store::bench_run& run : runs) {
    for (const std::string& one : run.outcome.violations)
      text += "WRONG: " + std::string(run.what->name) + ": " + one + "\n";
  }
  text += disturbed_runs_text(runs, [](const auto& run) { return run.outcome.cpu_wait_pct; });
  for (const store::database_info* one : options.databases) {
    const std::string remark = one->remark == nullptr ? std::string() : one->remark();
    if (!remark.empty()) text += "note: " + std::string(one->name) + " " + remark + "\n";
  }
  return text;
}

}  // namespace

void database_bench::add_group(std::vector<told_point> points) {
  options.groups.emplace_back();
  for (const told_point& one : points) options.groups.back().push_back(one.point);
  told.push_back(std::move(points));
}

database_bench read_database_flags(const bench_flags& flags, const bench_time& time,
                                   std::string_view workload) {
  database_bench bench;
  store::bench_options& options = bench.options;
  if (flags.index == bench_index_default) {
    for (const auto& one : store::databases()) options.databases.push_back(&one);
  } else {
    for (const std::string& name : list_of("--index", flags.index)) {
      const store::database_info* const found = store::find_database(name);
      if (found == nullptr) {
        refuse_value(
            "--index", name,
            "with --workload " + std::string(workload) + " a database that 'elidex list' prints",
            names_of(store::databases()));
      }
      options.databases.push_back(found);
    }
  }
  if (!flags.durability.empty()) {
    options.levels = read_durability(flags.durability);
  }
  options.directory = flags.directory;
  options.threads = time.threads;
  options.seconds = time.seconds;
  options.warm_up_seconds = time.warm_up_seconds;
  options.rounds = time.rounds;
  options.seed = parse_count("--seed", flags.seed, 0, UINT64_MAX);
  return bench;
}

std::vector<internal::durability> read_durability(const std::string& text) {
  std::vector<internal::durability> levels;
  for (const std::string& one : list_of("--durability", text)) {
    const auto level = bench::durability_of(one);
    if (!level) {
      refuse_value("--durability", one, "none, async or sync",
                   {bench::durability_names.begin(), bench::durability_names.end()});
    }
    levels.push_back(*level);
  }
  return levels;
}

std::vector<internal::isolation> read_isolation(const std::string& text) {
  if (text.empty()) return {internal::isolation::serializable};
  std::vector<internal::isolation> levels;
  for (const std::string& one : list_of("--isolation", text)) {
    const auto found = std::find(isolation_names.begin(), isolation_names.end(), one);
    if (found == isolation_names.end()) {
      refuse_value("--isolation", one,
                   "serializable, repeatable-read, read-committed or read-uncommitted",
                   {isolation_names.begin(), isolation_names.end()});
    }
    levels.push_back(static_cast<internal::isolation>(found - isolation_names.begin()));
  }
  return levels;
}

std::string_view name_of(internal::isolation level) {
  return isolation_names[static_cast<std::size_t>(level)];
}

int run_database_bench(const bench_flags& flags, const database_bench& bench) {
  const bench_output output(flags);
  std::vector<store::bench_run> runs;
  {
    progress_bar bar;
    runs = store::run_bench(bench.options,
                            [&](const store::bench_progress& at) { bar.show(at.done, at.doing); });
  }
  const bool right = std::all_of(runs.begin(), runs.end(),
                                 [](const auto& run) { return run.outcome.violations.empty(); });
  if (output.wanted()) {
    nlohmann::ordered_json document = results_document();
    for (const store::bench_run& run : runs) document["runs"].push_back(run_document(bench, run));
    output.write(std::move(document));
  }
  const std::string remarks = notes(bench.options, runs);
  if (output.to_stdout()) {
    std::fputs(remarks.c_str(), stderr);
  } else {
    print(heading(bench) + tables(bench, runs) + (remarks.empty() ? "" : "\n" + remarks));
  }
  return right ? 0 : 1;
}

}  // namespace elidex::cli
