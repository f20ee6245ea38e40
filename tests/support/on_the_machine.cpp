// Runs a whole test program inside the simulated machine: its threads are virtual cores, and its
// hardware transactions commit. Fails where a test gets stuck, naming what each thread hangs on.
#include <gtest/gtest.h>

#include <cstdio>
#include <thread>

#include "machine/simulation.hpp"
#include "support/random_seed.hpp"

namespace {

int run_tests() {
  int status = 1;
  const auto which = elidex::sim::read_machine(ELIDEX_TEST_MACHINE);
  const auto report = elidex::sim::run(which, {.seed = elidex::testing::seed_or(1)},
                                       {[&status] { status = RUN_ALL_TESTS(); }});
  if (report.stuck.empty()) return status;
  std::fprintf(stderr, "%s", report.stuck.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int status = 1;
  // the first thread's stack lies somewhere else in each run
  std::thread([&status] { status = run_tests(); }).join();
  return status;
}
