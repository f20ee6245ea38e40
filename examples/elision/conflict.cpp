// Conflict: two transactions that touch the same line, one of them writing, cannot both commit.
#include "measure.hpp"

namespace {

using namespace elision_example;

template <class Lock>
struct counters {
  explicit counters(unsigned how_many) : lines(how_many) {}
  Lock lock;
  std::vector<line> lines;
  std::array<line, threads> random;

  void section(unsigned thread, unsigned) {
    std::uint64_t& state = random[thread].value;
    state = state * 6364136223846793005 + 2 * thread + 1;
    const std::size_t drawn = (state >> 33) % lines.size();
    const std::lock_guard guard(lock);
    ++lines[drawn].value;
  }
};

}  // namespace

void example() {
  headline("counters to draw from");
  for (const unsigned count : {1u, 2u, 4u, 16u, 64u, 256u, 1024u})
    compare<counters>(std::to_string(count), 2'000, count);
}
