#pragma once
// A file that the user names as input: a regular file or a pipe, such as a shell's <(sort keys).
//
//   std::string why;
//   std::ifstream in = open_input(file, why);
//   if (!in.is_open()) throw bad_input("--key-file: " + file.string() + " " + why + " (expected a
//       file of keys)");
//
// Devices are refused because many of them never end. A pipe may not end either: each reader limits
// what it keeps.
//
// Thread-safety: may be called from several threads at once.

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace elidex::bench {

/// The problem with the file, without opening it: "does not exist", "is a directory", "is a
/// device", or empty.
[[nodiscard]] inline std::string input_problem(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) return "does not exist";
  if (std::filesystem::is_directory(status)) return "is a directory";
  if (std::filesystem::is_character_file(status) || std::filesystem::is_block_file(status))
    return "is a device";
  return {};
}

/// The open file. On failure the stream is not open, and `why` is input_problem() or "cannot be
/// read" with the system's reason.
[[nodiscard]] inline std::ifstream open_input(const std::filesystem::path& file, std::string& why) {
  why = input_problem(file);
  if (!why.empty()) return {};
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) why = std::string("cannot be read (") + std::strerror(errno) + ")";
  return in;
}

}  // namespace elidex::bench
