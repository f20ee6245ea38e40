// Runs an example inside the simulated machine: its threads are virtual cores, and its hardware
// transactions commit.
#include <cstdio>
#include <exception>
#include <thread>

#include "machine/simulation.hpp"
#include "measure.hpp"

namespace {

int run(const char* machine_file) {
  try {
    const elidex::sim::machine which = [&] {
      const elidex::sim::system_memory here;
      return elidex::sim::read_machine(machine_file);
    }();
    std::printf("On the simulated machine %s:\n\n", which.name.c_str());
    const elidex::sim::report report = elidex::sim::run(which, {}, {example});
    if (report.stuck.empty()) return 0;
    std::fprintf(stderr, "%s\n", report.stuck.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

}  // namespace

// On a thread of its own, because where the first one's stack begins differs from run to run.
int main(int argc, char** argv) {
  int status = 1;
  std::thread([&] { status = run(argc > 1 ? argv[1] : ELIDEX_EXAMPLE_MACHINE); }).join();
  return status;
}
