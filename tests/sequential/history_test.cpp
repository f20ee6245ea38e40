// Earlier states of a directory, and backups that are updated.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "elidex/database.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"
#include "support/thrown_code.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;
using rows = std::map<u64, u64>;

constexpr db::storage_options short_files{.level = db::durability::async,
                                          .group_time = std::chrono::microseconds(50),
                                          .segment_bytes = 1024,
                                          .checkpoint_bytes = 0,
                                          .keep_history = true};

struct counters {
  explicit counters(std::unique_ptr<log_directory> directory,
                    const db::storage_options& options = short_files) {
    db.open(std::move(directory), options);
  }
  explicit counters(faulty_disk& disk, const db::storage_options& options = short_files)
      : counters(disk.directory(), options) {}
  rows all_rows() {
    rows found;
    db.read_only(
        [&](auto& t) { t.scan(table, all, [&](u64 key, u64 value) { found[key] = value; }); });
    return found;
  }
  void change(random_numbers& random) {
    db.transact([&](auto& t) {
      for (int i = 0; i < 3; ++i) {
        const u64 key = random.below(30);
        if (random.below(4) == 0) {
          t.erase(table, key);
        } else {
          t.upsert(table, key, random.below(1000));
        }
      }
      t.upsert(table, 99, ++changes);
    });
  }

  database db;
  database::table<u64, u64>& table = db.create_table<u64, u64>("counters");
  u64 changes = 0;
};

rows rows_in(faulty_disk& disk) {
  return counters(disk, {.level = db::durability::none}).all_rows();
}

u64 restore_to(faulty_disk& from, u64 group, faulty_disk& to) {
  return restore_log(*from.directory(), group, log_fingerprint, *to.private_directory());
}

struct state {
  u64 group;
  rows all_rows;
};

// Writes a history with checkpoints and restarts, and returns states of it.
std::vector<state> write_history(faulty_disk& disk, random_numbers& random) {
  std::vector<state> states;
  u64 changes = 0;
  for (int turn = 0; turn < 4; ++turn) {
    counters c(disk);
    c.changes = changes;
    for (int i = 0; i < 30; ++i) {
      c.change(random);
      if (random.below(10) == 0) c.db.checkpoint();
      if (random.below(3) == 0) states.push_back({c.db.wait_durable(), c.all_rows()});
    }
    changes = c.changes;
    c.db.close();
  }
  return states;
}

TEST(History, EachStateCanBeRestored) {
  faulty_disk disk;
  random_numbers random(seed_or(41));
  const std::vector<state> states = write_history(disk, random);
  ASSERT_GT(states.size(), 10U);
  for (const state& one : states) {
    faulty_disk copy;
    EXPECT_LE(restore_to(disk, one.group, copy), one.group);
    EXPECT_EQ(rows_in(copy), one.all_rows) << "group " << one.group;
    // It is a directory like others.
    counters again(copy);
    again.change(random);
    again.db.checkpoint();
  }
  // Beyond the last group: the last state.
  faulty_disk last;
  restore_to(disk, whole_file, last);
  EXPECT_EQ(rows_in(last), rows_in(disk));
}

// Every group, those without a known state too: none is lost, and none goes back.
TEST(History, StatesFollowOneAnother) {
  faulty_disk disk;
  random_numbers random(seed_or(42));
  const std::vector<state> states = write_history(disk, random);
  u64 before = 0;
  for (u64 group = 0; group <= states.back().group; group += 1 + random.below(3)) {
    faulty_disk copy;
    EXPECT_LE(restore_to(disk, group, copy), group);
    const rows found = rows_in(copy);
    const auto changes = found.find(99);
    const u64 now = changes == found.end() ? 0 : changes->second;
    EXPECT_GE(now, before);
    before = now;
  }
}

TEST(History, WithoutItEarlierStatesAreGone) {
  faulty_disk disk;
  random_numbers random(seed_or(43));
  db::storage_options options = short_files;
  options.keep_history = false;
  counters c(disk, options);
  c.change(random);
  const u64 first = c.db.wait_durable();
  for (int i = 0; i < 60; ++i) {
    c.change(random);
    c.db.wait_durable();
  }
  c.db.checkpoint();
  const u64 last = c.db.wait_durable();
  faulty_disk copy;
  EXPECT_EQ(code_thrown_by([&] { restore_to(disk, first, copy); }), std::errc::invalid_argument);
  EXPECT_TRUE(copy.names().empty());
  restore_to(disk, last, copy);
  EXPECT_EQ(rows_in(copy), c.all_rows());
  EXPECT_EQ(code_thrown_by([&] { restore_to(disk, last, copy); }), std::errc::directory_not_empty);
}

// A gap: the history was not kept for some time. The states before it and after it can be restored.
TEST(History, AGapIsNamed) {
  faulty_disk disk;
  random_numbers random(seed_or(44));
  std::vector<state> states;
  for (const bool keeps : {true, false, true}) {
    db::storage_options options = short_files;
    options.keep_history = keeps;
    counters c(disk, options);
    for (int i = 0; i < 60; ++i) {
      c.change(random);
      states.push_back({c.db.wait_durable(), c.all_rows()});
      if (i % 20 == 19) c.db.checkpoint();
    }
  }
  std::size_t restored = 0;
  for (const state& one : states) {
    faulty_disk copy;
    if (code_thrown_by([&] { restore_to(disk, one.group, copy); })) continue;
    ++restored;
    EXPECT_EQ(rows_in(copy), one.all_rows);
  }
  EXPECT_GE(restored, 60U);
  EXPECT_LT(restored, states.size());
}

TEST(History, TheFilesAreListed) {
  faulty_disk disk;
  random_numbers random(seed_or(45));
  write_history(disk, random);
  const std::vector<kept_file> files = kept_files(*disk.directory(), log_fingerprint);
  u64 next = 0;
  for (const kept_file& one : files) {
    EXPECT_EQ(one.bytes, disk.bytes(name_of(one.kind, one.number)).size());
    if (one.kind != file_kind::segment) continue;
    EXPECT_GE(one.first_group, next);
    next = one.last_group;
  }
  // Not what wait_durable() returned last: a group without commits is durable, but in no file.
  faulty_disk copy;
  EXPECT_EQ(next, restore_to(disk, whole_file, copy));
}

TEST(History, DamageIsNamed) {
  faulty_disk disk;
  db::storage_options options = short_files;
  options.segment_bytes = std::size_t{1} << 20;
  {
    counters c(disk, options);
    for (u64 i = 0; i < 50; ++i) {
      c.db.transact([&](auto& t) { t.upsert(c.table, i, 0x7777'7777'7777'7777U); });
      c.db.wait_durable();
    }
    c.db.checkpoint();
    c.db.close();
  }
  const std::string name = name_of(file_kind::segment, 1);
  std::string& bytes = disk.bytes(name);
  bytes.at(bytes.find("wwwwwwww", bytes.size() / 2)) ^= 1;
  faulty_disk copy;
  EXPECT_THROW(restore_to(disk, whole_file, copy), db::log_error);
  EXPECT_THROW(kept_files(*disk.directory(), log_fingerprint), db::log_error);
  EXPECT_TRUE(copy.names().empty());
}

// One damaged checkpoint does not prevent what others serve for.
TEST(History, ADamagedCheckpointIsNotUsed) {
  faulty_disk disk;
  random_numbers random(seed_or(50));
  const std::vector<state> states = write_history(disk, random);
  for (const std::string& name : disk.names()) {
    if (number_of(file_kind::checkpoint, name) != 2U) continue;
    disk.bytes(name).back() ^= 1;
  }
  for (const state& one : states) {
    faulty_disk copy;
    restore_to(disk, one.group, copy);
    EXPECT_EQ(rows_in(copy), one.all_rows);
  }
}

TEST(History, ARestoreThatIsCutOffIsWholeOrRefused) {
  faulty_disk disk;
  random_numbers random(seed_or(46));
  const std::vector<state> states = write_history(disk, random);
  const state& wanted = states[states.size() / 2];
  u64 operations = 0;
  {
    faulty_disk copy;
    restore_to(disk, wanted.group, copy);
    operations = copy.operations();
  }
  for (u64 last = 0; last < operations; ++last) {
    faulty_disk copy;
    copy.faults().power_off_at = last;
    EXPECT_THROW(restore_to(disk, wanted.group, copy), std::system_error);
    faulty_disk after = copy.after_power_failure(random);
    try {
      const rows found = rows_in(after);
      EXPECT_TRUE(found.empty() || found == wanted.all_rows) << "operation " << last;
    } catch (const db::log_error&) {
    }
  }
}

// --- update_backup() ---

TEST(UpdatedBackup, HasWhatWasCommitted) {
  faulty_disk disk;
  faulty_disk copy;
  random_numbers random(seed_or(47));
  u64 changes = 0;
  bool begun = false;
  for (int turn = 0; turn < 3; ++turn) {
    counters c(disk);
    c.changes = changes;
    for (int i = 0; i < 20; ++i) {
      for (u64 many = random.below(20); many > 0; --many) c.change(random);
      if (!begun) {
        c.db.backup(copy.private_directory());
        begun = true;
      } else {
        c.db.update_backup(copy.private_directory());
      }
      faulty_disk seen = copy.copy();
      EXPECT_EQ(rows_in(seen), c.all_rows());
      if (random.below(4) == 0) c.db.checkpoint();
    }
    changes = c.changes;
  }
}

TEST(UpdatedBackup, IsValidWheneverAnUpdateEnds) {
  random_numbers random(seed_or(48));
  faulty_disk disk;
  counters c(disk);
  for (int i = 0; i < 40; ++i) c.change(random);
  faulty_disk copy;
  c.db.backup(copy.private_directory());
  for (int round = 0; round < repetitions(100); ++round) {
    const u64 before = c.changes;
    for (u64 many = random.below(40); many > 0; --many) c.change(random);
    const u64 off = copy.operations() + random.below(12);
    copy.change_faults([&](auto& faults) { faults.power_off_at = off; });
    const std::error_code failure =
        code_thrown_by([&] { c.db.update_backup(copy.private_directory()); });
    EXPECT_TRUE(!failure || failure == std::errc::io_error) << failure.message();
    faulty_disk after = copy.after_power_failure(random);
    faulty_disk seen = after.copy();
    const u64 found = rows_in(seen)[99];
    EXPECT_GE(found, before) << "round " << round;
    EXPECT_LE(found, c.changes);
    after.faults().power_off_at = never;
    c.db.update_backup(after.private_directory());
    seen = after.copy();
    EXPECT_EQ(rows_in(seen), c.all_rows());
    copy = std::move(after);
  }
}

// The writer's machine loses power. The copy is updated, or refused and as it was.
TEST(UpdatedBackup, GoesOnAfterAPowerFailureOfTheWriter) {
  random_numbers random(seed_or(53));
  int updated = 0;
  for (int round = 0; round < repetitions(30); ++round) {
    faulty_disk disk;
    faulty_disk copy;
    u64 changes = 0;
    {
      counters c(disk);
      for (int i = 0; i < 10; ++i) c.change(random);
      c.db.backup(copy.private_directory());
      for (u64 many = random.below(30); many > 0; --many) c.change(random);
      if (random.below(2) == 0) c.db.update_backup(copy.private_directory());
      changes = c.changes;
      disk.change_faults([&](auto& faults) { faults.power_off_at = 0; });
      const std::error_code failure = code_thrown_by([&] { c.change(random); });
      EXPECT_TRUE(!failure || failure == std::errc::io_error) << failure.message();
    }
    faulty_disk after = disk.after_power_failure(random);
    counters again(after);
    again.changes = changes;
    again.change(random);
    const std::error_code refused =
        code_thrown_by([&] { again.db.update_backup(copy.private_directory()); });
    faulty_disk seen = copy.copy();
    if (refused) {  // the copy has seen groups that the log has lost
      EXPECT_EQ(refused, std::errc::invalid_argument);
      EXPECT_GE(rows_in(seen)[99], 10U);
    } else {
      ++updated;
      EXPECT_EQ(rows_in(seen), again.all_rows());
    }
  }
  EXPECT_GT(updated, 0);
}

TEST(UpdatedBackup, RefusesWhatIsNoCopy) {
  random_numbers random(seed_or(49));
  faulty_disk disk;
  db::storage_options options = short_files;
  options.keep_history = false;
  counters c(disk, options);
  c.change(random);
  const auto refused = [&](faulty_disk& of) {
    const std::vector<std::string> names = of.names();
    const std::error_code code =
        code_thrown_by([&] { c.db.update_backup(of.private_directory()); });
    EXPECT_EQ(of.names(), names);
    return code == std::errc::invalid_argument;
  };
  faulty_disk empty;
  EXPECT_TRUE(refused(empty));
  faulty_disk other;
  {
    counters(other).change(random);
  }
  EXPECT_TRUE(refused(other));
  faulty_disk changed;
  c.db.backup(changed.private_directory());
  {
    counters(changed).change(random);
  }
  EXPECT_TRUE(refused(changed));
  // One that lacks a segment, and one whose newest file is empty.
  faulty_disk gap;
  c.db.backup(gap.private_directory());
  faulty_disk torn = gap.copy();
  gap.upsert(name_of(file_kind::segment, 9), gap.bytes(gap.names().back()));
  EXPECT_TRUE(refused(gap));
  torn.bytes(torn.names().back()).clear();
  EXPECT_TRUE(refused(torn));
  EXPECT_EQ(code_thrown_by([&] { c.db.update_backup("/nothing/is here"); }),
            std::errc::no_such_file_or_directory);
  // The log continues, and a checkpoint removes its beginning.
  faulty_disk late;
  c.db.backup(late.private_directory());
  for (int i = 0; i < 100; ++i) {
    c.change(random);
    c.db.wait_durable();
  }
  c.db.checkpoint();
  EXPECT_TRUE(refused(late));
  faulty_disk seen = late.copy();
  EXPECT_EQ(rows_in(seen)[99], 1U);
}

}  // namespace
}  // namespace elidex::testing
