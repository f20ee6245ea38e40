// Runs a whole program, main() and all its threads, on the machine: what elidex-c++ links programs
// with. docs/MACHINE.md, "Your own program", describes the settings and the report.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/engine.hpp"
#include "machine/fiber.hpp"
#include "machine/function_names.hpp"
#include "machine/heap.hpp"
#include "machine/memory.hpp"
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
  std::set<std::string> keys;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) refuse("'" + word + "': expected KEY=VALUE");
    const std::string key = word.substr(0, equals);
    if (!keys.insert(key).second) refuse(key + ": given twice");
    set(settings, key, word.substr(equals + 1));
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

struct function_aborts {
  std::string function;
  std::uint64_t aborts = 0;
  std::uint64_t cycles = 0;  // of the aborted transactions
};

// Replaces the template arguments by "<>", because they may fill several lines.
std::string without_template_arguments(const std::string& name) {
  std::string short_name;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_operator = short_name.ends_with("operator") ||
                             short_name.ends_with("operator<") || short_name.ends_with("operator-");
    const bool opens = name[i] == '<' && !is_operator;
    const bool closes = name[i] == '>' && depth > 0 && name[i - 1] != '-';
    if (closes) --depth;
    if (depth == 0) short_name += name[i];
    if (opens) ++depth;
  }
  return short_name;
}

// The largest number of cycles first.
std::vector<function_aborts> aborts_by_function(const report& r) {
  if (r.hot_spots.empty()) return {};
  const function_names names = function_names::of_this_program();
  std::map<std::string, function_aborts> by_name;
  for (const hot_spot& spot : r.hot_spots) {
    const std::string name = names.at(spot.code);
    function_aborts& one = by_name[name];
    one.function = name;
    one.aborts += spot.aborts;
    one.cycles += spot.aborted_cycles;
  }
  std::vector<function_aborts> all;
  for (const auto& [name, one] : by_name) all.push_back(one);
  std::stable_sort(all.begin(), all.end(), [](const function_aborts& a, const function_aborts& b) {
    return a.cycles > b.cycles;
  });
  return all;
}

void print(const machine& which, const program_settings& settings, const report& r,
           const std::vector<function_aborts>& functions) {
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
  constexpr std::size_t printed = 5;
  constexpr int name_width = 100;  // the JSON report has whole names
  for (std::size_t i = 0; i < std::min(functions.size(), printed); ++i) {
    const double share = 100.0 * static_cast<double>(functions[i].cycles) /
                         static_cast<double>(std::max<std::uint64_t>(all.aborted_cycles, 1));
    const std::string name = without_template_arguments(functions[i].function);
    std::fprintf(stderr, "elidex: %5.1f %% of the aborted cycles, %llu abort%s: %.*s%s\n", share,
                 static_cast<unsigned long long>(functions[i].aborts),
                 functions[i].aborts == 1 ? "" : "s", name_width, name.c_str(),
                 name.size() > name_width ? "..." : "");
  }
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

// As a JSON string. A name may hold a character literal, such as f<'"'>.
std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) < 0x20) continue;
    json += c;
  }
  return json + '"';
}

// `file` is closed at the end.
void write_json(std::FILE* file, const machine& which, const program_settings& settings,
                const report& r, const std::vector<function_aborts>& functions) {
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
  std::fprintf(file, "],\n \"functions\": [");
  for (std::size_t i = 0; i < functions.size(); ++i) {
    std::fprintf(file, "%s{\"function\": %s, \"aborts\": %llu, \"aborted_cycles\": %llu}",
                 i == 0 ? "" : ",\n  ", quoted(functions[i].function).c_str(),
                 static_cast<unsigned long long>(functions[i].aborts),
                 static_cast<unsigned long long>(functions[i].cycles));
  }
  std::fprintf(file, "]}\n");
  if (std::fclose(file) != 0) throw std::runtime_error("cannot write " + settings.report.string());
}

// Copies the program's arguments into the arena. Where the system puts them depends on the
// environment, and so would the cycles of a program that reads them. The program's name is the last
// one: the same arguments lie at the same place, however the program was started.
std::vector<char*> arguments_in_arena(int argc, char** argv) {
  const auto rounded = [](std::size_t bytes) {
    return (bytes + line_bytes - 1) / line_bytes * line_bytes;
  };
  std::size_t bytes = 0;
  for (int i = 0; i < argc; ++i) bytes += rounded(std::strlen(argv[i]) + 1);
  auto* place = static_cast<char*>(heap::allocate(bytes, page_bytes, heap::shared_list));
  if (place == nullptr) throw std::bad_alloc();
  std::vector<char*> copied(static_cast<std::size_t>(argc) + 1);
  for (int i = argc; i > 0; --i) {
    const int from = i % argc;
    copied[static_cast<std::size_t>(from)] = std::strcpy(place, argv[from]);
    place += rounded(std::strlen(argv[from]) + 1);
  }
  return copied;
}

// Tells why, if the program has used up a stack. Otherwise it is what it would be without this.
void at_segmentation_fault(int, siginfo_t* info, void*) noexcept {
  if (is_in_a_stack_guard(reinterpret_cast<std::uint64_t>(info->si_addr))) {
    constexpr std::string_view why = "elidex: a thread has used up its stack of 892 KiB\n";
    static_cast<void>(!::write(STDERR_FILENO, why.data(), why.size()));
    std::_Exit(1);
  }
  ::signal(SIGSEGV, SIG_DFL);
}

void watch_for_full_stacks() noexcept {
  alignas(16) static std::array<std::byte, 16 * 1024> handler_stack;
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  ::sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = at_segmentation_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
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
  std::vector<char*> arguments = arguments_in_arena(argc, argv);
  watch_for_full_stacks();
  int status = 1;  // of a program that is stuck
  bool returned = false;
  const report r = run(which, settings.options, {[&] {
                         status = program(argc, arguments.data(), environ);
                         returned = true;
                         running->end_with_others();
                       }});
  std::fflush(stdout);
  const std::vector<function_aborts> functions = aborts_by_function(r);
  print(which, settings, r, functions);
  if (json != nullptr) write_json(json, which, settings, r, functions);
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
