#include "bench/support/cleanup.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace elidex::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::array ending_signals{SIGHUP, SIGINT, SIGTERM};

struct everything {
  std::mutex mutex;
  std::vector<const fs::path*> paths;
  std::vector<pid_t> children;
  pid_t watching = 0;  // the process with the thread that waits: a forked one has to start its own
  sigset_t watched{};
};

// Never destroyed: the watching thread may use it while the program ends.
everything& all() {
  static auto* const made = new everything;
  return *made;
}

// Nothing, or what ended it; it stays for its parent to reap.
bool has_ended(pid_t child) {
  siginfo_t about{};
  const int got = waitid(P_PID, static_cast<id_t>(child), &about, WEXITED | WNOWAIT | WNOHANG);
  return got == 0 ? about.si_pid != 0 : errno != EINTR;
}

// Ends it by force where the signal does not.
void wait_for_end(pid_t child) {
  using namespace std::chrono_literals;
  constexpr auto patience = 10s;
  constexpr auto pause = 2ms;
  const auto begin = std::chrono::steady_clock::now();
  while (!has_ended(child)) {
    if (std::chrono::steady_clock::now() - begin > patience) kill(child, SIGKILL);
    std::this_thread::sleep_for(pause);
  }
}

// Threads of the program may still create files in a directory that is being removed. A new name
// hides it from them.
void remove_with_all(const fs::path& path) {
  const fs::path hidden = path.string() + ".removed" + std::to_string(getpid());
  std::error_code error;
  fs::rename(path, hidden, error);
  // A thread may be creating a file that it looked up before the rename, or the rename has failed.
  constexpr int attempts_max = 100;
  for (const fs::path& one : {hidden, path}) {
    for (int i = 0; i < attempts_max && fs::exists(fs::symlink_status(one, error)); ++i)
      fs::remove_all(one, error);
  }
}

[[noreturn]] void end_program(int signal) {
  everything& here = all();
  // Never unlocked: from here on no thread can create a path or child. A thread that destroys one
  // blocks, so it can neither report an error nor end the program otherwise.
  here.mutex.lock();
  for (const pid_t child : here.children) kill(child, signal);
  for (const pid_t child : here.children) wait_for_end(child);
  for (const fs::path* const path : here.paths) remove_with_all(*path);
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &here.watched, nullptr);
  kill(getpid(), signal);
  _exit(128 + signal);
}

void watch(everything& here) {
  if (here.watching == getpid()) return;
  here.watching = getpid();
  here.paths.clear();
  here.children.clear();
  sigemptyset(&here.watched);
  for (const int signal : ending_signals) {
    struct sigaction now{};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&here.watched, signal);
  }
  pthread_sigmask(SIG_BLOCK, &here.watched, nullptr);
  try {
    std::thread([&here] {
      int signal = 0;
      while (sigwait(&here.watched, &signal) != 0) {
      }
      end_program(signal);
    }).detach();
  } catch (const std::system_error&) {
    // Without a thread, signals have their default effect.
    pthread_sigmask(SIG_UNBLOCK, &here.watched, nullptr);
  }
}

}  // namespace

temporary_path::temporary_path(fs::path path) : path_(std::move(path)) {
  everything& here = all();
  const std::lock_guard guard(here.mutex);
  watch(here);
  here.paths.push_back(&path_);
}

temporary_path::~temporary_path() {
  everything& here = all();
  const std::lock_guard guard(here.mutex);
  std::erase(here.paths, &path_);
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

child_process::child_process(const std::function<void()>& exec) {
  everything& here = all();
  const std::lock_guard guard(here.mutex);
  watch(here);
  here.children.reserve(here.children.size() + 1);
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ > 0) here.children.push_back(child_);
  if (child_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(no_program);  // the parent died before it could be watched
  pthread_sigmask(SIG_UNBLOCK, &here.watched, nullptr);
  exec();
  _exit(no_program);
}

child_process::~child_process() {
  (void)wait();
}

int child_process::wait() {
  if (child_ <= 0) return status_;
  siginfo_t about{};
  while (waitid(P_PID, static_cast<id_t>(child_), &about, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  {
    // Before it is reaped: its number may then be another process's.
    everything& here = all();
    const std::lock_guard guard(here.mutex);
    std::erase(here.children, child_);
  }
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

}  // namespace elidex::bench
