// The elidex program: which index under which synchronisation is fast on this machine, and why.
//
// Exit status: 0 done, 1 something failed, 2 the command line asks for what cannot be done (one line says
// which flag and what it takes).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "lab/bad_input.hpp"
#include "tools/commands.hpp"

namespace {

constexpr int status_failed = 1;
constexpr int status_bad_input = 2;

// One line, whatever the user typed into it.
void print_error(std::string text) {
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  std::fprintf(stderr, "elidex: %s\n", text.c_str());
}

// What the parser would only call a missing subcommand.
void check_command(const CLI::App& app, const char* first) {
  const std::string word = first == nullptr ? "" : first;
  if (word.starts_with("-")) return;
  std::string names;
  for (const CLI::App* const one : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (one->check_name(word)) return;
    names += (names.empty() ? "" : ", ") + one->get_name();
  }
  throw elidex::lab::bad_input((word.empty() ? "a command is missing" : "'" + word + "' is no command") +
                               std::string("; it takes ") + names);
}

constexpr const char* json_help = "write the results to FILE as JSON (schema 1); - for standard output";

}  // namespace

int main(int argc, char** argv) {
  using namespace elidex::tools;
  CLI::App app("Ordered in-memory indexes and locks that stay fast under contention", "elidex");
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
  CLI::App* const bench_app = app.add_subcommand(
      "bench", "compare indexes on this machine; flags with a list take commas, and all combinations are run");
  bench_app->add_option("--index", bench.index, "names from 'elidex list'")->type_name("A,B")->capture_default_str();
  bench_app->add_option("--workload", bench.workload, "a|b|c|d|e|f|load|delete")
      ->type_name("A,B")
      ->capture_default_str();
  bench_app->add_option("--dist", bench.dist, "uniform | zipf:THETA | zipf:THETA:scrambled, THETA 0 to 1.2")
      ->type_name("A,B")
      ->capture_default_str();
  bench_app->add_option("--keys", bench.keys, "keys to load, such as 10M [1M, or the whole key file]")->type_name("N");
  bench_app->add_option("--threads", bench.threads, "threads")->type_name("N,M")->capture_default_str();
  bench_app->add_flag("--oversubscribe", bench.oversubscribe, "allow more threads than the machine has CPUs");
  bench_app->add_option("--seconds", bench.seconds, "measured time of each run")->type_name("S")->capture_default_str();
  bench_app->add_option("--warm-up", bench.warm_up, "time before the measurement [a fifth of --seconds, at most 1]")
      ->type_name("S");
  bench_app->add_option("--repeat", bench.repeat, "rounds; medians are reported")
      ->type_name("R")
      ->capture_default_str();
  bench_app->add_option("--key-type", bench.key_type, "u64 | string [u64, or string with --key-file]")->type_name("T");
  bench_app->add_option("--key-file", bench.key_file, "string keys, one per line")->type_name("FILE");
  bench_app
      ->add_option("--scan-length", bench.scan_length, "of workload e: N, or LOW-HIGH drawn uniformly (YCSB: 1-100)")
      ->type_name("N")
      ->capture_default_str();
  bench_app->add_option("--order", bench.order, "of load and delete: random | ascending")
      ->type_name("O")
      ->capture_default_str();
  bench_app->add_option("--seed", bench.seed, "equal seeds give equal requests")->type_name("N")->capture_default_str();
  bench_app->add_option("--json", bench.json, json_help)->type_name("FILE");
  bench_app->callback([&] { status = bench_command(bench); });

  report_flags report;
  CLI::App* const report_app = app.add_subcommand("report", "one HTML page of everything measured");
  report_app->add_option("files", report.files, "results in JSON [results/*.json and docs/results/*.json]")
      ->type_name("FILE");
  report_app->add_option("--out", report.out, "the page")->type_name("FILE")->capture_default_str();
  report_app->callback([&] { status = report_command(report); });

  try {
    check_command(app, argc > 1 ? argv[1] : nullptr);
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    print_error(std::string(error.what()) + " (elidex " +
                (app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name() + " ") + "--help)");
    return status_bad_input;
  } catch (const elidex::lab::bad_input& error) {
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
