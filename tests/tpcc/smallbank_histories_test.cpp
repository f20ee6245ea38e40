// SmallBank's histories: every account's changes are numbered, so what each transaction has read
// and written tells which had to come before which. No cycle at serializable; at weaker levels
// those that the authors of SmallBank describe.

#include <gtest/gtest.h>

#include <deque>
#include <iterator>
#include <thread>
#include <vector>

#include "bench/smallbank/smallbank.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"
#include "support/databases.hpp"
#include "support/version_history.hpp"

namespace elidex::bench::smallbank {
namespace {

using elidex::testing::find_cycle;
using elidex::testing::noted_transaction;
using elidex::testing::recording;
using elidex::testing::version_history;
using ::testing::Types;

// One transaction, noted as it committed.
template <class Bank, class Fn>
noted_transaction noted(Bank& in, Fn&& fn) {
  noted_transaction notes;
  in.db.transact(in.is.level, [&](auto& t) {
    notes.clear();  // of an attempt before
    recording through(t, notes);
    fn(through);
    return 0;
  });
  return notes;
}

template <class Database>
version_history history_of_a_run(isolation level, mix what, unsigned threads, int steps) {
  Database db;
  bank<Database> b(db, {.customers = 20, .hot = 3, .what = what, .level = level});
  b.load();
  std::vector<version_history> parts(threads);
  {
    std::vector<std::jthread> running;
    for (unsigned i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        teller<bank<Database>> mine(b, 70 + i);
        for (int s = 0; s < steps; ++s) {
          const request drawn = mine.draw();
          parts[i].push_back(noted(b, [&](auto& t) { mine.run(t, drawn); }));
        }
      });
    }
  }
  version_history all;
  for (auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

template <class Database>
class SmallBankHistories : public ::testing::Test {};
using databases = Types<basic_database<db::capability_commit>, basic_database<db::silo_commit>,
                        basic_database<db::dbx_commit<>>, basic_database<db::two_phase_locking<>>>;
TYPED_TEST_SUITE(SmallBankHistories, databases);

TYPED_TEST(SmallBankHistories, HaveNoCycleAtSerializable) {
  for (const mix what : {mix::five, mix::h_store}) {
    const version_history history =
        history_of_a_run<TypeParam>(isolation::serializable, what, 4, 3'000);
    std::size_t writing = 0;
    for (const noted_transaction& one : history) writing += one.writes.empty() ? 0U : 1U;
    EXPECT_GT(writing, history.size() / 2);
    EXPECT_EQ(find_cycle(history), "");
  }
}

TYPED_TEST(SmallBankHistories, AreFoundOutWhereTheLevelLetsUpdatesBeLost) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (!find_cycle(history_of_a_run<TypeParam>(isolation::read_committed, mix::five, 4, 3'000))
             .empty())
      return;
  }
  FAIL() << "nothing was found in 50 runs";
}

TEST(SmallBankHistoriesCanary, ACommitThatDoesNotValidateIsFound) {
  using database = basic_database<elidex::testing::blind_commit>;
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (!find_cycle(history_of_a_run<database>(isolation::serializable, mix::five, 4, 3'000))
             .empty())
      return;
  }
  FAIL() << "nothing was found in 50 runs";
}

// The authors' example. A check is written against both accounts; before it is booked, money is put
// into savings and the balance is asked for: that has seen the new savings and not the check, which
// has not seen the new savings. Nobody overwrites what another one has written.
template <class Database>
version_history check_beside_savings(isolation level) {
  Database db;
  bank<Database> b(db, {.customers = 2, .hot = 2, .level = level});
  b.load();
  version_history history(3);
  bool first = true;
  history[0] = noted(b, [&](auto& t) {
    const std::uint64_t c = t.get(b.owners, 0)->customer;
    const account saved = *t.get(b.savings, c);
    const account at_hand = *t.get(b.checking, c);
    if (first) {
      first = false;
      std::jthread([&] {
        history[1] = noted(b, [&](auto& other) { transact_savings(other, b, 0, 500'00); });
        history[2] = noted(b, [&](auto& other) { balance(other, b, 0); });
      }).join();
    }
    // with a penalty that the savings would have spared
    const money amount = saved.balance + at_hand.balance + 1;
    t.upsert(b.checking, c, at_hand.with(at_hand.balance - amount - 1'00));
  });
  return history;
}

TEST(SmallBankAnomalies, ABalanceBetweenSavingsAndACheckIsACycleOfReads) {
  const std::string cycle = "cycle: T0 -rw-> T1 -wr-> T2 -rw-> T0";
  EXPECT_EQ(
      find_cycle(check_beside_savings<basic_database<db::silo_commit>>(isolation::read_committed)),
      cycle);
  EXPECT_EQ(
      find_cycle(check_beside_savings<basic_database<db::dbx_commit<>>>(isolation::read_committed)),
      cycle);
  EXPECT_EQ(find_cycle(check_beside_savings<basic_database<db::two_phase_locking<>>>(
                isolation::repeatable_read)),
            cycle);
}

TEST(SmallBankAnomalies, TheOptimisticLevelsThatValidateRefuseIt) {
  for (const isolation level : {isolation::repeatable_read, isolation::serializable}) {
    EXPECT_EQ(find_cycle(check_beside_savings<basic_database<db::silo_commit>>(level)), "");
    EXPECT_EQ(find_cycle(check_beside_savings<basic_database<db::dbx_commit<>>>(level)), "");
  }
}

TEST(VersionHistory, TellsWhatNoSerialOrderGives) {
  const int table = 0;
  const elidex::testing::row_name a{&table, 1};
  const elidex::testing::row_name b{&table, 2};
  EXPECT_EQ(find_cycle(
                {{.reads = {{a, 0}}, .writes = {{a, 1}}}, {.reads = {{a, 1}}, .writes = {{a, 2}}}}),
            "");
  EXPECT_EQ(find_cycle({{.reads = {{a, 0}, {b, 0}}, .writes = {{a, 1}}},
                        {.reads = {{a, 0}, {b, 0}}, .writes = {{b, 1}}}}),
            "cycle: T0 -rw-> T1 -rw-> T0")
      << "write skew";
  EXPECT_EQ(find_cycle(
                {{.reads = {{a, 0}}, .writes = {{a, 1}}}, {.reads = {{a, 0}}, .writes = {{a, 1}}}}),
            "lost update: T0 and T1 both wrote version 1 of row 1");
  EXPECT_EQ(find_cycle({{.reads = {{a, 0}, {a, 1}}, .writes = {}},
                        {.reads = {{a, 0}}, .writes = {{a, 1}}}}),
            "cycle: T0 -rw-> T1 -wr-> T0")
      << "a read that was not repeatable";
  EXPECT_EQ(find_cycle({{.reads = {{a, 1}}, .writes = {{a, 2}}}}),
            "version 1 of row 1 was written by nobody");
  EXPECT_EQ(find_cycle({{.reads = {{a, 1}}, .writes = {}}}),
            "version 1 of row 1 was read, but not written");
}

}  // namespace
}  // namespace elidex::bench::smallbank
