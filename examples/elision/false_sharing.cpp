// False sharing: the hardware sees lines, not variables. Counters on the same line conflict,
// although no two threads share a counter.
#include "measure.hpp"

namespace {

using namespace elision_example;

template <class Lock>
struct in_one_line {
  Lock lock;
  alignas(64) std::array<std::uint64_t, threads> counters{};
  void section(unsigned thread, unsigned) {
    const std::lock_guard guard(lock);
    ++counters[thread];
  }
};

template <class Lock>
struct a_line_each {
  Lock lock;
  std::array<line, threads> counters;
  void section(unsigned thread, unsigned) {
    const std::lock_guard guard(lock);
    ++counters[thread].value;
  }
};

}  // namespace

void example() {
  headline("a counter for each thread");
  compare<in_one_line>("all in one line", 2'000);
  compare<a_line_each>("a line for each", 2'000);
}
