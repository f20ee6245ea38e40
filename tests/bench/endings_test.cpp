// A signal that ends the program leaves no process and no file behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "bench/support/cleanup.hpp"
#include "support/elidex_tool.hpp"

namespace {

namespace fs = std::filesystem;
using elidex::bench::child_process;
using elidex::bench::temporary_path;
using elidex::testing::elidex_tool;

constexpr int ending_signals[] = {SIGHUP, SIGINT, SIGTERM};

// Waits for an event that must happen, so that a slow machine does not fail the test.
bool comes(const std::function<bool()>& happens) {
  constexpr auto patience = std::chrono::minutes(2);
  const auto begin = std::chrono::steady_clock::now();
  while (!happens()) {
    if (std::chrono::steady_clock::now() - begin > patience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::size_t entries(const fs::path& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

// In a process group of its own; what it leaves behind becomes a child of the test.
class started {
 public:
  explicit started(const std::function<void()>& what) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    group_ = fork();
    setpgid(group_, group_);  // in both, whichever comes first
    if (group_ != 0) return;
    // Under nohup, or behind '&' in a script, the test itself ignores them.
    for (const int signal : ending_signals) std::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    // this process may have blocked signals to wait for them
    sigprocmask(SIG_SETMASK, &none, nullptr);
    what();
    _exit(99);
  }
  started(const started&) = delete;
  started& operator=(const started&) = delete;
  ~started() {
    kill(-group_, SIGKILL);
    while (waitpid(-group_, nullptr, 0) > 0) {
    }
  }

  [[nodiscard]] bool runs() const {
    siginfo_t about{};
    return waitid(P_PID, static_cast<id_t>(group_), &about, WEXITED | WNOWAIT | WNOHANG) == 0 &&
           about.si_pid == 0;
  }

  // Has the group a program of this name?
  [[nodiscard]] bool has(const std::string& name) const {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::ifstream in(entry.path() / "stat");
      std::string number, command, state;
      pid_t parent = 0, group = 0;
      if (in >> number >> command >> state >> parent >> group && group == group_ &&
          command == "(" + name + ")") {
        return true;
      }
    }
    return false;
  }

  void send(int signal) const { kill(group_, signal); }

  // The signal that it dies by; 0 if it ends otherwise.
  int end(int signal) {
    send(signal);
    int status = 0;
    waitpid(group_, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

  // Reaps what others of the group have left; true when nobody is left.
  [[nodiscard]] bool gone() const {
    while (waitpid(-group_, nullptr, WNOHANG) > 0) {
    }
    return kill(-group_, 0) != 0;
  }

 private:
  pid_t group_ = 0;
};

class Endings : public elidex_tool {
 protected:
  [[nodiscard]] std::function<void()> tool(const std::string& arguments) const {
    return [command = "cd '" + path("") + "' && exec '" ELIDEX_TOOL "' " + arguments +
                      " >out 2>err"] { execl("/bin/sh", "sh", "-c", command.c_str(), nullptr); };
  }
};

TEST_F(Endings, ABenchLeavesNoDatabase) {
  fs::create_directory(path("databases"));
  for (const int signal : ending_signals) {
    started bench(
        tool("bench --workload smallbank --index db/silo --durability async --folder databases "
             "--seconds 600 "
             "--customers 1000 --json results.json"));
    const auto has_a_log = [&] {
      for (const auto& directory : fs::directory_iterator(path("databases"))) {
        if (entries(directory) > 0) return true;
      }
      return !bench.runs();
    };
    ASSERT_TRUE(comes(has_a_log));
    EXPECT_EQ(bench.end(signal), signal) << text_of(path("err"));
    EXPECT_EQ(entries(path("databases")), 0U);
    EXPECT_EQ(text_of(path("err")), "");
    EXPECT_TRUE(bench.gone());
  }
}

TEST_F(Endings, ADbBenchLeavesNoStore) {
  fs::create_directory(path("stores"));
  for (const int signal : ending_signals) {
    started bench(tool("db bench --rows 1000 --work commits,recovery --seconds 600 --dir stores"));
    ASSERT_TRUE(comes([&] { return entries(path("stores")) > 0 || !bench.runs(); }));
    EXPECT_EQ(bench.end(signal), signal) << text_of(path("err"));
    EXPECT_EQ(entries(path("stores")), 0U);
    EXPECT_EQ(text_of(path("err")), "");
    EXPECT_TRUE(bench.gone());
  }
  // In the process that is to be killed.
  started bench(
      tool("db bench --rows 1000 --work recovery --recovery-commits 1M --dir stores --json x"));
  const auto recovers = [&] {
    for (const auto& directory : fs::directory_iterator(path("stores"))) {
      if (fs::exists(directory.path() / "acknowledged")) return true;
    }
    return !bench.runs();
  };
  ASSERT_TRUE(comes(recovers));
  EXPECT_EQ(bench.end(SIGTERM), SIGTERM) << text_of(path("err"));
  EXPECT_EQ(entries(path("stores")), 0U);
  EXPECT_TRUE(comes([&] { return bench.gone(); }));
}

#if defined(ELIDEX_HAS_SIM)

TEST_F(Endings, ASimulationLeavesNoRunAndNoTimeline) {
  started sim(
      tool("sim --index btree/htm-dbx --cores 20 --ops 1M --keys 1M --json results.json --trace "
           "trace.json"));
  ASSERT_TRUE(comes([&] { return sim.has("elidex-sim") || !sim.runs(); }));
  EXPECT_EQ(sim.end(SIGTERM), SIGTERM) << text_of(path("err"));
  EXPECT_TRUE(comes([&] { return sim.gone(); }));
  EXPECT_EQ(entries(path("")), 2U) << "more than out and err";
}

// SIGKILL leaves no time: the kernel tells the others, a moment later.
TEST_F(Endings, ARepetitionLeavesNoRunAndNoPlot) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGKILL}) {
    started repro(tool("repro E-F10 --scale full --jobs 2 --out plots --json results.json"));
    ASSERT_TRUE(comes([&] { return repro.has("elidex-sim") || !repro.runs(); }));
    if (!repro.runs() && text_of(path("err")).find("is missing") != std::string::npos) {
      GTEST_SKIP() << text_of(path("err"));
    }
    EXPECT_EQ(repro.end(signal), signal) << text_of(path("err"));
    if (signal == SIGKILL) {
      EXPECT_TRUE(comes([&] { return repro.gone(); }));
    } else {
      EXPECT_TRUE(repro.gone());
    }
    EXPECT_FALSE(fs::exists(path("plots")));
    EXPECT_EQ(entries(path("")), 2U) << "more than out and err";
    EXPECT_EQ(text_of(path("err")), "");
  }
}

#endif  // ELIDEX_HAS_SIM

// --- What the program does it with ---

// Waits for a signal with a temporary directory in hand, into which another thread writes all the
// time.
void hold(const std::string& directory) {
  fs::create_directory(directory);
  const temporary_path removed(directory);
  std::thread([&] {
    for (unsigned i = 0;; i = (i + 1) % 100)
      std::ofstream(directory + "/file" + std::to_string(i)) << "text";
  }).detach();
  std::ofstream(directory + ".held") << "x";
  for (;;) pause();
}

TEST_F(Endings, ATemporaryPathIsRemovedThoughThreadsWriteIntoIt) {
  for (const int signal : ending_signals) {
    started program([&] { hold(path("directory")); });
    ASSERT_TRUE(comes([&] { return fs::exists(path("directory.held")); }));
    EXPECT_EQ(program.end(signal), signal);
    EXPECT_FALSE(fs::exists(path("directory")));
    fs::remove(path("directory.held"));
  }
}

TEST_F(Endings, AnIgnoredSignalStaysIgnored) {
  started program([&] {
    std::signal(SIGHUP, SIG_IGN);  // as nohup does
    hold(path("directory"));
  });
  ASSERT_TRUE(comes([&] { return fs::exists(path("directory.held")); }));
  program.send(SIGHUP);
  EXPECT_EQ(program.end(SIGTERM), SIGTERM) << "and not by the signal that came first";
  EXPECT_FALSE(fs::exists(path("directory")));
}

TEST_F(Endings, ATemporaryPathIsRemovedAtTheEndOfItsScope) {
  {
    const temporary_path removed(path("directory"));
    fs::create_directories(path("directory/within"));
  }
  EXPECT_FALSE(fs::exists(path("directory")));
  const temporary_path never_made(path("directory"));
}

TEST_F(Endings, AChildProcessTellsHowItEnded) {
  EXPECT_EQ(child_process([] { _exit(3); }).wait(), 3);
  EXPECT_EQ(child_process([] { kill(getpid(), SIGSEGV); }).wait(), 128 + SIGSEGV);
  EXPECT_EQ(child_process([] { execl("/no/such", "such", nullptr); }).wait(), 127);
}

}  // namespace
