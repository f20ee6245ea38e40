// Every allocation of a transaction under two-phase locking fails once: then nothing of it is
// there, no lock is left, and others work.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <thread>

#include "support/databases.hpp"
#include "support/failing_allocations.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;
using model = std::map<std::string, std::int64_t>;

std::string name_of(u64 number) {
  return "a name too long to be kept inside of a string " + std::to_string(number);
}

struct books {
  two_phase_database db;
  two_phase_database::table<u64, account>& numbers = db.create_table<u64, account>("numbers");
  two_phase_database::table<std::string, account>& names =
      db.create_table<std::string, account>("names");

  auto all() {
    return [this](auto& t) {
      model found;
      t.scan(numbers, u64{0}, u64{1'000'000}, [&](u64 key, const account& row) {
        found[std::to_string(key)] = row.balance;
        return true;
      });
      t.scan(names, std::string(), std::string("b"), [&](std::string_view key, const account& row) {
        found[std::string(key)] = row.balance;
        return true;
      });
      return found;
    };
  }
};

constexpr u64 keys_per_turn = 50;

// More writes than are found without a hash table; what the turn before has left is changed and
// erased.
template <class Transaction>
void take_turn(Transaction& t, books& in, u64 base) {
  const u64 before = base - keys_per_turn;
  for (u64 i = 0; i < 12; ++i)
    t.upsert(in.numbers, base + 2 * i, account{static_cast<std::int64_t>(i)});
  t.insert(in.numbers, base + 41, account{41});
  t.update(in.numbers, base + 2, [](account& row) { row.balance += 100; });
  t.erase(in.numbers, base + 4);
  t.erase(in.numbers, before);
  t.upsert(in.numbers, before + 2, account{7});
  t.insert(in.names, name_of(base), account{1});
  t.erase(in.names, name_of(before));
  t.scan(in.numbers, base, base + keys_per_turn, [](u64, const account&) { return true; });
  t.get(in.numbers, base + 45);
  t.get(in.names, name_of(base + 1));
}
void take_turn(model& all, u64 base) {
  const u64 before = base - keys_per_turn;
  for (u64 i = 0; i < 12; ++i) all[std::to_string(base + 2 * i)] = static_cast<std::int64_t>(i);
  all[std::to_string(base + 41)] = 41;
  all[std::to_string(base + 2)] += 100;
  all.erase(std::to_string(base + 4));
  all.erase(std::to_string(before));
  all[std::to_string(before + 2)] = 7;
  all[name_of(base)] = 1;
  all.erase(name_of(before));
}

class TwoPhaseAllocation : public ::testing::TestWithParam<isolation> {};
INSTANTIATE_TEST_SUITE_P(Levels, TwoPhaseAllocation,
                         ::testing::Values(isolation::read_committed, isolation::repeatable_read,
                                           isolation::serializable));

TEST_P(TwoPhaseAllocation, AFailureLeavesNothingBehind) {
  books all_books;
  auto& db = all_books.db;
  model expected;
  u64 base = keys_per_turn;
  int reported = 0;
  for (int round = 0; round < 10; ++round) {
    bool has_failed = true;
    for (std::int64_t nth = 1; has_failed; ++nth) {
      bool committed = false;
      try {
        const failing_allocation armed(nth);
        db.transact(GetParam(), [&](auto& t) { take_turn(t, all_books, base); });
        committed = true;
        has_failed = failing_allocation::has_failed();
      } catch (const std::bad_alloc&) {
        ++reported;
      }
      if (committed) {
        take_turn(expected, base);
        base += keys_per_turn;
      }
      // In another thread, whose transaction would wait for what is left locked.
      std::thread([&] {
        const std::uint64_t waits = db.protocol().counts().waits;
        EXPECT_EQ(db.transact(all_books.all()), expected);
        EXPECT_EQ(db.protocol().counts().waits, waits);
        EXPECT_EQ(db.read_only(all_books.all()), expected);
        EXPECT_TRUE(db.protocol().locks().is_consistent());
      }).join();
      ASSERT_FALSE(HasFailure()) << "allocation " << nth << " of round " << round << " failed";
      if (nth % 3 == 0) db.collect();
    }
  }
  EXPECT_GT(reported, 10);
}

}  // namespace
}  // namespace elidex::testing
