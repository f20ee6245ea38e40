// Two transactions step by step: which anomalies each isolation level lets through, and exactly
// those; and what one transaction sees of itself.
#include "elidex/internal/txn/transaction.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "elidex/internal/txn/commit_protocols.hpp"
#include "elidex/internal/txn/snapshot_transaction.hpp"
#include "support/databases.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using db::isolation;
using u64 = std::uint64_t;
using accounts_table = internal::table<u64, account, ordered_tree<u64, internal::record*>>;

// A transaction whose steps a test puts between those of another.
class stepped {
 public:
  stepped(internal::commit_clock& clock, isolation level) : t(notes_, level), clock_(clock) {}
  bool commits() {
    const bool committed = db::silo_commit()(transaction_access::context(t), clock_) ==
                           internal::commit_result::committed;
    transaction_access::context(t).note_for_collection(committed);
    return committed;
  }

 private:
  db::transaction::memory notes_;

 public:
  db::transaction t;

 private:
  internal::commit_clock& clock_;
};

class Anomalies : public ::testing::TestWithParam<isolation> {
 protected:
  void SetUp() override {
    stepped loader(clock_, isolation::serializable);
    for (const u64 key : {u64{10}, u64{20}}) loader.t.insert(accounts_, key, account{100});
    ASSERT_TRUE(loader.commits());
  }
  stepped begin() { return stepped(clock_, GetParam()); }
  std::optional<std::int64_t> balance(u64 key) {
    const auto found = db::snapshot_transaction(clock_).get(accounts_, key);
    return found ? std::optional(found->balance) : std::nullopt;
  }
  std::int64_t sum(db::transaction& t) {
    std::int64_t total = 0;
    t.scan(accounts_, u64{0}, u64{100}, [&](u64, const account& a) {
      total += a.balance;
      return true;
    });
    return total;
  }
  static bool at_least(isolation level) { return GetParam() >= level; }

  internal::commit_clock clock_;
  accounts_table accounts_{"accounts"};
};

std::string name_of(const ::testing::TestParamInfo<isolation>& level) {
  constexpr std::array names{"ReadUncommitted", "ReadCommitted", "RepeatableRead", "Serializable"};
  return names.at(static_cast<std::size_t>(level.param));
}

INSTANTIATE_TEST_SUITE_P(Levels, Anomalies,
                         ::testing::Values(isolation::read_uncommitted, isolation::read_committed,
                                           isolation::repeatable_read, isolation::serializable),
                         name_of);

// G0 and G1a, and the reason why read uncommitted is no different here: a write stands nowhere
// before its commit.
TEST_P(Anomalies, NoDirtyReadsAndNoDirtyWrites) {
  auto one = begin();
  auto two = begin();
  one.t.upsert(accounts_, 10, account{1});
  one.t.upsert(accounts_, 20, account{1});
  EXPECT_EQ(two.t.get(accounts_, 10)->balance, 100);
  two.t.upsert(accounts_, 10, account{2});
  two.t.upsert(accounts_, 20, account{2});
  EXPECT_TRUE(one.commits());
  two.commits();
  EXPECT_EQ(balance(10), balance(20));
}

TEST_P(Anomalies, NonRepeatableRead) {
  auto reader = begin();
  EXPECT_EQ(reader.t.get(accounts_, 10)->balance, 100);
  auto writer = begin();
  writer.t.upsert(accounts_, 10, account{1});
  EXPECT_TRUE(writer.commits());
  EXPECT_EQ(reader.t.get(accounts_, 10)->balance, 1)
      << "rows are of different moments until the commit says no";
  EXPECT_EQ(reader.commits(), !at_least(isolation::repeatable_read));
}

TEST_P(Anomalies, ReadSkew) {
  auto reader = begin();
  const std::int64_t first = reader.t.get(accounts_, 10)->balance;
  auto writer = begin();
  writer.t.upsert(accounts_, 10, account{50});
  writer.t.upsert(accounts_, 20, account{150});
  EXPECT_TRUE(writer.commits());
  EXPECT_EQ(first + reader.t.get(accounts_, 20)->balance, 250);
  EXPECT_EQ(reader.commits(), !at_least(isolation::repeatable_read));
}

TEST_P(Anomalies, LostUpdateByReadingAndPutting) {
  auto one = begin();
  auto two = begin();
  const std::int64_t seen = one.t.get(accounts_, 10)->balance;
  one.t.upsert(accounts_, 10, account{seen + 1});
  two.t.upsert(accounts_, 10, account{two.t.get(accounts_, 10)->balance + 1});
  EXPECT_TRUE(two.commits());
  EXPECT_EQ(one.commits(), !at_least(isolation::repeatable_read));
  EXPECT_EQ(balance(10), 101);
}

TEST_P(Anomalies, NoLostUpdateByUpdate) {
  auto one = begin();
  auto two = begin();
  const auto add_one = [](account& a) { ++a.balance; };
  EXPECT_TRUE(one.t.update(accounts_, 10, add_one));
  EXPECT_TRUE(two.t.update(accounts_, 10, add_one));
  EXPECT_TRUE(two.commits());
  EXPECT_FALSE(one.commits());
}

TEST_P(Anomalies, WriteSkew) {
  auto one = begin();
  auto two = begin();
  if (one.t.get(accounts_, 20)->balance > 0) one.t.upsert(accounts_, 10, account{0});
  if (two.t.get(accounts_, 10)->balance > 0) two.t.upsert(accounts_, 20, account{0});
  EXPECT_TRUE(one.commits());
  EXPECT_EQ(two.commits(), !at_least(isolation::repeatable_read));
}

TEST_P(Anomalies, PhantomInARange) {
  auto reader = begin();
  EXPECT_EQ(sum(reader.t), 200);
  auto writer = begin();
  writer.t.insert(accounts_, 15, account{1});
  EXPECT_TRUE(writer.commits());
  EXPECT_EQ(reader.commits(), !at_least(isolation::serializable));
}

TEST_P(Anomalies, PhantomOfAKeyThatWasNotThere) {
  auto reader = begin();
  EXPECT_FALSE(reader.t.get(accounts_, 15));
  auto writer = begin();
  writer.t.insert(accounts_, 15, account{1});
  EXPECT_TRUE(writer.commits());
  EXPECT_EQ(reader.commits(), !at_least(isolation::serializable));
}

// Write skew through phantoms: both count and insert.
TEST_P(Anomalies, WriteSkewThroughPhantoms) {
  auto one = begin();
  auto two = begin();
  EXPECT_EQ(sum(one.t), 200);
  EXPECT_EQ(sum(two.t), 200);
  one.t.insert(accounts_, 11, account{1});
  two.t.insert(accounts_, 12, account{1});
  EXPECT_TRUE(one.commits());
  EXPECT_EQ(two.commits(), !at_least(isolation::serializable));
}

TEST_P(Anomalies, ErasedRowsAreSeen) {
  auto reader = begin();
  EXPECT_EQ(sum(reader.t), 200);
  auto writer = begin();
  EXPECT_TRUE(writer.t.erase(accounts_, 10));
  EXPECT_TRUE(writer.commits());
  EXPECT_EQ(reader.commits(), !at_least(isolation::repeatable_read));
}

// Fekete, O'Neil, O'Neil 2004: the one who only reads makes the anomaly.
TEST_P(Anomalies, ReadOnlyAnomaly) {
  auto withdraw = begin();
  const std::int64_t total =
      withdraw.t.get(accounts_, 10)->balance + withdraw.t.get(accounts_, 20)->balance;
  auto deposit = begin();
  deposit.t.upsert(accounts_, 20, account{deposit.t.get(accounts_, 20)->balance + 20});
  EXPECT_TRUE(deposit.commits());
  db::snapshot_transaction report(clock_);
  EXPECT_EQ(report.get(accounts_, 10)->balance + report.get(accounts_, 20)->balance, 220);
  withdraw.t.upsert(accounts_, 10, account{total - 300});
  EXPECT_EQ(withdraw.commits(), !at_least(isolation::repeatable_read));
}

TEST_P(Anomalies, WhoLooksAtOtherThingsCommits) {
  auto one = begin();
  auto two = begin();
  one.t.update(accounts_, 10, [](account& a) { --a.balance; });
  two.t.update(accounts_, 20, [](account& a) { --a.balance; });
  EXPECT_TRUE(one.commits());
  EXPECT_TRUE(two.commits());
}

// --- one transaction

class OneTransaction : public Anomalies {};
INSTANTIATE_TEST_SUITE_P(Serializable, OneTransaction, ::testing::Values(isolation::serializable),
                         name_of);

TEST_P(OneTransaction, SeesItsOwnWrites) {
  auto one = begin();
  one.t.insert(accounts_, 15, account{7});
  EXPECT_EQ(one.t.get(accounts_, 15)->balance, 7);
  EXPECT_TRUE(one.t.update(accounts_, 15, [](account& a) { a.balance = 8; }));
  EXPECT_TRUE(one.t.erase(accounts_, 10));
  EXPECT_FALSE(one.t.get(accounts_, 10));
  EXPECT_FALSE(one.t.erase(accounts_, 10));
  EXPECT_FALSE(one.t.update(accounts_, 10, [](account& a) { a.balance = 1; }));
  EXPECT_EQ(sum(one.t), 108);
  one.t.insert(accounts_, 10, account{5});
  EXPECT_EQ(sum(one.t), 113);
  EXPECT_TRUE(one.commits());
  EXPECT_EQ(balance(10), 5);
  EXPECT_EQ(balance(15), 8);
}

TEST_P(OneTransaction, InsertOfAKeyThatIsThereThrowsAndNothingHappens) {
  {
    auto one = begin();
    one.t.upsert(accounts_, 20, account{1});
    EXPECT_THROW(one.t.insert(accounts_, 10, account{1}), db::duplicate_key);
    one.t.insert(accounts_, 15, account{1});
    EXPECT_THROW(one.t.insert(accounts_, 15, account{1}), db::duplicate_key);
    transaction_access::context(one.t).note_for_collection(false);
  }
  EXPECT_EQ(balance(15), std::nullopt);
  EXPECT_EQ(balance(20), 100);
}

// What an earlier attempt has left in the index, absent, is no phantom.
TEST_P(OneTransaction, ScansWhereItInsertsLater) {
  {
    auto aborted = begin();
    aborted.t.insert(accounts_, 15, account{1});
    transaction_access::context(aborted.t).note_for_collection(false);
  }
  auto one = begin();
  EXPECT_EQ(sum(one.t), 200);
  one.t.insert(accounts_, 15, account{1});
  one.t.insert(accounts_, 16, account{1});
  EXPECT_EQ(sum(one.t), 202);
  EXPECT_TRUE(one.commits());
}

TEST_P(OneTransaction, AScanThatEndsEarlyWatchesNoFurther) {
  auto reader = begin();
  int seen = 0;
  reader.t.scan(accounts_, u64{0}, u64{100}, [&](u64, const account&) { return ++seen < 1; });
  EXPECT_EQ(seen, 1);
  auto behind = begin();
  behind.t.insert(accounts_, 11, account{1});
  EXPECT_TRUE(behind.commits());
  auto before = begin();
  before.t.upsert(accounts_, 5, account{1});
  EXPECT_TRUE(transaction_access::context(reader.t).observations_hold())
      << "nobody has committed it";
  EXPECT_TRUE(before.commits());
  EXPECT_FALSE(reader.commits());
}

// It may have been there at the moment for which the reader commits; so its record stays in the
// index as long as the reader runs.
TEST_P(OneTransaction, ARowThatCameAndWentIsAPhantomToo) {
  auto scanning = begin();
  auto looking = begin();
  EXPECT_EQ(sum(scanning.t), 200);
  EXPECT_FALSE(looking.t.get(accounts_, 15));
  {
    auto writer = begin();
    writer.t.insert(accounts_, 15, account{1});
    ASSERT_TRUE(writer.commits());
  }
  {
    auto writer = begin();
    ASSERT_TRUE(writer.t.erase(accounts_, 15));
    ASSERT_TRUE(writer.commits());
  }
  for (int i = 0; i < 5; ++i) accounts_.collect(clock_.advance(), try_advance_epoch());
  EXPECT_FALSE(scanning.commits());
  EXPECT_FALSE(looking.commits());
}

TEST_P(OneTransaction, SnapshotsSeeTheirMomentAlone) {
  db::snapshot_transaction before(clock_);
  std::vector<std::int64_t> seen;
  const auto look = [&](db::snapshot_transaction& at) {
    seen.clear();
    at.scan(accounts_, u64{0}, u64{100}, [&](u64, const account& a) {
      seen.push_back(a.balance);
      return true;
    });
    return seen;
  };
  {
    auto one = begin();
    one.t.upsert(accounts_, 10, account{1});
    one.t.erase(accounts_, 20);
    one.t.insert(accounts_, 30, account{3});
    ASSERT_TRUE(one.commits());
  }
  clock_.advance();
  clock_.move_horizon();
  {
    auto one = begin();
    one.t.upsert(accounts_, 10, account{2});
    one.t.insert(accounts_, 20, account{9});
    ASSERT_TRUE(one.commits());
  }
  EXPECT_EQ(look(before), (std::vector<std::int64_t>{100, 100}));
}

// A snapshot moves the clock on only if somebody has committed in the present group, and has what
// was committed in any case.
TEST_P(OneTransaction, SnapshotsMoveTheClockForCommitsOnly) {
  const auto snapshot = [&] { return internal::commit_clock::snapshot(clock_).group(); };
  const u64 first = snapshot();
  const u64 group = clock_.now();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(snapshot(), first);
  EXPECT_EQ(clock_.now(), group);
  for (int i = 0; i < 5; ++i) {
    auto one = begin();
    one.t.upsert(accounts_, 10, account{i});
    ASSERT_TRUE(one.commits());
    EXPECT_GE(snapshot(), accounts_.find(10)->stamp().group());
    EXPECT_EQ(clock_.now(), group + static_cast<u64>(i) + 1);
    snapshot();
    EXPECT_EQ(clock_.now(), group + static_cast<u64>(i) + 1);
  }
}

// The numbers of a group run out: the next commit takes another group.
TEST_P(OneTransaction, NumbersOfAGroupRunOut) {
  internal::record& row = *accounts_.find(10);
  const internal::commit_stamp had = row.lock();
  row.unlock(internal::commit_stamp(had.group(), internal::commit_stamp::number_max));
  const u64 group = clock_.now();
  auto one = begin();
  one.t.update(accounts_, 10, [](account& a) { ++a.balance; });
  EXPECT_TRUE(one.commits());
  EXPECT_GT(clock_.now(), group);
  EXPECT_EQ(row.stamp().number(), 0u);
}

// Versions are kept while a snapshot can need them, and go with the next change after it.
TEST_P(OneTransaction, VersionsAreKeptForSnapshotsOnly) {
  internal::record& row = *accounts_.find(10);
  const auto versions = [&] {
    int many = 0;
    for (const internal::record::version* v = row.versions(); v != nullptr; v = v->older.load())
      ++many;
    return many;
  };
  const auto change = [&](int balance) {
    clock_.advance();
    auto one = begin();
    one.t.upsert(accounts_, 10, account{balance});
    ASSERT_TRUE(one.commits());
  };
  for (int i = 0; i < 5; ++i) change(i);
  EXPECT_EQ(versions(), 0) << "no snapshot has run";
  {
    db::snapshot_transaction before(clock_);
    for (int i = 5; i < 10; ++i) change(i);
    EXPECT_GE(versions(), 1);
    EXPECT_EQ(before.get(accounts_, 10)->balance, 4);
  }
  change(10);
  EXPECT_EQ(versions(), 0) << "the snapshot has ended";
}

// At level sync a reader waits until what it has seen is durable, an erase too. The erased row is
// inserted again before the snapshot looks.
TEST_P(OneTransaction, ASnapshotThatSeesAnEraseKnowsItsGroup) {
  clock_.advance();
  {
    auto one = begin();
    ASSERT_TRUE(one.t.erase(accounts_, 10));
    ASSERT_TRUE(one.commits());
  }
  const u64 erased_in = accounts_.find(10)->stamp().group();
  EXPECT_EQ(erased_in, clock_.now());
  db::snapshot_transaction at(clock_);
  {
    auto one = begin();
    one.t.insert(accounts_, 10, account{1});
    ASSERT_TRUE(one.commits());
  }
  EXPECT_FALSE(at.get(accounts_, 10));
  EXPECT_EQ(at.group_to_be_durable(), erased_in);
}

// A row that is not written again does not keep its versions.
TEST_P(OneTransaction, ACollectionFreesVersionsThatNoSnapshotNeeds) {
  internal::record& row = *accounts_.find(10);
  const auto free_versions = [&] {
    clock_.advance();
    for (bool more = accounts_.begin_to_free_versions(); more;)
      more = accounts_.continue_to_free_versions(clock_.settled_horizon());
  };
  {
    db::snapshot_transaction before(clock_);
    auto one = begin();
    one.t.upsert(accounts_, 10, account{1});
    ASSERT_TRUE(one.commits());
    free_versions();
    EXPECT_TRUE(row.has_versions());
    EXPECT_EQ(before.get(accounts_, 10)->balance, 100);
  }
  const internal::commit_stamp stamp = row.stamp();
  free_versions();
  EXPECT_FALSE(row.has_versions());
  EXPECT_EQ(row.stamp(), stamp);
  EXPECT_EQ(db::snapshot_transaction(clock_).get(accounts_, 10)->balance, 1);
}

// A walk that ignores the snapshots takes a row from one. The tests above would notice.
TEST_P(OneTransaction, CanaryOfAHorizonAheadOfASnapshot) {
  db::snapshot_transaction before(clock_);
  auto one = begin();
  one.t.upsert(accounts_, 10, account{1});
  ASSERT_TRUE(one.commits());
  ASSERT_TRUE(accounts_.begin_to_free_versions());
  while (accounts_.continue_to_free_versions(std::numeric_limits<u64>::max())) {
  }
  EXPECT_FALSE(before.get(accounts_, 10));
}

// A commit makes sure that no snapshot of an earlier group begins. So a snapshot that begins while
// the commit runs has the commit, and needs no version.
TEST_P(OneTransaction, ASnapshotAfterTheFloorWasRaisedIsOfTheSameGroup) {
  clock_.advance();
  const u64 group = clock_.now();
  clock_.move_horizon();
  EXPECT_EQ(clock_.horizon(), group);
  const internal::commit_clock::snapshot snapshot(clock_);
  EXPECT_EQ(snapshot.group(), group);
  EXPECT_EQ(clock_.now(), group + 1);
  clock_.advance();
  clock_.move_horizon();
  EXPECT_EQ(clock_.horizon(), group) << "the snapshot holds it back";
}

}  // namespace
}  // namespace elidex::testing
