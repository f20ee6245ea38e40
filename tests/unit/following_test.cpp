// A database that follows a directory: it has what the writer has made durable, whole transactions
// of it, and says so when it cannot continue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elidex/database.hpp"
#include "support/comes_true.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

struct note {
  std::int64_t balance = 0;
  std::string text;
  std::optional<double> rate;
  friend bool operator==(const note&, const note&) = default;
};
ELIDEX_ROW(note, balance, text, rate);

struct shorter_note {
  std::int64_t balance = 0;
  std::string text;
};
ELIDEX_ROW(shorter_note, balance, text);

namespace {

using namespace std::chrono_literals;
using u64 = std::uint64_t;
using rows = std::map<u64, note>;

std::int64_t total_of(const rows& all_of_them) {
  std::int64_t sum = 0;
  for (const auto& [key, one] : all_of_them) sum += one.balance;
  return sum;
}

constexpr u64 notes_count = 40;
// Counts the transactions of writer::change().
constexpr u64 counter = 1000;

u64 changes_of(const rows& all_of_them) {
  const auto found = all_of_them.find(counter);
  return found == all_of_them.end() ? 0 : found->second.text.size();
}
constexpr db::storage_options short_files{.level = db::durability::async,
                                          .group_time = 50us,
                                          .segment_bytes = 2048,
                                          .checkpoint_bytes = 0};

// A database with one table of notes.
struct notebook {
  notebook() : notes(db.create_table<u64, note>("notes")) {}

  rows all_rows() {
    rows found;
    db.read_only([&](auto& t) {
      found.clear();
      t.scan(notes, all, [&](u64 key, const note& one) { found[key] = one; });
    });
    return found;
  }
  database db;
  database::table<u64, note>& notes;
};

struct writer : notebook {
  explicit writer(std::unique_ptr<log_directory> directory,
                  const db::storage_options& options = short_files) {
    db.open(std::move(directory), options);
  }
  // Several rows at once; their balances sum to zero.
  void change(random_numbers& random) {
    db.transact([&](auto& t) {
      std::int64_t sum = 0;
      for (int i = 0; i < 3; ++i) {
        const u64 key = random.below(notes_count);
        if (random.below(4) == 0) {
          if (const auto there = t.get(notes, key)) sum += there->balance;
          t.erase(notes, key);
          continue;
        }
        const auto more = static_cast<std::int64_t>(random.below(100));
        if (t.update(notes, key, [&](note& one) { one.balance += more; })) {
          sum -= more;
        } else {
          t.insert(notes, key, note{more, std::string(random.below(200), 'x'), std::optional(0.5)});
          sum -= more;
        }
      }
      if (!t.update(notes, counter, [](note& one) { one.text += '+'; }))
        t.insert(notes, counter, note{0, "+", std::nullopt});
      if (!t.update(notes, notes_count, [&](note& one) { one.balance += sum; }))
        t.insert(notes, notes_count, note{sum, "the rest", std::nullopt});
    });
  }
  template <class Fn>
  void transact(Fn&& fn) {
    db.transact(std::forward<Fn>(fn));
    db.wait_durable();
  }
};

struct follower : notebook {
  explicit follower(std::unique_ptr<log_directory> directory) { db.follow(std::move(directory)); }
  std::int64_t total() { return total_of(all_rows()); }
};

// Whether the follower reaches the writer's rows.
bool catches_up(follower& f, writer& w) {
  w.db.wait_durable();
  const rows wanted = w.all_rows();
  return comes_true([&] {
    f.db.catch_up();
    return f.all_rows() == wanted;
  });
}

template <class Fn>
std::optional<db::log_problem> problem_of(Fn&& fn) {
  try {
    fn();
  } catch (const db::log_error& error) {
    return error.problem();
  }
  return std::nullopt;
}

TEST(Following, SeesWhatTheWriterHasMadeDurable) {
  faulty_disk disk;
  writer w(disk.directory());
  w.transact([&](auto& t) { t.insert(w.notes, 1, note{10, "one", 1.5}); });
  follower f(disk.directory());
  EXPECT_TRUE(catches_up(f, w));
  w.transact([&](auto& t) {
    t.update(w.notes, 1, [](note& one) { one.text = std::string(5000, 'y'); });
    t.insert(w.notes, 2, note{20, "two", std::nullopt});
  });
  EXPECT_TRUE(catches_up(f, w));
  w.transact([&](auto& t) { t.erase(w.notes, 1); });
  EXPECT_TRUE(catches_up(f, w));
  EXPECT_EQ(f.db.catch_up(), 0U);
  EXPECT_EQ(f.all_rows(), (rows{{2, note{20, "two", std::nullopt}}}));
}

TEST(Following, FollowsThroughSegmentsAndCheckpoints) {
  faulty_disk disk;
  random_numbers random(seed_or(31));
  std::optional<writer> w(std::in_place, disk.directory());
  follower f(disk.directory());
  for (int round = 0; round < 60; ++round) {
    for (u64 i = random.below(30); i > 0; --i) {
      w->change(random);
      if (random.below(4) == 0) w->db.wait_durable();
      if (random.below(8) != 0) continue;
      f.db.catch_up();
      EXPECT_EQ(f.total(), 0);
    }
    if (random.below(3) == 0) {
      EXPECT_TRUE(catches_up(f, *w));
    }
    if (random.below(4) == 0) {
      EXPECT_TRUE(catches_up(f, *w));
      w->db.checkpoint();
    }
    if (random.below(6) == 0) {  // the writer's process ends, and another one begins
      EXPECT_TRUE(catches_up(f, *w));
      if (random.below(2) == 0) w->change(random);
      w.reset();
      w.emplace(disk.directory());
    }
  }
  EXPECT_TRUE(catches_up(f, *w));
}

// A follower that begins at any time has a state of the writer.
TEST(Following, BeginsAtAnyTime) {
  faulty_disk disk;
  writer w(disk.directory());
  const std::jthread writing([&](const std::stop_token& stop) {
    random_numbers random(seed_or(32));
    for (int i = 1; !stop.stop_requested(); ++i) {
      w.change(random);
      if (i % 16 == 0) w.db.wait_durable();
      if (i % 400 == 0) w.db.checkpoint();
    }
  });
  int left_behind = 0;
  for (int i = 0; i < 40; ++i) {
    follower f(disk.directory());
    EXPECT_EQ(f.total(), 0);
    const auto problem = problem_of([&] {
      for (int turn = 0; turn < 5; ++turn) {
        f.db.catch_up();
        EXPECT_EQ(f.total(), 0);
      }
    });
    EXPECT_EQ(problem.value_or(db::log_problem::left_behind), db::log_problem::left_behind);
    left_behind += problem ? 1 : 0;
  }
  EXPECT_LT(left_behind, 40);
}

TEST(Following, OtherThreadsReadMeanwhile) {
  faulty_disk disk;
  db::storage_options options = short_files;
  options.segment_bytes = 256 << 10;
  writer w(disk.directory(), options);
  follower f(disk.directory());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    random_numbers random(seed_or(33));
    while (!stop) w.change(random);
  });
  threads.emplace_back([&] {
    while (!stop) f.db.catch_up();
  });
  threads.emplace_back([&] {
    while (!stop) f.db.collect();
  });
  for (int i = 0; i < repetitions(2000); ++i) EXPECT_EQ(f.total(), 0);
  stop = true;
  for (std::thread& one : threads) one.join();
  EXPECT_TRUE(catches_up(f, w));
  for (int i = 0; i < 5; ++i) f.db.collect();
  EXPECT_EQ(f.notes.absent_records(), 0U);
}

// What a power failure may still take, a follower does not have.
TEST(Following, WaitsForTheProofOfDurability) {
  faulty_disk disk;
  std::string name;
  {
    writer w(disk.directory());
    w.transact([&](auto& t) { t.insert(w.notes, 1, note{1, "", {}}); });
    name = disk.names().back();
    w.db.close();
  }
  std::string& bytes = disk.bytes(name);
  const std::string whole = bytes;
  // Without the note that follows the sync.
  ASSERT_GT(whole.size(), block_header_bytes);
  bytes.resize(whole.size() - block_header_bytes);
  follower f(disk.directory());
  EXPECT_TRUE(f.all_rows().empty());
  EXPECT_EQ(f.db.catch_up(), 0U);
  // Any part of the note is not sufficient.
  for (std::size_t size = bytes.size(); size < whole.size(); ++size) {
    bytes = whole.substr(0, size);
    ASSERT_EQ(f.db.catch_up(), 0U) << size;
  }
  bytes = whole;
  EXPECT_EQ(f.db.catch_up(), 1U);
  EXPECT_EQ(f.all_rows().size(), 1U);
}

// Each byte of the log appears on its own, and each state in between is one of the writer's.
TEST(Following, ReadsALogThatGrowsByteByByte) {
  faulty_disk written;
  std::vector<rows> states{{}};
  {
    db::storage_options options = short_files;
    options.segment_bytes = 1 << 20;
    writer w(written.directory(), options);
    random_numbers random(seed_or(34));
    for (int i = 0; i < 12; ++i) {
      w.change(random);
      w.db.wait_durable();
      states.push_back(w.all_rows());
    }
    w.db.close();
  }
  const std::string name = name_of(file_kind::segment, 1);
  const std::string whole = written.bytes(name);
  faulty_disk disk;
  disk.upsert(name, "");
  follower f(disk.directory());
  std::size_t state = 0;
  for (std::size_t size = 1; size <= whole.size(); ++size) {
    disk.bytes(name) = whole.substr(0, size);
    if (f.db.catch_up() == 0) continue;
    const auto found =
        std::find(states.begin() + static_cast<std::ptrdiff_t>(state), states.end(), f.all_rows());
    ASSERT_NE(found, states.end()) << "at byte " << size;
    state = static_cast<std::size_t>(found - states.begin());
  }
  EXPECT_EQ(state, states.size() - 1);
}

TEST(Following, FindsDamageOfSyncedBytes) {
  faulty_disk disk;
  writer w(disk.directory());
  follower f(disk.directory());
  w.transact([&](auto& t) { t.insert(w.notes, 1, note{1, std::string(300, 'x'), {}}); });
  w.transact([&](auto& t) { t.insert(w.notes, 2, note{2, "", {}}); });
  w.db.close();
  std::string& bytes = disk.bytes(name_of(file_kind::segment, 1));
  bytes.at(bytes.find(std::string(100, 'x'))) ^= 1;
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(problem_of([&] { f.db.catch_up(); }), db::log_problem::damaged) << i;
  EXPECT_TRUE(f.all_rows().empty());
}

TEST(Following, SaysThatItIsLeftBehind) {
  faulty_disk disk;
  writer w(disk.directory());
  w.transact([&](auto& t) { t.insert(w.notes, 1, note{1, "", {}}); });
  follower f(disk.directory());
  ASSERT_TRUE(catches_up(f, w));
  const rows before = f.all_rows();
  random_numbers random(seed_or(35));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 60; ++i) {
      w.change(random);
      w.db.wait_durable();
    }
    w.db.checkpoint();
  }
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(problem_of([&] { f.db.catch_up(); }), db::log_problem::left_behind) << i;
  // It still reads what it has, a state of the writer.
  EXPECT_EQ(f.all_rows(), before);
  follower again(disk.directory());
  EXPECT_TRUE(catches_up(again, w));
}

// The writer's machine loses power. What the follower has is there afterwards.
TEST(Following, HasNothingThatAPowerFailureTakes) {
  for (int round = 0; round < repetitions(60); ++round) {
    random_numbers random(seed_or(36) + static_cast<u64>(round));
    faulty_disk disk;
    db::storage_options options = short_files;
    options.segment_bytes = std::size_t{1024} << random.below(6);
    auto w = std::make_unique<writer>(disk.directory(), options);
    follower f(disk.directory());
    const u64 last = disk.operations() + random.below(60);
    disk.change_faults([&](auto& faults) { faults.power_off_at = last; });
    try {
      for (int i = 0; i < 200; ++i) {
        w->change(random);
        if (random.below(4) == 0) w->db.wait_durable();
        if (random.below(4) == 0) f.db.catch_up();
        if (random.below(40) == 0) w->db.checkpoint();
      }
    } catch (const std::system_error&) {
    } catch (const db::log_error& error) {
      EXPECT_EQ(error.problem(), db::log_problem::left_behind);
    }
    problem_of([&] { f.db.catch_up(); });
    const rows seen = f.all_rows();
    w.reset();
    faulty_disk after = disk.after_power_failure(random);
    notebook recovered;
    recovered.db.open(after.directory(), {.level = db::durability::none});
    // Whoever saw the follower's rows finds these or later ones.
    EXPECT_EQ(total_of(recovered.all_rows()), 0);
    EXPECT_GE(changes_of(recovered.all_rows()), changes_of(seen)) << "round " << round;
  }
}

TEST(Following, SkipsTablesThatTheProgramDoesNotHave) {
  faulty_disk disk;
  database w;
  auto& notes = w.create_table<u64, note>("notes");
  auto& others = w.create_table<std::string, note>("others");
  w.open(disk.directory(), short_files);
  follower f(disk.directory());
  w.transact([&](auto& t) {
    t.insert(notes, 1, note{1, "", {}});
    t.insert(others, "a", note{2, "", {}});
  });
  auto& later = w.create_table<u64, note>("later");
  w.transact([&](auto& t) { t.insert(later, 5, note{3, "", {}}); });
  w.close();
  EXPECT_EQ(f.db.catch_up(), 1U);
  EXPECT_EQ(f.all_rows().size(), 1U);
}

TEST(Following, RefusesOtherColumns) {
  faulty_disk disk;
  {
    database w;
    w.create_table<u64, shorter_note>("notes");
    w.open(disk.directory(), short_files);
  }
  notebook f;
  EXPECT_THROW(f.db.follow(disk.directory()), db::schema_mismatch);
  EXPECT_THROW(f.all_rows(), std::logic_error);
}

// The writer ends, and comes back with another column.
TEST(Following, SaysThatColumnsHaveChanged) {
  faulty_disk disk;
  database f;
  auto& notes = f.create_table<u64, shorter_note>("notes");
  {
    database w;
    auto& mine = w.create_table<u64, shorter_note>("notes");
    w.open(disk.directory(), short_files);
    w.transact([&](auto& t) { t.insert(mine, 1, shorter_note{7, "seven"}); });
    w.close();
  }
  f.follow(disk.directory());
  {
    writer w(disk.directory());
    w.transact([&](auto& t) { t.insert(w.notes, 2, note{8, "eight", 0.5}); });
    w.db.close();
  }
  for (int i = 0; i < 2; ++i) EXPECT_THROW(f.catch_up(), db::schema_mismatch) << i;
  std::size_t rows_there = 0;
  f.read_only([&](auto& t) {
    t.scan(notes, all, [&](u64 key, const shorter_note& one) {
      rows_there += key == 1 && one.text == "seven" ? 1U : 100U;
    });
  });
  EXPECT_EQ(rows_there, 1U);
}

// The writer comes back with an index of the rows that are there.
TEST(Following, SaysThatAnIndexIsMissing) {
  faulty_disk disk;
  const auto by_balance = [](u64, const note& one) { return one.balance; };
  follower f([&] {
    writer w(disk.directory());
    w.transact([&](auto& t) { t.insert(w.notes, 1, note{7, "", {}}); });
    w.db.close();
    return disk.directory();
  }());
  notebook with_index;
  db::indexed_table wanted(with_index.db, with_index.notes);
  wanted.add_index<std::int64_t>("by balance", by_balance);
  EXPECT_THROW(with_index.db.follow(disk.directory()), db::schema_mismatch);

  notebook w;
  db::indexed_table indexed(w.db, w.notes);
  const auto index = indexed.add_index<std::int64_t>("by balance", by_balance);
  w.db.open(disk.directory(), short_files);
  w.db.transact([&](auto& t) { indexed.insert(t, 2, note{9, "", {}}); });
  w.db.close();
  // A follower that does not have the index continues.
  EXPECT_EQ(f.db.catch_up(), 1U);
  EXPECT_EQ(f.all_rows().size(), 2U);

  notebook now;
  db::indexed_table there(now.db, now.notes);
  const auto same = there.add_index<std::int64_t>("by balance", by_balance);
  now.db.follow(disk.directory());
  std::vector<u64> keys;
  now.db.read_only(
      [&](auto& t) { there.scan(t, same, 0, [&](u64 key, const note&) { keys.push_back(key); }); });
  EXPECT_THAT(keys, ::testing::ElementsAre(1, 2));
  static_cast<void>(index);
}

// The writer adds and drops an index while it runs.
TEST(Following, HasAnIndexThatTheWriterAdds) {
  faulty_disk disk;
  const auto by_balance = [](u64, const note& one) { return one.balance; };
  notebook w;
  db::indexed_table indexed(w.db, w.notes);
  w.db.open(disk.directory(), short_files);
  for (u64 key = 0; key < 100; ++key) {
    w.db.transact([&](auto& t) {
      indexed.insert(t, key, note{static_cast<std::int64_t>(key % 10), "", {}});
    });
  }
  follower without(disk.directory());
  const auto index = indexed.add_index<std::int64_t>("by balance", by_balance);
  // When a follower sees this, it knows that the index is durable.
  w.db.transact([&](auto& t) { indexed.insert(t, 2000, note{-1, "", {}}); });
  EXPECT_TRUE(comes_true([&] { return without.db.catch_up(), without.all_rows().contains(2000); }));

  notebook f;
  db::indexed_table there(f.db, f.notes);
  const auto same = there.add_index<std::int64_t>("by balance", by_balance);
  const auto found = [&] {
    std::size_t rows_there = 0;
    f.db.read_only(
        [&](auto& t) { there.find(t, same, 3, [&](u64, const note&) { ++rows_there; }); });
    return rows_there;
  };
  f.db.follow(disk.directory());
  w.db.transact([&](auto& t) { indexed.insert(t, 1000, note{3, "", {}}); });
  w.db.wait_durable();
  EXPECT_TRUE(comes_true([&] { return f.db.catch_up(), found() == 11; }));
  EXPECT_TRUE(comes_true([&] { return without.db.catch_up(), without.all_rows().size() == 102; }));
  indexed.drop_index(index);
  w.db.close();
  EXPECT_THROW(f.db.catch_up(), db::schema_mismatch);
  EXPECT_EQ(found(), 11U);
  without.db.catch_up();
  EXPECT_EQ(without.all_rows().size(), 102U);
}

// A batch that is longer than what a follower keeps of proven ones.
TEST(Following, AppliesAGiantBatch) {
  faulty_disk disk;
  {
    db::storage_options options = short_files;
    options.segment_bytes = std::size_t{1} << 30;
    writer w(disk.directory(), options);
    w.db.transact([&](auto& t) {
      for (u64 key = 0; key < 6; ++key)
        t.insert(w.notes, key, note{0, std::string(std::size_t{13} << 20, 'x'), {}});
    });
    w.db.close();
  }
  std::string& bytes = disk.bytes(name_of(file_kind::segment, 1));
  const std::string whole = bytes;
  bytes.resize(whole.size() - block_header_bytes);  // without the note that it is durable
  follower f(disk.directory());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f.db.catch_up(), 0U);
  bytes = whole;
  f.db.catch_up();
  EXPECT_EQ(f.all_rows().size(), 6U);
}

TEST(Following, SaysThatATableWasDroppedAndMadeAgain) {
  for (const bool sees_both : {true, false}) {
    faulty_disk disk;
    const auto write_both = [&](u64 key) {
      notebook w;
      auto& more = w.db.create_table<u64, note>("others");
      w.db.open(disk.directory(), short_files);
      w.db.transact([&](auto& t) {
        t.upsert(w.notes, key, note{});
        t.upsert(more, key, note{});
      });
      w.db.close();
    };
    const auto drop_one = [&](u64 key) {
      notebook w;
      w.db.drop_table("others");
      w.db.open(disk.directory(), short_files);
      w.db.transact([&](auto& t) { t.upsert(w.notes, key, note{}); });
      w.db.close();
    };
    write_both(1);
    follower without(disk.directory());
    notebook f;
    auto& others = f.db.create_table<u64, note>("others");
    f.db.follow(disk.directory());
    drop_one(2);
    if (sees_both) {
      EXPECT_THROW(f.db.catch_up(), db::schema_mismatch);
    }
    write_both(3);
    EXPECT_THROW(f.db.catch_up(), db::schema_mismatch);
    std::size_t rows_there = 0;
    f.db.read_only([&](auto& t) { t.scan(others, all, [&](u64, const note&) { ++rows_there; }); });
    EXPECT_EQ(rows_there, 1U);
    // A follower that does not read the table continues.
    without.db.catch_up();
    EXPECT_EQ(without.all_rows().size(), 3U);
  }
}

TEST(Following, SaysThatTheWriterHasNoSuchIndex) {
  faulty_disk disk;
  writer w(disk.directory());
  w.db.wait_durable();
  notebook f;
  db::indexed_table indexed(f.db, f.notes);
  indexed.add_index<std::int64_t>("by balance", [](u64, const note& one) { return one.balance; });
  f.db.follow(disk.directory());
  w.transact([&](auto& t) { t.insert(w.notes, 1, note{}); });
  w.db.close();
  EXPECT_THROW(f.db.catch_up(), db::schema_mismatch);
  EXPECT_TRUE(f.all_rows().empty());
}

// The writer makes the next segment, cannot sync its header, removes it, and continues here.
TEST(Following, StaysInASegmentThatGoesOn) {
  faulty_disk disk;
  db::storage_options options = short_files;
  options.segment_bytes = std::size_t{1} << 20;
  writer w(disk.directory(), options);
  w.transact([&](auto& t) { t.insert(w.notes, 1, note{1, std::string(100'000, 'x'), {}}); });
  follower f(disk.directory());
  ASSERT_TRUE(catches_up(f, w));
  // A header that is there, as the follower may see it before the sync fails.
  const std::string first = name_of(file_kind::segment, 1);
  byte_buffer header;
  append_file_header(header, {.kind = file_kind::segment,
                              .salt = 1,
                              .number = 2,
                              .first_group = 1000,
                              .durable_group = w.db.wait_durable(),
                              .previous_bytes = disk.bytes(first).size(),
                              .first_segment = 0,
                              .fingerprint = log_fingerprint});
  disk.upsert(name_of(file_kind::segment, 2),
              std::string(reinterpret_cast<const char*>(header.data()), header.size()));
  EXPECT_EQ(f.db.catch_up(), 0U);
  disk.remove(name_of(file_kind::segment, 2));
  w.transact([&](auto& t) { t.insert(w.notes, 2, note{2, "", {}}); });
  EXPECT_TRUE(catches_up(f, w));
}

TEST(Following, FindsDamageWhenItBegins) {
  faulty_disk disk;
  {
    writer w(disk.directory());
    w.transact([&](auto& t) { t.insert(w.notes, 1, note{1, std::string(300, 'x'), {}}); });
    w.transact([&](auto& t) { t.insert(w.notes, 2, note{2, "", {}}); });
  }
  std::string& bytes = disk.bytes(name_of(file_kind::segment, 1));
  bytes.at(bytes.find(std::string(100, 'x'))) ^= 1;
  EXPECT_EQ(problem_of([&] { follower f(disk.directory()); }), db::log_problem::damaged);
}

TEST(Following, SaysWhatItDoesNotDo) {
  faulty_disk disk;
  {
    writer w(disk.directory());
  }
  follower f(disk.directory());
  EXPECT_THROW(f.db.transact([](auto&) {}), std::logic_error);
  EXPECT_THROW((f.db.create_table<u64, note>("more")), std::logic_error);
  EXPECT_THROW(f.db.drop_table("more"), std::logic_error);
  EXPECT_THROW(f.db.follow(disk.directory()), std::logic_error);
  EXPECT_THROW(f.db.open(disk.directory()), std::logic_error);
  EXPECT_THROW(f.db.checkpoint(), std::system_error);
  database other;
  EXPECT_THROW(other.catch_up(), std::logic_error);
  EXPECT_THROW(other.follow("/nothing/there"), std::system_error);
  EXPECT_THROW(other.read_only([](auto&) {}), std::logic_error);
}

}  // namespace
}  // namespace elidex::testing
