// Nesting: a section inside a section is part of the same transaction. The hardware counts levels
// and has seven; elidex's drop-in locks begin one for all. What counts is whether all of it fits,
// and whether all its locks are free.
#include "elidex/elided.hpp"
#include "measure.hpp"

namespace {

using namespace elision_example;

template <class Lock>
struct holds_several {
  explicit holds_several(unsigned locks_of_a_section) : locks(locks_of_a_section) {}
  std::vector<Lock> locks;
  std::array<line, threads> counters;

  void section(unsigned thread, unsigned) {
    for (Lock& lock : locks) lock.lock();
    ++counters[thread].value;
    for (auto lock = locks.rbegin(); lock != locks.rend(); ++lock) lock->unlock();
  }
};

// elided<> begins a level for each lock.
void with_a_level_for_each(unsigned locks) {
  holds_several<elidex::elided<elidex::ttas_lock>> one(locks);
  const double sections_per_ms = rate(one, 500);
  elidex::lock_counts all;
  for (const auto& lock : one.locks) all += lock.stats();
  std::printf(
      "%-28s %14.1f   (%.1f %% of the sections elided)\n",
      (std::to_string(locks) + ", elided<>").c_str(), sections_per_ms,
      100.0 * static_cast<double>(one.locks.front().stats().commits) / (500.0 * threads * times));
}

}  // namespace

void example() {
  headline("locks that a section holds");
  for (const unsigned locks : {1u, 2u, 4u, 8u, 17u, 18u})
    compare<holds_several>(std::to_string(locks), 500, locks);
  for (const unsigned locks : {1u, 2u, 7u, 8u}) with_a_level_for_each(locks);
}
