// What a run over the table store finds behind itself: nothing in a database that keeps its
// promises, and something in one that doesn't.

#include "bench/table_store/native_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/smallbank/driven_bank.hpp"
#include "bench/ycsb_txn/driven_store.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"
#include "support/databases.hpp"

namespace elidex::bench {

using namespace internal;

namespace {

using table_store::native_run;
using table_store::run_outcome;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using broken_database = basic_database<elidex::testing::blind_commit>;

constexpr ycsb_txn::settings few_rows{.what = ycsb_txn::mixes[0], .keys = 40, .operations = 8};
constexpr smallbank::settings few_customers{.customers = 50, .hot = 4};

TEST(NativeRun, TellsWhatWasDoneAndChecksIt) {
  native_run<ycsb_txn::driven_store<basic_database<db::silo_commit>>> rows(few_rows, 1, {});
  for (int run = 0; run < 2; ++run) {  // what an earlier run did is accounted for
    const run_outcome got =
        rows.run({.threads = 3, .seconds = 0.1, .warm_up_seconds = 0.05, .seed = 7});
    EXPECT_THAT(got.violations, IsEmpty());
    EXPECT_EQ(got.missing, 0);
    ASSERT_EQ(got.latency.size(), ycsb_txn::kind_names.size());
    EXPECT_GT(got.latency[1].samples(), 0U);
    EXPECT_GE(got.all_transactions, got.latency[0].samples() + got.latency[1].samples());
    EXPECT_GT(got.rate, 0);
    EXPECT_GT(got.seconds, 0.05);
  }
}

TEST(NativeRun, FindsChangesThatABrokenDatabaseLoses) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    native_run<ycsb_txn::driven_store<broken_database>> rows(few_rows, 1, {});
    const run_outcome got = rows.run({.threads = 4, .seconds = 0.1, .warm_up_seconds = 0});
    if (got.missing == 0) continue;
    ASSERT_FALSE(got.violations.empty());
    EXPECT_THAT(got.violations.front(), HasSubstr("changes were committed, and the table has"));
    return;
  }
  FAIL() << "no change was lost in 50 runs";
}

TEST(NativeRun, FindsMoneyThatABrokenDatabaseLoses) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    native_run<smallbank::driven_bank<broken_database>> bank(few_customers, 1, {});
    const run_outcome got = bank.run({.threads = 4, .seconds = 0.1, .warm_up_seconds = 0});
    if (got.missing == 0) continue;
    ASSERT_EQ(got.violations.size(), 1U);
    EXPECT_THAT(got.violations.front(), HasSubstr("cents are missing"));
    return;
  }
  FAIL() << "no money was lost in 50 runs";
}

TEST(NativeRun, DoesNotBlameALevelThatLetsUpdatesBeLost) {
  smallbank::settings wanted = few_customers;
  wanted.level = isolation::read_committed;
  for (int attempt = 0; attempt < 50; ++attempt) {
    native_run<smallbank::driven_bank<basic_database<db::silo_commit>>> bank(wanted, 1, {});
    const run_outcome got = bank.run({.threads = 4, .seconds = 0.1, .warm_up_seconds = 0});
    EXPECT_THAT(got.violations, IsEmpty());
    if (got.missing != 0) return;
  }
  FAIL() << "no money was lost in 50 runs";
}

TEST(NativeRun, KnowsWhichLevelsLoseUpdates) {
  using optimistic = basic_database<db::silo_commit>;
  using locking = basic_database<db::two_phase_locking<>>;
  using smallbank::loses_updates;
  EXPECT_FALSE(loses_updates<optimistic>(isolation::serializable));
  EXPECT_FALSE(loses_updates<locking>(isolation::serializable));
  EXPECT_FALSE(loses_updates<optimistic>(isolation::repeatable_read));
  EXPECT_TRUE(loses_updates<locking>(isolation::repeatable_read));
  EXPECT_TRUE(loses_updates<optimistic>(isolation::read_committed));
  EXPECT_TRUE(loses_updates<locking>(isolation::read_uncommitted));
}

}  // namespace
}  // namespace elidex::bench
