// The use cases of papers/004 section 3.3 and appendices C.7 and D.2 on the machine (lab/structures/ has what they do).
//
// What a run needs to be what the thesis measured: each thread works for a while before anything is counted, the L3 holds
// the structure, and random numbers take the time that the thesis's generator takes, since instructions take none here.

#include <functional>
#include <stdexcept>

#include "lab/simulated/experiments/experiment.hpp"
#include "lab/structures/figures.hpp"

namespace elidex::lab {
namespace {

// The thesis's generator divides twice, 64 bits each: 39 to 103 cycles a division on Haswell (Agner Fog, "Instruction
// tables", IDIV r64). The lower end, twice, rounded; the sensitivities beside the claims have 0 and 200.
constexpr std::uint64_t draw_cycles_usual = 80;

// What a sensitivity turns.
struct knobs {
  std::uint64_t draw_cycles = draw_cycles_usual;
  std::uint64_t pause_between_cycles = 0;  // from one operation's end to the next one's begin
  bool shared_draws = false;               // all threads write one word at each draw, as the thesis's do
};

std::uint64_t draw_cycles_now = draw_cycles_usual;  // one run at a time

void pay_for_a_draw() noexcept {
  sim::spend(draw_cycles_now);
}

class simulated_runner {
 public:
  simulated_runner(const sim::machine& which, const experiment_scale& scale, const knobs& turned = {})
      : which_(which), scale_(scale), turned_(turned) {}

  [[nodiscard]] std::vector<unsigned> thread_counts() const {
    std::vector<unsigned> counts;
    for (unsigned n = 1; n <= 8 && n <= which_.hardware_threads(); ++n) counts.push_back(n);
    return counts;
  }
  [[nodiscard]] std::size_t cores() const { return which_.cores(); }
  [[nodiscard]] bool regions_commit() const { return true; }
  [[nodiscard]] std::uint64_t operations(std::uint64_t few, std::uint64_t many) const {
    return scale_.times(few, many);
  }

  template <class Use>
  [[nodiscard]] measurement measure(unsigned threads, std::uint64_t operations,
                                    const typename Use::settings& settings) const {
    Use use(settings, threads);
    draw_cycles_now = turned_.draw_cycles;
    struct alignas(64) {
      std::atomic<std::uint64_t> word{0};
    } shared;
    const std::uint64_t warm_up = operations / 10 + 10;
    std::vector<std::function<void()>> bodies;
    for (unsigned t = 0; t < threads; ++t) {
      bodies.emplace_back([&, t] {
        thread_draws draws(mix(scale_.seed) + t, turned_.draw_cycles == 0 ? nullptr : pay_for_a_draw,
                           turned_.shared_draws ? &shared.word : nullptr);
        auto worker = use.worker(t, draws);
        for (std::uint64_t i = 0; i < warm_up; ++i) worker.operation();
        sim::start_counting();
        for (std::uint64_t i = 0; i < operations; ++i) {
          worker.operation();
          if (turned_.pause_between_cycles != 0) sim::spend(turned_.pause_between_cycles);
        }
      });
    }
    const sim::report r = sim::run(which_, {.seed = scale_.seed, .warm_l3 = true}, bodies);
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
  const sim::machine& which_;
  const experiment_scale& scale_;
  knobs turned_;
};

template <auto Figure>
std::vector<series> on_the_machine(const sim::machine& which, const experiment_scale& scale) {
  return Figure(simulated_runner(which, scale));
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
          {"S-C.10", on_the_machine<figure_c_10<simulated_runner>>},
          {"S-D.5", on_the_machine<figure_d_5<simulated_runner>>},
          {"S-D.6", on_the_machine<figure_d_6<simulated_runner>>}};
}

}  // namespace elidex::lab
