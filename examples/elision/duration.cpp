// Duration: an interrupt ends a transaction, and the timer's comes at least every few milliseconds.
#include "measure.hpp"

namespace {

using namespace elision_example;

template <class Lock>
struct computes {
  explicit computes(unsigned steps_of_a_section) : steps(steps_of_a_section) {}
  Lock lock;
  const unsigned steps;
  std::array<line, threads> results;

  void section(unsigned thread, unsigned) {
    const std::lock_guard guard(lock);
    // volatile: each step is a load and a store
    volatile std::uint64_t& value = results[thread].value;
    for (unsigned i = 0; i < steps; ++i) value = value * 3 + 1;
  }
};

}  // namespace

void example() {
  headline("steps of a section");
  for (const unsigned steps : {10u, 100u, 1'000u, 10'000u, 100'000u, 1'000'000u}) {
    const unsigned sections = std::clamp(1'000'000 / steps, 8u, 1'000u);
    compare<computes>(std::to_string(steps), sections, steps);
  }
}
