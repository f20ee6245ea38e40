// Two transactions step by step: the second one runs, in a thread of its own, inside the first
// one's first attempt.
#include <gtest/gtest.h>
#include <pthread.h>

#include <string>
#include <thread>
#include <vector>

#include "elidex/database.hpp"

namespace {

struct account {
  std::int64_t balance;
};
template <class Fn>
void elsewhere(Fn&& fn) {
  std::thread(fn).join();
}

template <class Db>
class InBetween : public ::testing::Test {
 public:
  Db store;
  typename Db::template table<std::uint64_t, account>& table =
      store.template create_table<std::uint64_t, account>("rows");
};
using databases = ::testing::Types<elidex::basic_database<elidex::db::silo_commit>,
                                   elidex::basic_database<elidex::db::dbx_commit<>>>;
TYPED_TEST_SUITE(InBetween, databases);

// Both count up a counter that isn't there yet: read, then put. One of the two increments is lost.
TYPED_TEST(InBetween, LostUpdateOfAKeyThatWasNotThere) {
  auto& db = this->store;
  auto& rows = this->table;
  const auto count_up = [&](auto& t) {
    const auto was = t.get(rows, 1);
    t.upsert(rows, 1, {was ? was->balance + 1 : 1});
  };
  int attempts = 0;
  db.transact([&](auto& t) {
    count_up(t);
    if (attempts++ == 0) elsewhere([&] { db.transact(count_up); });
  });
  EXPECT_EQ(attempts, 2);
  db.read_only([&](auto& t) { EXPECT_EQ(t.get(rows, 1)->balance, 2); });
}

// The same by a scan.
TYPED_TEST(InBetween, LostUpdateOfARangeThatWasEmpty) {
  auto& db = this->store;
  auto& rows = this->table;
  int attempts = 0;
  db.transact([&](auto& t) {
    std::int64_t sum = 0;
    t.scan(rows, 0, 10, [&](auto, const account& a) {
      sum += a.balance;
      return true;
    });
    t.upsert(rows, 1, {sum + 1});
    if (attempts++ == 0)
      elsewhere([&] { db.transact([&](auto& t2) { t2.upsert(rows, 1, {100}); }); });
  });
  EXPECT_EQ(attempts, 2);
  db.read_only([&](auto& t) { EXPECT_EQ(t.get(rows, 1)->balance, 101); });
}

// A scan that ends at a row which the transaction itself has inserted does not watch what lies
// before that row.
TYPED_TEST(InBetween, PhantomBeforeOnesOwnInsert) {
  auto& db = this->store;
  auto& rows = this->table;
  int attempts = 0;
  std::uint64_t first = 0;
  db.transact([&](auto& t) {
    t.insert(rows, 7, {7});
    t.scan(rows, 0, 100, [&](auto key, const account&) {
      first = key;
      return false;
    });
    if (attempts++ == 0)
      elsewhere([&] {
        db.transact([&](auto& t2) {
          t2.insert(rows, 3, {3});
          // It must come behind the one that saw no 3, but has not seen its 7:
          EXPECT_FALSE(t2.get(rows, 7).has_value());
        });
      });
  });
  EXPECT_EQ(attempts, 2);
  EXPECT_EQ(first, 3u);
}
// The same behind a row of others.
TYPED_TEST(InBetween, PhantomBetweenAnotherRowAndOnesOwnInsert) {
  auto& db = this->store;
  auto& rows = this->table;
  db.transact([&](auto& t) { t.insert(rows, 1, {1}); });
  int attempts = 0;
  std::vector<std::uint64_t> seen;
  db.transact([&](auto& t) {
    seen.clear();
    t.insert(rows, 7, {7});
    t.scan(rows, 0, 100, [&](auto key, const account&) {
      seen.push_back(key);
      return seen.size() < 2;
    });
    if (attempts++ == 0)
      elsewhere([&] {
        db.transact([&](auto& t2) {
          t2.insert(rows, 3, {3});
          EXPECT_FALSE(t2.get(rows, 7).has_value());
        });
      });
  });
  EXPECT_EQ(attempts, 2);
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 3}));
}

// update()'s function reads another row: the new row goes to the row that was read last.
TYPED_TEST(InBetween, UpdateWhoseFunctionReadsAnotherRow) {
  auto& db = this->store;
  auto& rows = this->table;
  db.transact([&](auto& t) {
    t.insert(rows, 1, {10});
    t.insert(rows, 2, {20});
  });
  db.transact([&](auto& t) {
    t.update(rows, 1, [&](account& a) { a.balance += t.get(rows, 2)->balance; });
  });
  db.read_only([&](auto& t) {
    EXPECT_EQ(t.get(rows, 1)->balance, 30);
    EXPECT_EQ(t.get(rows, 2)->balance, 20);
  });
}
// (May hang or crash instead of failing: it damages the process's memory.) ... if that one's table
// has smaller rows, memory behind it is overwritten. Shown by what neighbours become.
TYPED_TEST(InBetween, UpdateWhoseFunctionReadsASmallerRow) {
  struct large {
    std::int64_t words[32];
  };
  auto& db = this->store;
  auto& rows = this->table;
  auto& larges = db.template create_table<std::uint64_t, large>("larges");
  db.transact([&](auto& t) {
    for (std::uint64_t k = 0; k < 64; ++k) t.insert(rows, k, {7});
    t.insert(larges, 1, large{});
  });
  db.transact([&](auto& t) {
    t.update(larges, 1, [&](large& l) {
      for (auto& w : l.words) w = t.get(rows, 5)->balance;
    });
  });
  db.read_only([&](auto& t) {
    EXPECT_EQ(t.get(larges, 1)->words[0], 7);
    for (std::uint64_t k = 0; k < 64; ++k) {
      const auto row = t.get(rows, k);
      ASSERT_TRUE(row.has_value()) << k;
      EXPECT_EQ(row->balance, 7) << k;
    }
  });
}

// Even if what it has read is out of date.
TYPED_TEST(InBetween, AThreadThatEndsItselfLeavesNothing) {
  auto& db = this->store;
  auto& rows = this->table;
  db.transact([&](auto& t) { t.upsert(rows, 1, {1}); });
  struct both {
    TypeParam& store;
    typename TypeParam::template table<std::uint64_t, account>& table;
  } shared{db, rows};
  pthread_t thread{};
  ASSERT_EQ(
      pthread_create(
          &thread, nullptr,
          [](void* given) -> void* {
            auto& in = *static_cast<both*>(given);
            in.store.transact([&](auto& t) {
              t.get(in.table, 1);
              t.upsert(in.table, 2, {2});
              elsewhere([&] { in.store.transact([&](auto& u) { u.upsert(in.table, 1, {3}); }); });
              pthread_exit(nullptr);
            });
            return nullptr;
          },
          &shared),
      0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_FALSE(db.transact([&](auto& t) { return t.get(rows, 2).has_value(); }));
}

TYPED_TEST(InBetween, NumbersThatAreNoKeysAreRefused) {
  auto& small = this->store.template create_table<std::uint32_t, account>("small");
  EXPECT_THROW(this->store.transact([&](auto& t) { t.upsert(small, std::uint64_t{1} << 32, {1}); }),
               std::out_of_range);
  EXPECT_THROW(this->store.transact([&](auto& t) { t.get(small, -1); }), std::out_of_range);
  EXPECT_THROW(this->store.read_only([&](auto& t) { t.get(small, -1); }), std::out_of_range);
  this->store.transact([&](auto& t) { t.upsert(small, 7, {1}); });
}

}  // namespace
