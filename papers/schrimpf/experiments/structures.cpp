// The use cases of paper 004 section 3.3 and appendices C.7 and D.2 on the machine
// (papers/schrimpf/structures/ has what they do).
//
// What a run needs to be what the thesis measured: each thread does all its operations once before
// anything is counted, so that the caches hold what fits whatever lay in memory before, and random
// numbers come from the thesis's generator and take the time that it takes there.

#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "papers/schrimpf/experiments/experiment.hpp"
#include "papers/schrimpf/structures/figures.hpp"

namespace elidex::bench {
namespace {

// A remainder by a constant: two multiplications of 3 and 4 cycles, additions and shifts. A
// division of 64 bits: 39 to 103 cycles on Haswell (Agner Fog, "Instruction tables", IDIV r64). The
// lower end, rounded.
constexpr std::uint64_t reduction_cycles = 12;
constexpr std::uint64_t division_cycles = 40;

// What a sensitivity turns.
struct knobs {
  std::uint64_t division = division_cycles;  // 0: random numbers take no time at all
  std::uint64_t between_cycles = 0;          // from one operation's end to the next one's begin
  bool own_draws = false;                    // a generator for each thread
  bool forwards = true;                      // thread_draws
  bool at_random = false;                    // between 0 and twice between_cycles instead
};

class simulated_runner {
 public:
  simulated_runner(const sim::machine& which, const experiment_scale& scale,
                   const knobs& turned = {}, bool thesis_locks_only = false)
      : which_(which), scale_(scale), turned_(turned), thesis_locks_only_(thesis_locks_only) {}

  [[nodiscard]] std::vector<unsigned> thread_counts() const {
    if (scale_.full) return {1, 2, 4, 8};  // on four cores, eight take turns
    return {1, 2, 4};
  }
  [[nodiscard]] std::size_t cores() const { return which_.cores(); }
  [[nodiscard]] bool regions_commit() const { return true; }
  [[nodiscard]] bool thesis_locks_only() const { return thesis_locks_only_; }
  [[nodiscard]] std::uint64_t operations(std::uint64_t few, std::uint64_t many) const {
    return scale_.times(few, many);
  }

  [[nodiscard]] const std::vector<std::size_t>& ages() const { return set_ages(scale_.full); }

  template <class Use>
  [[nodiscard]] measurement measure(unsigned threads, std::uint64_t operations,
                                    const typename Use::settings& settings) const {
    Use use(settings, threads);
    const std::uint64_t warm_up = operations;
    std::vector<std::function<void()>> bodies;
    for (unsigned t = 0; t < threads; ++t) {
      bodies.emplace_back([&, t] {
        auto worker = use.worker(t, draws(use, t));
        for (std::uint64_t i = 0; i < warm_up; ++i) worker.operation();
        sim::start_counting();
        random_bits pauses(scale_.seed * 1'000 + t);
        for (std::uint64_t i = 0; i < operations; ++i) {
          worker.operation();
          if (turned_.between_cycles == 0) continue;
          sim::spend(turned_.at_random ? pauses.below(2 * turned_.between_cycles)
                                       : turned_.between_cycles);
        }
      });
    }
    const sim::report r = sim::run(which_, {.seed = scale_.seed}, bodies);
    if (!r.stuck.empty()) throw std::runtime_error(r.stuck);
    use.check(threads * (warm_up + operations));

    const sim::thread_report all = r.total();
    const double ms = static_cast<double>(r.cycles) / (static_cast<double>(which_.megahertz) * 1e3);
    measurement m{.per_ms = static_cast<double>(threads * operations) / ms};
    if (all.begun != 0) {
      const auto pct = [](std::uint64_t part, std::uint64_t whole) {
        return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
      };
      m.transactions = {.transactional_pct = pct(all.transactional_cycles, all.cycles),
                        .aborted_pct = pct(all.aborted_cycles, all.transactional_cycles),
                        .abort_rate_pct = pct(all.aborted(), all.begun)};
    }
    return m;
  }

 private:
  template <class Use>
  [[nodiscard]] thread_draws draws(Use& use, unsigned thread) const {
    draw_cost costs;
    if (turned_.division != 0) costs = {sim::spend, reduction_cycles, turned_.division};
    if constexpr (requires { use.generator(); }) {
      if (!turned_.own_draws) return thread_draws(use.generator(), costs, turned_.forwards);
    }
    return thread_draws(mix(scale_.seed) + thread, costs);
  }

  const sim::machine& which_;
  const experiment_scale& scale_;
  knobs turned_;
  bool thesis_locks_only_;
};

// Chosen: with two threads on a list of a hundred items, whose size wanders, single runs differ by
// a third and more.
constexpr std::uint64_t seeds_smoke = 3;
constexpr std::uint64_t seeds_full = 15;

template <auto Figure>
std::vector<std::vector<series>> runs_by_seed(const sim::machine& which,
                                              const experiment_scale& scale, std::uint64_t seeds,
                                              const knobs& turned = {},
                                              bool thesis_locks_only = false) {
  std::vector<std::vector<series>> runs;
  for (std::uint64_t i = 0; i < seeds; ++i) {
    const experiment_scale one{.full = scale.full, .seed = scale.seed + i};
    runs.push_back(Figure(simulated_runner(which, one, turned, thesis_locks_only)));
  }
  return runs;
}

// Medians over the seeds, and how far the throughputs reach.
template <auto Figure>
std::vector<series> on_the_machine(const sim::machine& which, const experiment_scale& scale) {
  const auto runs = runs_by_seed<Figure>(which, scale, scale.times(seeds_smoke, seeds_full));
  std::vector<series> all = medians(runs);
  const auto add = [&](std::vector<series> extreme, const char* said) {
    for (series& s : extreme) {
      if (s.name.find(": ") == std::string::npos)
        all.push_back({s.name + said, std::move(s.points)});
    }
  };
  add(over_runs(runs, [](const std::vector<double>& ascending) { return ascending.front(); }),
      ": lowest of the seeds");
  add(over_runs(runs, [](const std::vector<double>& ascending) { return ascending.back(); }),
      ": highest of the seeds");
  return all;
}

// One thing changed: of the program, or of the machine.
struct variant {
  const char* name;
  knobs turned = {};
  const char* parameter = nullptr;
  std::uint64_t value = 0;
};

constexpr std::array counter_variants{
    variant{"nothing"},
    variant{"50 cycles between operations", {.between_cycles = 50}},
    variant{"200 cycles between operations", {.between_cycles = 200}},
    variant{"0 to 20 cycles between them, at random", {.between_cycles = 10, .at_random = true}},
    variant{"0 to 100 cycles between them, at random", {.between_cycles = 50, .at_random = true}},
    variant{"aborts 80 cycles", {}, "abort_cycles", 80},
    variant{"aborts 320 cycles", {}, "abort_cycles", 320},
    variant{"commits exposed for 0 of 31 cycles", {}, "commit_exposed_cycles", 0},
    variant{"commits exposed for 31 cycles", {}, "commit_exposed_cycles", 31},
    variant{"requests that end with their transaction", {}, "requests_outlive_aborts", 0},
    variant{"a thread waits for each access", {}, "window_instructions", 0},
    variant{"changed lines 100 cycles", {}, "dirty_near_cycles", 100},
    variant{"waking up 20,000 cycles", {}, "wake_up_cycles", 20'000},
};
constexpr std::array set_variants{
    variant{"nothing"},
    variant{"a generator for each thread", {.own_draws = true}},
    variant{"each random number by itself", {.forwards = false}},
    variant{"random numbers for nothing", {.division = 0}},
    variant{"divisions 100 cycles", {.division = 100}},
    variant{"0 to 100 cycles between them, at random", {.between_cycles = 50, .at_random = true}},
    variant{"aborts 80 cycles", {}, "abort_cycles", 80},
    variant{"aborts 320 cycles", {}, "abort_cycles", 320},
    variant{"commits exposed for 31 cycles", {}, "commit_exposed_cycles", 31},
    variant{"requests that end with their transaction", {}, "requests_outlive_aborts", 0},
    variant{"a thread waits for each access", {}, "window_instructions", 0},
    variant{"waking up 2,000 cycles", {}, "wake_up_cycles", 2'000},
    variant{"waking up 20,000 cycles", {}, "wake_up_cycles", 20'000},
};

// What stands between a variant's name and a series'.
constexpr const char* of_variant = " | ";

// The figure once for each variant, in a smoke run of the first seed alone; its series are called
// "VARIANT | SERIES".
template <auto Figure, const auto& Variants>
std::vector<series> sensitivity(const sim::machine& which, const experiment_scale& scale) {
  std::vector<series> all;
  for (const variant& v : Variants) {
    sim::machine changed = which;
    if (v.parameter != nullptr) sim::set_parameter(changed, v.parameter, v.value);
    for (series& s : medians(
             runs_by_seed<Figure>(changed, scale, scale.times(1, seeds_full), v.turned, true))) {
      all.push_back({v.name + (of_variant + s.name), std::move(s.points)});
    }
  }
  return all;
}

}  // namespace

std::vector<experiment> structures() {
  return {{"S-3.12", on_the_machine<figure_3_12<simulated_runner>>},
          {"S-3.13", on_the_machine<figure_3_13<simulated_runner>>},
          {"S-3.14", on_the_machine<figure_3_14<simulated_runner>>},
          {"S-3.15", on_the_machine<figure_3_15<simulated_runner>>},
          {"S-3.16", on_the_machine<figure_3_16<simulated_runner>>},
          {"S-3.17", on_the_machine<figure_3_17<simulated_runner>>},
          {"S-3.18", on_the_machine<figure_3_18<simulated_runner>>},
          {"S-3.19", on_the_machine<figure_3_19<simulated_runner>>},
          {"S-3.12 turned", sensitivity<figure_3_12<simulated_runner>, set_variants>},
          {"S-3.13 turned", sensitivity<figure_3_13<simulated_runner>, counter_variants>},
          {"S-3.14 turned", sensitivity<figure_3_14<simulated_runner>, counter_variants>},
          {"S-3.15 turned", sensitivity<figure_3_15<simulated_runner>, counter_variants>},
          {"S-3.16 turned", sensitivity<figure_3_16<simulated_runner>, counter_variants>},
          {"S-3.17 turned", sensitivity<figure_3_17<simulated_runner>, set_variants>},
          {"S-3.18 turned", sensitivity<figure_3_18<simulated_runner>, set_variants>},
          {"S-3.19 turned", sensitivity<figure_3_19<simulated_runner>, set_variants>},
          {"S-C.10", on_the_machine<figure_c_10<simulated_runner>>},
          {"S-D.5", on_the_machine<figure_d_5<simulated_runner>>},
          {"S-D.6", on_the_machine<figure_d_6<simulated_runner>>}};
}

}  // namespace elidex::bench
