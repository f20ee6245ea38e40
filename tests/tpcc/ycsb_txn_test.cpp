// YCSB's transactions of several keys: what is drawn, that no change is lost, and that a database
// which loses some is found out.

#include "bench/ycsb_txn/ycsb_txn.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "elidex/internal/txn/two_phase_locking.hpp"
#include "support/databases.hpp"

namespace elidex::bench::ycsb_txn {
namespace {

using silo_store = store<basic_database<db::silo_commit>>;

TEST(YcsbTransactions, DrawDifferentKeys) {
  for (const double theta : {0.0, 0.99, 1.2}) {
    for (const std::uint64_t keys : {16U, 17U, 1'000U}) {
      key_draws draws({.keys = keys, .operations = 16, .theta = theta}, 5);
      random_bits bits(1);
      for (int i = 0; i < 1'000; ++i) {
        const auto& drawn = draws.draw(bits);
        ASSERT_EQ(std::set<std::uint64_t>(drawn.begin(), drawn.end()).size(), 16U);
        ASSERT_LT(*std::max_element(drawn.begin(), drawn.end()), keys);
      }
    }
  }
}

TEST(YcsbTransactions, DrawHotKeysOftenerAndScattered) {
  constexpr std::uint64_t keys = 10'000;
  constexpr int many = 200'000;
  const auto hottest = [&](double theta) {
    key_draws draws({.keys = keys, .operations = 1, .theta = theta}, 5);
    random_bits bits(1);
    std::map<std::uint64_t, int> times;
    for (int i = 0; i < many; ++i) ++times[draws.draw(bits).front()];
    std::vector<std::pair<int, std::uint64_t>> order;
    for (const auto& [key, often] : times) order.emplace_back(often, key);
    std::sort(order.rbegin(), order.rend());
    return order;
  };
  // Zipf's law with 10,000 keys and 0.99: the hottest has a share of 1 / 10.2, the second half of
  // that.
  const auto zipf = hottest(0.99);
  EXPECT_NEAR(zipf[0].first / double{many}, 0.098, 0.005);
  EXPECT_NEAR(zipf[1].first / double{many}, 0.049, 0.005);
  EXPECT_GT(std::max(zipf[0].second, zipf[1].second) - std::min(zipf[0].second, zipf[1].second),
            1U);
  EXPECT_LT(hottest(0).front().first, 100);
}

TEST(YcsbTransactions, ReadAndChangeAsTheMixSays) {
  for (const mix& what : mixes) {
    basic_database<db::silo_commit> db;
    silo_store s(db, {.what = what, .keys = 1'000, .operations = 10}, 1);
    s.load();
    client<silo_store> c(s, 2);
    constexpr int many = 5'000;
    int changing = 0;
    for (int i = 0; i < many; ++i) changing += c.step() == kind::changing ? 1 : 0;
    const double changed = static_cast<double>(c.increments()) / (10.0 * many);
    EXPECT_NEAR(changed, 1 - what.read_pct / 100.0, 0.02) << what.name;
    EXPECT_NEAR(changing / double{many}, 1 - std::pow(what.read_pct / 100.0, 10), 0.03)
        << what.name;
    EXPECT_EQ(s.counted().changes, c.increments());
    EXPECT_EQ(s.counted().rows, 1'000U);
  }
  EXPECT_EQ(find_mix("d"), nullptr);
  EXPECT_EQ(find_mix("f")->read_pct, 0U);
}

TEST(YcsbTransactions, RefuseWhatCannotBe) {
  basic_database<db::silo_commit> db;
  EXPECT_THROW(silo_store(db, {.keys = 15, .operations = 16}, 1), std::invalid_argument);
  EXPECT_THROW(silo_store(db, {.operations = 0}, 1), std::invalid_argument);
  EXPECT_THROW(silo_store(db, {.operations = operations_max + 1}, 1), std::invalid_argument);
  EXPECT_THROW(silo_store(db, {.theta = -1}, 1), std::invalid_argument);
}

TEST(YcsbTransactions, RowsCountTheirChangesAndTellWhenTheyAreTorn) {
  static_assert(sizeof(row) == 1'000);
  row one;
  for (int i = 0; i < 30; ++i) one.change(3);
  one.change(9);
  EXPECT_EQ(one.count(3), 30U);
  EXPECT_EQ(one.changes(), 31U);
  EXPECT_TRUE(one.whole());
  row other;
  std::memcpy(static_cast<void*>(&other), &one, 350);  // in the middle of a field
  EXPECT_FALSE(other.whole());
}

// Committed less counted, and whether all rows are whole.
template <class Database>
std::int64_t lost_in_a_run(isolation level) {
  Database db;
  store<Database> s(db, {.what = *find_mix("a"), .keys = 50, .operations = 8, .level = level}, 3);
  s.load();
  std::deque<client<store<Database>>> clients;
  {
    std::vector<std::jthread> running;
    for (unsigned i = 0; i < 4; ++i) {
      auto& mine = clients.emplace_back(s, 10 + i);
      running.emplace_back([&mine] {
        for (int n = 0; n < 5'000; ++n) mine.step();
      });
    }
  }
  std::uint64_t committed = 0;
  for (const auto& one : clients) committed += one.increments();
  EXPECT_EQ(s.counted().torn, 0U);
  EXPECT_GT(committed, 50'000U);
  return static_cast<std::int64_t>(committed - s.counted().changes);
}

template <class Database>
class YcsbTransactionsStress : public ::testing::Test {};
using databases =
    ::testing::Types<basic_database<db::capability_commit>, basic_database<db::silo_commit>,
                     basic_database<db::dbx_commit<>>, basic_database<db::two_phase_locking<>>>;
TYPED_TEST_SUITE(YcsbTransactionsStress, databases);

TYPED_TEST(YcsbTransactionsStress, LoseNoChangeAtAnyLevel) {
  for (const isolation level : {isolation::serializable, isolation::read_committed})
    EXPECT_EQ(lost_in_a_run<TypeParam>(level), 0);
}

TEST(YcsbTransactionsCanary, ACommitThatDoesNotValidateLosesChanges) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (lost_in_a_run<basic_database<elidex::testing::blind_commit>>(isolation::serializable) != 0)
      return;
  }
  FAIL() << "no change was lost in 50 runs";
}

}  // namespace
}  // namespace elidex::bench::ycsb_txn
