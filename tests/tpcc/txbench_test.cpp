// txbench over each kind of database: sums are right, no update is lost, times are kept.

#include "papers/schrimpf/txbench/txbench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <stdexcept>
#include <thread>
#include <vector>

#include "elidex/internal/txn/two_phase_locking.hpp"
#include "papers/schrimpf/thesis_latches.hpp"

namespace elidex::bench::txbench {

using namespace papers;

namespace {

TEST(Txbench, RefusesWhatItCannotDrawFrom) {
  basic_database<db::silo_commit> db;
  EXPECT_THROW(store(db, {.rows = 300}), std::invalid_argument);
  EXPECT_THROW(store(db, {.read_only_pct = 101}), std::invalid_argument);
}

TEST(Txbench, SpreadsAreThoseOfTheSamples) {
  spread s;
  for (const int one : {2, 4, 4, 4, 5, 5, 7, 9}) s.add(std::chrono::nanoseconds(one));
  EXPECT_EQ(s.samples(), 8U);
  EXPECT_DOUBLE_EQ(s.mean(), 5);
  EXPECT_NEAR(s.deviation(), 2.138, 0.001);
}

TEST(Txbench, FindsRowsThatAreNotWhatTheyMayBe) {
  basic_database<db::silo_commit> db;
  store s(db, {.rows = 600});
  s.load();
  client<decltype(s)> one(s, 7);
  for (int i = 0; i < 50; ++i) one.step();
  const auto told = [&](std::uint64_t steps) {
    expected want(s);
    want.add(7, steps);
    std::string text;
    for (const std::string& line : want.violations()) text += line + '\n';
    return text;
  };
  EXPECT_EQ(told(50), "");
  EXPECT_THAT(told(49) + told(48) + told(40), ::testing::HasSubstr("number of updates"));
  db.transact([&](auto& t) { t.update(*s.all[0], 5, [](item& row) { row.texts[3][0] = 'A'; }); });
  EXPECT_THAT(told(50), ::testing::AllOf(::testing::HasSubstr("table 1: 1 texts"),
                                         ::testing::Not(::testing::HasSubstr("updates"))));
  db.transact([&](auto& t) { t.update(*s.all[1], 5, [](item& row) { row.value = -1; }); });
  EXPECT_THAT(told(50), ::testing::HasSubstr("table 2: 1 rows have another value"));
  db.transact([&](auto& t) { t.erase(*s.all[2], 199); });
  EXPECT_THAT(told(50), ::testing::HasSubstr("table 3: 1 rows are missing"));
}

template <class Database>
class TxbenchStress : public ::testing::Test {};
using databases =
    ::testing::Types<basic_database<db::capability_commit>, basic_database<db::silo_commit>,
                     basic_database<db::two_phase_locking<>>,
                     basic_database<db::two_phase_locking<unmodified_latches>>>;
TYPED_TEST_SUITE(TxbenchStress, databases);

TYPED_TEST(TxbenchStress, NoUpdateIsLost) {
  for (const isolation level :
       {isolation::read_committed, isolation::repeatable_read, isolation::serializable}) {
    TypeParam db;
    store s(db, {.rows = 600, .level = level, .think_time = std::chrono::microseconds(5)});
    s.load();
    constexpr int steps = 300;
    std::deque<client<store<TypeParam>>> clients;
    {
      std::vector<std::jthread> threads;
      for (std::uint64_t n = 0; n < 4; ++n) {
        auto& mine = clients.emplace_back(s, n);
        threads.emplace_back([&mine] {
          for (int i = 0; i < steps; ++i) mine.step();
        });
      }
    }
    EXPECT_EQ(s.missing(clients), 0);
    expected want(s);
    for (std::uint64_t n = 0; n < 4; ++n) want.add(n, steps);
    EXPECT_THAT(want.violations(), ::testing::IsEmpty());
    std::uint64_t updated = 0;
    std::uint64_t transactions = 0;
    for (const auto& one : clients) {
      updated += one.rows_updated();
      for (const kind what : {kind::read_only, kind::read_update}) {
        transactions += one.took(what).both.samples();
        EXPECT_GE(one.took(what).both.mean(), one.took(what).query.mean());
        EXPECT_GT(one.took(what).commit.mean(), 0);
      }
    }
    EXPECT_EQ(transactions, 4U * steps);
    EXPECT_EQ(updated % s.is.rows_updated, 0U);
    EXPECT_NEAR(
        static_cast<double>(updated) / static_cast<double>(s.is.rows_updated * transactions), 0.25,
        0.08);
  }
}

}  // namespace
}  // namespace elidex::bench::txbench
