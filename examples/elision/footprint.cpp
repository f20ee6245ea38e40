// Footprint: a transaction must fit into the cache. What it writes into the L1, 32 KiB here; what
// it reads may be more.
#include "measure.hpp"

namespace {

using namespace elision_example;

template <class Lock>
struct touches {
  touches(unsigned lines_of_a_section, bool writes) : lines(lines_of_a_section), changes(writes) {
    for (auto& mine : memory) mine.resize(lines);
  }
  Lock lock;
  const unsigned lines;
  const bool changes;
  std::array<std::vector<line>, threads> memory;  // one for each thread, so they do not conflict

  void section(unsigned thread, unsigned) {
    std::vector<line>& mine = memory[thread];
    const std::lock_guard guard(lock);
    std::uint64_t sum = 0;
    for (line& one : mine) {
      if (changes) {
        ++one.value;
      } else {
        sum += one.value;
      }
    }
    asm volatile("" : : "r"(sum));
  }
};

}  // namespace

void example() {
  headline("a section's own lines");
  for (const bool writes : {true, false}) {
    for (const unsigned lines : {1u, 16u, 128u, 384u, 480u, 1024u, 4096u}) {
      compare<touches>((writes ? "writes " : "reads ") + std::to_string(lines),
                       lines > 200 ? 500 : 1'000, lines, writes);
    }
  }
}
