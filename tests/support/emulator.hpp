#pragma once
// Tells a test that it runs in QEMU's user mode, as the preset arm64 runs it.
//
//   if (runs_in_qemu()) GTEST_SKIP() << "QEMU cannot execute a program again";
//
// Only for a test that needs what QEMU does not have.

#include <cstdlib>

namespace elidex::testing {

inline bool runs_in_qemu() {
  return std::getenv("ELIDEX_TEST_QEMU") != nullptr;
}

}  // namespace elidex::testing
