#pragma once
// Waits for what another thread will do.
//
//   EXPECT_TRUE(comes_true([&] { return db.automatic_checkpoints().written >= 5; }));

#include <chrono>
#include <thread>

namespace elidex::testing {

// Asks again and again. Returns false if the condition has not come true in a minute.
template <class Condition>
bool comes_true(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace elidex::testing
