#include "cli/process.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "bench/support/cleanup.hpp"
#include "cli/installation.hpp"

namespace elidex::cli {
namespace {

struct redirection {
  int from;
  int to;
};

// With the program's other files and environment as ours.
bench::child_process start(const std::vector<std::string>& command,
                           const std::vector<redirection>& files = {}) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  return bench::child_process([&] {
    for (const redirection& one : files) {
      if (dup2(one.from, one.to) < 0) return;
    }
    execvp(arguments[0], arguments.data());
  });
}

}  // namespace

int run_program(const std::vector<std::string>& command) {
  return start(command).wait();
}

std::optional<std::string> output_of(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  bench::child_process child = start(command, {{ends[1], STDOUT_FILENO}, {nowhere, STDERR_FILENO}});
  if (nowhere >= 0) close(nowhere);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got = read(ends[0], chunk.data(), chunk.size());
    if (got > 0) {
      text.append(chunk.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      break;
    }
  }
  close(ends[0]);
  if (child.wait() != 0) return std::nullopt;
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string python() {
  if (const char* const wish = std::getenv("ELIDEX_PYTHON"); wish != nullptr && *wish != '\0')
    return wish;
  const std::filesystem::path own = data_path(".venv/bin/python");
  std::error_code error;
  return std::filesystem::exists(own, error) ? own.string() : "python3";
}

std::string python_not_started(const std::string& command, const std::string& program) {
  return command + ": " + program + " cannot be started (set ELIDEX_PYTHON to another Python)";
}

program_result converse(const std::vector<std::string>& command, const std::string& input) {
  // Files instead of pipes: nobody has to wait for the other side to read.
  const auto temporary = [] {
    const int file = memfd_create("elidex", MFD_CLOEXEC);
    if (file < 0) throw std::runtime_error("no memory for talking to another program");
    return file;
  };
  const auto text_of = [](int file) {
    std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
    lseek(file, 0, SEEK_SET);
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t got = read(file, text.data() + done, text.size() - done);
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return text;
  };
  const std::array files{temporary(), temporary(), temporary()};
  if (write(files[0], input.data(), input.size()) != static_cast<ssize_t>(input.size())) return {};
  lseek(files[0], 0, SEEK_SET);
  const int status =
      start(command,
            {{files[0], STDIN_FILENO}, {files[1], STDOUT_FILENO}, {files[2], STDERR_FILENO}})
          .wait();
  const program_result result{status, text_of(files[1]), text_of(files[2])};
  for (const int file : files) close(file);
  return result;
}

}  // namespace elidex::cli
