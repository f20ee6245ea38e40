// Ways of choosing interleavings, for run_options::schedule: the machine then runs on no clocks but
// as the strategy says, and may change threads at every access.
//
//   const auto turns = random_walk(seed);
//   // the same seed, the same interleaving
//   run(small_machine(), {.schedule = turns.get()}, bodies);
//
//   exhaustive all(2);
//   do { run(small_machine(), {.schedule = &all}, bodies); } while (all.next());
//
// Interleavings are sequentially consistent. What only a weaker memory order shows (a missing
// fence) is for litmus tests on real threads.
//
// Thread-safety: values of one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "machine/simulation.hpp"

namespace elidex::sim {

// A machine that is quick to make, with hardware transactions, eight threads, and no interrupts.
machine small_machine();

// At each access, one time in `changes_one_in`, any other thread.
std::unique_ptr<strategy> random_walk(std::uint64_t seed, std::uint64_t changes_one_in = 4);

// Always the thread with the highest priority; priorities are random and at `depth` - 1 random ones
// of the first `steps` accesses the running thread falls below all others. Finds a bug that needs
// `depth` ordered events with probability at least 1 / (threads * steps^(depth - 1)) (Burckhardt et
// al., "A randomized scheduler with probabilistic guarantees of finding bugs", 2010).
std::unique_ptr<strategy> pct(std::uint64_t seed, unsigned depth, std::uint64_t steps);

// One schedule after the other, all those in which no more than `preemptions` times a thread has to
// stop that could have gone on (Musuvathi and Qadeer, "Iterative context bounding", 2007). The
// program must do the same in every run; otherwise runs_differ() is true, and schedules may be
// missing.
class exhaustive final : public strategy {
 public:
  explicit exhaustive(unsigned preemptions) : preemptions_max_(preemptions) {}

  unsigned choose(const unsigned* able, unsigned count, unsigned current, bool waits) override;
  // Sets up the next one; false when all have been run.
  bool next();
  // Whether a run went another way than the run before it, under the same choices.
  bool runs_differ() const noexcept { return runs_differ_; }

 private:
  struct choice {
    std::vector<unsigned> options;  // the one that goes on without a change first
    unsigned taken;
    // Who could go on, and who was running.
    std::uint64_t situation;
    bool preempts;  // whether taking another one than the first stops a thread that could go on
  };
  unsigned preemptions_so_far() const;

  unsigned preemptions_max_;
  std::vector<choice> choices_;
  std::size_t at_ = 0;
  bool runs_differ_ = false;
};

}  // namespace elidex::sim
