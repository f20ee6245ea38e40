#include "cli/json_output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "bench/support/bad_input.hpp"
#include "bench/support/cleanup.hpp"

namespace elidex::cli {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse_file(const std::string& flag, const std::string& file,
                              const std::string& why) {
  throw bench::bad_input(flag + ": '" + file + "' " + why +
                         " (expected a file that can be written, or - for standard output)");
}

}  // namespace

json_output::json_output(const std::string& file, const std::string& flag) {
  if (file.empty()) return;
  if (file == "-") {
    to_stdout_ = true;
    return;
  }
  std::error_code error;
  target_ = file;
  // A link is kept, and what it points to is replaced.
  if (fs::is_symlink(target_, error)) {
    const fs::path real = fs::weakly_canonical(target_, error);
    if (!error) target_ = real;
  }
  const fs::file_status status = fs::status(target_, error);
  if (fs::is_directory(status) || !target_.has_filename())
    refuse_file(flag, file, "is a directory");
  if (fs::exists(status)) {
    if (access(target_.c_str(), W_OK) != 0)
      refuse_file(flag, file, std::string("cannot be written (") + std::strerror(errno) + ")");
    replace_ = fs::is_regular_file(status);
  }
  if (!replace_) return;
  temporary_ = target_;
  temporary_.replace_filename(target_.filename().string() + "." + std::to_string(getpid()) +
                              ".tmp");
  const bench::temporary_path attempt(temporary_);
  errno = 0;
  const bool possible = static_cast<bool>(std::ofstream(temporary_));
  const int reason = errno;
  if (!possible)
    refuse_file(flag, file, std::string("cannot be written (") + std::strerror(reason) + ")");
}

void json_output::write(std::string_view text) const {
  if (to_stdout_) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fputc('\n', stdout) == EOF || std::fflush(stdout) != 0) {
      throw std::runtime_error("standard output cannot be written");
    }
    return;
  }
  if (target_.empty()) return;
  write_by([&](const fs::path& file) {
    std::ofstream out(file, std::ios::binary);
    out << text << '\n';
    out.close();
    if (!out) throw std::runtime_error(target_.string() + " cannot be written");
  });
}

void json_output::write_by(const std::function<void(const fs::path&)>& writer) const {
  if (!replace_) return writer(target_);
  const bench::temporary_path whole(temporary_);
  writer(temporary_);
  fs::rename(temporary_, target_);
}

}  // namespace elidex::cli
