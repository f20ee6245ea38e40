// The version of elidex that a program is compiled with.
//
//   std::cout << "elidex " << elidex::version << '\n';
//   #if ELIDEX_VERSION_MAJOR > 0
//
// These constants are those of the headers. The shared library that is loaded at run time may have
// another patch version, because its SONAME contains only the major and minor version.
#pragma once

#define ELIDEX_VERSION_MAJOR 0
#define ELIDEX_VERSION_MINOR 1
#define ELIDEX_VERSION_PATCH 0

namespace elidex {

inline constexpr char version[] = "0.1.0";

}  // namespace elidex
