// The elidex program: which index under which synchronisation is fast on this machine, and why.
//
// Exit status: 0 done, 1 something failed, 2 the command line asks for what cannot be done (one
// line says which flag and what is expected). A signal that ends it is what it dies by, after it
// has cleaned up (bench/support/cleanup.hpp).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "bench/support/bad_input.hpp"
#include "bench/support/near_match.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "elidex/version.hpp"

namespace {

constexpr int status_failed = 1;
constexpr int status_bad_input = 2;

// One line, whatever the user typed into it.
void print_error(std::string text) {
  constexpr std::string_view name = "elidex: ";
  // the library's errors begin with it, too
  if (text.starts_with(name)) text.erase(0, name.size());
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  std::fprintf(stderr, "elidex: %s\n", text.c_str());
}

// What the parser would only call a missing subcommand.
void check_command(const CLI::App& app, const char* first) {
  const std::string word = first == nullptr ? "" : first;
  if (word.starts_with("-")) return;
  std::vector<std::string> names;
  std::string list;
  for (const CLI::App* const one : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (one->check_name(word)) return;
    names.push_back(one->get_name());
    list += (list.empty() ? "" : ", ") + one->get_name();
  }
  throw elidex::bench::bad_input(
      (word.empty() ? "a command is missing" : "'" + word + "' is not a command") + " (expected " +
      list + ")" + elidex::bench::did_you_mean(word, names));
}

// No flag takes nothing: an empty file name, for one, would look like a flag that was not given. A
// value that a column is asked for may be empty, and an argument of another program.
void refuse_empty_values(CLI::App& app) {
  constexpr std::string_view may_be_empty[] = {"--find", "--range", "--count", "PROGRAM"};
  for (CLI::Option* const one : app.get_options()) {
    const std::string name = one->get_name();
    if (std::find(std::begin(may_be_empty), std::end(may_be_empty), name) != std::end(may_be_empty))
      continue;
    one->check([name, type = one->get_type_name()](const std::string& text) {
      if (text.empty()) elidex::cli::refuse_value(name, text, type == " " ? "a file" : type);
      return std::string();
    });
  }
  for (CLI::App* const one : app.get_subcommands([](const CLI::App*) { return true; }))
    refuse_empty_values(*one);
}

// What the parser has to say, with the command whose --help says more.
std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error) {
  std::string command = "elidex ";
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    command += at->get_name() + " ";
  }
  const std::string text = std::string(error.what()) + " (" + command + "--help)";
  std::vector<std::string> flags;
  for (const CLI::Option* const one : at->get_options()) {
    for (const std::string& name : one->get_lnames()) flags.push_back("--" + name);
  }
  for (const std::string& word : at->remaining()) {
    if (word.starts_with("--"))
      return text + elidex::bench::did_you_mean(word.substr(0, word.find('=')), flags);
  }
  return text;
}

constexpr const char* json_help =
    "write the results to FILE as JSON (schema 1); - for standard output";

void add_workload_options(CLI::App& app, elidex::cli::workload_flags& flags) {
  app.add_option("--index", flags.index, "names from 'elidex list'")
      ->type_name("A,B")
      ->capture_default_str();
  app.add_option("--workload", flags.workload,
                 "a|b|c|d|e|f|load|bulk-load|delete|churn|mix:N (N % read, the rest "
                 "update)|insert-mix:N (N % insert, "
                 "the rest read)|multi-get:N (N keys with one call); of databases, in bench: "
                 "tpcc|ycsb-txn:a (b, c, "
                 "f)|smallbank")
      ->type_name("A,B")
      ->capture_default_str();
  app.add_option("--dist", flags.dist,
                 "uniform | zipf:THETA[:scrambled], THETA 0 to 1.2 | hot:THETA, 0 to 1")
      ->type_name("A,B")
      ->capture_default_str();
  app.add_option("--keys", flags.keys, "keys to load, such as 10M [1M, or the whole key file]")
      ->type_name("N");
  app.add_option("--key-type", flags.key_type,
                 "u64 | string [u64, or string with --key-file]; string: URLs of 30-80 bytes")
      ->type_name("T");
  app.add_option("--key-file", flags.key_file,
                 "string keys, one per line, in place of URLs: at most 64 KiB each, 1 GiB and 100M "
                 "together")
      ->type_name("FILE");
  app.add_option("--scan-length", flags.scan_length,
                 "of workload e: N, or LOW-HIGH drawn uniformly (YCSB: 1-100)")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--order", flags.order, "of load and delete: random | ascending | interleaved")
      ->type_name("O")
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "equal seeds give equal requests")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--json", flags.json, json_help)->type_name("FILE");
}

void add_column_options(CLI::App& app, elidex::cli::column_flags& flags) {
  app.add_option("FILE", flags.file, "a CSV file whose first row names the columns")
      ->type_name(" ")
      ->required();
  app.add_option("--column", flags.column, "which column, by its name")
      ->type_name("NAME")
      ->required();
  app.add_option("--type", flags.type,
                 "auto | int | double | string; auto: the first of the rest that takes all cells")
      ->type_name("T")
      ->capture_default_str();
  app.add_flag("--skip-bad", flags.skip_bad,
               "leave out rows that are wrong, and say so, instead of refusing the file");
  app.add_option("--json", flags.json, json_help)->type_name("FILE");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace elidex::cli;
  CLI::App app("Ordered in-memory indexes and locks that stay fast under contention", "elidex");
  app.set_version_flag("--version", std::string("elidex ") + elidex::version);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  int status = 0;

  doctor_flags doctor;
  CLI::App* const doctor_app =
      app.add_subcommand("doctor", "what this machine offers: transactions, caches, huge pages");
  doctor_app->add_option("--json", doctor.json, json_help)->type_name("FILE");
  doctor_app->callback([&] { status = doctor_command(doctor); });

  list_flags list;
  CLI::App* const list_app = app.add_subcommand("list", "the indexes, workloads and distributions");
  list_app->add_option("--json", list.json, json_help)->type_name("FILE");
  list_app->callback([&] { status = list_command(list); });

  bench_flags bench;
  CLI::App* const bench_app = app.add_subcommand("bench",
                                                 "compare indexes on this machine; flags with a "
                                                 "list take commas, and all combinations are run");
  bench_app->footer(
      "Columns: Mops/s is the median over the rounds of millions of requests a second, all threads "
      "together, and "
      "min..max\n"
      "its slowest and fastest round; x first is the ratio of medians to the index named first; "
      "p50 and p99 are of "
      "single\n"
      "requests (of multi-get: of calls), sampled; bytes/key is what loading took from the "
      "allocator, for each key;\n"
      "aborts/op counts attempts thrown away by conflicts, fallback % operations that took their "
      "lock after all.\n"
      "Workloads over databases (elidex list): tps is transactions a second, conflicts % attempts "
      "that were repeated, "
      "of "
      "all\n"
      "transactions; lost is what the sum behind a run lacks: changes (ycsb-txn) or cents "
      "(smallbank). A loss that "
      "the\n"
      "isolation level promises not to have ends the command with status 1.");
  bench.index = bench_index_default;
  add_workload_options(*bench_app, bench);
  bench_app->add_option("--threads", bench.threads, "threads")
      ->type_name("N,M")
      ->capture_default_str();
  bench_app->add_flag("--oversubscribe", bench.oversubscribe,
                      "allow more threads than the machine has CPUs");
  bench_app->add_option("--seconds", bench.seconds, "measured time of each run")
      ->type_name("S")
      ->capture_default_str();
  bench_app
      ->add_option("--warm-up", bench.warm_up,
                   "time before the measurement [a fifth of --seconds, at most 1]")
      ->type_name("S");
  bench_app->add_option("--repeat", bench.repeat, "rounds; medians are reported")
      ->type_name("R")
      ->capture_default_str();
  bench_app
      ->add_option("--warehouses", bench.warehouses,
                   "of the workload tpcc, which takes databases as --index [1]")
      ->type_name("N,M");
  bench_app
      ->add_option("--readers", bench.readers,
                   "of tpcc, the transactions that only read: snapshots | transactions [snapshots]")
      ->type_name("R");
  bench_app
      ->add_option("--durability", bench.durability,
                   "of databases: none, async, sync: each is a variant; a log is written to a "
                   "folder of its own [none]")
      ->type_name("LEVEL,...");
  bench_app
      ->add_option("--folder", bench.folder,
                   "in which databases make those folders [the system's temporary one]")
      ->type_name("PATH");
  bench_app
      ->add_option("--customers", bench.customers,
                   "of tpcc, in each district [3000]; of smallbank, in all [18000]")
      ->type_name("N");
  bench_app->add_option("--items", bench.items, "of tpcc [100000]")->type_name("N");
  bench_app
      ->add_option("--ops-per-txn", bench.operations,
                   "of ycsb-txn, whose --keys are 100K: different keys each [16]")
      ->type_name("N");
  bench_app
      ->add_option("--theta", bench.theta,
                   "of ycsb-txn, by Zipf's law: 0 (all alike) to 1.2 [0.99]")
      ->type_name("T,...");
  bench_app
      ->add_option("--isolation", bench.isolation,
                   "of ycsb-txn and smallbank: serializable, repeatable-read, read-committed, "
                   "read-uncommitted: each is "
                   "a variant [serializable]")
      ->type_name("LEVEL,...");
  bench_app->add_option("--hot", bench.hot, "of smallbank: how many customers are hot [1000]")
      ->type_name("N");
  bench_app
      ->add_option("--hot-percent", bench.hot_percent,
                   "of smallbank: how many of those drawn are hot [90]")
      ->type_name("P");
  bench_app->callback([&] { status = bench_command(bench); });

  sim_flags sim;
  CLI::App* const sim_app = app.add_subcommand(
      "sim",
      "the same on a simulated machine with hardware transactions; equal flags give equal runs");
  add_workload_options(*sim_app, sim);
  sim_app->add_option("--machine", sim.machine, "a name from 'elidex list', or a machine file")
      ->type_name("M")
      ->capture_default_str();
  sim_app
      ->add_option("--cores,--threads", sim.cores, "threads, each on a hardware thread of its own")
      ->type_name("N,M")
      ->capture_default_str();
  sim_app->add_option("--ops", sim.operations, "operations of each thread")
      ->type_name("N")
      ->capture_default_str();
  sim_app
      ->add_option(
          "--retries", sim.retries,
          "after conflicts, of all that elide by RTM but */rtm-noretry [their own: 8; of DBX 128]")
      ->type_name("N");
  sim_app
      ->add_option("--leaf-version", sim.leaf_version,
                   "of btree/htm-dbx: none | head | line (counted by each write)")
      ->type_name("V")
      ->capture_default_str();
  sim_app
      ->add_option("--quantum", sim.quantum,
                   "cycles that a core may run ahead; 0 for published numbers")
      ->type_name("N")
      ->capture_default_str();
  sim_app->add_option("--set", sim.set, "another value for a machine's parameter; may be repeated")
      ->type_name("NAME=N");
  sim_app
      ->add_option("--trace", sim.trace,
                   "write a timeline of all transactions to FILE, for a trace viewer")
      ->type_name("FILE");
  sim_app->add_option("--jobs", sim.jobs, "runs at the same time [the CPUs here]")->type_name("N");
  sim_app->callback([&] { status = sim_command(sim); });

  repro_flags repro;
  CLI::App* const repro_app =
      app.add_subcommand("repro", "repeat the papers' figures and tables, and say what agrees");
  repro_app
      ->add_option("id", repro.ids,
                   "a claim (S-3.5), a figure with all its claims (E-F2), a paper (K, E, S), all")
      ->type_name("ID")
      ->required();
  repro_app->add_option("--scale", repro.scale, "smoke | full")
      ->type_name("S")
      ->capture_default_str();
  repro_app->add_option("--machine", repro.machine, "another machine than the paper's")
      ->type_name("M");
  repro_app->add_option("--seed", repro.seed, "equal seeds give equal results")
      ->type_name("N")
      ->capture_default_str();
  repro_app->add_option("--out", repro.out, "the directory for plots")
      ->type_name("DIR")
      ->capture_default_str();
  repro_app->add_option("--jobs", repro.jobs, "runs at the same time [the CPUs here]")
      ->type_name("N");
  repro_app->add_option("--json", repro.json, json_help)->type_name("FILE");
  repro_app->callback([&] { status = repro_command(repro); });

  elide_flags elide;
  CLI::App* const elide_app = app.add_subcommand(
      "elide",
      "run a program with its locks elided, or counted: elidex elide [FLAGS] -- PROGRAM ARGS");
  elide_app->footer(
      "Without hardware transactions nothing is elided; --stats works everywhere. See "
      "docs/PRELOAD.md.");
  elide_app
      ->add_option("--stats", elide.stats,
                   "a table of what its locks did, at its end; - for standard error")
      ->type_name("FILE");
  elide_app->add_option("--elision", elide.elision, "on | off [on]")->type_name("S");
  elide_app->add_option("PROGRAM", elide.command, "and its arguments, behind --")->type_name(" ");
  elide_app->callback([&] { status = elide_command(elide); });

  CLI::App* const column_app =
      app.add_subcommand("column", "a column of a CSV file in elidex::column");
  column_app->require_subcommand(1);

  column_load_flags load;
  CLI::App* const load_app = column_app->add_subcommand(
      "load", "fill a column with the cells and merge it: how fast, how small");
  load_app->footer(
      "Columns: distinct % is of the rows; CSV MB/s counts the file's bytes, M rows/s millions of "
      "insertions a "
      "second,\n"
      "all threads together; bytes/row is what the delta takes before the merge, the main after "
      "it, and a std::vector\n"
      "of the same values; ID bits is what a row takes in the main beside the dictionary.");
  add_column_options(*load_app, load);
  load_app
      ->add_option("--rows", load.rows,
                   "rows to insert, such as 10M; the file's are repeated [as the file has]")
      ->type_name("N");
  load_app->add_option("--threads", load.threads, "threads that insert")
      ->type_name("N")
      ->capture_default_str();
  load_app->callback([&] { status = column_load_command(load); });

  column_query_flags query;
  CLI::App* const query_app =
      column_app->add_subcommand("query", "fill a column with the cells, merge it and ask it");
  query_app->footer(
      "Rows are counted from 1 behind the header, also those left out. Values from LO to HI, both "
      "included; strings "
      "are\n"
      "compared as bytes.");
  add_column_options(*query_app, query);
  query_app->add_option("--find", query.find, "the rows that have a value")
      ->type_name("V")
      ->expected(1)
      ->allow_extra_args(false);
  query_app->add_option("--range", query.range, "the rows with values from LO to HI")
      ->type_name("LO HI")
      ->expected(2)
      ->allow_extra_args(false);
  query_app->add_option("--count", query.count, "how many rows have values from LO to HI")
      ->type_name("LO HI")
      ->expected(2)
      ->allow_extra_args(false);
  query_app->add_flag("--distinct", query.distinct, "how many different values there are");
  query_app->add_option("--top", query.top, "the N most frequent values")->type_name("N");
  query_app->add_option("--limit", query.limit, "rows to list at most, of --find and of --range")
      ->type_name("N")
      ->capture_default_str();
  query_app->callback([&] { status = column_query_command(query); });

  report_flags report;
  CLI::App* const report_app = app.add_subcommand("report", "one HTML page of everything measured");
  report_app
      ->add_option("files", report.files,
                   "results in JSON [results/*.json and docs/results/*.json]")
      ->type_name("FILE");
  report_app->add_option("--out", report.out, "the page")->type_name("FILE")->capture_default_str();
  report_app->callback([&] { status = report_command(report); });

  refuse_empty_values(app);
  try {
    check_command(app, argc > 1 ? argv[1] : nullptr);
    if (column_app->check_name(argc > 1 ? argv[1] : ""))
      check_command(*column_app, argc > 2 ? argv[2] : nullptr);
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    print_error(parse_error_text(app, error));
    return status_bad_input;
  } catch (const elidex::bench::bad_input& error) {
    print_error(error.what());
    return status_bad_input;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return status_failed;
  } catch (const std::exception& error) {
    print_error(error.what());
    return status_failed;
  }
}
