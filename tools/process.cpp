#include "tools/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

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

}  // namespace elidex::tools
