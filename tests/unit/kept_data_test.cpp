// Checkpoints that the database writes by itself, and backups of a database in use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "elidex/database.hpp"
#include "support/comes_true.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"
#include "support/thrown_code.hpp"

namespace elidex::testing {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

struct account {
  std::int64_t balance = 0;
};
using accounts_table = database::table<std::uint64_t, account>;

constexpr std::uint64_t accounts_count = 64;
constexpr std::int64_t money = 1000;

class KeptData : public ::testing::Test {
 protected:
  KeptData() {
    std::string name = (fs::temp_directory_path() / "elidex-kept-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) root_ = name;
  }
  ~KeptData() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  std::string path(const char* name) const { return (root_ / name).string(); }

 private:
  fs::path root_;
};

// A bank whose money stays the same in every state that transactions leave.
struct bank {
  explicit bank(const std::function<void(database&)>& open) {
    accounts = &db.create_table<std::uint64_t, account>("accounts");
    open(db);
  }
  explicit bank(const std::string& directory, const db::storage_options& options = {})
      : bank([&](database& of) { of.open(directory, options); }) {}

  void fill() {
    db.transact([&](auto& t) {
      for (std::uint64_t key = 0; key < accounts_count; ++key)
        t.upsert(*accounts, key, account{money});
    });
  }
  void move_money(random_numbers& random) {
    const std::uint64_t from = random.below(accounts_count);
    const std::uint64_t to = random.below(accounts_count);
    db.transact([&](auto& t) {
      t.update(*accounts, from, [](account& a) { --a.balance; });
      t.update(*accounts, to, [](account& a) { ++a.balance; });
    });
  }
  std::int64_t total() {
    std::int64_t sum = 0;
    db.read_only([&](auto& t) {
      t.scan(*accounts, all, [&](std::uint64_t, const account& a) { sum += a.balance; });
    });
    return sum;
  }

  database db;
  accounts_table* accounts = nullptr;
};

std::int64_t total_of(const std::string& directory) {
  return bank(directory, {.level = db::durability::none}).total();
}

std::uint64_t bytes_of(const std::string& directory) {
  std::uint64_t sum = 0;
  for (const auto& one : fs::directory_iterator(directory)) {
    std::error_code removed;  // by a checkpoint
    const std::uint64_t size = one.file_size(removed);
    sum += removed ? 0 : size;
  }
  return sum;
}

// --- checkpoints by themselves ---

TEST_F(KeptData, TheLogStaysShortWithoutACallOfCheckpoint) {
  constexpr std::uint64_t limit = std::uint64_t{64} << 10;
  {
    bank b(path("bank"),
           {.group_time = 100us, .segment_bytes = 16 << 10, .checkpoint_bytes = limit});
    b.fill();
    random_numbers random(seed_or(29));
    std::uint64_t longest = 0;
    EXPECT_TRUE(comes_true([&] {
      for (int i = 0; i < 200; ++i) b.move_money(random);
      b.db.wait_durable();
      longest = std::max(longest, bytes_of(path("bank")));
      return b.db.automatic_checkpoints().written >= 5;
    }));
    EXPECT_GT(longest, limit / 2);
    b.db.close();
    const db::automatic_checkpoints_report report = b.db.automatic_checkpoints();
    EXPECT_EQ(report.failed, 0U);
    EXPECT_FALSE(report.failure);
    EXPECT_EQ(report.last.rows, accounts_count + 1);  // and the catalog's
    EXPECT_LT(bytes_of(path("bank")), 20 * limit);
  }
  EXPECT_EQ(total_of(path("bank")), money * static_cast<std::int64_t>(accounts_count));
}

TEST_F(KeptData, NoneIsWrittenIfTheOptionsSaySo) {
  bank b(path("bank"), {.group_time = 100us, .segment_bytes = 4096, .checkpoint_bytes = 0});
  b.fill();
  random_numbers random(seed_or(29));
  for (int i = 0; i < 2000; ++i) b.move_money(random);
  b.db.wait_durable();
  EXPECT_EQ(b.db.automatic_checkpoints().written, 0U);
  EXPECT_GT(bytes_of(path("bank")), 30'000U);
}

TEST_F(KeptData, TimeBringsACheckpointOnlyIfSomethingWasLogged) {
  bank b(path("bank"), {.group_time = 100us, .checkpoint_bytes = 0, .checkpoint_time = 5ms});
  b.fill();
  EXPECT_TRUE(comes_true([&] { return b.db.automatic_checkpoints().written >= 1; }));
  b.db.wait_durable();
  // The first one may have begun before the last batch was written.
  std::uint64_t written = b.db.automatic_checkpoints().written;
  std::this_thread::sleep_for(100ms);
  EXPECT_LE(b.db.automatic_checkpoints().written, written + 1);
  written = b.db.automatic_checkpoints().written;
  random_numbers random(seed_or(29));
  b.move_money(random);
  EXPECT_TRUE(comes_true([&] { return b.db.automatic_checkpoints().written > written; }));
}

// A directory with a long log gets a checkpoint soon after open().
TEST_F(KeptData, TheLogThatOpenFindsCounts) {
  {
    bank b(path("bank"), {.group_time = 100us, .checkpoint_bytes = 0});
    b.fill();
    random_numbers random(seed_or(29));
    for (int i = 0; i < 3000; ++i) b.move_money(random);
  }
  bank b(path("bank"), {.group_time = 100us, .checkpoint_bytes = std::uint64_t{16} << 10});
  random_numbers random(seed_or(29));
  b.move_money(random);
  EXPECT_TRUE(comes_true([&] { return b.db.automatic_checkpoints().written == 1; }));
}

TEST_F(KeptData, ACallerWaitsForTheDatabasesOwnCheckpoint) {
  bank b(path("bank"), {.group_time = 50us, .segment_bytes = 4096, .checkpoint_bytes = 1});
  b.fill();
  random_numbers random(seed_or(29));
  for (int i = 0; i < 50; ++i) {
    for (int j = 0; j < 20; ++j) b.move_money(random);
    EXPECT_NO_THROW(b.db.checkpoint());
  }
  EXPECT_TRUE(comes_true([&] {
    b.move_money(random);
    return b.db.automatic_checkpoints().written > 0;
  }));
}

// The log of the rows that a checkpoint has is gone, also if its segment was not full.
TEST_F(KeptData, ACheckpointLeavesNoLongLogBehind) {
  bank b(path("bank"), {.group_time = 100us, .checkpoint_bytes = 0});
  b.db.transact([&](auto& t) {
    for (std::uint64_t key = 0; key < 20'000; ++key) t.upsert(*b.accounts, key, account{1});
  });
  b.db.wait_durable();
  const std::uint64_t before = bytes_of(path("bank"));
  const db::finished_checkpoint made = b.db.checkpoint();
  EXPECT_EQ(made.removed_segments, 1U);
  EXPECT_GT(before, 500'000U);
  EXPECT_LT(bytes_of(path("bank")), made.bytes + 1000);
  random_numbers random(seed_or(29));
  for (int i = 0; i < 10; ++i) b.move_money(random);
  b.db.close();
  EXPECT_EQ(b.total(), 20'000);
}

TEST_F(KeptData, LimitsThatAreNeverReached) {
  bank b(path("bank"), {.group_time = 50us,
                        .checkpoint_bytes = ~std::uint64_t{0},
                        .checkpoint_time = std::chrono::milliseconds::max()});
  b.fill();
  random_numbers random(seed_or(29));
  for (int i = 0; i < 100; ++i) b.move_money(random);
  b.db.wait_durable();
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(b.db.automatic_checkpoints().written, 0U);
}

// close() waits for checkpoints and backups. A later one is refused.
TEST_F(KeptData, CloseBesideCheckpointsAndBackups) {
  for (int round = 0; round < repetitions(30); ++round) {
    const std::string place = path("bank") + std::to_string(round);
    {
      bank b(place, {.group_time = 50us, .checkpoint_bytes = 2000});
      b.fill();
      b.db.checkpoint();
      std::vector<std::thread> all;
      all.emplace_back([&] { code_thrown_by([&] { b.db.checkpoint(); }); });
      all.emplace_back([&] { code_thrown_by([&] { b.db.backup(place + " copy"); }); });
      all.emplace_back([&] { b.db.close(); });
      b.db.close();
      for (std::thread& one : all) one.join();
      EXPECT_EQ(code_thrown_by([&] { b.db.checkpoint(); }), std::errc::operation_canceled);
    }
    EXPECT_EQ(total_of(place), money * static_cast<std::int64_t>(accounts_count));
    if (fs::exists(place + " copy") && !fs::is_empty(place + " copy")) {
      EXPECT_EQ(total_of(place + " copy"), money * static_cast<std::int64_t>(accounts_count));
    }
  }
}

// --- and on a disk that fails ---

// A directory in which a checkpoint finds no room while the log does.
class directory_without_room final : public log_directory {
 public:
  directory_without_room(std::unique_ptr<log_directory> of, const std::atomic<bool>& full,
                         std::string kind = "checkpoint")
      : of_(std::move(of)), full_(full), kind_(std::move(kind)) {}
  std::vector<std::string> names(std::error_code& error) override { return of_->names(error); }
  std::unique_ptr<log_file> create(const std::string& name, std::error_code& error) override {
    if (full_ && name.find(kind_) != std::string::npos) {
      error = std::make_error_code(std::errc::no_space_on_device);
      return nullptr;
    }
    return of_->create(name, error);
  }
  std::unique_ptr<log_file> open(const std::string& name, std::error_code& error) override {
    return of_->open(name, error);
  }
  void rename(const std::string& from, const std::string& to, std::error_code& error) override {
    of_->rename(from, to, error);
  }
  void remove(const std::string& name, std::error_code& error) override {
    of_->remove(name, error);
  }
  void sync(std::error_code& error) override { of_->sync(error); }

 private:
  const std::unique_ptr<log_directory> of_;
  const std::atomic<bool>& full_;
  const std::string kind_;
};

// A checkpoint begins another segment. If there can be none, the present one continues.
TEST(KeptDataOnAFaultyDisk, NoRoomForASegmentDoesNotEndTheLog) {
  faulty_disk disk;
  std::atomic<bool> full{false};
  {
    bank b([&](database& db) {
      db.open(std::make_unique<directory_without_room>(disk.directory(), full, "redo"),
              {.group_time = 100us, .segment_bytes = 1 << 20, .checkpoint_bytes = 0});
    });
    b.db.transact([&](auto& t) {
      for (std::uint64_t key = 0; key < 5000; ++key) t.upsert(*b.accounts, key, account{1});
    });
    full = true;
    EXPECT_EQ(b.db.checkpoint().removed_segments, 0U);
    random_numbers random(seed_or(29));
    for (int i = 0; i < 10; ++i) b.move_money(random);
    b.db.wait_durable();
    full = false;
    EXPECT_EQ(b.db.checkpoint().removed_segments, 1U);
    b.move_money(random);
    b.db.close();
  }
  bank again([&](database& db) { db.open(disk.directory()); });
  EXPECT_EQ(again.total(), 5000);
}

TEST(KeptDataOnAFaultyDisk, AFullDiskIsReportedAndTransactionsContinue) {
  faulty_disk disk;
  std::atomic<bool> full{true};
  {
    bank b([&](database& db) {
      db.open(std::make_unique<directory_without_room>(disk.directory(), full),
              {.group_time = 100us, .checkpoint_bytes = 4096});
    });
    b.fill();
    random_numbers random(seed_or(29));
    EXPECT_TRUE(comes_true([&] {
      b.move_money(random);
      return b.db.automatic_checkpoints().failed == 1;
    }));
    EXPECT_EQ(b.db.automatic_checkpoints().failure, std::errc::no_space_on_device);
    for (int i = 0; i < 100; ++i) b.move_money(random);
    b.db.wait_durable();
    // The next one succeeds, and nothing of the failed one is left.
    full = false;
    b.db.checkpoint();
    b.db.close();
  }
  bank again([&](database& db) { db.open(disk.directory()); });
  EXPECT_EQ(again.total(), money * static_cast<std::int64_t>(accounts_count));
}

// --- backups ---

TEST_F(KeptData, ABackupIsAWholeStateOfTheBank) {
  for (const std::uint64_t checkpoint_bytes : {std::uint64_t{0}, std::uint64_t{8} << 10}) {
    const std::string place = path(checkpoint_bytes == 0 ? "bank" : "bank with checkpoints");
    bank b(place,
           {.group_time = 100us, .segment_bytes = 8192, .checkpoint_bytes = checkpoint_bytes});
    b.fill();
    std::atomic<bool> stop{false};
    std::vector<std::thread> movers;
    for (int i = 0; i < 2; ++i) {
      movers.emplace_back([&, i] {
        random_numbers random(seed_or(29) + static_cast<std::uint64_t>(i));
        while (!stop) b.move_money(random);
      });
    }
    for (int i = 0; i < 8; ++i) {
      const std::string copy = place + " copy " + std::to_string(i);
      // The bank's own account of how often it was copied: a commit before the call is in the copy.
      b.db.transact([&](auto& t) { t.upsert(*b.accounts, 999, account{i}); });
      const db::finished_checkpoint made = b.db.backup(copy);
      EXPECT_EQ(made.bytes, bytes_of(copy));
      bank restored(copy, {.group_time = 100us});
      EXPECT_EQ(restored.total(), money * static_cast<std::int64_t>(accounts_count) + i);
      random_numbers random(seed_or(29));
      restored.move_money(random);  // and it can be continued
    }
    stop = true;
    for (std::thread& one : movers) one.join();
  }
}

TEST_F(KeptData, WhatCannotBeBackedUpIsRefused) {
  std::optional<bank> open(std::in_place, path("bank"));
  bank& b = *open;
  b.fill();
  fs::create_directory(path("full"));
  std::ofstream(path("full") + "/file") << "mine";
  EXPECT_EQ(code_thrown_by([&] { b.db.backup(path("full")); }), std::errc::directory_not_empty);
  EXPECT_EQ(code_thrown_by([&] { b.db.backup(path("full") + "/file"); }),
            std::errc::not_a_directory);
  EXPECT_EQ(code_thrown_by([&] { b.db.backup(path("none") + "/copy"); }),
            std::errc::no_such_file_or_directory);
  EXPECT_EQ(code_thrown_by([&] { b.db.backup(path("bank")); }),
            std::errc::resource_unavailable_try_again);
  EXPECT_TRUE(fs::exists(path("full") + "/file"));
  b.db.close();
  EXPECT_EQ(code_thrown_by([&] { b.db.backup(path("late")); }), std::errc::operation_canceled);
  EXPECT_TRUE(!fs::exists(path("late")) || fs::is_empty(path("late")));
  open.reset();

  bank reader(path("bank"), {.level = db::durability::none});
  EXPECT_EQ(code_thrown_by([&] { reader.db.backup(path("x")); }),
            std::errc::operation_not_supported);
  database memory;
  EXPECT_EQ(code_thrown_by([&] { memory.backup(path("x")); }), std::errc::operation_not_supported);
  EXPECT_FALSE(fs::exists(path("x")));
}

// The power fails, at each operation once, on the disk that the backup is written to.
TEST(KeptDataOnAFaultyDisk, ABackupThatLosesItsPowerIsNeverTakenForAWholeOne) {
  for (const bool after_a_checkpoint : {false, true}) {
    faulty_disk disk;
    bank b([&](database& db) {
      db.open(disk.directory(),
              {.group_time = 100us, .segment_bytes = 1024, .checkpoint_bytes = 0});
    });
    b.fill();
    random_numbers random(seed_or(29));
    for (int i = 0; i < 60; ++i) b.move_money(random);
    if (after_a_checkpoint) b.db.checkpoint();
    for (int i = 0; i < 60; ++i) b.move_money(random);
    unsigned refused = 0;
    bool finished = false;
    for (std::uint64_t at = 0; !finished && at < 1000; ++at) {
      faulty_disk to;
      to.faults().power_off_at = at;
      try {
        b.db.backup(to.private_directory());
        finished = true;
      } catch (const std::system_error&) {
        // the power has failed
      }
      for (int i = 0; i < 10; ++i) {
        faulty_disk after = to.after_power_failure(random);
        try {
          bank restored(
              [&](database& db) { db.open(after.directory(), {.level = db::durability::none}); });
          // An empty directory is a database without rows.
          const std::int64_t total = restored.total();
          EXPECT_TRUE(total == money * static_cast<std::int64_t>(accounts_count) ||
                      (after.names().empty() && !finished))
              << at << ": " << total;
        } catch (const log_error&) {
          EXPECT_FALSE(finished);
          ++refused;
        }
      }
    }
    EXPECT_TRUE(finished);
    EXPECT_GT(refused, 0U);
  }
}

// A process that is killed during a backup leaves a directory that is refused, or that has all.
TEST_F(KeptData, AnInterruptedBackupIsNeverTakenForAWholeOne) {
  unsigned whole = 0;
  for (int round = 0; round < 12; ++round) {
    const std::string name = "killed " + std::to_string(round);
    const std::string place = path(name.c_str());
    const std::string copy = place + " copy";
    fs::create_directory(place);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        bank b(place, {.level = db::durability::sync, .segment_bytes = 1024});
        b.fill();
        random_numbers random(seed_or(29));
        for (int i = 0; i < 50; ++i) b.move_money(random);
        std::ofstream(place + ".ready") << "";
        b.db.backup(copy);
        ::pause();
      } catch (...) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    ASSERT_TRUE(comes_true([&] { return fs::exists(place + ".ready"); }));
    std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    if (!fs::exists(copy)) continue;
    try {
      bank restored(copy, {.level = db::durability::none});
      const std::int64_t total = restored.total();
      // An empty directory is a database without rows.
      if (total == 0) continue;
      EXPECT_EQ(total, money * static_cast<std::int64_t>(accounts_count)) << name;
      ++whole;
    } catch (const log_error&) {
      // refused
    }
  }
  RecordProperty("whole", static_cast<int>(whole));
}

}  // namespace
}  // namespace elidex::testing
