#pragma once
// Files and child processes that must not outlive the program, also where a signal ends it.
//
//   const temporary_path folder(made);                      // removed at the end of the scope, or by a signal
//   child_process child([&] { execvp(..); });
//   const int status = child.wait();
//
// SIGHUP, SIGINT and SIGTERM, unless the program was started with the signal ignored: each child process gets the signal and
// is waited for (SIGKILL after 10 s), each temporary path is removed, and the program dies by the same signal. SIGKILL: the
// kernel sends each child process SIGTERM; temporary paths stay.
//
// The first object blocks these signals in the thread that makes it and in all that it starts from then on, and starts a thread
// that waits for them. So make it before threads that run for long.
//
// Thread-safety: objects may be made and destroyed in several threads at once.
// Errors: std::bad_alloc. A path that cannot be removed stays.

#include <sys/types.h>

#include <filesystem>
#include <functional>

namespace elidex::lab {

/// A file or a directory with all that is in it. It need not exist: not yet, or not any more.
class temporary_path {
 public:
  explicit temporary_path(std::filesystem::path path);
  ~temporary_path();
  temporary_path(const temporary_path&) = delete;
  temporary_path& operator=(const temporary_path&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// Calls `exec` in a child process, which ends with status 127 if it returns. `exec` may use what is async-signal-safe.
/// The thread that makes the object must live until wait() has returned: at its end the kernel sends the child SIGTERM.
class child_process {
 public:
  explicit child_process(const std::function<void()>& exec);
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  /// Waits if nobody has.
  ~child_process();

  /// Its exit status; 128 + the signal that ended it; 127 where no process could be made.
  int wait();

 private:
  static constexpr int no_program = 127;
  pid_t child_ = -1;
  int status_ = no_program;
};

}  // namespace elidex::lab
