// Two-phase locking step by step: which anomalies each isolation level lets through, and exactly
// those; who waits for whom; gaps; what becomes of those who are refused.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "elidex/database.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"
#include "papers/schrimpf/thesis_latches.hpp"
#include "support/lock_clients.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using u64 = std::uint64_t;
using namespace std::chrono_literals;

class Locking : public ::testing::TestWithParam<isolation>, public lock_clients {
 protected:
  lock_client& begin() { return lock_clients::begin(GetParam()); }
  static bool at_least(isolation level) { return GetParam() >= level; }
  static constexpr isolation serializable = isolation::serializable;

  // The steps of one transaction.
  auto get(u64 key) {
    return [this, key](auto& t) -> std::optional<std::int64_t> {
      const auto row = t.get(accounts, key);
      return row ? std::optional(row->balance) : std::nullopt;
    };
  }
  auto upsert(u64 key, std::int64_t balance) {
    return [this, key, balance](auto& t) { t.upsert(accounts, key, account{balance}); };
  }
  auto insert(u64 key, std::int64_t balance = 1) {
    return [this, key, balance](auto& t) { t.insert(accounts, key, account{balance}); };
  }
  auto add(u64 key, std::int64_t more) {
    return [this, key, more](auto& t) {
      return t.update(accounts, key, [&](account& a) { a.balance += more; });
    };
  }
  auto erase(u64 key) {
    return [this, key](auto& t) { return t.erase(accounts, key); };
  }
  auto sum(u64 from = 0, u64 to = 100) {
    return [this, from, to](auto& t) {
      std::int64_t total = 0;
      t.scan(accounts, from, to, [&](u64, const account& a) {
        total += a.balance;
        return true;
      });
      return total;
    };
  }
};

std::string name_of(const ::testing::TestParamInfo<isolation>& level) {
  constexpr std::array names{"ReadUncommitted", "ReadCommitted", "RepeatableRead", "Serializable"};
  return names.at(static_cast<std::size_t>(level.param));
}

class LockingLevels : public Locking {};
INSTANTIATE_TEST_SUITE_P(Levels, LockingLevels,
                         ::testing::Values(isolation::read_uncommitted, isolation::read_committed,
                                           isolation::repeatable_read, isolation::serializable),
                         name_of);

TEST_P(LockingLevels, NoDirtyReadsAndNoDirtyWrites) {
  auto& one = begin();
  auto& two = begin();
  one.does(upsert(10, 1));
  auto look = two.starts(get(10));
  EXPECT_EQ(waits(look), at_least(serializable));
  if (!at_least(serializable)) {
    EXPECT_EQ(look.done.get(), 100);
    auto write = two.starts(upsert(10, 2));
    EXPECT_TRUE(waits(write));
    EXPECT_TRUE(one.commits());
    write.done.get();
  } else {
    EXPECT_TRUE(one.commits());
    EXPECT_EQ(look.done.get(), 1);
    two.does(upsert(10, 2));
  }
  EXPECT_EQ(balance(10), 1);
  EXPECT_TRUE(two.commits());
  EXPECT_EQ(balance(10), 2);
}

TEST_P(LockingLevels, NonRepeatableRead) {
  auto& reader = begin();
  auto& writer = begin();
  EXPECT_EQ(reader.does(get(10)), 100);
  auto write = writer.starts(upsert(10, 1));
  EXPECT_EQ(waits(write), at_least(serializable));
  if (!at_least(serializable)) {
    EXPECT_TRUE(writer.commits());
  }
  EXPECT_EQ(reader.does(get(10)), at_least(isolation::repeatable_read) ? 100 : 1);
  EXPECT_TRUE(reader.commits());
}

TEST_P(LockingLevels, ReadSkew) {
  auto& reader = begin();
  auto& writer = begin();
  const auto first = *reader.does(get(10));
  auto write = writer.starts(add(10, -50));
  EXPECT_EQ(waits(write), at_least(serializable));
  if (!at_least(serializable)) {
    writer.does(add(20, 50));
    EXPECT_TRUE(writer.commits());
  }
  EXPECT_EQ(first + *reader.does(get(20)), at_least(isolation::repeatable_read) ? 200 : 250);
  EXPECT_TRUE(reader.commits());
}

TEST_P(LockingLevels, LostUpdateByReadingAndPutting) {
  auto& one = begin();
  auto& two = begin();
  EXPECT_EQ(one.does(get(10)), 100);
  EXPECT_EQ(two.does(get(10)), 100);
  auto write = one.starts(upsert(10, 101));
  EXPECT_EQ(waits(write), at_least(serializable));
  if (at_least(serializable)) {
    auto other = two.starts(upsert(10, 101));
    EXPECT_THROW(other.done.get(), db::lock_refused)
        << "the cheapest, and the one who closes the cycle";
    EXPECT_FALSE(two.commits());
    write.done.get();
    EXPECT_TRUE(one.commits());
  } else {
    EXPECT_TRUE(one.commits());
    two.does(upsert(10, 101));
    EXPECT_TRUE(two.commits());
  }
  EXPECT_EQ(balance(10), 101);
}

TEST_P(LockingLevels, NoLostUpdateByUpdate) {
  auto& one = begin();
  auto& two = begin();
  EXPECT_TRUE(one.does(add(10, 1)));
  auto other = two.starts(add(10, 1));
  EXPECT_TRUE(waits(other));
  EXPECT_TRUE(one.commits());
  EXPECT_TRUE(other.done.get());
  EXPECT_TRUE(two.commits());
  EXPECT_EQ(balance(10), 102);
}

// InnoDB's: what is locked is read as it is now.
TEST_P(LockingLevels, AnUpdateSeesWhatAGetDoesNot) {
  if (at_least(serializable)) GTEST_SKIP() << "the writer would wait";
  auto& one = begin();
  auto& two = begin();
  EXPECT_EQ(one.does(get(10)), 100);
  EXPECT_TRUE(two.does(add(10, 1)));
  two.does(erase(20));
  EXPECT_TRUE(two.commits());
  EXPECT_EQ(one.does(get(10)), at_least(isolation::repeatable_read) ? 100 : 101);
  EXPECT_TRUE(one.does(add(10, 1)));
  EXPECT_EQ(one.does(get(10)), 102);
  EXPECT_EQ(one.does(get(20)),
            at_least(isolation::repeatable_read) ? std::optional<std::int64_t>(100) : std::nullopt);
  EXPECT_FALSE(one.does(add(20, 1)));
  EXPECT_TRUE(one.commits());
}

TEST_P(LockingLevels, WriteSkew) {
  auto& one = begin();
  auto& two = begin();
  EXPECT_EQ(one.does(get(20)), 100);
  EXPECT_EQ(two.does(get(10)), 100);
  auto first = one.starts(upsert(10, 0));
  EXPECT_EQ(waits(first), at_least(serializable));
  auto second = two.starts(upsert(20, 0));
  if (at_least(serializable)) {
    EXPECT_THROW(second.done.get(), db::lock_refused);
    two.rolls_back();
    first.done.get();
    EXPECT_TRUE(one.commits());
    EXPECT_EQ(*balance(10) + *balance(20), 100);
  } else {
    second.done.get();
    EXPECT_TRUE(one.commits());
    EXPECT_TRUE(two.commits());
    EXPECT_EQ(*balance(10) + *balance(20), 0);
  }
}

TEST_P(LockingLevels, PhantomInARange) {
  auto& reader = begin();
  auto& writer = begin();
  EXPECT_EQ(reader.does(sum()), 200);
  auto write = writer.starts(insert(15));
  EXPECT_EQ(waits(write), at_least(serializable));
  if (!at_least(serializable)) {
    EXPECT_TRUE(writer.commits());
    EXPECT_EQ(reader.does(sum()), at_least(isolation::repeatable_read) ? 200 : 201);
  }
  EXPECT_TRUE(reader.commits());
  write.done.wait();
}

TEST_P(LockingLevels, PhantomOfAKeyThatWasNotThere) {
  auto& reader = begin();
  auto& writer = begin();
  EXPECT_EQ(reader.does(get(15)), std::nullopt);
  auto write = writer.starts(upsert(15, 1));
  EXPECT_EQ(waits(write), at_least(serializable));
  if (!at_least(serializable)) {
    EXPECT_TRUE(writer.commits());
    EXPECT_EQ(reader.does(get(15)),
              at_least(isolation::repeatable_read) ? std::nullopt : std::optional<std::int64_t>(1));
  }
  EXPECT_TRUE(reader.commits());
  write.done.wait();
}

TEST_P(LockingLevels, WriteSkewThroughPhantoms) {
  auto& one = begin();
  auto& two = begin();
  EXPECT_EQ(one.does(sum()), 200);
  EXPECT_EQ(two.does(sum()), 200);
  auto first = one.starts(insert(11));
  EXPECT_EQ(waits(first), at_least(serializable));
  auto second = two.starts(insert(12));
  if (at_least(serializable)) {
    EXPECT_THROW(second.done.get(), db::lock_refused);
    two.rolls_back();
    first.done.get();
    EXPECT_TRUE(one.commits());
    EXPECT_EQ(balance(12), std::nullopt);
  } else {
    second.done.get();
    EXPECT_TRUE(one.commits());
    EXPECT_TRUE(two.commits());
  }
  EXPECT_EQ(balance(11), 1);
}

TEST_P(LockingLevels, ErasedRowsAreSeen) {
  auto& reader = begin();
  auto& writer = begin();
  EXPECT_EQ(reader.does(sum()), 200);
  auto write = writer.starts(erase(10));
  EXPECT_EQ(waits(write), at_least(serializable));
  if (!at_least(serializable)) {
    EXPECT_TRUE(writer.commits());
    EXPECT_EQ(reader.does(sum()), at_least(isolation::repeatable_read) ? 200 : 100);
  }
  EXPECT_TRUE(reader.commits());
  write.done.wait();
}

TEST_P(LockingLevels, WhoLooksAtOtherThingsCommits) {
  auto& one = begin();
  auto& two = begin();
  EXPECT_TRUE(one.does(add(10, 1)));
  EXPECT_TRUE(two.does(add(20, 1)));
  one.does(insert(5));
  two.does(insert(25));
  EXPECT_TRUE(one.commits());
  EXPECT_TRUE(two.commits());
  EXPECT_EQ(policy.counts().waits, 0U);
}

TEST_P(LockingLevels, SeesItsOwnWrites) {
  auto& one = begin();
  one.does(get(20));
  one.does(insert(15, 7));
  EXPECT_EQ(one.does(get(15)), 7);
  EXPECT_TRUE(one.does(add(15, 1)));
  EXPECT_TRUE(one.does(erase(10)));
  EXPECT_EQ(one.does(get(10)), std::nullopt);
  EXPECT_FALSE(one.does(erase(10)));
  EXPECT_FALSE(one.does(add(10, 1)));
  EXPECT_EQ(one.does(sum()), 108);
  one.does(insert(10, 5));
  EXPECT_THROW(one.does(insert(10, 5)), db::duplicate_key);
  EXPECT_THROW(one.does(insert(20, 5)), db::duplicate_key);
  EXPECT_EQ(one.does(sum()), 113);
  EXPECT_TRUE(one.commits());
  EXPECT_EQ(balance(10), 5);
  EXPECT_EQ(balance(15), 8);
}

// A scan whose function scans, changes, erases and inserts.
TEST_P(LockingLevels, ScansWithinScansAndChangesWithinScans) {
  auto& one = begin();
  const std::vector<u64> visited = one.does([&](auto& t) {
    std::vector<u64> keys;
    t.scan(accounts, u64{0}, u64{100}, [&](u64 key, const account&) {
      keys.push_back(key);
      if (key == 10) {
        std::int64_t all = 0;
        t.scan(accounts, u64{0}, u64{100}, [&](u64, const account& a) {
          all += a.balance;
          return true;
        });
        EXPECT_EQ(all, 200);
        EXPECT_EQ(t.get(accounts, 20)->balance, 100);
        t.erase(accounts, 20);
        t.insert(accounts, 5, account{1});
        t.update(accounts, key, [](account& a) { a.balance = 3; });
      }
      return true;
    });
    return keys;
  });
  EXPECT_EQ(visited, std::vector<u64>{10});
  EXPECT_TRUE(one.commits());
  EXPECT_EQ(balance(5), 1);
  EXPECT_EQ(balance(10), 3);
  EXPECT_EQ(balance(20), std::nullopt);
}

TEST_P(LockingLevels, ScansEndWhereTheyAreTold) {
  auto& one = begin();
  one.does([&](auto& t) {
    for (u64 key = 100; key < 400; ++key) t.insert(accounts, key, account{1});
  });
  EXPECT_EQ(one.does(sum(0, 1000)), 500);
  EXPECT_TRUE(one.commits());
  auto& two = begin();
  EXPECT_EQ(two.does(sum(0, 1000)), 500);
  EXPECT_EQ(two.does(sum(100, 400)), 300);
  EXPECT_EQ(two.does(sum(101, 399)), 298);
  EXPECT_EQ(two.does(sum(20, 20)), 0);
  EXPECT_EQ(two.does(sum(30, 20)), 0);
  EXPECT_EQ(two.does([&](auto& t) {
    int seen = 0;
    t.scan(accounts, u64{0}, u64{1000}, [&](u64, const account&) { return ++seen < 150; });
    return seen;
  }),
            150);
}

// --- gaps

class LockingGaps : public Locking {
 protected:
  // The reader has read [10, 15): row 10, and the gap up to row 20. Ends the reader.
  void expect_locked_from_10_to_15(lock_client& reader) {
    auto& writer = begin();
    writer.does(insert(25));
    writer.does(add(20, 1));
    EXPECT_TRUE(writer.commits());
    auto& inside = begin();
    auto step = inside.starts(insert(12));
    EXPECT_TRUE(waits(step));
    auto& behind = begin();
    auto in_its_gap = behind.starts(insert(17));
    EXPECT_TRUE(waits(in_its_gap)) << "outside of the range, inside of the gap that ends it";
    auto& row = begin();
    auto write = row.starts(add(10, 1));
    EXPECT_TRUE(waits(write));
    EXPECT_TRUE(reader.commits());
    step.done.get();
    in_its_gap.done.get();
    write.done.get();
    EXPECT_TRUE(inside.commits());
    EXPECT_TRUE(behind.commits());
    EXPECT_TRUE(row.commits());
  }
};
INSTANTIATE_TEST_SUITE_P(Serializable, LockingGaps, ::testing::Values(isolation::serializable),
                         name_of);

TEST_P(LockingGaps, OnlyTheGapsThatWereRead) {
  auto& reader = begin();
  EXPECT_EQ(reader.does(sum(10, 15)), 100);
  expect_locked_from_10_to_15(reader);
}

TEST_P(LockingGaps, AScanThatEndsEarlyLocksNoFurther) {
  auto& reader = begin();
  reader.does([&](auto& t) {
    t.scan(accounts, u64{0}, u64{100}, [](u64, const account&) { return false; });
  });
  auto& writer = begin();
  writer.does(add(20, 1));
  writer.does(insert(30));
  EXPECT_TRUE(writer.commits());
}

// Descending scans protect what they have passed, and the gap before the last row.
TEST_P(LockingGaps, OnlyWhatADescendingScanRead) {
  auto& reader = begin();
  reader.does([&](auto& t) {
    u64 seen = 0;
    t.scan(accounts, between(10, 15).descending(), [&](u64 key, const account&) { seen += key; });
    EXPECT_EQ(seen, 10U);
  });
  expect_locked_from_10_to_15(reader);
}

TEST_P(LockingGaps, ADescendingScanThatEndsEarlyLocksNoFurther) {
  auto& reader = begin();
  reader.does([&](auto& t) {
    t.scan(accounts, all.descending(), [](u64, const account&) { return false; });
  });
  auto& writer = begin();
  writer.does(add(10, 1));
  writer.does(insert(5));
  EXPECT_TRUE(writer.commits());
  auto& above_all = begin();
  auto step = above_all.starts(insert(30));
  EXPECT_TRUE(waits(step));
  EXPECT_TRUE(reader.commits());
  step.done.get();
}

TEST_P(LockingGaps, ADescendingScanThatFindsNothing) {
  auto& reader = begin();
  reader.does([&](auto& t) {
    const auto none = [](u64, const account&) { ADD_FAILURE(); };
    t.scan(accounts, between(12, 15).descending(), none);
    t.scan(accounts, between(17, 12).descending(), none);
  });
  auto& inside = begin();
  auto step = inside.starts(insert(13));
  EXPECT_TRUE(waits(step));
  auto& writer = begin();
  writer.does(insert(30));
  writer.does(add(20, 1));
  EXPECT_TRUE(writer.commits());
  EXPECT_TRUE(reader.commits());
  step.done.get();
}

TEST_P(LockingGaps, TheEndOfTheTableIsOne) {
  auto& reader = begin();
  EXPECT_EQ(reader.does(get(90)), std::nullopt);
  auto& writer = begin();
  auto step = writer.starts(insert(80));
  EXPECT_TRUE(waits(step));
  EXPECT_TRUE(reader.commits());
  step.done.get();
}

// Somebody else's record that waits to be inserted ends nobody's way: another insert before it must
// wait as well.
TEST_P(LockingGaps, WhoWaitsToInsertHidesNoGap) {
  auto& reader = begin();
  EXPECT_EQ(reader.does(get(15)), std::nullopt);
  auto& first = begin();
  auto one = first.starts(insert(17));
  EXPECT_TRUE(waits(one));
  auto& second = begin();
  auto two = second.starts(insert(15));
  EXPECT_TRUE(waits(two));
  EXPECT_TRUE(reader.commits());
  one.done.get();
  two.done.get();
  EXPECT_TRUE(second.commits());
  EXPECT_TRUE(first.commits());
}

// What a rolled back insert has left in the index is as good as not there.
TEST_P(LockingGaps, WhatARolledBackInsertHasLeft) {
  auto& gone = begin();
  gone.does(insert(15));
  gone.rolls_back();
  ASSERT_NE(accounts.map().get(15), std::nullopt);
  auto& reader = begin();
  EXPECT_EQ(reader.does(sum(0, 13)), 100) << "ends before 15, which is not a row";
  auto& before = begin();
  auto one = before.starts(insert(12));
  EXPECT_TRUE(waits(one));
  auto& other_reader = begin();
  EXPECT_EQ(other_reader.does(get(15)), std::nullopt);
  EXPECT_TRUE(reader.commits());
  auto& again = begin();
  auto two = again.starts(insert(15));
  EXPECT_TRUE(waits(two));
  EXPECT_TRUE(other_reader.commits());
  two.done.get();
  EXPECT_TRUE(again.commits());
  EXPECT_EQ(balance(15), 1);
}

TEST_P(LockingGaps, AnErasedRowIsLockedAsOneThatIsThere) {
  auto& eraser = begin();
  eraser.does(erase(10));
  EXPECT_TRUE(eraser.commits());
  auto& reader = begin();
  EXPECT_EQ(reader.does(get(10)), std::nullopt);
  auto& writer = begin();
  auto step = writer.starts(insert(10));
  EXPECT_TRUE(waits(step));
  EXPECT_TRUE(reader.commits());
  step.done.get();
  EXPECT_TRUE(writer.commits());
}

TEST_P(LockingGaps, ErasedRecordsStayAsLongAsTheirGapIsLocked) {
  auto& eraser = begin();
  eraser.does(erase(20));
  EXPECT_TRUE(eraser.commits());
  auto& reader = begin();
  EXPECT_EQ(reader.does(get(15)), std::nullopt);
  collect();
  EXPECT_EQ(accounts.absent_records(), 1U);
  auto& writer = begin();
  auto step = writer.starts(insert(16));
  EXPECT_TRUE(waits(step));
  EXPECT_TRUE(reader.commits());
  step.done.get();
  EXPECT_TRUE(writer.commits());
  collect();
  EXPECT_EQ(accounts.absent_records(), 0U);
  EXPECT_EQ(accounts.map().size(), 2U);
}

TEST_P(LockingGaps, ErasedRecordsStayAsLongAsTheyAreLocked) {
  auto& eraser = begin();
  eraser.does(erase(20));
  EXPECT_TRUE(eraser.commits());
  auto& writer = begin();
  writer.does(insert(20, 5));  // implicitly
  collect();
  EXPECT_EQ(accounts.absent_records(), 1U);
  EXPECT_TRUE(writer.commits());
  EXPECT_EQ(balance(20), 5);
  collect();
  EXPECT_EQ(accounts.absent_records(), 0U);
  EXPECT_EQ(balance(20), 5);
}

// Both have locked the gap and want to insert the key that is not there.
TEST_P(LockingGaps, TwoWhoLookAndThenInsertTheSameKey) {
  auto& one = begin();
  auto& two = begin();
  one.does(get(15));
  two.does(get(15));
  auto first = one.starts(insert(15));
  EXPECT_TRUE(waits(first));
  auto second = two.starts(insert(15));
  EXPECT_THROW(second.done.get(), db::lock_refused);
  two.rolls_back();
  first.done.get();
  EXPECT_TRUE(one.commits());
}

TEST_P(LockingGaps, ADuplicateKeyStaysUntilTheEnd) {
  auto& one = begin();
  EXPECT_THROW(one.does(insert(10)), db::duplicate_key);
  auto& two = begin();
  auto step = two.starts(erase(10));
  EXPECT_TRUE(waits(step));
  EXPECT_TRUE(one.commits());
  EXPECT_TRUE(step.done.get());
}

// --- who is refused

static_assert(!std::is_base_of_v<std::exception, db::lock_refused>);

TEST_P(LockingGaps, WhoWaitsForTooLongIsRefusedForGood) {
  auto& one = begin();
  one.does(upsert(10, 1));
  std::thread([&] {
    locking::transaction::memory notes;
    locking::transaction two(notes, serializable, policy.locks(), clock, 20ms);
    two.upsert(accounts, 20, account{7});
    EXPECT_THROW(two.upsert(accounts, 10, account{7}), db::lock_refused);
    EXPECT_TRUE(transaction_access::is_doomed(two));
    EXPECT_THROW(two.get(accounts, 20), db::lock_refused);
    EXPECT_THROW(sum()(two), db::lock_refused);
    EXPECT_THROW(two.insert(accounts, 30, account{7}), db::lock_refused);
    EXPECT_EQ(policy(two, clock), internal::commit_result::conflict);
    transaction_access::context(two).note_for_collection(false);
  }).join();
  EXPECT_TRUE(one.commits());
  EXPECT_EQ(balance(10), 1);
  EXPECT_EQ(balance(20), 100);
}

// A function that swallows the refusal is run again all the same.
TEST(LockingDatabase, ASwallowedRefusalIsNoCommit) {
  two_phase_database db;
  auto& accounts = db.create_table<u64, account>("accounts");
  db.protocol().wait_for(10ms);
  db.transact([&](auto& t) { t.insert(accounts, 1, account{0}); });
  std::atomic<bool> locked{false};
  std::atomic<bool> refused{false};
  std::thread holder([&] {
    db.transact([&](auto& t) {
      t.upsert(accounts, 1, account{5});
      locked = true;
      while (!refused) std::this_thread::yield();
    });
  });
  while (!locked) std::this_thread::yield();
  int runs = 0;
  db.transact([&](auto& t) {
    ++runs;
    try {
      t.insert(accounts, 2, account{runs});
      t.update(accounts, 1, [](account& a) { ++a.balance; });
    } catch (const std::exception&) {
      ADD_FAILURE();
    } catch (...) {
      refused = true;
    }
  });
  holder.join();
  EXPECT_GT(runs, 1);
  EXPECT_EQ(db.stats().conflicts, static_cast<std::size_t>(runs - 1));
  db.read_only([&](auto& t) {
    EXPECT_EQ(t.get(accounts, 1)->balance, 6);
    EXPECT_EQ(t.get(accounts, 2)->balance, runs);
  });
}

TEST(LockingDatabase, AnExceptionRollsBackAndGivesLocksBack) {
  two_phase_database db;
  auto& accounts = db.create_table<u64, account>("accounts");
  EXPECT_THROW(db.transact([&](auto& t) {
    t.insert(accounts, 1, account{0});
    throw std::runtime_error("enough");
  }),
               std::runtime_error);
  std::thread([&] { db.transact([&](auto& t) { t.insert(accounts, 1, account{1}); }); }).join();
  EXPECT_EQ(db.stats().conflicts, 0U);
  EXPECT_EQ(db.protocol().counts().waits, 0U);
  EXPECT_EQ(db.read_only([&](auto& t) { return t.get(accounts, 1)->balance; }), 1);
}

TEST(LockingDatabase, StringKeys) {
  two_phase_database db;
  auto& rows = db.create_table<std::string, std::int64_t>("rows");
  for (const isolation level :
       {isolation::read_committed, isolation::repeatable_read, isolation::serializable}) {
    db.transact(level, [&](auto& t) {
      for (const char* key : {"b", "a", "ab"}) t.upsert(rows, key, 1);
    });
    const std::string keys = db.transact(level, [&](auto& t) {
      std::string all;
      EXPECT_FALSE(t.get(rows, "aa"));
      t.scan(rows, std::string("a"), std::string("c"), [&](std::string_view key, std::int64_t) {
        all += key;
        all += ' ';
        return true;
      });
      return all;
    });
    EXPECT_EQ(keys, "a ab b ");
  }
}

// Side by side, two victims may keep a third transaction waiting for ever.
TEST(LockingDatabase, VictimsRunAgainOneAtATime) {
  constexpr int many = 4;
  two_phase_database db;
  auto& accounts = db.create_table<u64, account>("accounts");
  std::atomic<int> have_the_gap{0};
  std::atomic<int> running_again{0};
  std::atomic<int> victims{0};
  std::atomic<bool> side_by_side{false};
  std::vector<std::thread> threads;
  for (u64 n = 0; n < many; ++n) {
    threads.emplace_back([&, n] {
      int runs = 0;
      db.transact([&](auto& t) {
        struct counted {
          std::atomic<int>* runs;
          ~counted() {
            if (runs != nullptr) --*runs;
          }
        };
        const counted scope{++runs == 1 ? nullptr : &running_again};
        if (runs == 2) ++victims;
        if (runs > 1 && ++running_again > 1) side_by_side = true;
        EXPECT_EQ(t.get(accounts, u64{10} + n), std::nullopt);
        ++have_the_gap;
        while (have_the_gap < many) std::this_thread::sleep_for(1ms);
        t.insert(accounts, u64{10} + n, account{1});
        std::this_thread::sleep_for(20ms);
      });
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_GE(victims, 2);
  EXPECT_FALSE(side_by_side);
}

// Everybody locks in another order, and pays in and out: cycles are found and the money stays.
template <class Latches>
class LockingStorm : public ::testing::Test {};
using storm_latches =
    ::testing::Types<sharded_latches<>, unmodified_latches, hle_latches, pthread_elision_latches>;
TYPED_TEST_SUITE(LockingStorm, storm_latches);

TYPED_TEST(LockingStorm, DeadlocksEndAndTheMoneyStays) {
  constexpr u64 many = 6;
  basic_database<db::two_phase_locking<TypeParam>> db;
  auto& accounts = db.template create_table<u64, account>("accounts");
  db.transact([&](auto& t) {
    for (u64 n = 0; n < many; ++n) t.insert(accounts, n, account{100});
  });
  const auto sum_of = [&](auto& t) {
    std::int64_t total = 0;
    t.scan(accounts, u64{0}, many, [&](u64, const account& a) {
      total += a.balance;
      return true;
    });
    return total;
  };
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned n = 0; n < 8; ++n) {
    threads.emplace_back([&, n] {
      random_numbers random(seed_or(7) + n);
      for (int turn = 0; turn < repetitions(1'500); ++turn) {
        if (turn % 16 == 0) {
          wrong += db.transact(sum_of) == 100 * static_cast<std::int64_t>(many) ? 0 : 1;
          continue;
        }
        const u64 from = random.below(many);
        const u64 to = (from + 1 + random.below(many - 1)) % many;
        db.transact([&](auto& t) {
          // Read first: upgrades make cycles of two.
          const auto giver = t.get(accounts, from);
          if (!giver) return;
          // To let others in; not a yield, which takes milliseconds where programs beside this one
          // compute.
          if (turn % 2 == 0) std::this_thread::sleep_for(1us);
          if (!t.update(accounts, to, [](account& a) { a.balance += 5; }))
            t.insert(accounts, to, account{5});
          if (giver->balance == 5) {
            t.erase(accounts, from);
          } else {
            t.update(accounts, from, [](account& a) { a.balance -= 5; });
          }
        });
        if (turn % 64 == 0) db.collect();
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(db.transact(sum_of), 100 * static_cast<std::int64_t>(many));
  EXPECT_GT(db.protocol().counts().deadlocks, 0U);
  EXPECT_EQ(db.protocol().counts().timeouts == 0 || db.stats().conflicts > 0, true);
  EXPECT_TRUE(db.protocol().locks().is_consistent());
}

}  // namespace
}  // namespace elidex::testing
