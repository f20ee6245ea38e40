// The smoke test as a program: smoke_program DIRECTORY, or `smoke_program leave` to end while
// threads use the library.
#include <cstdio>
#include <cstring>

#include "smoke.hpp"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("smoke_program: give it an empty directory, or leave\n", stderr);
    return 2;
  }
  if (std::strcmp(arguments[1], "leave") == 0) {
    smoke_leave_threads_running();
    return 0;
  }
  return smoke(arguments[1]);
}
