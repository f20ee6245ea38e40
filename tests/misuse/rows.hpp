#pragma once
// Records what the misuse tests have proved, for docs/MISUSE.md (checks/misuse/table.py).
//
//   EXPECT_THROW(column.scan(all, merges), std::logic_error);
//   misuse_row("column::merge", misuse::reentrance, "from scan()'s function: std::logic_error");
//
// A test asserts first and records afterwards. After a failed assertion nothing is recorded, so the
// page has only what holds. Undefined misuse cannot run: its row names the header and quotes the
// words that forbid it, and table.py looks them up.
//
// Rows are appended to the file that the environment variable ELIDEX_MISUSE_ROWS names, if any.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace elidex::testing {

using namespace internal;

enum class misuse {
  wrong_handle,
  closed_object,
  other_thread,
  reentrance,
  callback_throws,
  bad_argument
};

constexpr std::string_view name_of(misuse how) {
  switch (how) {
    case misuse::wrong_handle:
      return "wrong handle";
    case misuse::closed_object:
      return "closed object";
    case misuse::other_thread:
      return "other thread";
    case misuse::reentrance:
      return "re-entrance";
    case misuse::callback_throws:
      return "callback throws";
    case misuse::bad_argument:
      break;
  }
  return "bad argument";
}

namespace detail {
inline void append_row(std::string_view function, misuse how, std::string_view what,
                       std::string_view header, std::string_view promise) {
  const char* const file = std::getenv("ELIDEX_MISUSE_ROWS");
  if (file == nullptr || ::testing::Test::HasFailure()) return;
  std::ofstream rows(file, std::ios::app);
  rows << function << '\t' << name_of(how) << '\t' << what << '\t' << header << '\t' << promise
       << '\n';
  rows.flush();
  ASSERT_TRUE(rows.good()) << "cannot write " << file;
}
}  // namespace detail

// What happens, as the test has just seen it.
inline void misuse_row(std::string_view function, misuse how, std::string_view what) {
  detail::append_row(function, how, what, "", "");
}

// Undefined by design; `promise` is a sentence of the header's comment, white space aside.
inline void undefined_row(std::string_view function, misuse how, std::string_view what,
                          std::string_view header, std::string_view promise) {
  detail::append_row(function, how, what, header, promise);
}

}  // namespace elidex::testing
