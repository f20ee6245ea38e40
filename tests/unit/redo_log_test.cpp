// The redo log: what is kept comes back, by the larger stamp; levels, segments, checkpoints, and
// what a reader refuses.
#include "elidex/internal/log/redo_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "elidex/database.hpp"
#include "support/faulty_directory.hpp"
#include "support/logged_store.hpp"
#include "support/thrown_code.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Batches end only when somebody waits.
redo_log_options by_hand(durability level = durability::async) {
  return {.level = level, .fingerprint = logged_store::fingerprint, .group_time = 1h};
}

row_change upsert(const std::string& key, const std::string& row) {
  return {{0, key}, row};
}

template <class Action>
std::string problem_of(log_problem expected, Action&& action) {
  try {
    action();
  } catch (const log_error& error) {
    EXPECT_EQ(error.problem(), expected) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing thrown";
  return {};
}

row_map rows_in(faulty_disk disk) {
  return logged_store(*disk.directory()).rows();
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(internal::crc32c({}), 0u);
  EXPECT_EQ(internal::crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(internal::crc32c(bytes_of(std::string(32, '\0'))), 0x8A9136AAu);
  EXPECT_EQ(internal::crc32c(bytes_of(std::string(32, '\xFF'))), 0x62A8AB43u);
  const std::string text = "as much text as needs several rounds of eight bytes, and some more";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto part = bytes_of(std::string_view(text).substr(cut));
    ASSERT_EQ(internal::crc32c(part), internal::crc32c_by_tables(part));
    const std::uint32_t first = internal::crc32c(bytes_of(std::string_view(text).substr(0, cut)));
    ASSERT_EQ(internal::crc32c(bytes_of(std::string_view(text).substr(cut)), first),
              internal::crc32c(bytes_of(text)));
  }
}

TEST(LogFormat, NamesAndNumbers) {
  EXPECT_EQ(internal::name_of(internal::file_kind::segment, 1), "redo-00000001.log");
  EXPECT_EQ(internal::name_of(internal::file_kind::checkpoint, 123'456'789'012),
            "checkpoint-123456789012.ckpt");
  for (const std::uint64_t number : {1ull, 99'999'999ull, 100'000'000ull, 123'456'789'012ull})
    EXPECT_EQ(internal::number_of(internal::file_kind::segment,
                                  internal::name_of(internal::file_kind::segment, number)),
              number);
  for (const char* const other :
       {"redo-.log", "redo-0000000x.log", "redo-1.log", "redo-00000000.log", "redo-00000001",
        "redo-000000001.log", "redo-99999999999999999999.log", "", "checkpoint-00000001.tmp"})
    EXPECT_FALSE(internal::number_of(internal::file_kind::segment, other).has_value()) << other;
}

TEST(RedoLog, AnEmptyDirectoryHasNothing) {
  faulty_disk disk;
  const logged_store store(*disk.directory());
  EXPECT_TRUE(store.rows().empty());
  EXPECT_EQ(store.found().durable_group, 0u);
  EXPECT_EQ(store.found().first_group, 1u);
}

TEST(RedoLog, WhatIsKeptComesBack) {
  faulty_disk disk;
  const auto directory = disk.directory();
  row_map expected;
  const std::string zeros("\0k\0", 3);
  for (int life = 0; life < 5; ++life) {
    logged_store store(*directory);
    EXPECT_EQ(store.rows(), expected);
    commit_clock clock;
    redo_log log(clock, *directory, store.found(), by_hand(durability::sync));
    redo_log::worker me(log);
    log.acknowledge(me, store.transact(me, {upsert("", ""), upsert(zeros, zeros),
                                            upsert("large", std::string(3'000'000, 'x'))}));
    log.acknowledge(me,
                    store.transact(me, {upsert("gone", "1"), upsert("life", std::to_string(life)),
                                        upsert("twice", "1"), upsert("twice", "2")}));
    log.acknowledge(me, store.transact(me, {{{0, "gone"}, {}}, {{7, "life"}, "another table"}}));
    expected = store.rows();
    EXPECT_EQ(expected.size(), 6u);
    if (life % 2 == 0) log.close();
  }
  EXPECT_EQ(rows_in(disk), expected);
}

TEST(RedoLog, WhatIsNotKeptLeavesNoTrace) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log log(clock, *directory, store.found(), by_hand());
  redo_log::worker me(log);
  store.transact(me, {upsert("a", "1")});
  {
    commit_with_group given_up(me);
    given_up.upsert(0, "b", "2");
  }
  {
    redo_log::commit without_a_phase(me);
    without_a_phase.upsert(0, "c", "3");
  }
  commit_with_group(me).keep(make_stamp(clock.now(), 9));  // reads only
  store.transact(me, {upsert("d", "4")});
  log.close();
  EXPECT_EQ(rows_in(disk), (row_map{{{0, "a"}, "1"}, {{0, "d"}, "4"}}));
}

TEST(RedoLog, TheLargerStampCountsWhicheverThreadWroteIt) {
  for (const bool first_is_later : {false, true}) {
    faulty_disk disk;
    const auto directory = disk.directory();
    commit_clock clock;
    redo_log log(clock, *directory, logged_store(*directory).found(), by_hand());
    redo_log::worker first(log);
    redo_log::worker second(log);
    redo_log::worker* const order[] = {first_is_later ? &second : &first,
                                       first_is_later ? &first : &second};
    for (std::uint64_t i = 0; i < 2; ++i) {
      commit_with_group commit(*order[i]);
      commit.upsert(0, "put last", std::to_string(i));
      if (i == 0) commit.upsert(0, "erased last", "");
      if (i == 1) commit.erase(0, "erased last");
      commit.keep(make_stamp(commit.group(), i));
    }
    log.close();
    EXPECT_EQ(rows_in(disk), (row_map{{{0, "put last"}, "1"}}));
  }
}

TEST(RedoLog, WhatAWorkerKeptOutlivesIt) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log log(clock, *directory, store.found(), by_hand());
  for (int i = 0; i < 10; ++i) {
    redo_log::worker passing(log);
    store.transact(passing, {upsert(std::to_string(i), "x")});
  }
  log.close();
  EXPECT_EQ(rows_in(disk), store.rows());
}

TEST(RedoLog, Levels) {
  faulty_disk disk;
  const auto directory = disk.directory();
  {
    commit_clock clock;
    EXPECT_THROW(
        redo_log(clock, *directory, logged_store(*directory).found(), by_hand(durability::none)),
        std::invalid_argument);
  }
  EXPECT_TRUE(disk.names().empty());
  logged_store store(*directory);
  {
    commit_clock clock;
    redo_log log(clock, *directory, store.found(), by_hand(durability::async));
    redo_log::worker me(log);
    const std::uint64_t group = store.transact(me, {upsert("a", "1")});
    log.acknowledge(me, group);
    EXPECT_LT(log.durable_group(), group);
    EXPECT_TRUE(rows_in(disk.copy()).empty());
    log.wait_durable(group);
    EXPECT_GE(log.durable_group(), group);
    EXPECT_EQ(rows_in(disk.copy()), store.rows());
  }
  {
    logged_store again(*directory);
    commit_clock clock;
    redo_log log(clock, *directory, again.found(), by_hand(durability::sync));
    redo_log::worker me(log);
    log.acknowledge(me, again.transact(me, {upsert("b", "1")}));
    EXPECT_EQ(rows_in(disk.copy()), again.rows());
  }
}

TEST(RedoLog, AsyncWritesByItself) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log_options options = by_hand(durability::async);
  options.group_time = 1ms;
  redo_log log(clock, *directory, store.found(), options);
  redo_log::worker me(log);
  const std::uint64_t group = store.transact(me, {upsert("a", "1")});
  while (log.durable_group() < group) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(rows_in(disk.copy()), store.rows());
}

TEST(RedoLog, ALongBufferWaitsUntilItIsWritten) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log_options options = by_hand(durability::async);
  options.worker_bytes_max = 1000;
  redo_log log(clock, *directory, store.found(), options);
  redo_log::worker me(log);
  const std::uint64_t group = store.transact(me, {upsert("a", std::string(2000, 'x'))});
  log.acknowledge(me, group);
  EXPECT_GE(log.durable_group(), group);
}

TEST(RedoLog, AClosedLogSaysSo) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log log(clock, *directory, store.found(), by_hand());
  redo_log::worker me(log);
  EXPECT_FALSE(log.failure());
  log.close();
  log.close();
  EXPECT_EQ(code_thrown_by([&] { redo_log::commit refused(me); }), std::errc::operation_canceled);
  log.wait_durable(clock.now());  // all is durable
  log.acknowledge(me, clock.now());
  EXPECT_EQ(code_thrown_by([&] { checkpoint_writer refused(log); }), std::errc::operation_canceled);
  EXPECT_EQ(log.failure(), std::errc::operation_canceled);
}

TEST(RedoLog, SegmentsFollowEachOther) {
  faulty_disk disk;
  const auto directory = disk.directory();
  random_numbers random(seed_or(1));
  row_map expected;
  std::uint64_t last_group = 0;
  for (int life = 0; life < 4; ++life) {
    logged_store store(*directory);
    EXPECT_EQ(store.rows(), expected);
    EXPECT_EQ(store.found().durable_group, last_group);
    EXPECT_GT(store.found().first_group, last_group);
    commit_clock clock;
    redo_log_options options = by_hand(durability::sync);
    options.segment_bytes = 2000;
    redo_log log(clock, *directory, store.found(), options);
    redo_log::worker me(log);
    for (int i = 0; i < 100; ++i) {
      last_group = store.transact(me, store.random_changes(random));
      log.acknowledge(me, last_group);
    }
    expected = store.rows();
  }
  EXPECT_EQ(rows_in(disk), expected);
  EXPECT_GT(disk.names().size(), 20u);
}

TEST(Checkpoint, WithTransactionsMeanwhileAndOlderFilesGone) {
  faulty_disk disk;
  const auto directory = disk.directory();
  random_numbers random(seed_or(2));
  row_map expected;
  for (int life = 0; life < 6; ++life) {
    logged_store store(*directory);
    ASSERT_EQ(store.rows(), expected) << life;
    commit_clock clock;
    redo_log_options options = by_hand(durability::async);
    options.segment_bytes = 1000;
    redo_log log(clock, *directory, store.found(), options);
    redo_log::worker me(log);
    const auto some = [&] {
      for (std::uint64_t i = random.below(4); i > 0; --i) {
        const std::uint64_t group = store.transact(me, store.random_changes(random));
        if (random.below(2) == 0) log.wait_durable(group);
      }
    };
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 20; ++i) some();
      const finished_checkpoint report = store.checkpoint(log, some);
      EXPECT_FALSE(report.removal);
      EXPECT_GT(report.removed_segments, 0u);
      ASSERT_EQ(logged_store(*disk.copy().directory()).rows(),
                store.rows_at(expected, log.durable_group()));
    }
    if (life % 2 == 0) {
      for (int i = 0; i < 20; ++i) some();
    }
    expected = store.rows();
    log.close();
  }
  const logged_store last(*directory);
  EXPECT_EQ(last.rows(), expected);
  EXPECT_GT(last.found().checkpoint_rows, 0u);
  std::size_t checkpoints = 0;
  for (const std::string& name : disk.names()) checkpoints += name.ends_with(".ckpt") ? 1U : 0U;
  EXPECT_EQ(checkpoints, 1u);
}

TEST(Checkpoint, OneAtATimeAndNothingLeftOfAnUnfinishedOne) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log log(clock, *directory, store.found(), by_hand());
  redo_log::worker me(log);
  store.transact(me, {upsert("a", "1")});
  {
    checkpoint_writer abandoned(log);
    EXPECT_EQ(code_thrown_by([&] { checkpoint_writer second(log); }),
              std::errc::operation_in_progress);
    EXPECT_THROW(abandoned.add_row(0, "k", "r", make_stamp(clock.now() + 1, 0)),
                 std::invalid_argument);
    abandoned.add_row(0, "k", "r", make_stamp(clock.now(), 1));
  }
  EXPECT_THAT(disk.names(), UnorderedElementsAre("redo-00000001.log"));
  const finished_checkpoint report = store.checkpoint(log, [] {});
  EXPECT_EQ(report.rows, 1u);
  EXPECT_EQ(rows_in(disk.copy()), store.rows());
}

TEST(Checkpoint, AnUnfinishedOneOfACrashIsRemoved) {
  faulty_disk disk;
  const auto open = [&] {
    const auto directory = disk.directory();
    logged_store store(*directory);
    commit_clock clock;
    redo_log log(clock, *directory, store.found(), by_hand());
  };
  open();
  disk.upsert("checkpoint-00000004.tmp", "half");
  disk.upsert("checkpoint-00000005.other", "somebody else's");
  open();
  EXPECT_THAT(disk.names(), UnorderedElementsAre("redo-00000001.log", "redo-00000002.log",
                                                 "checkpoint-00000005.other"));
}

TEST(Recovery, RefusesAnUnfinishedBackup) {
  for (const char* const name : {"checkpoint-00000004.tmp", "redo-00000003.log.tmp"}) {
    faulty_disk disk;
    disk.upsert(name, "half");
    problem_of(log_problem::damaged, [&] { logged_store refused(*disk.directory()); });
  }
}

// --- What a reader refuses ---

// Three segments; with a checkpoint that needs the last two of four, if asked.
faulty_disk small_log(bool with_checkpoint = false) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log_options options = by_hand(durability::sync);
  options.segment_bytes = 1;
  redo_log log(clock, *directory, store.found(), options);
  redo_log::worker me(log);
  const auto commit = [&](const char* key) {
    log.acknowledge(me, store.transact(me, {upsert(key, "row")}));
  };
  commit("a");
  commit("b");
  log.wait_durable(clock.now());  // then the third segment has begun
  if (with_checkpoint) store.checkpoint(log, [&] {});
  commit("c");
  log.close();
  return disk.copy();
}

// Sets the version in the file's header, with the right checksum.
void set_version(std::string& bytes, std::uint32_t version) {
  auto* const at = reinterpret_cast<std::byte*>(bytes.data());
  internal::put_number(at + 8, version);
  internal::put_number(at + 12, internal::crc32c({at, 12}));
}

TEST(Recovery, RefusesOtherVersions) {
  for (const bool with_checkpoint : {false, true}) {
    for (const std::string& name : small_log(with_checkpoint).names()) {
      faulty_disk disk = small_log(with_checkpoint);
      for (const std::uint32_t version :
           {internal::log_version + 1, internal::log_version_least - 1}) {
        set_version(disk.bytes(name), version);
        const std::string what = problem_of(log_problem::other_version,
                                            [&] { logged_store refused(*disk.directory()); });
        EXPECT_THAT(what, HasSubstr(name));
      }
    }
  }
}

TEST(Recovery, RefusesAnotherSchema) {
  for (const bool with_checkpoint : {false, true}) {
    faulty_disk disk = small_log(with_checkpoint);
    problem_of(log_problem::other_schema, [&] {
      recover_log(*disk.directory(), logged_store::fingerprint + 1, [](const log_entry&) {});
    });
  }
}

TEST(Recovery, RefusesALogWithMissingFiles) {
  for (const bool with_checkpoint : {false, true}) {
    const faulty_disk whole = small_log(with_checkpoint);
    const std::vector<std::string> names = whole.names();
    ASSERT_EQ(names.size(), with_checkpoint ? 3u : 4u);
    for (const std::string& name : names) {
      faulty_disk disk = whole.copy();
      // The newest segment has only its header, synced before there was anything to put into it:
      // nothing is lost with it.
      const bool is_newest = name == names.back();
      ASSERT_EQ(is_newest, disk.bytes(name).size() == internal::file_header_bytes) << name;
      if (is_newest) continue;
      disk.remove(name);
      problem_of(log_problem::damaged, [&] { logged_store refused(*disk.directory()); });
    }
  }
}

TEST(Recovery, RefusesALogThatEndsBeforeItsCheckpoint) {
  faulty_disk disk;
  {
    const auto directory = disk.directory();
    logged_store store(*directory);
    commit_clock clock;
    redo_log log(clock, *directory, store.found(), by_hand(durability::sync));
    redo_log::worker me(log);
    log.acknowledge(me, store.transact(me, {upsert("a", "1")}));
    store.checkpoint(log, [&] { store.transact(me, {upsert("a", "2")}); });
    log.close();
  }
  // The bytes behind the first group are gone, and with them everything that says they had been
  // synced. But the checkpoint saw more.
  std::string& bytes = disk.bytes("redo-00000001.log");
  bytes.resize(bytes.size() / 2);
  EXPECT_THAT(problem_of(log_problem::damaged, [&] { logged_store refused(*disk.directory()); }),
              HasSubstr("checkpoint"));
  // A checkpoint's first segment was whole when the checkpoint was finished.
  bytes.resize(internal::file_header_bytes - 1);
  problem_of(log_problem::damaged, [&] { logged_store refused(*disk.directory()); });
}

TEST(Recovery, RefusesFilesUnderOtherNames) {
  faulty_disk disk = small_log();
  std::swap(disk.bytes("redo-00000001.log"), disk.bytes("redo-00000002.log"));
  problem_of(log_problem::damaged, [&] { logged_store refused(*disk.directory()); });
}

// --- Threads ---

TEST(RedoLog, ThreadsAppendWhileCheckpointsAreWritten) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log_options options = by_hand(durability::async);
  options.group_time = 200us;
  options.segment_bytes = 20'000;
  redo_log log(clock, *directory, store.found(), options);
  constexpr int threads = 4;
  const int commits = repetitions(400);
  {
    std::vector<std::jthread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        random_numbers random(static_cast<std::uint64_t>(t));
        redo_log::worker me(log);
        for (int i = 0; i < commits; ++i) {
          const std::uint64_t group = store.transact(me, store.random_changes(random));
          log.acknowledge(me, group);
          if (i % 16 == 0) log.wait_durable(group);
        }
      });
    }
    for (int i = 0; i < 5; ++i) store.checkpoint(log, [] { std::this_thread::yield(); });
  }
  log.close();
  EXPECT_EQ(rows_in(disk), store.rows());
}

// No lock around the commits: each thread has keys of its own, and one that all write.
TEST(RedoLog, ThreadsCommitSideBySide) {
  faulty_disk disk;
  const auto directory = disk.directory();
  commit_clock clock;
  redo_log_options options = by_hand(durability::sync);
  options.group_time = 1ms;
  redo_log log(clock, *directory, logged_store(*directory).found(), options);
  constexpr std::uint64_t threads = 4;
  const auto commits = static_cast<std::uint64_t>(repetitions(500));
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<std::uint64_t> largest{0};
  {
    std::vector<std::jthread> running;
    for (std::uint64_t t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < commits; ++i) {
          redo_log::worker me(log);
          std::uint64_t group = 0;
          {
            commit_with_group commit(me);
            group = commit.group();
            const std::uint64_t stamp =
                make_stamp(group, (sequence.fetch_add(1) + 1) & commit_stamp::number_max);
            commit.upsert(0, "thread" + std::to_string(t), std::to_string(i));
            commit.upsert(0, "all", std::to_string(stamp));
            commit.keep(stamp);
            std::uint64_t seen = largest.load();
            while (seen < stamp && !largest.compare_exchange_weak(seen, stamp)) {
            }
          }
          log.acknowledge(me, group);
          EXPECT_GE(log.durable_group(), group);
        }
      });
    }
  }
  row_map expected{{{0, "all"}, std::to_string(largest.load())}};
  for (std::uint64_t t = 0; t < threads; ++t)
    expected[{0, "thread" + std::to_string(t)}] = std::to_string(commits - 1);
  EXPECT_EQ(rows_in(disk.copy()), expected);
}

TEST(CommitGroups, AGroupIsCompletedBehindItsCommits) {
  commit_clock clock;
  clock.begin_at(5);
  std::atomic<std::uint64_t> ended{4};
  std::atomic<std::uint64_t> late{0};
  std::atomic<bool> stop{false};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        while (!stop.load()) {
          const commit_clock::commit_phase phase(clock);
          const std::uint64_t group = clock.now();
          for (int look = 0; look < 20; ++look) {
            if (ended.load() >= group) late.fetch_add(1);
          }
        }
      });
    }
    for (int round = 0; round < repetitions(500); ++round) {
      const std::uint64_t wanted = clock.advance() - 1;
      while (ended.load() < wanted) {
        // It may say less than a moment ago: a phase that begins late announces the group that it
        // read before it was delayed.
        ended.store(std::max(ended.load(), clock.completed()));
      }
    }
    stop.store(true);
  }
  EXPECT_EQ(late.load(), 0u);
  EXPECT_EQ(clock.completed() + 1, clock.now());
}

// Snapshots move the clock on as they like: batches then have more groups than one.
TEST(RedoLog, OthersMayMoveTheClockOn) {
  faulty_disk disk;
  const auto directory = disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log log(clock, *directory, store.found(), by_hand());
  redo_log::worker me(log);
  random_numbers random(seed_or(4));
  std::uint64_t before = 0;
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t group = store.transact(me, store.random_changes(random));
    ASSERT_GT(group, before);
    before = group;
    const commit_clock::snapshot snapshot(clock);
    ASSERT_GE(snapshot.group(), group);
    if (i % 10 == 9) log.wait_durable(group);
    ASSERT_EQ(rows_in(disk.copy()), store.rows_at({}, log.durable_group()));
  }
  log.close();
  EXPECT_EQ(rows_in(disk), store.rows());
}

// A thread's queue keeps the records of later groups than the one taken, over chunks of all sizes.
TEST(LogQueue, GivesWhatIsUpToAGroup) {
  internal::log_queue queue;
  random_numbers random(seed_or(5));
  std::vector<std::pair<std::uint64_t, std::string>> published;
  std::size_t taken = 0;
  std::uint64_t group = 1;
  for (int i = 0; i < 3000; ++i) {
    const std::string row(random.below(random.below(100) == 0 ? 300'000 : 3'000),
                          static_cast<char>('a' + i % 26));
    queue.begin();
    internal::log_queue::staged_record record = queue.record();
    internal::begin_record(record);
    const std::uint32_t entries = random.below(20) == 0 ? 200 : 1;
    for (std::uint32_t k = 0; k < entries; ++k)
      internal::append_entry(record, k, log_operation::upsert, std::to_string(i), row);
    if (random.below(5) == 0) continue;  // given up
    group += random.below(2);
    queue.publish(entries, commit_stamp(group, 1));
    for (std::uint32_t k = 0; k < entries; ++k) published.emplace_back(group, row);
    if (random.below(20) != 0) continue;
    const std::uint64_t upto = group - random.below(4);
    queue.take(upto, [&](std::span<const std::byte> records) {
      internal::record_reader reader(records);
      log_entry entry;
      while (reader.next(entry) == internal::record_reader::parse_status::entry) {
        ASSERT_LT(taken, published.size());
        ASSERT_EQ(entry.row, published[taken].second);
        ASSERT_EQ(group_of_stamp(entry.stamp), published[taken].first);
        ASSERT_LE(published[taken].first, upto);
        ++taken;
      }
    });
    ASSERT_TRUE(taken == published.size() || published[taken].first > upto);
    std::size_t waiting = 0;
    for (std::size_t k = taken; k < published.size(); ++k) waiting += published[k].second.size();
    ASSERT_GE(queue.waiting_bytes(), waiting);
  }
  queue.take(group, [](std::span<const std::byte>) {});
  EXPECT_EQ(queue.waiting_bytes(), 0u);
}

// --- Real files ---

class temporary_directory {
 public:
  temporary_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "elidex-log-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~temporary_directory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(LogDirectory, RealFiles) {
  const temporary_directory temporary;
  const std::string path = (temporary.path() / "log").string();
  random_numbers random(seed_or(3));
  row_map expected;
  for (int life = 0; life < 4; ++life) {
    const auto directory = open_log_directory(path);
    EXPECT_EQ(code_thrown_by([&] { open_log_directory(path); }),
              std::errc::resource_unavailable_try_again);
    logged_store store(*directory);
    ASSERT_EQ(store.rows(), expected);
    commit_clock clock;
    redo_log_options options = by_hand(durability::sync);
    options.segment_bytes = 1000;
    redo_log log(clock, *directory, store.found(), options);
    redo_log::worker me(log);
    for (int i = 0; i < 20; ++i)
      log.acknowledge(me, store.transact(me, store.random_changes(random)));
    if (life % 2 == 1) {
      EXPECT_FALSE(store.checkpoint(log, [] {}).removal);
    }
    for (int i = 0; i < 5; ++i)
      log.acknowledge(me, store.transact(me, store.random_changes(random)));
    expected = store.rows();
  }
  EXPECT_EQ(logged_store(*open_log_directory(path)).rows(), expected);
}

TEST(LogDirectory, ADatabaseThatCouldNotOpenItIsOfNoUse) {
  const temporary_directory temporary;
  const std::string path = (temporary.path() / "log").string();
  const auto directory = open_log_directory(path);
  basic_database<db::silo_commit> refused;
  auto& table = refused.create_table<std::uint64_t, int>("table");
  try {
    refused.open(path);
    ADD_FAILURE() << "opened twice";
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has the directory open: "));
  }
  EXPECT_THROW(refused.transact([&](auto& t) { t.upsert(table, 1, 2); }), std::logic_error);
}

TEST(LogDirectory, SaysWhatTheSystemSays) {
  const temporary_directory temporary;
  EXPECT_EQ(code_thrown_by([&] { open_log_directory((temporary.path() / "no" / "log").string()); }),
            std::errc::no_such_file_or_directory);
  const auto directory = open_log_directory(temporary.path().string());
  std::error_code error;
  const auto made = directory->create("a", error);
  ASSERT_FALSE(error);
  EXPECT_EQ(directory->create("a", error), nullptr);
  EXPECT_EQ(error, std::errc::file_exists);
  EXPECT_EQ(directory->open("b", error), nullptr);
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  directory->remove("b", error);
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
}

}  // namespace
}  // namespace elidex::testing
