#include "cli/installation.hpp"

namespace elidex::cli {

namespace fs = std::filesystem;

fs::path program_directory() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

static fs::path installed_data() {
  return program_directory().parent_path() / "share/elidex";
}

bool is_installed() {
  std::error_code error;
  return fs::is_directory(installed_data(), error);
}

fs::path data_path(const std::string& path) {
  return (is_installed() ? installed_data() : fs::path(ELIDEX_SOURCE_DIR)) / path;
}

fs::path helper_program(const fs::path& built) {
  if (!is_installed()) return built;
  return program_directory().parent_path() / "libexec/elidex" / built.filename();
}

}  // namespace elidex::cli
