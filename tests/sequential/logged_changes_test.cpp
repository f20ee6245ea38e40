// Changes in the log: what an update has changed of a row comes back on top of what was there
// before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/databases.hpp"
#include "support/faulty_directory.hpp"
#include "support/logged_store.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct logged {
  internal::byte_buffer record;
  log_entry entry;  // points into the record
};

logged change_of(const std::string& before, const std::string& after) {
  logged made;
  internal::begin_record(made.record);
  internal::append_change(made.record, 3, "key", before, after);
  internal::finish_record(made.record, 0, make_stamp(1, 1), 1);
  internal::record_reader reader(made.record.bytes());
  EXPECT_EQ(reader.next(made.entry), internal::record_reader::parse_status::entry);
  EXPECT_EQ(made.entry.table, 3u);
  EXPECT_EQ(made.entry.key, "key");
  log_entry none;
  EXPECT_EQ(reader.next(none), internal::record_reader::parse_status::end);
  return made;
}

std::string applied(std::string row, const log_entry& entry) {
  EXPECT_TRUE(apply_change(std::as_writable_bytes(std::span(row)), entry));
  return row;
}

TEST(LoggedChange, GivesTheRowAsItIsAfterwards) {
  random_numbers random(seed_or(31));
  for (int round = 0; round < 3000; ++round) {
    const std::string before(8 * random.below(random.below(10) == 0 ? 8192 : 30), 'x');
    std::string after = before;
    for (std::uint64_t i = random.below(1 + after.size() / 8); i > 0; --i)
      after[random.below(after.size())] = 'y';
    const logged made = change_of(before, after);
    ASSERT_LE(made.entry.row.size(), after.size());
    if (made.entry.operation == log_operation::upsert) {
      ASSERT_EQ(made.entry.row, after);
    } else {
      ASSERT_EQ(made.entry.operation, log_operation::change);
      ASSERT_EQ(applied(before, made.entry), after);
    }
  }
}

TEST(LoggedChange, IsAsLongAsWhatHasChanged) {
  const std::string before(800, 'x');
  std::string after = before;
  EXPECT_EQ(change_of(before, after).entry.row.size(), 0u);
  after[100] = after[104] = 'y';  // words 12 and 13
  EXPECT_EQ(change_of(before, after).entry.row.size(), 4u + 16u);
  after[799] = 'y';
  EXPECT_EQ(change_of(before, after).entry.row.size(), 4u + 16u + 4u + 8u);
}

TEST(LoggedChange, IsAPutWhereThatIsShorterOrItCannotBe) {
  const auto puts = [](const std::string& before, const std::string& after) {
    const logged made = change_of(before, after);
    return made.entry.operation == log_operation::upsert && made.entry.row == after;
  };
  EXPECT_TRUE(puts("12345678", "12345679"));
  EXPECT_TRUE(puts("", ""));
  EXPECT_TRUE(puts("123456789", "123456780"));                    // no words
  EXPECT_TRUE(puts(std::string(16, 'x'), std::string(24, 'x')));  // of another length
  // more words than a piece can tell
  EXPECT_TRUE(puts(std::string(8 << 16, 'x'), std::string(8 << 16, 'x')));
  EXPECT_FALSE(puts(std::string((8 << 16) - 8, 'x'), std::string((8 << 16) - 8, 'x')));
}

TEST(LoggedChange, DoesNotFitAnotherRow) {
  const std::string before(80, 'x');
  std::string after = before;
  after[10] = after[70] = 'y';
  const logged made = change_of(before, after);
  for (std::size_t bytes = 0; bytes < 72; bytes += 8) {
    std::string row(bytes, 'z');
    EXPECT_FALSE(apply_change(std::as_writable_bytes(std::span(row)), made.entry)) << bytes;
    EXPECT_EQ(row, std::string(bytes, 'z'));
  }
  for (std::size_t cut = 1; cut < made.entry.row.size(); ++cut) {
    log_entry shorter = made.entry;
    shorter.row.remove_suffix(cut);
    std::string row = before;
    const bool whole_pieces = cut == 12;
    EXPECT_EQ(apply_change(std::as_writable_bytes(std::span(row)), shorter), whole_pieces) << cut;
    if (!whole_pieces) {
      EXPECT_EQ(row, before);
    }
  }
}

row_change row(const std::string& key, char middle) {
  return {{0, key}, std::string(24, '.') + std::string(8, middle) + std::string(24, '.')};
}

// A row that is changed, erased and perhaps made anew while the checkpoint has not come to it: the
// log begins with a change of a row that the checkpoint has not, or has with a later stamp.
TEST(LoggedChange, OfARowThatIsErasedBeforeTheCheckpointSeesIt) {
  for (const bool made_anew : {false, true}) {
    for (const bool waits : {false, true}) {
      faulty_disk disk;
      const auto directory = disk.directory();
      logged_store store(*directory);
      commit_clock clock;
      redo_log log(
          clock, *directory, store.found(),
          {.level = durability::async, .fingerprint = logged_store::fingerprint, .group_time = 1h});
      redo_log::worker me(log);
      const auto commit = [&](const row_change& one) {
        const std::uint64_t group = store.transact(me, {one});
        if (waits) log.wait_durable(group);
        ASSERT_EQ(logged_store(*disk.copy().directory()).rows(),
                  store.rows_at({}, log.durable_group()));
      };
      commit(row("a", '1'));
      commit(row("b", '1'));
      log.wait_durable(clock.now());
      int step = 0;
      store.checkpoint(log, [&] {
        if (step++ != 0) return;  // between "a" and "b"
        commit(row("b", '2'));
        commit(row("b", '3'));
        commit({{0, "b"}, std::nullopt});
        if (!made_anew) return;
        commit(row("b", '4'));
        commit(row("b", '5'));
      });
      EXPECT_EQ(logged_store(*disk.copy().directory()).rows(), store.rows());
      commit(row("b", '6'));
      commit(row("b", '7'));
      log.close();
      EXPECT_EQ(logged_store(*disk.copy().directory()).rows(), store.rows());
    }
  }
}

TEST(LoggedChange, OfADatabaseIsShort) {
  faulty_disk disk;
  silo_database db;
  auto& table = db.create_table<std::uint64_t, wide_row>("wide");
  db.open(disk.directory(), {.level = durability::sync, .group_time = 1h});
  // Who waits for a sync is told before the logger writes, behind it, that it has synced.
  const auto used_in_the_end = [&] {
    while (disk.unsynced() == 0) std::this_thread::yield();
    return disk.used();
  };
  db.transact([&](auto& t) { t.insert(table, 1, wide_row::of(1)); });  // with the catalog
  const auto logged_by = [&](auto&& transaction) {
    const std::uint64_t before = used_in_the_end();
    db.transact(transaction);
    return used_in_the_end() - before;
  };
  const auto whole = logged_by([&](auto& t) { t.insert(table, 2, wide_row::of(1)); });
  const auto part =
      logged_by([&](auto& t) { t.update(table, 1, [](wide_row& r) { r.words[3] = 7; }); });
  EXPECT_EQ(whole - part, sizeof(wide_row) - (4 + 8));
  // The second update is of the same row, and the log knows it from before the first one.
  const auto twice = logged_by([&](auto& t) {
    t.update(table, 1, [](wide_row& r) { r.words[3] = 8; });
    t.update(table, 1, [](wide_row& r) { r.words[4] = 8; });
  });
  EXPECT_EQ(whole - twice, sizeof(wide_row) - (4 + 16));
}

// What a table has of a row that nobody made would be lost silently.
TEST(LoggedChange, OfARowThatIsNowhereIsDamage) {
  faulty_disk disk;
  const auto make = [&](silo_database& db) {
    db.create_table<std::string, account>("named");
    db.open(disk.directory(), {.level = durability::async, .group_time = 1h});
  };
  {
    silo_database db;
    make(db);
  }
  const std::string first = disk.bytes("redo-00000001.log");
  const auto header =
      internal::parse_file_header(std::as_bytes(std::span(first)), internal::file_kind::segment);
  const auto log_more = [&](const char* key, bool erase_it) {
    const auto directory = disk.directory();
    const std::uint64_t fingerprint = header.header.fingerprint;
    const recovered_log found = recover_log(*directory, fingerprint, [](const log_entry&) {});
    commit_clock clock;
    redo_log log(clock, *directory, found,
                 {.level = durability::async, .fingerprint = fingerprint, .group_time = 1h});
    redo_log::worker me(log);
    commit_with_group commit(me);
    if (erase_it) {
      commit.erase(1, key);
    } else {
      commit.change(1, key, std::string(64, 'x'), std::string(64, 'x'));
    }
    commit.keep(make_stamp(commit.group(), 1));
  };
  const auto problem = [&] {
    try {
      silo_database db;
      make(db);
    } catch (const log_error& error) {
      EXPECT_EQ(error.problem(), log_problem::damaged);
      return std::string(error.what());
    }
    return std::string("none");
  };
  log_more("nobody", false);
  EXPECT_THAT(problem(), HasSubstr("a change of a row of table named that is not there"));
  log_more("nobody", true);
  EXPECT_EQ(problem(), "none");
}

}  // namespace
}  // namespace elidex::testing
