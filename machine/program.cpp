// Runs a whole program, main() and all its threads, on the machine: what elidex-c++ links programs
// with. docs/MACHINE.md, "Your own program", describes the settings and the report.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "machine/engine.hpp"
#include "machine/simulation.hpp"

namespace elidex::sim {
namespace {

namespace fs = std::filesystem;

struct program_settings {
  fs::path machine_file;
  std::vector<std::pair<std::string, std::uint64_t>> parameters;
  run_options options;
  bool elided = false;
  fs::path report;  // empty: none in JSON
};

// The directory of the machine files: of the installation that this library belongs to, or of the
// source tree.
fs::path machines_directory() {
  Dl_info about{};
  std::error_code error;
  if (::dladdr(reinterpret_cast<const void*>(&machines_directory), &about) != 0) {
    const fs::path library = fs::canonical(about.dli_fname, error);  // PREFIX/libexec/elidex/X.so
    const fs::path installed =
        library.parent_path().parent_path().parent_path() / "share/elidex/machine/machines";
    if (!error && fs::is_directory(installed, error)) return installed;
  }
  return ELIDEX_SIM_MACHINES;
}

// A wrong setting.
struct refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void refuse(const std::string& why) {
  throw refused("ELIDEX_SIM: " + why);
}

fs::path file_of_machine(const std::string& name) {
  std::error_code error;
  const fs::path listed = machines_directory() / (name + ".machine");
  if (fs::is_regular_file(listed, error)) return listed;
  if (fs::is_regular_file(name, error)) return name;
  std::string names;
  for (const auto& entry : fs::directory_iterator(machines_directory(), error))
    names += (names.empty() ? "" : ", ") + entry.path().stem().string();
  refuse("machine: unknown machine '" + name + "' (expected a file, or one of " + names + ")");
}

std::uint64_t number_in(const std::string& key, const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 18 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) refuse(key + ": '" + text + "' is not a number");
  return std::stoull(text);
}

void set(program_settings& settings, const std::string& key, const std::string& value) {
  if (key == "machine") {
    settings.machine_file = file_of_machine(value);
  } else if (key == "cpus") {
    const std::uint64_t cpus = number_in(key, value);
    if (cpus == 0 || cpus > threads_max)
      refuse("cpus: expected 1 to " + std::to_string(threads_max));
    settings.options.cpus = static_cast<unsigned>(cpus);
  } else if (key == "seed") {
    settings.options.seed = number_in(key, value);
  } else if (key == "locks") {
    if (value != "plain" && value != "elided")
      refuse("locks: unknown value '" + value + "' (expected plain or elided)");
    settings.elided = value == "elided";
  } else if (key == "report") {
    settings.report = value;
  } else {
    settings.parameters.emplace_back(key, number_in(key, value));
  }
}

// The words KEY=VALUE of the environment variable ELIDEX_SIM.
program_settings read_settings() {
  program_settings settings;
  settings.machine_file = file_of_machine("haswell-ep-2x10");
  const char* const text = std::getenv("ELIDEX_SIM");
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) refuse("'" + word + "': expected KEY=VALUE");
    set(settings, word.substr(0, equals), word.substr(equals + 1));
  }
  return settings;
}

machine machine_of(const program_settings& settings) {
  machine which = [&] {
    try {
      return read_machine(settings.machine_file);
    } catch (const bad_machine& error) {
      refuse(error.what());
    }
  }();
  for (const auto& [name, value] : settings.parameters) {
    try {
      set_parameter(which, name, value);
    } catch (const std::invalid_argument& error) {
      refuse(error.what());
    }
  }
  if (settings.options.cpus > which.hardware_threads())
    refuse("cpus: " + which.name + " has " + std::to_string(which.hardware_threads()));
  return which;
}

double milliseconds_of(const machine& which, std::uint64_t cycles) {
  return static_cast<double>(cycles) / static_cast<double>(which.megahertz) / 1000;
}

void print(const machine& which, const program_settings& settings, const report& r) {
  const thread_report all = r.total();
  std::fprintf(stderr, "elidex: %s, %s locks: %zu threads, %.3f ms simulated, %llu accesses\n",
               which.name.c_str(), settings.elided ? "elided" : "plain", r.threads.size(),
               milliseconds_of(which, r.cycles), static_cast<unsigned long long>(all.accesses));
  if (all.begun == 0) return;
  std::string reasons;
  for (std::size_t i = 0; i < abort_reasons; ++i) {
    if (all.aborts[i] == 0) continue;
    reasons += (reasons.empty() ? "" : ", ") +
               std::string(to_string(static_cast<abort_reason>(i))) + " " +
               std::to_string(all.aborts[i]);
  }
  std::fprintf(stderr, "elidex: %llu transactions committed, %llu aborted%s%s\n",
               static_cast<unsigned long long>(all.committed),
               static_cast<unsigned long long>(all.aborted()), reasons.empty() ? "" : ": ",
               reasons.c_str());
}

void write_counts(std::FILE* file, const thread_report& t) {
  std::fprintf(
      file,
      "\"cycles\": %llu, \"accesses\": %llu, \"instructions\": %llu, \"begun\": %llu, "
      "\"committed\": %llu, \"aborts\": {",
      static_cast<unsigned long long>(t.cycles), static_cast<unsigned long long>(t.accesses),
      static_cast<unsigned long long>(t.instructions), static_cast<unsigned long long>(t.begun),
      static_cast<unsigned long long>(t.committed));
  for (std::size_t i = 0; i < abort_reasons; ++i) {
    std::fprintf(file, "%s\"%s\": %llu", i == 0 ? "" : ", ",
                 std::string(to_string(static_cast<abort_reason>(i))).c_str(),
                 static_cast<unsigned long long>(t.aborts[i]));
  }
  std::fprintf(file, "}");
}

// `file` is closed at the end.
void write_json(std::FILE* file, const machine& which, const program_settings& settings,
                const report& r) {
  std::fprintf(file,
               "{\"schema\": 1, \"machine\": \"%s\", \"locks\": \"%s\", \"seed\": %llu, "
               "\"cycles\": %llu, \"milliseconds\": %.6f,\n \"total\": {",
               which.name.c_str(), settings.elided ? "elided" : "plain",
               static_cast<unsigned long long>(settings.options.seed),
               static_cast<unsigned long long>(r.cycles), milliseconds_of(which, r.cycles));
  write_counts(file, r.total());
  std::fprintf(file, "},\n \"threads\": [");
  for (std::size_t i = 0; i < r.threads.size(); ++i) {
    std::fprintf(file, "%s{", i == 0 ? "" : ",\n  ");
    write_counts(file, r.threads[i]);
    std::fprintf(file, "}");
  }
  std::fprintf(file, "]}\n");
  if (std::fclose(file) != 0) throw std::runtime_error("cannot write " + settings.report.string());
}

int run_program(int (*program)(int, char**, char**), int argc, char** argv, void (*elide_locks)()) {
  const program_settings settings = read_settings();
  const machine which = machine_of(settings);
  std::FILE* json = nullptr;
  if (!settings.report.empty()) {
    json = std::fopen(settings.report.c_str(), "we");
    if (json == nullptr) refuse("report: cannot write " + settings.report.string());
  }
  if (settings.elided) elide_locks();
  int status = 1;  // of a program that is stuck
  bool returned = false;
  const report r = run(which, settings.options, {[&] {
                         status = program(argc, argv, environ);
                         returned = true;
                         running->end_with_others();
                       }});
  std::fflush(stdout);
  print(which, settings, r);
  if (json != nullptr) write_json(json, which, settings, r);
  if (!r.stuck.empty()) {
    const std::string why = returned ? r.stuck.substr(0, r.stuck.find('\n')) : r.stuck;
    std::fprintf(stderr, "elidex: %s\n", why.c_str());
    std::fflush(nullptr);
    if (returned) std::_Exit(status);  // a thread may hold what the destructors of statics need
  }
  return status;
}

struct program_call {
  int (*program)(int, char**, char**);
  int argc;
  char** argv;
  void (*elide_locks)();
  int status = 1;
};

void* call_program(void* given) {
  auto& call = *static_cast<program_call*>(given);
  try {
    call.status = run_program(call.program, call.argc, call.argv, call.elide_locks);
  } catch (const refused& error) {
    std::fprintf(stderr, "elidex: %s\n", error.what());
    call.status = 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "elidex: the program ended with an exception: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "elidex: the program ended with an exception\n");
  }
  return nullptr;
}

}  // namespace
}  // namespace elidex::sim

// Returns what the program returns, 1 if it is stuck or ends with an exception, or 2 if a setting
// is wrong. Calls elide_locks() before the program if its locks shall be elided.
extern "C" int elidex_sim_main(int (*program)(int, char**, char**), int argc, char** argv,
                               void (*elide_locks)()) {
  elidex::sim::program_call call{program, argc, argv, elide_locks};
  // On a thread of its own, because where the first one's stack begins differs from run to run. By
  // this library's pthread_create(): the program's own refuses threads outside of main().
  pthread_t host;
  if (::pthread_create(&host, nullptr, elidex::sim::call_program, &call) != 0) {
    std::fprintf(stderr, "elidex: the system starts no thread\n");
    return 1;
  }
  ::pthread_join(host, nullptr);
  return call.status;
}

// How many hardware threads the program may use; 0 outside of runs.
extern "C" int elidex_sim_cpu_count() noexcept {
  using namespace elidex::sim;
  return running == nullptr ? 0 : static_cast<int>(running->cpu_count());
}
