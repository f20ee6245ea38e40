// The elidex program: which index under which synchronisation is fast on this machine, and why.
//
// Exit status: 0 done, 1 something failed, 2 the command line asks for what cannot be done (one
// line says which flag and what is expected). A signal that ends it is what it dies by, after it
// has cleaned up (bench/support/cleanup.hpp).

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "bench/support/bad_input.hpp"
#include "cli/command_line.hpp"

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
  command_parser app("elidex",
                     "Ordered in-memory indexes and locks that stay fast under contention");
  add_doctor_command(app);
  add_list_command(app);
  add_bench_command(app);
  add_sim_command(app);
  add_repro_command(app);
  add_elide_command(app);
  command_parser column = app.add_command(
      "column", "load a column of a CSV file into elidex::column, and measure or query it");
  add_column_load_command(column);
  add_column_query_command(column);
  command_parser db = app.add_command(
      "db", "list, dump, load, verify or copy a database's directory; compare stores");
  add_database_commands(db);
  add_store_bench_commands(db);
  add_report_command(app);
  try {
    return app.run(argc, argv);
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
