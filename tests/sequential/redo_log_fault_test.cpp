// Power failures at every operation, full disks, errors at syncs, short writes: what was
// acknowledged is there afterwards, and whole.
#include <gtest/gtest.h>

#include "elidex/internal/log/checkpoint.hpp"
#include "elidex/internal/log/recovery.hpp"
#include "support/faulty_directory.hpp"
#include "support/logged_store.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using namespace std::chrono_literals;

// What one run of a store over a disk has come to.
struct life {
  row_map at_first;
  row_map at_end;
  std::uint64_t durable = 0;  // what the log had said
  std::error_code failure;
  bool opened = false;                  // there was a log to commit with
  std::unique_ptr<logged_store> store;  // none if it could not even be opened
};

// Transactions, of which some are waited for, and checkpoints, until something fails.
life live(faulty_disk& disk, random_numbers& random, int transactions) {
  life lived;
  const auto directory = disk.directory();
  lived.store = std::make_unique<logged_store>(*directory);
  logged_store& store = *lived.store;
  lived.at_first = store.rows();
  lived.durable = store.found().durable_group;
  commit_clock clock;
  std::unique_ptr<redo_log> log;
  try {
    log = std::make_unique<redo_log>(clock, *directory, store.found(),
                                     redo_log_options{.level = durability::async,
                                                      .fingerprint = logged_store::fingerprint,
                                                      .group_time = 1h,
                                                      .segment_bytes = 700});
    lived.opened = true;
    redo_log::worker first(*log);
    redo_log::worker second(*log);
    std::uint64_t group = 0;
    for (int i = 0; i < transactions; ++i) {
      group = store.transact(random.below(2) == 0 ? first : second, store.random_changes(random));
      if (random.below(3) == 0) log->wait_durable(group);
      if (random.below(12) == 0) {
        store.checkpoint(*log, [&] {
          if (random.below(3) == 0) group = store.transact(first, store.random_changes(random));
          if (random.below(6) == 0) log->wait_durable(group);
        });
      }
    }
    log->wait_durable(group);
  } catch (const std::system_error& error) {
    lived.failure = error.code();
  }
  if (log != nullptr) {
    lived.durable = std::max(lived.durable, log->durable_group());
    if (!lived.failure) {
      try {
        log->close();
      } catch (const std::system_error& error) {
        lived.failure = error.code();
      }
      lived.durable = std::max(lived.durable, log->durable_group());
    }
  }
  lived.at_end = store.rows();
  return lived;
}

// Empty if what the disk has is what this life must have left; else what is wrong.
std::string judge(const life& lived, faulty_disk disk) {
  try {
    const logged_store store(*disk.directory());
    const std::uint64_t recovered = store.found().durable_group;
    if (recovered < lived.store->last_group_up_to(lived.durable))
      return "a durable group is missing";
    if (store.rows() != lived.store->rows_at(lived.at_first, recovered))
      return "no prefix of the groups";
  } catch (const log_error& error) {
    return error.what();
  }
  return {};
}

std::uint64_t operations_of_a_life(std::uint64_t seed, int transactions) {
  faulty_disk disk;
  random_numbers random(seed);
  const life lived = live(disk, random, transactions);
  EXPECT_FALSE(lived.failure);
  EXPECT_EQ(judge(lived, disk), "");
  return disk.operations();
}

TEST(PowerFailure, AtEveryOperation) {
  constexpr int transactions = 30;
  for (std::uint64_t seed = seed_or(1);
       seed < seed_or(1) + static_cast<std::uint64_t>(repetitions(6)); ++seed) {
    const std::uint64_t most = operations_of_a_life(seed, transactions) + 2;
    for (std::uint64_t at = 0; at < most; ++at) {
      faulty_disk disk;
      disk.faults().power_off_at = at;
      random_numbers random(seed);
      const life lived = live(disk, random, transactions);
      for (int way = 0; way < 4; ++way) {
        faulty_disk left = disk.after_power_failure(random);
        ASSERT_EQ(judge(lived, left.copy()), "") << "operation " << at << " of seed " << seed;
        // It goes on from there, and the same holds again.
        const life next = live(left, random, 5);
        ASSERT_FALSE(next.failure);
        ASSERT_EQ(judge(next, left), "") << "after operation " << at << " of seed " << seed;
      }
    }
  }
}

TEST(PowerFailure, AgainAndAgain) {
  for (std::uint64_t seed = seed_or(100);
       seed < seed_or(100) + static_cast<std::uint64_t>(repetitions(100)); ++seed) {
    random_numbers random(seed);
    faulty_disk disk;
    for (int round = 0; round < 12; ++round) {
      disk.faults().power_off_at = random.below(120);
      const life lived = live(disk, random, 30);
      disk = disk.after_power_failure(random);
      ASSERT_EQ(judge(lived, disk.copy()), "") << "round " << round << " of seed " << seed;
    }
  }
}

// A disk that says that it has synced: what the log would do if it published a group before its
// sync.
TEST(PowerFailure, CanaryOfASyncThatDoesNothing) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    random_numbers random(seed);
    faulty_disk disk;
    disk.faults().sync_lies = true;
    disk.faults().power_off_at = 20 + random.below(60);
    const life lived = live(disk, random, 30);
    found += judge(lived, disk.after_power_failure(random)).empty() ? 0 : 1;
  }
  EXPECT_GT(found, 10);
}

TEST(FullDisk, AtEveryByte) {
  constexpr int transactions = 25;
  faulty_disk large;
  random_numbers first(seed_or(7));
  live(large, first, transactions);
  for (std::uint64_t bytes = 0; bytes < large.used() + 50; bytes += 11) {
    faulty_disk disk;
    disk.faults().disk_bytes = bytes;
    random_numbers random(seed_or(7));
    const life lived = live(disk, random, transactions);
    if (lived.failure) {
      ASSERT_EQ(lived.failure, std::errc::no_space_on_device) << bytes;
    }
    // Killed, or without power: both.
    ASSERT_EQ(judge(lived, disk.copy()), "") << bytes;
    ASSERT_EQ(judge(lived, disk.after_power_failure(random)), "") << bytes;
    // With more room it goes on.
    faulty_disk larger = disk.copy();
    const life next = live(larger, random, 5);
    ASSERT_FALSE(next.failure);
    ASSERT_EQ(judge(next, larger), "") << bytes;
    ASSERT_EQ(judge(next, larger.after_power_failure(random)), "") << bytes;
  }
}

TEST(FailingSync, OfEveryFile) {
  for (const bool only_one : {false, true}) {
    for (std::uint64_t at = 0; at < 40; ++at) {
      faulty_disk disk;
      (only_one ? disk.faults().fail_one_sync : disk.faults().fail_sync_at) = at;
      random_numbers random(seed_or(8));
      const life lived = live(disk, random, 30);
      if (lived.failure) {
        ASSERT_EQ(lived.failure, std::errc::io_error) << at;
      }
      ASSERT_EQ(judge(lived, disk.copy()), "") << at;
      ASSERT_EQ(judge(lived, disk.after_power_failure(random)), "") << at;
    }
  }
}

// What a killed process had not synced is there at first, is built upon, and must not vanish then.
TEST(PowerFailure, AfterAKill) {
  for (std::uint64_t seed = seed_or(200);
       seed < seed_or(200) + static_cast<std::uint64_t>(repetitions(400)); ++seed) {
    random_numbers random(seed);
    faulty_disk disk;
    for (int round = 0; round < 4; ++round) {
      disk.faults().power_off_at = 5 + random.below(60);
      const life killed = live(disk, random, 20);
      disk = disk.copy();
      ASSERT_EQ(judge(killed, disk), "") << "round " << round << " of seed " << seed;
      disk.faults().power_off_at = disk.operations() + random.below(40);
      const life lived = live(disk, random, 20);
      disk = disk.after_power_failure(random);
      // What was recovered is durable when the next log is there.
      ASSERT_EQ(judge(lived.opened ? lived : killed, disk.copy()), "")
          << "round " << round << " of seed " << seed;
    }
  }
}

TEST(FailingSync, TheLogStaysFailed) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log log(
      clock, *directory, store.found(),
      {.level = durability::async, .fingerprint = logged_store::fingerprint, .group_time = 1h});
  redo_log::worker me(log);
  const auto failure_of = [](auto&& action) -> std::error_code {
    try {
      action();
    } catch (const std::system_error& error) {
      return error.code();
    }
    return {};
  };
  const std::uint64_t safe = store.transact(me, {{{0, "a"}, "1"}});
  log.wait_durable(safe);
  disk.change_faults([](disk_faults& f) { f.fail_sync_at = 0; });
  const std::uint64_t lost = store.transact(me, {{{0, "a"}, "2"}});
  EXPECT_EQ(failure_of([&] { log.wait_durable(lost); }), std::errc::io_error);
  // works again, but who knows what is missing
  disk.change_faults([](disk_faults& f) { f.fail_sync_at = never; });
  log.wait_durable(safe);
  EXPECT_LT(log.durable_group(), lost);
  EXPECT_EQ(log.failure(), std::errc::io_error);
  EXPECT_EQ(failure_of([&] { log.acknowledge(me, lost); }), std::errc::io_error);
  EXPECT_EQ(failure_of([&] { redo_log::commit refused(me); }), std::errc::io_error);
  EXPECT_EQ(failure_of([&] { checkpoint_writer refused(log); }), std::errc::io_error);
  EXPECT_EQ(failure_of([&] { log.close(); }), std::errc::io_error);
  EXPECT_EQ(failure_of([&] { log.close(); }), std::errc::io_error);
}

TEST(FullDisk, ACheckpointThatDoesNotFitLeavesTheLogAsItIs) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log log(
      clock, *directory, store.found(),
      {.level = durability::sync, .fingerprint = logged_store::fingerprint, .group_time = 1h});
  redo_log::worker me(log);
  log.acknowledge(me, store.transact(me, {{{0, "a"}, std::string(1000, 'x')}}));
  const std::uint64_t full = disk.used() + 500;
  disk.change_faults([&](disk_faults& f) { f.disk_bytes = full; });
  EXPECT_THROW(store.checkpoint(log, [] {}), std::system_error);
  disk.change_faults([](disk_faults& f) { f.disk_bytes = never; });
  EXPECT_FALSE(log.failure());
  log.acknowledge(me, store.transact(me, {{{0, "b"}, "1"}}));
  EXPECT_EQ(logged_store(*disk.copy().directory()).rows(), store.rows());
  store.checkpoint(log, [] {});
  EXPECT_EQ(logged_store(*disk.copy().directory()).rows(), store.rows());
}

TEST(ShortWrites, AndInterruptionsAreContinued) {
  for (const std::size_t most : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
    faulty_disk disk;
    disk.faults().write_bytes_max = most;
    disk.faults().interrupts = true;
    random_numbers random(seed_or(9));
    for (int round = 0; round < 3; ++round) {
      const life lived = live(disk, random, 30);
      ASSERT_FALSE(lived.failure);
      ASSERT_EQ(judge(lived, disk.copy()), "");
    }
  }
}

// The log is closed at the end of a life, so a later one begins with the last one's state.
TEST(Lives, FollowEachOther) {
  faulty_disk disk;
  random_numbers random(seed_or(10));
  row_map before;
  for (int round = 0; round < 10; ++round) {
    const life lived = live(disk, random, 40);
    ASSERT_EQ(lived.at_first, before);
    before = lived.at_end;
  }
}

}  // namespace
}  // namespace elidex::testing
