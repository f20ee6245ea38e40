#include <cstdio>

#include "elidex/htm.hpp"
#include "measure.hpp"

int main() {
  std::printf("On this CPU: %s.\n\n", elidex::htm::capability().reason);
  example();
}
