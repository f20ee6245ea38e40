#pragma once
// A user's request cannot be met. The one-line message names the flag and the expected value.
// The program prints it and exits with status 2; nothing has been written by then.

#include <stdexcept>

namespace elidex::bench {

class bad_input : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace elidex::bench
