#include "bench/stores/group_commit.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bench/stores/disk.hpp"
#include "bench/support/cleanup.hpp"

namespace elidex::bench::stores {
namespace {

namespace fs = std::filesystem;
using run_clock = std::chrono::steady_clock;

class groups {
 public:
  groups(const fs::path& at, std::size_t bytes)
      : file_(at, O_CREAT | O_WRONLY | O_CLOEXEC), bytes_(bytes) {}

  // Returns when the bytes are on the disk.
  void commit() {
    std::uint32_t mine = 0;
    {
      const std::lock_guard guard(mutex_);
      mine = open_;
      handed_over_ += bytes_;
    }
    work_.fetch_add(1);
    work_.notify_one();
    // A run has less than 2^31 groups.
    for (std::uint32_t done = durable_.load(); done < mine; done = durable_.load())
      durable_.wait(done);
  }

  // Writes and syncs until end() was called.
  void write_groups() {
    std::vector<char> block;
    for (;;) {
      const std::uint32_t work = work_.load();
      std::uint32_t group = 0;
      std::size_t many = 0;
      {
        const std::lock_guard guard(mutex_);
        many = std::exchange(handed_over_, 0);
        if (many > 0) group = open_++;
      }
      if (many == 0) {
        if (ended_) return;
        work_.wait(work);
        continue;
      }
      block.resize(std::max(block.size(), many), 'x');
      write_and_sync(block.data(), many);
      ++syncs_;
      durable_ = group;
      durable_.notify_all();
    }
  }
  void end() {
    ended_ = true;
    work_.fetch_add(1);
    work_.notify_one();
  }
  [[nodiscard]] std::uint64_t syncs() const noexcept { return syncs_; }
  // Throws std::system_error if a write or a sync has failed.
  void check() const {
    if (failure_ != 0)
      throw std::system_error(failure_, std::generic_category(), file_.path().string());
  }

 private:
  // After a failure the others still get their answer, and the failure is reported at the end.
  void write_and_sync(const char* from, std::size_t many) {
    while (many > 0) {
      const ssize_t written = ::write(file_.get(), from, many);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return note_failure(written < 0 ? errno : EIO);
      from += written;
      many -= static_cast<std::size_t>(written);
    }
    if (::fdatasync(file_.get()) != 0) note_failure(errno);
  }
  void note_failure(int error) noexcept { failure_ = error; }

  const open_file file_;
  const std::size_t bytes_;
  std::mutex mutex_;
  std::size_t handed_over_ = 0;         // guarded by mutex_
  std::uint32_t open_ = 1;              // the group that gets them, guarded by mutex_
  std::atomic<std::uint32_t> work_{0};  // counts reasons to look again
  std::atomic<std::uint32_t> durable_{0};
  std::atomic<std::uint64_t> syncs_{0};
  std::atomic<bool> ended_{false};
  std::atomic<int> failure_{0};
};

template <class Fn>
class at_exit {
 public:
  explicit at_exit(Fn fn) : fn_(std::move(fn)) {}
  ~at_exit() { fn_(); }
  at_exit(const at_exit&) = delete;
  at_exit& operator=(const at_exit&) = delete;

 private:
  Fn fn_;
};

void sleep(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

group_commit group_commit_of(const fs::path& directory, const group_commit_settings& settings) {
  constexpr double warm_up_share = 0.1;
  const temporary_path made(directory / "group-commit");
  groups on(made.path(), settings.bytes);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> commits{0};
  group_commit result;
  {
    const std::jthread writer([&] { on.write_groups(); });
    const at_exit ends_writer([&] { on.end(); });  // when no thread waits any more
    std::vector<std::jthread> threads;
    const at_exit stops_threads([&] { stop = true; });
    threads.reserve(settings.threads);
    for (unsigned i = 0; i < settings.threads; ++i) {
      threads.emplace_back([&] {
        while (!stop) {
          on.commit();
          ++commits;
        }
      });
    }
    sleep(settings.seconds * warm_up_share);
    const auto begin = run_clock::now();
    const std::uint64_t commits_before = commits;
    const std::uint64_t syncs_before = on.syncs();
    sleep(settings.seconds);
    result.commits = commits - commits_before;
    result.syncs = on.syncs() - syncs_before;
    result.seconds = std::chrono::duration<double>(run_clock::now() - begin).count();
  }
  on.check();
  return result;
}

}  // namespace elidex::bench::stores
