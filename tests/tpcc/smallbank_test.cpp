// SmallBank: what each transaction does, that no money comes or goes, and that it does where the
// level lets updates be lost.

#include "bench/smallbank/smallbank.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <thread>
#include <type_traits>
#include <vector>

#include "elidex/internal/txn/two_phase_locking.hpp"

namespace elidex::bench::smallbank {
namespace {

using silo_bank = bank<basic_database<db::silo_commit>>;

TEST(SmallBank, TransactionsDoWhatTheySay) {
  basic_database<db::silo_commit> db;
  silo_bank b(db, {.customers = 3, .hot = 2});
  b.load();
  const auto run = [&](auto fn) { return db.transact(fn); };
  constexpr money first = balance_at_first;
  EXPECT_EQ(run([&](auto& t) { return balance(t, b, 1); }), 2 * first);
  EXPECT_EQ(run([&](auto& t) { return deposit_checking(t, b, 1, 500); }), 500);
  EXPECT_EQ(run([&](auto& t) { return transact_savings(t, b, 1, -300); }), -300);
  EXPECT_EQ(run([&](auto& t) { return transact_savings(t, b, 1, -2 * first); }), 0) << "refused";
  EXPECT_EQ(run([&](auto& t) { return balance(t, b, 1); }), 2 * first + 200);
  EXPECT_EQ(run([&](auto& t) { return amalgamate(t, b, 1, 2); }), 0);
  EXPECT_EQ(run([&](auto& t) { return balance(t, b, 1); }), 0);
  EXPECT_EQ(run([&](auto& t) { return balance(t, b, 2); }), 4 * first + 200);
  EXPECT_EQ(run([&](auto& t) { return write_check(t, b, 1, 500); }), -600) << "with a penalty";
  EXPECT_EQ(run([&](auto& t) { return write_check(t, b, 2, 500); }), -500);
  EXPECT_EQ(run([&](auto& t) { return send_payment(t, b, 1, 0, 5); }), 0);
  EXPECT_EQ(run([&](auto& t) { return balance(t, b, 1); }), -600) << "refused";
  EXPECT_EQ(run([&](auto& t) { return send_payment(t, b, 2, 0, 5); }), 0);
  EXPECT_EQ(run([&](auto& t) { return balance(t, b, 0); }), 2 * first + 5);
  EXPECT_EQ(b.all_money(), 6 * first + 500 - 300 - 600 - 500);
}

TEST(SmallBank, RefusesBanksThatItCannotDrawFrom) {
  basic_database<db::silo_commit> db;
  EXPECT_THROW(silo_bank(db, {.customers = 1, .hot = 1}), std::invalid_argument);
  EXPECT_THROW(silo_bank(db, {.customers = 5, .hot = 6}), std::invalid_argument);
  EXPECT_THROW(silo_bank(db, {.customers = 5, .hot = 2, .hot_pct = 101}), std::invalid_argument);
}

TEST(SmallBank, DrawsTheMixAndTheHotSpot) {
  basic_database<db::silo_commit> db;
  basic_database<db::silo_commit> other_db;
  silo_bank five(db, {.customers = 1'000, .hot = 10, .what = mix::five});
  silo_bank six(other_db, {.customers = 1'000, .hot = 10});
  constexpr int many = 100'000;
  for (silo_bank* const b : {&five, &six}) {
    teller<silo_bank> t(*b, 3);
    std::array<int, kind_names.size()> drawn{};
    int hot = 0;
    for (int i = 0; i < many; ++i) {
      const request r = t.draw();
      ++drawn[static_cast<std::size_t>(r.what)];
      ASSERT_NE(r.one, r.other);
      ASSERT_LT(r.one, 1'000U);
      ASSERT_LT(r.other, 1'000U);
      ASSERT_GT(r.amount, 0);
      hot += r.one < 10 ? 1 : 0;
    }
    const double each = b == &five ? 0.2 : 0.15;
    for (std::size_t k = 0; k < 5; ++k)
      EXPECT_NEAR(drawn[k] / double{many}, each, 0.01) << kind_names[k];
    EXPECT_NEAR(drawn[5] / double{many}, b == &five ? 0 : 0.25, 0.01);
    EXPECT_NEAR(hot / double{many}, 0.9 + 0.1 * 0.01, 0.01);
  }
}

template <class Database>
money missing_after_a_run(isolation level, unsigned threads, int steps) {
  Database db;
  bank<Database> b(db, {.customers = 50, .hot = 4, .level = level});
  b.load();
  std::deque<teller<bank<Database>>> tellers;
  {
    std::vector<std::jthread> running;
    for (unsigned i = 0; i < threads; ++i) {
      auto& mine = tellers.emplace_back(b, 10 + i);
      running.emplace_back([&mine, steps] {
        for (int s = 0; s < steps; ++s) mine.step();
      });
    }
  }
  return b.missing(tellers);
}

template <class Database>
class SmallBankStress : public ::testing::Test {};
using databases =
    ::testing::Types<basic_database<db::capability_commit>, basic_database<db::silo_commit>,
                     basic_database<db::dbx_commit<>>, basic_database<db::two_phase_locking<>>>;
TYPED_TEST_SUITE(SmallBankStress, databases);

TYPED_TEST(SmallBankStress, NoMoneyComesOrGoes) {
  EXPECT_EQ(missing_after_a_run<TypeParam>(isolation::serializable, 4, 20'000), 0);
  // What reads a snapshot and writes without having locked what it read, as InnoDB does, loses
  // updates there (below).
  if (std::is_same_v<TypeParam, basic_database<db::two_phase_locking<>>>) return;
  EXPECT_EQ(missing_after_a_run<TypeParam>(isolation::repeatable_read, 4, 20'000), 0);
}

TYPED_TEST(SmallBankStress, LostUpdatesAreFoundWhereTheLevelLetsThemThrough) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (missing_after_a_run<TypeParam>(isolation::read_committed, 4, 20'000) != 0) return;
  }
  FAIL() << "no update was lost in 50 runs";
}

}  // namespace
}  // namespace elidex::bench::smallbank
