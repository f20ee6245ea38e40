// Strategies that choose interleavings, for run_options::schedule. The machine then follows the
// strategy instead of its clocks, and may change threads at every access.
//
//   const auto turns = random_walk(seed);
//   // the same seed, the same interleaving
//   run(small_machine(), {.schedule = turns.get()}, bodies);
//
//   exhaustive all(2);
//   do { run(small_machine(), {.schedule = &all}, bodies); } while (all.next());
//
// Interleavings are sequentially consistent. A bug that needs a weaker memory order, such as a
// missing fence, does not show here. Litmus tests on real threads are for such bugs.
//
// Thread-safety: values of one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "machine/simulation.hpp"

namespace elidex::sim {

// Returns a small machine with hardware transactions, eight threads and no interrupts. It starts
// quickly.
machine small_machine();

// Chooses a random thread at one access in `changes_one_in`, and keeps the running one otherwise.
std::unique_ptr<strategy> random_walk(std::uint64_t seed, std::uint64_t changes_one_in = 4);

// Chooses the thread with the highest priority. Priorities are random. At `depth` - 1 random
// accesses of the first `steps`, the running thread falls below all others. Finds a bug that needs
// `depth` ordered events with probability at least 1 / (threads * steps^(depth - 1)) (Burckhardt et
// al., "A randomized scheduler with probabilistic guarantees of finding bugs", 2010).
std::unique_ptr<strategy> pct(std::uint64_t seed, unsigned depth, std::uint64_t steps);

// Enumerates all schedules with at most `preemptions` preemptions (Musuvathi and Qadeer, "Iterative
// context bounding", 2007). A preemption stops a thread that could continue. The program must do
// the same in every run. Otherwise runs_differ() returns true, and schedules may be missing.
class exhaustive final : public strategy {
 public:
  explicit exhaustive(unsigned preemptions) : preemptions_max_(preemptions) {}

  unsigned choose(const unsigned* able, unsigned count, unsigned current, bool waits) override;
  // Sets up the next schedule. Returns false when all have run.
  bool next();
  // Returns whether a run differed from the run before it under the same choices.
  bool runs_differ() const noexcept { return runs_differ_; }

 private:
  struct choice {
    std::vector<unsigned> options;  // the thread that continues without a change is the first
    unsigned taken;
    // A digest of the able threads and the running one.
    std::uint64_t situation;
    bool preempts;  // whether any option but the first stops a thread that could continue
  };
  unsigned preemptions_so_far() const;

  unsigned preemptions_max_;
  std::vector<choice> choices_;
  std::size_t at_ = 0;
  bool runs_differ_ = false;
};

}  // namespace elidex::sim
