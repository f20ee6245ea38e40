#include <iostream>
#include <mutex>

#include "elidex/sync/elided.hpp"
#include "elidex/sync/spin_locks.hpp"

int main() {
  elidex::elided<elidex::ttas_lock> lock;
  int counter = 0;
  {
    std::lock_guard guard(lock);  // a hardware region where the CPU has any
    ++counter;
  }
  std::cout << counter << ", " << lock.stats() << '\n';
}
