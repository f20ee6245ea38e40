#pragma once
// The code of the std::system_error that an action throws.
//
//   EXPECT_EQ(code_thrown_by([&] { db.checkpoint(); }), std::errc::operation_canceled);

#include <system_error>

namespace elidex::testing {

// No error if the action throws nothing.
template <class Action>
std::error_code code_thrown_by(Action&& action) {
  try {
    action();
  } catch (const std::system_error& error) {
    return error.code();
  }
  return {};
}

}  // namespace elidex::testing
