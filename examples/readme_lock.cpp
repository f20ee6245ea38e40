#include <iostream>
#include <mutex>

#include "elidex/mutex.hpp"

int main() {
  elidex::mutex lock("counter");  // the name is for statistics
  int counter = 0;
  {
    std::lock_guard guard(lock);  // a hardware transaction where the CPU has any
    ++counter;
  }
  for (const auto& one : elidex::named_lock_stats()) std::cout << counter << ", " << one << '\n';
}
