#pragma once
// Where the program's scripts, data and helper programs lie.
//
//   const auto script = data_path("papers/repro/repro.py");
//   const auto worker = helper_program("elidex-sim");
//
// An installed program finds both beside itself, so that an installation may be moved as a whole:
// bin/elidex, share/elidex/ and libexec/elidex/. In a build tree, data lies in the source tree, and
// a helper program lies where the build has put it.
//
// Thread-safety: any thread. Errors: std::bad_alloc.

#include <filesystem>
#include <string>

namespace elidex::cli {

/// The directory of the running program.
[[nodiscard]] std::filesystem::path program_directory();

/// Does the program run from an installation?
[[nodiscard]] bool is_installed();

/// A file or directory of the project; `path` is relative to the project's root.
[[nodiscard]] std::filesystem::path data_path(const std::string& path);

/// A program that this one starts. `built` is where the build has put it.
[[nodiscard]] std::filesystem::path helper_program(const std::filesystem::path& built);

}  // namespace elidex::cli
