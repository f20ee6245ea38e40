// Public functions that no misuse test knows. public_functions.py must report both, or its check
// does not work.
#pragma once

namespace elidex {

class misuse_canary {
 public:
  template <class Fn>
  void planted(Fn&& fn) {
    fn();
  }
};

void planted_beside_it(int argument);

}  // namespace elidex
