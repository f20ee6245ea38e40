#pragma once
// What a user asked for cannot be done: the message is one line that names the flag and says what is expected.
// The program prints it and exits with status 2; nothing has been written by then.

#include <stdexcept>

namespace elidex::lab {

class bad_input : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace elidex::lab
