#pragma once
// Runs a function in a child of fork() and says what became of it.
//
//   EXPECT_EQ(in_child([] { return map.get(7) ? "" : "7 is not there"; }), "");
//
// The function's string, which is empty if all is well; what it threw; or the signal or the exit
// status that ended it. A child that hangs is ended by SIGALRM. gtest's macros are not for
// children.

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <exception>
#include <string>
#include <system_error>

namespace elidex::testing {

inline constexpr unsigned child_seconds_max = 20;

// Reads what a child has written, and waits for its end.
inline std::string result_of_child(pid_t child, int reading_end) {
  std::string text;
  char bytes[256];
  for (;;) {
    const ssize_t read = ::read(reading_end, bytes, sizeof bytes);
    if (read > 0) text.append(bytes, static_cast<std::size_t>(read));
    if (read == 0 || (read < 0 && errno != EINTR)) break;
  }
  ::close(reading_end);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return number == SIGALRM ? "it hangs" : "ended by signal " + std::to_string(number);
  }
  const int ended_with = WEXITSTATUS(status);
  return ended_with == 0 ? text : text + "ended with status " + std::to_string(ended_with);
}

template <class Fn>
std::string in_child(Fn&& fn) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    ::alarm(child_seconds_max);
    std::string text;
    try {
      text = fn();
    } catch (const std::exception& error) {
      text = std::string("thrown: ") + error.what();
    } catch (...) {
      text = "thrown";
    }
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t written = ::write(ends[1], text.data() + done, text.size() - done);
      if (written <= 0) ::_exit(1);
      done += static_cast<std::size_t>(written);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  return result_of_child(child, ends[0]);
}

}  // namespace elidex::testing
