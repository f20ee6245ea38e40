// kill -9 at random moments: a child commits with several threads and tells through a pipe what it
// was told; the parent recovers what it left.
#include <gtest/gtest.h>

#if defined(__unix__)

#  include <fcntl.h>
#  include <poll.h>
#  include <sys/wait.h>
#  include <unistd.h>

#  include <csignal>
#  include <filesystem>
#  include <map>
#  include <set>
#  include <thread>

#  include "elidex/internal/log/checkpoint.hpp"
#  include "elidex/internal/log/recovery.hpp"
#  include "elidex/internal/log/redo_log.hpp"
#  include "support/emulator.hpp"
#  include "support/logged_store.hpp"
#  include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using namespace std::chrono_literals;

constexpr int threads = 3;
constexpr std::uint64_t numbers_of_a_thread = commit_stamp::number_max / threads;
constexpr std::uint64_t rows_per_transaction = 3;

// One write to the pipe, which is atomic.
struct report {
  enum kind : std::uint32_t { kept, acknowledged } what = kept;
  std::uint32_t thread = 0;
  std::uint64_t number = 0;  // of the thread's transaction
  std::uint64_t group = 0;
  std::uint64_t durable = 0;  // durable_group(), seen before this was written
};
static_assert(sizeof(report) <= 512);

class pipe_of_reports {
 public:
  pipe_of_reports() {
    if (::pipe2(ends_, O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  ~pipe_of_reports() {
    close_writer();
    ::close(ends_[0]);
  }
  void close_writer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  void write(const report& one) const {
    if (::write(ends_[1], &one, sizeof one) != sizeof one) ::_exit(3);
  }
  // Reads until this moment, or until the end of the pipe.
  void read_until(std::chrono::steady_clock::time_point until, std::vector<report>& to) const {
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      pollfd ready{.fd = ends_[0], .events = POLLIN, .revents = 0};
      if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0) return;
      report one;
      if (::read(ends_[0], &one, sizeof one) != sizeof one) return;
      to.push_back(one);
    }
  }

 private:
  int ends_[2] = {-1, -1};
};

std::string key_of(std::uint32_t thread, std::uint64_t number, std::uint64_t row) {
  return std::to_string(thread) + "/" + std::to_string(number) + "/" + std::to_string(row);
}

// What threads do in the child, one transaction after the other: rows of their own, and one row
// that all of them overwrite.
void commit_for_ever(redo_log& log, std::uint32_t thread, std::uint64_t life,
                     const pipe_of_reports& pipe) {
  redo_log::worker me(log);
  for (std::uint64_t number = life << 32U;; ++number) {
    report now{.what = report::kept, .thread = thread, .number = number, .group = 0, .durable = 0};
    if (number % numbers_of_a_thread == 0) log.clock().advance();  // for the numbers that follow
    {
      commit_with_group commit(me);
      now.group = commit.group();
      for (std::uint64_t row = 0; row < rows_per_transaction; ++row)
        commit.upsert(thread, key_of(thread, number, row), std::string(number % 100, 'x'));
      commit.upsert(threads, "overwritten by " + std::to_string(thread), std::to_string(number));
      // Each thread's stamps differ from the others' by their last digit; only those of a thread
      // are compared.
      commit.keep(make_stamp(now.group, number % numbers_of_a_thread * threads + thread + 1));
    }
    now.durable = log.durable_group();
    pipe.write(now);
    log.acknowledge(me, now.group);
    now.durable = log.durable_group();
    now.what = report::acknowledged;
    if (log.level() == durability::sync) pipe.write(now);
  }
}

[[noreturn]] void child(const std::string& path, durability level, std::uint64_t life,
                        const pipe_of_reports& pipe) {
  try {
    const auto directory = open_log_directory(path);
    const recovered_log found = recover_log(*directory, 1, [](const log_entry&) {});
    commit_clock clock;
    redo_log_options options{.level = level,
                             .fingerprint = 1,
                             .group_time = 2ms,
                             .segment_bytes = std::size_t{64} << 10};
    redo_log log(clock, *directory, found, options);
    std::vector<std::jthread> running;
    for (std::uint32_t t = 0; t < threads; ++t)
      running.emplace_back([&, t] { commit_for_ever(log, t, life, pipe); });
    running.clear();
  } catch (...) {
    ::_exit(2);
  }
  ::_exit(2);
}

class directory_to_kill_over {
 public:
  directory_to_kill_over() {
    std::string name = (std::filesystem::temp_directory_path() / "elidex-kill-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~directory_to_kill_over() { std::filesystem::remove_all(path_); }
  std::string log() const { return (path_ / "log").string(); }

 private:
  std::filesystem::path path_;
};

// From 5 ms to `most` on a CPU. Ten times as long in QEMU (chosen), where the child reaches its
// first commit later.
std::chrono::milliseconds random_life(random_numbers& random, std::uint64_t most) {
  return std::chrono::milliseconds((5 + random.below(most - 5)) * (runs_in_qemu() ? 10 : 1));
}

// Runs the function in a child for so long, kills it, and returns what it reported.
template <class Child>
std::vector<report> reports_until_killed(std::chrono::milliseconds after, Child&& run) {
  pipe_of_reports pipe;
  const pid_t process = ::fork();
  if (process == 0) run(pipe);
  pipe.close_writer();
  std::vector<report> reports;
  pipe.read_until(std::chrono::steady_clock::now() + after, reports);
  EXPECT_EQ(::kill(process, SIGKILL), 0);
  pipe.read_until(std::chrono::steady_clock::now() + 1min, reports);
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      << "the child ended by itself, status " << status;
  return reports;
}

class KillNine : public ::testing::TestWithParam<durability> {};
INSTANTIATE_TEST_SUITE_P(Levels, KillNine, ::testing::Values(durability::async, durability::sync));

TEST_P(KillNine, AtRandomMoments) {
  const durability level = GetParam();
  random_numbers random(seed_or(11));
  std::uint64_t transactions_seen = 0;
  for (int round = 0; round < repetitions(4); ++round) {
    const directory_to_kill_over directory;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> present;  // transactions: rows
    for (std::uint64_t life = 1; life <= 4; ++life) {
      const std::vector<report> reports = reports_until_killed(
          random_life(random, 65),
          [&](const pipe_of_reports& pipe) { child(directory.log(), level, life, pipe); });
      std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> now;
      std::map<std::string, std::uint64_t> overwritten;
      const auto opened = open_log_directory(directory.log());
      const recovered_log found = recover_log(*opened, 1, [&](const log_entry& entry) {
        if (entry.table == threads) {
          overwritten[std::string(entry.key)] = std::stoull(std::string(entry.row));
          return;
        }
        const std::string key(entry.key);
        const std::size_t first = key.find('/');
        ++now[{entry.table, std::stoull(key.substr(first + 1))}];
      });
      // No transaction is there in part.
      for (const auto& [name, rows] : now)
        ASSERT_EQ(rows, rows_per_transaction) << name.first << " " << name.second;
      // What was there after the last life still is.
      for (const auto& [name, rows] : present) ASSERT_TRUE(now.contains(name));
      std::map<std::string, std::uint64_t> last;
      for (const auto& [name, rows] : now) {
        std::uint64_t& newest = last["overwritten by " + std::to_string(name.first)];
        newest = std::max(newest, name.second);
      }
      ASSERT_EQ(overwritten, last);
      for (const report& each : reports) {
        const bool there = now.contains({each.thread, each.number});
        // No group is there in part.
        ASSERT_EQ(there, each.group <= found.durable_group)
            << "group " << each.group << " of " << found.durable_group;
        if (each.what == report::acknowledged) {
          ASSERT_TRUE(there);
        }
        if (each.group <= each.durable) {
          ASSERT_TRUE(there);
        }
      }
      // All transactions of a group that somebody had seen durable.
      std::uint64_t durable = 0;
      for (const report& each : reports) durable = std::max(durable, each.durable);
      for (const report& each : reports) {
        if (each.group <= durable) {
          ASSERT_TRUE((now.contains({each.thread, each.number})));
        }
      }
      transactions_seen += reports.size();
      present = std::move(now);
    }
  }
  EXPECT_GT(transactions_seen, 0u);
}

// With checkpoints: few rows that are overwritten again and again, each transaction writing the
// same number into three.
[[noreturn]] void child_with_checkpoints(const std::string& path, const pipe_of_reports& pipe) {
  try {
    const auto directory = open_log_directory(path);
    logged_store store(*directory);
    commit_clock clock;
    redo_log log(clock, *directory, store.found(),
                 {.level = durability::sync,
                  .fingerprint = logged_store::fingerprint,
                  .group_time = 1ms,
                  .segment_bytes = std::size_t{8} << 10});
    std::uint64_t first = 1;
    for (const auto& [name, row] : store.rows())
      first = std::max<std::uint64_t>(first, std::stoull(row) + 1);
    std::vector<std::jthread> running;
    for (std::uint32_t t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        redo_log::worker me(log);
        for (std::uint64_t number = first;; ++number) {
          std::vector<row_change> changes;
          for (std::uint64_t row = 0; row < rows_per_transaction; ++row)
            changes.push_back({{t, std::to_string(row)}, std::to_string(number)});
          changes.push_back(
              {{t, "odd"}, number % 2 == 1 ? std::optional(std::to_string(number)) : std::nullopt});
          const std::uint64_t group = store.transact(me, changes);
          log.acknowledge(me, group);
          pipe.write({.what = report::acknowledged,
                      .thread = t,
                      .number = number,
                      .group = group,
                      .durable = 0});
        }
      });
    }
    for (;;) store.checkpoint(log, [] { std::this_thread::yield(); });
  } catch (...) {
    ::_exit(2);
  }
}

TEST(KillNineWithCheckpoints, AtRandomMoments) {
  random_numbers random(seed_or(12));
  const directory_to_kill_over directory;
  std::uint64_t segments = 0;
  for (int life = 0; life < repetitions(16); ++life) {
    const std::vector<report> reports = reports_until_killed(
        random_life(random, 85),
        [&](const pipe_of_reports& pipe) { child_with_checkpoints(directory.log(), pipe); });
    const auto opened = open_log_directory(directory.log());
    const logged_store store(*opened);
    const row_map rows = store.rows();
    for (const report& each : reports) {
      const auto row = rows.find({each.thread, "0"});
      ASSERT_TRUE(row != rows.end());
      ASSERT_GE(std::stoull(row->second), each.number) << "life " << life;
    }
    for (std::uint32_t t = 0; t < threads; ++t) {
      const auto row = rows.find({t, "0"});
      if (row == rows.end()) continue;
      ASSERT_EQ(rows.at({t, "1"}), row->second);
      ASSERT_EQ(rows.at({t, "2"}), row->second);
      const bool odd = std::stoull(row->second) % 2 == 1;
      ASSERT_EQ(rows.contains({t, "odd"}), odd);
      if (odd) {
        ASSERT_EQ(rows.at({t, "odd"}), row->second);
      }
    }
    if (!store.found().segments.empty()) segments = store.found().segments.back().number;
  }
  EXPECT_GT(segments, 1u);
}

}  // namespace
}  // namespace elidex::testing

#endif
