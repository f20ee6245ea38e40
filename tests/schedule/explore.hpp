#pragma once
// Explores the interleavings of a small concurrent program on the simulated machine.
//
//   struct two_increments {
//     int counter = 0;
//     std::vector<std::function<void()>> bodies() { ... }
//     std::string verdict() const { return counter == 2 ? "" : "an increment is lost"; }
//   };
//   EXPECT_EQ(explore<two_increments>(1'000), "");
//
// Each schedule has a fresh program; one with a type `made_by_seed` is made from the schedule's
// seed. Half of them are random walks, half PCT with bugs of depth 2 to 4 in mind, among so many
// steps as a constant `steps` of the program says. What is found names the seed; ELIDEX_TEST_SEED=N
// in the environment, or `./dev schedule TEST --seed N`, runs that one first.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "elidex/internal/sync/elision_pause.hpp"
#include "machine/schedule.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

// Under one schedule; what is wrong, in words.
template <class Program>
std::string under(sim::strategy& schedule, [[maybe_unused]] std::uint64_t seed = 0) {
  forget_elision_pauses();
  std::unique_ptr<Program> program;
  if constexpr (requires { typename Program::made_by_seed; }) {
    program = std::make_unique<Program>(seed);
  } else {
    program = std::make_unique<Program>();
  }
  const sim::report r = sim::run(
      sim::small_machine(), {.cycles_max = 5'000'000, .schedule = &schedule}, program->bodies());
  return r.stuck.empty() ? program->verdict() : r.stuck;
}

// Among how many steps PCT chooses where priorities change: of programs that do not say theirs.
inline constexpr std::uint64_t usual_steps = 400;

inline std::unique_ptr<sim::strategy> schedule_of(std::uint64_t seed,
                                                  std::uint64_t steps = usual_steps) {
  if (seed % 2 == 0) return sim::random_walk(seed, std::uint64_t{1} << (1 + seed / 2 % 5));
  return sim::pct(seed, 2 + static_cast<unsigned>(seed / 2 % 3), steps);
}

template <class Program>
std::string explore(std::uint64_t schedules) {
  const std::uint64_t first = seed_or(1);
  std::uint64_t steps = usual_steps;
  if constexpr (requires { Program::steps; }) steps = Program::steps;
  for (std::uint64_t i = 0; i < schedules; ++i) {
    const std::uint64_t seed = first + i;
    const auto schedule = schedule_of(seed, steps);
    if (std::string what = under<Program>(*schedule, seed); !what.empty()) {
      return what + "; replay with --seed " + std::to_string(seed) + ", found after " +
             std::to_string(i + 1) + " schedules";
    }
  }
  return "";
}

// All schedules with at most so many preemptions; `schedules` receives their number.
//
// A run that makes what the process keeps (a thread's slot, a retire list) differs from later runs.
// So the exploration starts again when a run differs, a few times.
template <class Program>
std::string explore_all(unsigned preemptions, std::uint64_t& schedules) {
  constexpr int starts = 5;
  for (int start = 1;; ++start) {
    sim::exhaustive all(preemptions);
    schedules = 0;
    for (bool more = true; more;) {
      ++schedules;
      if (std::string what = under<Program>(all); !what.empty()) {
        return what + "; schedule " + std::to_string(schedules) + " with " +
               std::to_string(preemptions) + " preemptions";
      }
      more = all.next();
      if (!all.runs_differ()) continue;
      if (start < starts) break;
      return "the program's runs differ: schedules may be missing; schedule " +
             std::to_string(schedules);
    }
    if (!all.runs_differ()) return "";
  }
}

}  // namespace elidex::testing
