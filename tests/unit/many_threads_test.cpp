// More threads in one database than have their slots in it (memory/slot_array.hpp): their commits,
// snapshots and logs.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/databases.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

template <class Database>
class ManyThreads : public ::testing::Test {};
using databases = ::testing::Types<silo_database, two_phase_database>;
TYPED_TEST_SUITE(ManyThreads, databases);

constexpr int threads = static_cast<int>(commit_clock::first_threads) + 88;

// All threads live at the same time, so each of them has its own slot.
template <class Fn>
void in_many_threads(const Fn& fn) {
  std::barrier together(threads);
  std::vector<std::thread> running;
  running.reserve(threads);
  for (int me = 0; me < threads; ++me) {
    running.emplace_back([&, me] {
      const std::uint32_t slot = this_thread_slot();
      together.arrive_and_wait();
      fn(me, slot);
      together.arrive_and_wait();
    });
  }
  for (std::thread& one : running) one.join();
}

TYPED_TEST(ManyThreads, AllCommitAndSeeOneAnother) {
  TypeParam db;
  auto& accounts = db.template create_table<u64, account>("accounts");
  std::atomic<std::uint32_t> highest{0};
  std::atomic<int> torn{0};
  in_many_threads([&](int me, std::uint32_t slot) {
    std::uint32_t seen = highest.load();
    while (seen < slot && !highest.compare_exchange_weak(seen, slot)) {
    }
    const u64 mine = static_cast<u64>(me) * 2;
    db.transact([&](auto& t) {
      t.insert(accounts, mine, account{1});
      t.insert(accounts, mine + 1, account{-1});
    });
    // Each snapshot has this thread's rows, and both rows of another thread or neither.
    std::int64_t sum = 0;
    bool has_mine = false;
    db.read_only([&](auto& t) {
      t.scan(accounts, 0, [&](u64 key, const account& a) {
        has_mine = has_mine || key == mine;
        sum += a.balance;
      });
    });
    if (sum != 0 || !has_mine) ++torn;
  });
  EXPECT_GE(highest.load(), commit_clock::first_threads);
  EXPECT_EQ(torn.load(), 0);
  std::size_t rows = 0;
  db.read_only([&](auto& t) { t.scan(accounts, 0, [&](u64, const account&) { ++rows; }); });
  EXPECT_EQ(rows, std::size_t{threads} * 2);
  EXPECT_EQ(db.stats().commits, std::size_t{threads});
}

// A snapshot of a thread with a slot outside of the clock keeps its versions.
TYPED_TEST(ManyThreads, TheLastThreadsSnapshotStays) {
  TypeParam db;
  auto& accounts = db.template create_table<u64, account>("accounts");
  db.transact([&](auto& t) { t.insert(accounts, 1, account{7}); });
  std::barrier before(2);
  std::barrier after(2);
  std::atomic<std::int64_t> seen{0};
  std::atomic<bool> chosen{false};
  std::thread writer([&] {
    before.arrive_and_wait();
    for (int i = 0; i < 100; ++i) {
      db.transact([&](auto& t) { t.upsert(accounts, 1, account{i}); });
      db.collect();
    }
    after.arrive_and_wait();
  });
  in_many_threads([&](int, std::uint32_t slot) {
    if (slot < commit_clock::first_threads || chosen.exchange(true)) return;
    db.read_only([&](auto& t) {
      before.arrive_and_wait();
      after.arrive_and_wait();
      seen = t.get(accounts, 1)->balance;
    });
  });
  writer.join();
  EXPECT_EQ(seen.load(), 7);
}

}  // namespace
}  // namespace elidex::testing
