#pragma once
// Records what the conformance tests have proved, for docs/CONFORMANCE.md
// (checks/conformance/table.py).
//
//   conformance_row({"operation", "std::string", "double", "ordered_map", "get", ""});
//
// A test asserts first and records afterwards. After a failed assertion nothing is recorded. Rows
// are appended to the file that the environment variable ELIDEX_CONFORMANCE_ROWS names, if any.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string_view>

namespace elidex::testing {

inline void conformance_row(std::initializer_list<std::string_view> fields) {
  const char* const file = std::getenv("ELIDEX_CONFORMANCE_ROWS");
  if (file == nullptr || ::testing::Test::HasFailure()) return;
  std::ofstream rows(file, std::ios::app);
  std::string_view between;
  for (const std::string_view field : fields) {
    rows << between << field;
    between = "\t";
  }
  rows << '\n';
  rows.flush();
  ASSERT_TRUE(rows.good()) << "cannot write " << file;
}

}  // namespace elidex::testing
