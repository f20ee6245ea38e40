#pragma once
// Files and child processes that must not outlive the program, also where a signal ends it.
//
//   const temporary_path directory(made);  // removed at the end of the scope, or by a signal
//   child_process child([&] { execvp(..); });
//   const int status = child.wait();
//
// On SIGHUP, SIGINT or SIGTERM the program sends the signal to each child process and waits for it
// (SIGKILL after 10 s). It then removes each temporary path and dies by the same signal. A signal
// that was ignored at the program's start stays ignored. After SIGKILL the kernel sends each child
// process SIGTERM; temporary paths stay.
//
// The first object blocks these signals in its thread and in all threads that this one starts
// later. It also starts a thread that waits for them. So create it before any long-running thread.
//
// Thread-safety: objects may be made and destroyed in several threads at once.
// Errors: std::bad_alloc. A path that cannot be removed stays.

#include <sys/types.h>

#include <filesystem>
#include <functional>

namespace elidex::bench {

/// A file, or a directory with its contents. It need not exist.
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

/// Calls `exec` in a child process, which ends with status 127 if `exec` returns. `exec` may call
/// only async-signal-safe functions. The thread that creates the object must live until wait()
/// returns: the kernel sends the child SIGTERM when that thread ends.
class child_process {
 public:
  explicit child_process(const std::function<void()>& exec);
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  /// Waits unless wait() was called.
  ~child_process();

  /// Its exit status; 128 + the signal that ended it; 127 where no process could be made.
  int wait();

 private:
  static constexpr int no_program = 127;
  pid_t child_ = -1;
  int status_ = no_program;
};

}  // namespace elidex::bench
