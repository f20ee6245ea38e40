// The version of elidex that a program is compiled with.
//
//   std::cout << "elidex " << elidex::version << '\n';
//   #if ELIDEX_VERSION_MAJOR > 0
//
// A program that links a shared library can find another patch version there; its SONAME has major
// and minor.
#pragma once

#define ELIDEX_VERSION_MAJOR 0
#define ELIDEX_VERSION_MINOR 1
#define ELIDEX_VERSION_PATCH 0

namespace elidex {

inline constexpr char version[] = "0.1.0";

}  // namespace elidex
