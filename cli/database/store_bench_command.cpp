// elidex db bench: the table store beside other stores on disk, on the same work.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/stores/driver.hpp"
#include "bench/stores/killed_writer.hpp"
#include "bench/stores/rows.hpp"
#include "bench/support/bad_input.hpp"
#include "bench/table_store/bench.hpp"
#include "cli/bench_output.hpp"
#include "cli/command_line.hpp"
#include "cli/database/store_bench_output.hpp"
#include "cli/database_bench.hpp"
#include "cli/flags.hpp"
#include "cli/progress.hpp"
#include "cli/workload_flags.hpp"

namespace elidex::cli {
namespace {

namespace stores = bench::stores;

// Limits against slips of the keyboard.
constexpr std::uint64_t rows_max = 1'000'000'000;
constexpr std::uint64_t value_bytes_max = 65'536;
constexpr std::uint64_t threads_max = 256;
constexpr std::uint64_t commit_rows_max = 1'000;
constexpr std::uint64_t commits_max = 1'000'000;
constexpr std::uint64_t rounds_max = 1'000;
constexpr double seconds_min = 0.01;
constexpr double seconds_max = 3'600;

constexpr const char* killed_writer_command = "killed-writer";

struct store_bench_flags {
  std::string against;
  std::string work;
  std::string durability = "sync,async";
  std::string rows = "100K";
  std::string value_bytes = "100";
  std::string threads = "1";
  std::string commit_threads = "1,8,64";
  std::string rows_per_commit = "1";
  std::string recovery_commits = "500";
  std::string seconds = "1";
  std::string repeat = "3";
  std::string directory;
  std::string seed = "1";
  std::string json;
};

std::vector<const stores::store_info*> read_stores(const std::string& against) {
  std::vector<const stores::store_info*> all{stores::find_store(stores::own_store)};
  std::vector<std::string> names;
  for (const stores::store_info& one : stores::stores()) {
    if (one.name != stores::own_store) names.emplace_back(one.name);
  }
  if (against.empty()) {
    for (const std::string& name : names) {
      if (stores::find_store(name)->not_built.empty()) all.push_back(stores::find_store(name));
    }
    return all;
  }
  for (const std::string& name : list_of("--against", against)) {
    const stores::store_info* const found = stores::find_store(name);
    if (found == nullptr || name == stores::own_store)
      refuse_value("--against", name, "sqlite, lmdb or rocksdb", names);
    if (!found->not_built.empty()) {
      refuse("--against", name, "is not built: " + found->not_built,
             "a program that was built with its library");
    }
    all.push_back(found);
  }
  return all;
}

std::vector<const stores::work_info*> read_works(const std::string& text) {
  std::vector<const stores::work_info*> all;
  if (text.empty()) {
    for (const stores::work_info& one : stores::works()) all.push_back(&one);
    return all;
  }
  for (const std::string& name : list_of("--work", text)) {
    const stores::work_info* const found = stores::find_work(name);
    if (found == nullptr) {
      refuse_value("--work", name, "a work that 'elidex db bench --help' lists",
                   names_of(stores::works()));
    }
    all.push_back(found);
  }
  // Works that insert rows come last, whatever the order of the names.
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<unsigned> read_threads(const char* flag, const std::string& text) {
  std::vector<unsigned> all;
  for (const std::string& one : list_of(flag, text))
    all.push_back(static_cast<unsigned>(parse_count(flag, one, 1, threads_max)));
  return all;
}

stores::bench_options read_options(const store_bench_flags& flags) {
  stores::bench_options options;
  options.stores = read_stores(flags.against);
  options.works = read_works(flags.work);
  options.levels = read_durability(flags.durability);
  options.rows = parse_count("--rows", flags.rows, 1, rows_max);
  options.value_bytes = static_cast<std::size_t>(
      parse_count("--value-bytes", flags.value_bytes, stores::value_bytes_min, value_bytes_max));
  options.threads = read_threads("--threads", flags.threads);
  options.commit_threads = read_threads("--commit-threads", flags.commit_threads);
  const bool commits = std::any_of(options.works.begin(), options.works.end(), [](const auto* one) {
    return one->kind == stores::work_kind::commits;
  });
  for (const unsigned threads : options.commit_threads) {
    if (commits && threads > options.rows)
      refuse("--commit-threads", std::to_string(threads), "is more than --rows",
             "a row for each thread");
  }
  options.rows_per_commit = static_cast<unsigned>(
      parse_count("--rows-per-commit", flags.rows_per_commit, 1, commit_rows_max));
  options.recovery_commits =
      parse_count("--recovery-commits", flags.recovery_commits, 1, commits_max);
  options.seconds = parse_seconds("--seconds", flags.seconds, seconds_min, seconds_max);
  options.rounds = static_cast<unsigned>(parse_count("--repeat", flags.repeat, 1, rounds_max));
  options.seed = parse_count("--seed", flags.seed, 0, UINT64_MAX);
  options.directory = flags.directory;
  options.killed_writer = {"/proc/self/exe", "db", killed_writer_command};
  // elidex's records with their versions, the other stores' caches, and the lists of versions.
  constexpr double bytes_besides_value = 400;
  constexpr double copies = 4;
  bench::table_store::refuse_what_does_not_fit(
      "--rows", options.rows, "of them",
      bytes_besides_value + copies * static_cast<double>(options.value_bytes), 0);
  return options;
}

int store_bench_command(const store_bench_flags& flags) {
  const stores::bench_options options = read_options(flags);
  const bench_output output(flags.json);
  stores::bench_result result;
  {
    progress_bar bar;
    result = stores::run_bench(
        options, [&](const stores::bench_progress& at) { bar.show(at.done, at.doing); });
  }
  const std::string wrong = store_bench_violations(result);
  const std::string notes =
      wrong + disturbed_runs_text(result.runs, [](const auto& run) { return run.cpu_wait_pct; });
  if (output.wanted()) output.write(store_bench_document(options, result));
  if (output.to_stdout()) {
    std::fputs(notes.c_str(), stderr);
  } else {
    print(store_bench_text(options, result) + (notes.empty() ? "" : "\n" + notes));
  }
  return wrong.empty() ? 0 : 1;
}

struct killed_writer_flags {
  std::string store;
  std::string directory;
  std::string durability;
  std::string rows;
  std::string value_bytes;
  std::string commits;
  std::string acknowledged;
};

int killed_writer(const killed_writer_flags& flags) {
  const stores::store_info* const store = stores::find_store(flags.store);
  if (store == nullptr || !store->not_built.empty())
    refuse_value("--store", flags.store, "a store of this program");
  stores::write_until_killed(
      *store, {.setup = {.directory = flags.directory,
                         .level = read_durability(flags.durability).front(),
                         .value_bytes = static_cast<std::size_t>(
                             parse_count("--value-bytes", flags.value_bytes, 1, value_bytes_max)),
                         .rows = parse_count("--rows", flags.rows, 1, rows_max)},
               .commits = parse_count("--commits", flags.commits, 1, commits_max),
               .acknowledged = flags.acknowledged});
}

void add_killed_writer(command_parser& db) {
  const auto flags = std::make_shared<killed_writer_flags>();
  command_parser command = db.add_hidden_command(killed_writer_command);
  command.add_option("--store", flags->store, "").required();
  command.add_option("--dir", flags->directory, "").required();
  command.add_option("--durability", flags->durability, "").required();
  command.add_option("--rows", flags->rows, "").required();
  command.add_option("--value-bytes", flags->value_bytes, "").required();
  command.add_option("--commits", flags->commits, "").required();
  command.add_option("--acknowledged", flags->acknowledged, "").required();
  command.runs([flags] { return killed_writer(*flags); });
}

std::string footer() {
  std::string text = "Works:\n";
  for (const stores::work_info& one : stores::works())
    text +=
        formatted("  %-10s ", std::string(one.name).c_str()) + std::string(one.description) + "\n";
  return text + R"(
All stores of a durability level do the same work, and take turns in each round. Stores of
different levels are not compared. The first table of a level lists what an acknowledged commit
survives. 'a second' counts transactions, of load rows. x best peer is the ratio to the best
median of the other stores. Each read is checked, and after each run all rows: a wrong result is
reported as WRONG, and ends the command with status 1.)";
}

}  // namespace

void add_store_bench_commands(command_parser& db) {
  const auto flags = std::make_shared<store_bench_flags>();
  command_parser command =
      db.add_command("bench", "compare the table store with other stores on the same work");
  command.add_option("--against", flags->against, "sqlite, lmdb, rocksdb [those that are built]")
      .type_name("A,B");
  command.add_option("--work", flags->work, "the works listed below [all]").type_name("A,B");
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    command.add_option(name, value, help).type_name(type).shows_default();
  };
  add("--durability", flags->durability,
      "levels: sync, async, none (elidex only; nothing is written)", "LEVEL,...");
  add("--rows", flags->rows, "rows to load", "N");
  add("--value-bytes", flags->value_bytes, "bytes of a row, at least 16", "N");
  add("--threads", flags->threads, "threads of the works that send requests", "N,M");
  add("--commit-threads", flags->commit_threads, "threads of the work commits", "N,M");
  add("--rows-per-commit", flags->rows_per_commit, "rows of a transaction of the work commits",
      "N");
  add("--recovery-commits", flags->recovery_commits,
      "commits after which the work recovery kills the process", "N");
  add("--seconds", flags->seconds, "measured time of each run", "S");
  add("--repeat", flags->repeat, "rounds; medians are reported", "R");
  command
      .add_option("--dir", flags->directory,
                  "directory to make a temporary one in [the system's temporary directory]")
      .type_name("DIR");
  add("--seed", flags->seed, "seed of all random draws", "N");
  command.add_option("--json", flags->json, json_help).type_name("FILE");
  command.footer(footer());
  command.runs([flags] { return store_bench_command(*flags); });
  add_killed_writer(db);
}

}  // namespace elidex::cli
