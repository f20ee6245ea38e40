// Allocation: new and delete touch what the allocator shares, new pages fault, and asking the
// system for memory ends a transaction. Allocate before the section, free after it.
#include <utility>

#include "measure.hpp"

namespace {

using namespace elision_example;

// A stack for each thread, all under one lock.
template <class Lock>
struct stacks {
  explicit stacks(bool allocates_outside) : outside(allocates_outside) {}
  struct element {
    element* next;
    std::array<std::uint64_t, 127> payload;  // four elements a page
  };
  Lock lock;
  const bool outside;
  struct alignas(64) stack {
    element* top = nullptr;
  };
  std::array<stack, threads> tops;

  ~stacks() {
    for (stack& one : tops) {
      while (one.top != nullptr) delete std::exchange(one.top, one.top->next);
    }
  }
  void section(unsigned thread, unsigned) {
    element* const before = outside ? new element{} : nullptr;
    const std::lock_guard guard(lock);
    element* const added = outside ? before : new element{};
    added->next = std::exchange(tops[thread].top, added);
  }
};

}  // namespace

void example() {
  headline("pushing on a stack");
  compare<stacks>("new inside the section", 4'000, false);
  compare<stacks>("new before it", 4'000, true);
}
