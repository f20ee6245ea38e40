// Each call of the system fails once, with EIO and with ENOSPC: what was acknowledged is there
// afterwards, and the directory can be opened again.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "elidex/internal/log/backup.hpp"
#include "elidex/internal/log/log_input.hpp"
#include "support/databases.hpp"
#include "support/faulty_directory.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;
using accounts_table = database::table<u64, account>;
using namespace std::chrono_literals;

constexpr u64 key = 7;
constexpr std::array both_errors{std::errc::io_error, std::errc::no_space_on_device};

// A database with one account, each of whose changes has the next number.
class counter {
 public:
  explicit counter(faulty_disk& disk) {
    db_.open(disk.directory(),
             {.level = db::durability::sync, .group_time = 1h, .segment_bytes = 400});
  }
  void next() {
    db_.transact([&](auto& t) {
      t.upsert(accounts_, key, account{tried_ + 1});
      ++tried_;
    });
    acknowledged_ = tried_;
  }
  void checkpoint() { db_.checkpoint(); }
  void backup(faulty_disk& to) { db_.backup(to.private_directory()); }
  void close() { db_.close(); }
  std::int64_t value() {
    const auto found = db_.read_only([&](auto& t) { return t.get(accounts_, key); });
    return found ? found->balance : 0;
  }
  void continue_from(std::int64_t value) { tried_ = acknowledged_ = value; }
  std::int64_t tried() const { return tried_; }
  std::int64_t acknowledged() const { return acknowledged_; }

 private:
  database db_;
  accounts_table& accounts_ = db_.create_table<u64, account>("accounts");
  std::int64_t tried_ = 0;
  std::int64_t acknowledged_ = 0;
};

struct life {
  std::int64_t tried = 0;
  std::int64_t acknowledged = 0;
  std::optional<std::errc> failure;
};

life live(faulty_disk& disk, std::int64_t from) {
  life lived{from, from, std::nullopt};
  try {
    counter c(disk);
    c.continue_from(from);
    EXPECT_EQ(c.value(), from) << "open() returned without the rows";
    try {
      for (int i = 0; i < 6; ++i) c.next();
      c.checkpoint();
      for (int i = 0; i < 3; ++i) c.next();
      c.close();
    } catch (...) {
      lived.tried = c.tried();
      lived.acknowledged = c.acknowledged();
      throw;
    }
    lived.tried = c.tried();
    lived.acknowledged = c.acknowledged();
  } catch (const std::system_error& error) {
    lived.failure = static_cast<std::errc>(error.code().value());
  }
  return lived;
}

std::int64_t value_on(faulty_disk disk) {
  counter c(disk);
  return c.value();
}

u64 calls_of_a_life(faulty_disk disk, std::int64_t from) {
  const u64 before = disk.calls();
  EXPECT_FALSE(live(disk, from).failure);
  return disk.calls() - before;
}

// `disk`: with `from` as the value.
void each_call_of_a_life_fails_once(const faulty_disk& disk, std::int64_t from) {
  const u64 calls = calls_of_a_life(disk.copy(), from);
  EXPECT_GT(calls, 40U);
  u64 failures = 0;
  random_numbers random(seed_or(3));
  for (const std::errc error : both_errors) {
    for (u64 at = 0; at < calls; ++at) {
      SCOPED_TRACE(std::to_string(at) + " of " + std::to_string(calls));
      faulty_disk one = disk.copy();
      one.faults().fail_one_call = at;
      one.faults().fail_one_with = error;
      const life lived = live(one, from);
      failures += lived.failure ? 1U : 0U;
      if (lived.failure) {
        ASSERT_EQ(*lived.failure, error);
      }
      for (faulty_disk left : {one.copy(), one.after_power_failure(random)}) {
        const std::int64_t value = value_on(left);
        ASSERT_GE(value, lived.acknowledged);
        ASSERT_LE(value, lived.tried);
        // It goes on from there.
        const life next = live(left, value);
        ASSERT_FALSE(next.failure);
        ASSERT_EQ(next.acknowledged, value + 9);
      }
    }
  }
  // Few calls may fail without harm, such as the removal of an old file.
  EXPECT_GT(failures, calls);
}

TEST(FailingCalls, OfANewDirectory) {
  each_call_of_a_life_fails_once(faulty_disk(), 0);
}

TEST(FailingCalls, OfADirectoryWithACheckpointAndALog) {
  faulty_disk disk;
  ASSERT_FALSE(live(disk, 0).failure);
  each_call_of_a_life_fails_once(disk, 9);
}

// Lets each call on the disk of a copy fail once. copy(to) makes it, and check(to, failed) looks at
// what is there. Returns how many copies did not fail.
template <class Copy, class Check>
u64 each_call_of_a_copy_fails_once(u64 calls, const Copy& copy, const Check& check) {
  u64 whole = 0;
  for (const std::errc error : both_errors) {
    for (u64 at = 0; at < calls; ++at) {
      SCOPED_TRACE(at);
      faulty_disk to;
      to.faults().fail_one_call = at;
      to.faults().fail_one_with = error;
      bool failed = false;
      try {
        copy(to);
      } catch (const std::system_error& thrown) {
        failed = true;
        EXPECT_EQ(thrown.code(), error);
      }
      if (!failed) ++whole;
      check(to, failed);
    }
  }
  return whole;
}

// The copy is whole, or open() refuses it or finds nothing in it. The original goes on.
TEST(FailingCalls, OfABackup) {
  faulty_disk disk;
  counter c(disk);
  for (int i = 0; i < 5; ++i) c.next();
  faulty_disk without_faults;
  c.backup(without_faults);
  const u64 calls = without_faults.calls();
  const u64 whole = each_call_of_a_copy_fails_once(
      calls, [&](faulty_disk& to) { c.backup(to); },
      [&](const faulty_disk& to, bool failed) {
        try {
          const std::int64_t value = value_on(to.copy());
          EXPECT_TRUE(value == c.acknowledged() || (failed && value == 0));
        } catch (const db::log_error&) {
          EXPECT_TRUE(failed);
        }
        c.next();
      });
  EXPECT_GT(calls, 5U);
  EXPECT_LT(whole, calls / 2);
}

// `disk` has a database that is not open, with 9 as the value.
void copies_are_whole_or_refused(faulty_disk& disk) {
  const auto directory = disk.directory();
  faulty_disk without_faults;
  internal::copy_all(*directory, *without_faults.private_directory());
  EXPECT_EQ(value_on(without_faults.copy()), 9);
  const u64 calls = without_faults.calls();
  EXPECT_GT(calls, 10U);
  random_numbers random(seed_or(5));
  u64 refused = 0;
  each_call_of_a_copy_fails_once(
      calls, [&](faulty_disk& to) { internal::copy_all(*directory, *to.private_directory()); },
      [&](const faulty_disk& to, bool failed) {
        for (const faulty_disk& left : {to.copy(), to.after_power_failure(random)}) {
          try {
            const std::int64_t value = value_on(left.copy());
            EXPECT_TRUE(value == 9 || (failed && value == 0));
          } catch (const db::log_error&) {
            EXPECT_TRUE(failed);
            ++refused;
          }
        }
      });
  bool finished = false;
  for (u64 at = 0; !finished && at < 1000; ++at) {
    SCOPED_TRACE(at);
    faulty_disk to;
    to.faults().power_off_at = at;
    try {
      internal::copy_all(*directory, *to.private_directory());
      finished = true;
    } catch (const std::system_error&) {
      // the power has failed
    }
    try {
      const std::int64_t value = value_on(to.after_power_failure(random));
      ASSERT_TRUE(value == 9 || (!finished && value == 0));
    } catch (const db::log_error&) {
      ++refused;
    }
  }
  EXPECT_TRUE(finished);
  EXPECT_GT(refused, 0U);
}

TEST(FailingCalls, OfACopyOfACheckpointAndALog) {
  faulty_disk disk;
  ASSERT_FALSE(live(disk, 0).failure);
  copies_are_whole_or_refused(disk);
}

// A log of several files, without a checkpoint.
faulty_disk log_of_nine() {
  faulty_disk disk;
  counter c(disk);
  for (int i = 0; i < 9; ++i) c.next();
  c.close();
  return disk.copy();
}

TEST(FailingCalls, OfACopyOfALog) {
  faulty_disk disk = log_of_nine();
  copies_are_whole_or_refused(disk);
}

// Files that get their names one by one are taken for a whole copy.
TEST(FailingCalls, CanaryOfACopyUnderItsFinalNames) {
  faulty_disk disk = log_of_nine();
  const auto directory = disk.directory();
  const auto copy = [&](faulty_disk& to) {
    const auto made = to.private_directory();
    for (const std::uint64_t one : internal::numbers_in(*directory, internal::file_kind::segment)) {
      const std::string name = internal::name_of(internal::file_kind::segment, one);
      internal::copy_file(*directory, name, *made, name);
    }
  };
  faulty_disk without_faults;
  copy(without_faults);
  int parts = 0;
  each_call_of_a_copy_fails_once(without_faults.calls(), copy, [&](const faulty_disk& to, bool) {
    try {
      const std::int64_t value = value_on(to.copy());
      parts += value != 0 && value != 9 ? 1 : 0;
    } catch (const db::log_error&) {
      // refused
    }
  });
  EXPECT_GT(parts, 0);
}

// A harness that takes any value for right would find nothing.
TEST(FailingCalls, CanaryOfASyncThatDoesNothing) {
  int found = 0;
  random_numbers random(seed_or(4));
  for (int i = 0; i < 20; ++i) {
    faulty_disk disk;
    disk.faults().sync_lies = true;
    const life lived = live(disk, 0);
    try {
      found += value_on(disk.after_power_failure(random)) < lived.acknowledged ? 1 : 0;
    } catch (const db::log_error&) {
      ++found;
    }
  }
  EXPECT_GT(found, 5);
}

}  // namespace
}  // namespace elidex::testing
