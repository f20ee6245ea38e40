// elidex bench: reads the flags, runs the comparison, prints a table or JSON.

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/runner/bench.hpp"
#include "bench/runner/machine.hpp"
#include "bench/support/bad_input.hpp"
#include "cli/bench_output.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/progress.hpp"
#include "cli/results_json.hpp"
#include "cli/table.hpp"
#include "cli/workload_families.hpp"
#include "cli/workload_flags.hpp"

namespace elidex::cli {
namespace {

// Limits against slips of the keyboard; the machine's memory sets its own.
constexpr std::uint64_t threads_max = 1024;
constexpr std::uint64_t threads_per_cpu_max = 64;
constexpr double seconds_min = 0.01;
constexpr double seconds_max = 3600;
constexpr std::uint64_t rounds_max = 1000;

std::vector<unsigned> threads_of(const bench_flags& flags) {
  const std::uint64_t cpus = bench::allowed_cpus().size();
  const std::uint64_t limit = std::min(threads_max, threads_per_cpu_max * cpus);
  std::vector<unsigned> threads;
  for (const std::string& one : list_of("--threads", flags.threads)) {
    const std::uint64_t count = parse_count("--threads", one, 1, limit);
    if (count > cpus && !flags.oversubscribe) {
      refuse("--threads", one, "is more than the " + std::to_string(cpus) + " CPUs here",
             "1 to " + std::to_string(cpus) + ", or with --oversubscribe up to " +
                 std::to_string(limit));
    }
    threads.push_back(static_cast<unsigned>(count));
  }
  return threads;
}

bench_time time_of(const bench_flags& flags) {
  bench_time time;
  time.threads = threads_of(flags);
  time.seconds = parse_seconds("--seconds", flags.seconds, seconds_min, seconds_max);
  time.warm_up_seconds = flags.warm_up.empty()
                             ? std::min(1.0, time.seconds / 5)
                             : parse_seconds("--warm-up", flags.warm_up, 0, seconds_max);
  time.rounds = static_cast<unsigned>(parse_count("--repeat", flags.repeat, 1, rounds_max));
  return time;
}

bench::bench_options options_of(const bench_flags& flags) {
  bench::bench_options options;
  static_cast<bench::workload_choice&>(options) = read_workload_flags(flags);
  const bench_time time = time_of(flags);
  options.threads = time.threads;
  options.seconds = time.seconds;
  options.warm_up_seconds = time.warm_up_seconds;
  options.rounds = time.rounds;
  return options;
}

std::string heading(const bench::bench_options& options, const bench::bench_result& result) {
  const std::string kind = options.keys_are == bench::key_type::u64 ? " u64 keys"
                           : options.key_file.empty()
                               ? " URLs"
                               : " string keys of " + options.key_file.string();
  std::string text = count_text(result.keys) + kind + ", 8-byte values; ";
  if (options.rounds > 1)
    text += "medians of " + std::to_string(options.rounds) + " interleaved rounds, ";
  text += formatted("%g s each after %g s of warm-up; seed %llu\n", options.seconds,
                    options.warm_up_seconds, static_cast<unsigned long long>(options.seed));
  return text + machine_line() + ", commit " + source_commit() + "\n";
}

std::string title(const bench::bench_options& options, const bench::bench_run& run) {
  std::string text =
      "workload " + std::string(run.what->name) + ": " + std::string(run.what->description);
  if (run.what->scans) {
    text += ", scans of " + std::to_string(options.scan_length_min);
    if (options.scan_length_max != options.scan_length_min)
      text += " to " + std::to_string(options.scan_length_max);
  }
  if (run.what->visits_all_keys()) {
    return text + ", in " +
           std::string(bench::to_string(bench::order_of(*run.what, options.order))) + " order";
  }
  if (run.what->kind == bench::workload_kind::fronts) return text;
  text += "; " + run.distribution_name;
  const auto where = bench::parse_distribution(run.distribution_name);
  if (where && where->theta > 0 && !where->region && run.what->kind != bench::workload_kind::d) {
    text += where->scrambled ? " (hot keys scattered)" : " (hot keys adjacent)";
  }
  return text;
}

// One table for each workload and distribution, the indexes of each number of threads next to each
// other.
std::string tables(const bench::bench_options& options, const bench::bench_result& result) {
  // Columns of zeros tell nothing: shown where something was aborted or fell back often enough to
  // be seen.
  constexpr double aborts_shown_min = 0.0001;
  const bool elided =
      std::any_of(result.runs.begin(), result.runs.end(), [](const bench::bench_run& run) {
        const bench::index_counters& counts = run.counters;
        return counts.fallbacks > 0 ||
               static_cast<double>(counts.aborts()) >=
                   aborts_shown_min * static_cast<double>(run.counted_requests + 1);
      });
  const bool ratios = options.indexes.size() > 1;
  const bool spread = options.rounds > 1;
  std::string text;
  for (auto first = result.runs.begin(); first != result.runs.end();) {
    const auto last = std::find_if(first, result.runs.end(), [&](const bench::bench_run& run) {
      return run.what != first->what || run.distribution_name != first->distribution_name;
    });
    std::vector<table::column> columns{
        {"index"}, {"threads", table::right}, {"Mops/s", table::right}};
    if (spread) columns.push_back({"min..max", table::right});
    if (ratios) columns.push_back({"x first", table::right});
    columns.push_back({"p50 ns", table::right});
    columns.push_back({"p99 ns", table::right});
    columns.push_back({"p99.9 ns", table::right});
    columns.push_back({"bytes/key", table::right});
    if (elided) {
      columns.push_back({"aborts/op", table::right});
      columns.push_back({"fallback %", table::right});
    }
    table out(std::move(columns));
    for (auto run = first; run != last; ++run) {
      if (run != first && run->threads != std::prev(run)->threads && ratios) out.gap();
      std::vector<std::string> cells{std::string(run->index->name), std::to_string(run->threads),
                                     formatted("%.3f", run->mops)};
      if (spread) cells.push_back(formatted("%.3f..%.3f", run->mops_min, run->mops_max));
      if (ratios) cells.push_back(formatted("%.2f", run->ratio_to_first));
      cells.push_back(formatted("%.0f", run->latency.percentile(50)));
      cells.push_back(formatted("%.0f", run->latency.percentile(99)));
      cells.push_back(formatted("%.0f", run->latency.percentile(99.9)));
      cells.push_back(formatted("%.1f", run->bytes_per_key));
      if (elided) {
        const auto& counts = run->counters;
        cells.push_back(formatted("%.4f", counts.aborts_per_request(run->counted_requests)));
        cells.push_back(formatted("%.2f", counts.fallback_pct()));
      }
      out.row(std::move(cells));
    }
    text += "\n" + title(options, *first) + "\n" + out.text();
    first = last;
  }
  return text;
}

std::string notes(const bench::bench_options& options, const bench::bench_result& result) {
  std::string text;
  std::map<std::string, std::string> threads_by_reason;
  for (const bench::bench_skip& one : result.skipped) {
    std::string& threads = threads_by_reason[one.why + " (workload " + std::string(one.what->name)];
    threads += (threads.empty() ? "" : ", ") + std::to_string(one.threads);
  }
  for (const auto& [reason, threads] : threads_by_reason) {
    text.append("skipped: ").append(reason).append(", threads ").append(threads).append(")\n");
  }
  for (const bench::bench_run& run : result.runs) {
    if (run.misses == 0) continue;
    text += "WRONG: " + std::string(run.index->name) + " missed " + std::to_string(run.misses) +
            " of " + std::to_string(run.requests) + " keys in workload " +
            std::string(run.what->name) + "\n";
  }
  text += disturbed_runs_text(result.runs, [](const auto& run) { return run.cpu_wait_pct; });
  for (const bench::index_info* index : options.indexes) {
    const std::string remark = index->remark == nullptr ? std::string() : index->remark();
    if (!remark.empty()) text += "note: " + std::string(index->name) + " " + remark + "\n";
  }
  return text;
}

}  // namespace

static int bench_command(const bench_flags& flags) {
  const workload_family family = family_of(flags);
  refuse_flags_of_others(flags, family);
  switch (family) {
    case workload_family::tpcc:
      return tpcc_bench_command(flags, time_of(flags));
    case workload_family::ycsb_txn:
      return ycsb_txn_bench_command(flags, time_of(flags));
    case workload_family::smallbank:
      return smallbank_bench_command(flags, time_of(flags));
    case workload_family::keys:
      break;
  }
  const bench::bench_options options = options_of(flags);
  const bench_output output(flags);
  bench::bench_result result;
  {
    progress_bar bar;
    result = bench::run_bench(
        options, [&](const bench::bench_progress& at) { bar.show(at.done, at.doing); });
  }
  if (output.wanted()) output.write(bench_document(options, result));
  const std::string remarks = notes(options, result);
  if (output.to_stdout()) {
    std::fputs(remarks.c_str(), stderr);
    return 0;
  }
  const std::string text =
      heading(options, result) + tables(options, result) + (remarks.empty() ? "" : "\n" + remarks);
  print(text);
  return 0;
}

// Flags of workloads over databases.
static void add_database_options(command_parser& command, bench_flags& flags) {
  command
      .add_option("--warehouses", flags.warehouses,
                  "of the workload tpcc, which takes databases as --index [1]")
      .type_name("N,M");
  command
      .add_option("--readers", flags.readers,
                  "of tpcc, the transactions that only read: snapshots | transactions [snapshots]")
      .type_name("R");
  command
      .add_option("--durability", flags.durability,
                  "of databases: none, async, sync: each is a variant; a log is written to a "
                  "directory of its own [none]")
      .type_name("LEVEL,...");
  command
      .add_option("--folder", flags.directory,
                  "parent of these directories [the system's temporary directory]")
      .type_name("PATH");
  command
      .add_option("--customers", flags.customers,
                  "of tpcc, in each district [3000]; of smallbank, in all [18000]")
      .type_name("N");
  command.add_option("--items", flags.items, "of tpcc [100000]").type_name("N");
  command
      .add_option("--ops-per-txn", flags.operations,
                  "of ycsb-txn, whose --keys are 100K: different keys each [16]")
      .type_name("N");
  command
      .add_option("--theta", flags.theta, "of ycsb-txn, by Zipf's law: 0 (uniform) to 1.2 [0.99]")
      .type_name("T,...");
  command
      .add_option("--isolation", flags.isolation,
                  "of ycsb-txn and smallbank: serializable, repeatable-read, read-committed, "
                  "read-uncommitted: each is "
                  "a variant [serializable]")
      .type_name("LEVEL,...");
  command.add_option("--hot", flags.hot, "of smallbank: how many customers are hot [1000]")
      .type_name("N");
  command
      .add_option("--hot-percent", flags.hot_percent,
                  "of smallbank: percentage of draws that take a hot customer [90]")
      .type_name("P");
}

void add_bench_command(command_parser& app) {
  const auto flags = std::make_shared<bench_flags>();
  command_parser command = app.add_command("bench",
                                           "compare indexes on this machine; flags with a "
                                           "list take commas, and all combinations are run");
  command.footer(
      R"(Columns: Mops/s is millions of requests a second, all threads together, the median over the
rounds. min..max are the slowest and the fastest round. x first is the ratio of medians to the
first index. p50, p99 and p99.9 are the times of sampled requests (multi-get and multi-upsert: of
calls). bytes/key is the memory that loading took from the allocator, for each key. aborts/op counts
attempts that a conflict ended, fallback % operations that took their lock.
Workloads over databases (elidex list): tps is transactions a second. conflicts % is the share of
attempts that were repeated, of all transactions. lost is the difference between the expected
and the actual sum after a run: changes (ycsb-txn) or cents (smallbank). If the isolation level
guarantees that nothing is lost, a loss ends the command with status 1.)");
  flags->index = bench_index_default;
  add_workload_options(command, *flags, "; of databases: tpcc|ycsb-txn:a (b, c, f)|smallbank");
  command
      .add_option("--csv", flags->csv,
                  "write the runs to FILE as CSV, a row each; - for standard output")
      .type_name("FILE");
  command.add_option("--threads", flags->threads, "threads").type_name("N,M").shows_default();
  command.add_flag("--oversubscribe", flags->oversubscribe,
                   "allow more threads than the machine has CPUs");
  command.add_option("--seconds", flags->seconds, "measured time of each run")
      .type_name("S")
      .shows_default();
  command
      .add_option("--warm-up", flags->warm_up,
                  "time before the measurement [a fifth of --seconds, at most 1]")
      .type_name("S");
  command.add_option("--repeat", flags->repeat, "rounds; medians are reported")
      .type_name("R")
      .shows_default();
  add_database_options(command, *flags);
  command.runs([flags] { return bench_command(*flags); });
}

}  // namespace elidex::cli
