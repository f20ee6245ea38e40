// A function that leaves scan() by an exception: what the scan has seen is not watched.
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "elidex/database.hpp"

namespace {

struct account {
  std::int64_t balance;
};
using store = elidex::basic_database<elidex::db::silo_commit>;
template <class Fn>
void elsewhere(Fn&& fn) {
  std::thread(fn).join();
}

// "An exception that it throws in such a state is not believed, and it is run again." The
// invariant: `first` holds the smallest key.
TEST(ScanThatThrows, AnExceptionInAStateThatNeverWasIsNotBelieved) {
  store db;
  auto& rows = db.create_table<std::uint64_t, account>("rows");
  auto& first = db.create_table<std::uint64_t, account>("first");
  db.transact([&](auto& t) {
    t.insert(rows, 5, {5});
    t.insert(first, 0, {5});
  });
  int attempts = 0;
  EXPECT_NO_THROW(db.transact([&](auto& t) {
    t.scan(rows, 0, 100, [&](auto key, const account&) {
      if (attempts++ == 0)
        elsewhere([&] {
          db.transact([&](auto& t2) {
            t2.insert(rows, 3, {3});
            t2.update(first, 0, [](account& a) { a.balance = 3; });
          });
        });
      if (t.get(first, 0)->balance != std::int64_t(key))
        throw std::logic_error("the invariant does not hold");
      return false;
    });
  }));
}

// The function catches its own exception and goes on: a write skew through a phantom.
TEST(ScanThatThrows, APhantomIsMissed) {
  store db;
  auto& rows = db.create_table<std::uint64_t, account>("rows");
  auto& answers = db.create_table<std::uint64_t, account>("answers");
  db.transact([&](auto& t) { t.insert(rows, 5, {5}); });
  struct found {
    std::uint64_t key;
  };
  int attempts = 0;
  db.transact([&](auto& t) {
    try {
      t.scan(rows, 0, 100, [&](auto key, const account&) -> bool { throw found{key}; });
    } catch (const found& what) {
      t.upsert(answers, 0, {std::int64_t(what.key)});
    }
    if (attempts++ == 0)
      elsewhere([&] {
        db.transact([&](auto& t2) {
          EXPECT_FALSE(t2.get(answers, 0).has_value());
          t2.insert(rows, 3, {3});
        });
      });
  });
  EXPECT_EQ(attempts, 2);
  db.read_only([&](auto& t) { EXPECT_EQ(t.get(answers, 0)->balance, 3); });
}

}  // namespace
