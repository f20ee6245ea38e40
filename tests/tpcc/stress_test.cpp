// All kinds of TPC-C's transactions at once, under every commit protocol: the conditions hold, also
// in the middle of the run. A database whose commit forgets to validate is found out by them.

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/databases.hpp"
#include "tests/tpcc/small_company.hpp"

namespace elidex::bench::tpcc {
namespace {

// Runs terminals until each has done its steps; what the conditions say meanwhile and in the end,
// and what users were told.
template <class Database>
std::vector<violation> run_terminals(small_company<Database>& c, unsigned threads, int steps,
                                     readers how) {
  std::vector<violation> found;
  std::mutex found_mutex;
  std::atomic<unsigned> working{threads};
  std::vector<std::jthread> users;
  for (unsigned i = 0; i < threads; ++i) {
    users.emplace_back([&, i] {
      terminal user(c.in, 1 + i % c.in.size.warehouses, 100 + i, how);
      try {
        for (int s = 0; s < steps; ++s) user.step();
      } catch (const std::exception& failure) {
        const std::lock_guard guard(found_mutex);
        found.push_back({0, failure.what()});
      }
      --working;
    });
  }
  const auto look = [&] {
    const std::vector<violation> now = violations(c.in);
    const std::lock_guard guard(found_mutex);
    found.insert(found.end(), now.begin(), now.end());
    return found.empty();
  };
  while (working > 0 && look()) {
  }
  users.clear();
  look();
  return found;
}

template <class Database>
class TpccStress : public ::testing::Test {};
using databases = ::testing::Types<
    basic_database<db::capability_commit>, basic_database<db::silo_commit>,
    basic_database<db::dbx_commit<>>, elidex::testing::dbx_over_htm_btree,
    elidex::testing::dbx_over_euno_btree, elidex::testing::locking_dbx_over_htm_btree,
    elidex::testing::locking_dbx_over_euno_btree, elidex::testing::locking_dbx_over_euno_btree_plus,
    elidex::testing::silo_over_masstree, basic_database<db::two_phase_locking<>>>;
TYPED_TEST_SUITE(TpccStress, databases);

constexpr int steps = 1'500;

TYPED_TEST(TpccStress, OneWarehouse) {
  for (const readers how : {readers::as_snapshots, readers::as_transactions}) {
    small_company<TypeParam> c(1);
    for (const violation& v : run_terminals(c, 4, steps, how)) ADD_FAILURE() << v.text;
    EXPECT_GT(c.db.stats().commits, 4U * steps / 2);
  }
}

TYPED_TEST(TpccStress, RemoteWarehouses) {
  small_company<TypeParam> c(3);
  for (const violation& v : run_terminals(c, 3, steps, readers::as_snapshots))
    ADD_FAILURE() << v.text;
}

TEST(TpccStressCanary, ACommitThatDoesNotValidateIsFound) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    small_company<basic_database<elidex::testing::blind_commit>> c(1);
    if (!run_terminals(c, 4, steps, readers::as_snapshots).empty()) return;
  }
  FAIL() << "lost updates have not been seen in 20 runs";
}

}  // namespace
}  // namespace elidex::bench::tpcc
