// The elidex program: which index under which synchronisation is fast on this machine, and why.
//
// Exit status: 0 done, 1 something failed, 2 the command line asks for what cannot be done (one
// line says which flag and what is expected). A signal that ends it is what it dies by, after it
// has cleaned up (bench/support/cleanup.hpp).

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "bench/support/bad_input.hpp"
#include "cli/command_line.hpp"
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

}  // namespace

int main(int argc, char** argv) {
  using namespace elidex::cli;
  CLI::App app("Ordered in-memory indexes and locks that stay fast under contention", "elidex");
  app.set_version_flag("--version", std::string("elidex ") + elidex::version);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  int status = 0;
  add_doctor_command(app, status);
  add_list_command(app, status);
  add_bench_command(app, status);
  add_sim_command(app, status);
  add_repro_command(app, status);
  add_elide_command(app, status);
  CLI::App* const column_app =
      app.add_subcommand("column", "a column of a CSV file in elidex::column");
  column_app->require_subcommand(1);
  add_column_load_command(*column_app, status);
  add_column_query_command(*column_app, status);
  add_report_command(app, status);

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
