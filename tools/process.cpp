#include "tools/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

extern char** environ;

namespace elidex::tools {
namespace {

std::optional<pid_t> start(const std::vector<std::string>& command, const posix_spawn_file_actions_t* actions) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, arguments[0], actions, nullptr, arguments.data(), environ) != 0) return std::nullopt;
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int run_program(const std::vector<std::string>& command) {
  const auto child = start(command, nullptr);
  return child ? wait_for(*child) : 127;
}

std::optional<std::string> output_of(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const auto child = start(command, &actions);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  if (child) {
    std::array<char, 4096> chunk{};
    for (;;) {
      const ssize_t got = read(ends[0], chunk.data(), chunk.size());
      if (got > 0) {
        text.append(chunk.data(), static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        break;
      }
    }
  }
  close(ends[0]);
  if (!child || wait_for(*child) != 0) return std::nullopt;
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string python() {
  if (const char* const wish = std::getenv("ELIDEX_PYTHON"); wish != nullptr && *wish != '\0') return wish;
  const std::filesystem::path own = std::filesystem::path(ELIDEX_SOURCE_DIR) / ".venv/bin/python";
  std::error_code error;
  return std::filesystem::exists(own, error) ? own.string() : "python3";
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
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, files[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, files[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, files[2], STDERR_FILENO);
  const auto child = start(command, &actions);
  posix_spawn_file_actions_destroy(&actions);
  program_result result;
  if (child) result = {wait_for(*child), text_of(files[1]), text_of(files[2])};
  for (const int file : files) close(file);
  return result;
}

}  // namespace elidex::tools
