// How a transaction finds its own writes, and that it finds them whatever their number is.

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "elidex/database.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"
#include "elidex/internal/txn/written_records.hpp"

namespace elidex {
namespace {

TEST(WrittenRecords, FindsWhatWasAddedUntilCleared) {
  std::vector<std::uint64_t> memory(3 * 1'000 * internal::record::bytes_for(1) /
                                    sizeof(std::uint64_t));
  std::vector<internal::record*> rows;
  for (std::size_t i = 0; i < 1'000; ++i) {
    rows.push_back(internal::record::make(
        memory.data() + i * internal::record::bytes_for(1) / sizeof(std::uint64_t), 1, i));
  }
  internal::written_records places;
  places.reserve(rows.size());
  EXPECT_EQ(places.find(*rows[0]), internal::written_records::none);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < rows.size(); i += 2) places.add(*rows[i], i);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(places.find(*rows[i]), i % 2 == 0 ? i : internal::written_records::none);
    }
    places.clear();
    for (const internal::record* one : rows)
      ASSERT_EQ(places.find(*one), internal::written_records::none);
  }
}

template <class Commit>
class OwnWrites : public ::testing::Test {};
using protocols = ::testing::Types<db::silo_commit, db::dbx_commit<>, db::two_phase_locking<>>;
TYPED_TEST_SUITE(OwnWrites, protocols);

TYPED_TEST(OwnWrites, AreSeenAndCommittedInAnyNumber) {
  for (const std::uint64_t many : {2U, 7U, 8U, 9U, 10U, 100U, 1'000U}) {
    basic_database<TypeParam> db;
    auto& rows = db.template create_table<std::uint64_t, std::uint64_t>("rows");
    db.transact([&](auto& t) {
      for (std::uint64_t k = 0; k < many; ++k) t.insert(rows, k, k);
      for (std::uint64_t k = 0; k < many; ++k) {
        EXPECT_TRUE(t.update(rows, k, [](std::uint64_t& row) { row += 1; }));
        EXPECT_EQ(t.get(rows, k), k + 1);
      }
      EXPECT_THROW(t.insert(rows, many / 2, 5), db::duplicate_key);
      t.erase(rows, many - 1);
    });
    // over rows that are there, read and written and read
    for (std::uint64_t round = 0; round < 2; ++round) {
      db.transact([&](auto& t) {
        for (std::uint64_t k = 0; k + 1 < many; ++k)
          t.update(rows, k, [](std::uint64_t& row) { row += 1; });
        for (std::uint64_t k = 0; k + 1 < many; ++k) EXPECT_EQ(t.get(rows, k), k + 2 + round);
      });
    }
    std::uint64_t found = 0;
    db.read_only([&](auto& t) {
      t.scan(rows, std::uint64_t{0}, many, [&](std::uint64_t key, std::uint64_t row) {
        EXPECT_EQ(row, key + 3);
        ++found;
        return true;
      });
    });
    EXPECT_EQ(found, many - 1);
    EXPECT_EQ(db.stats().conflicts, 0U);
  }
}

// A scan that meets an erased record which the index still has, and then inserts its key.
TYPED_TEST(OwnWrites, MayFillAGapThatWasScanned) {
  basic_database<TypeParam> db;
  auto& rows = db.template create_table<std::uint64_t, std::uint64_t>("rows");
  for (const std::uint64_t key : {1U, 5U, 9U})
    db.transact([&](auto& t) { t.insert(rows, key, key); });
  db.transact([&](auto& t) { t.erase(rows, 5); });
  int attempts = 0;
  const bool filled = db.transact([&](auto& t) {
    if (++attempts > 3) return false;
    t.scan(rows, std::uint64_t{0}, std::uint64_t{10},
           [](std::uint64_t, std::uint64_t) { return true; });
    t.insert(rows, 5, 50);
    t.insert(rows, 7, 70);
    return true;
  });
  EXPECT_TRUE(filled);
  EXPECT_EQ(attempts, 1);
  EXPECT_EQ(db.read_only([&](auto& t) { return t.get(rows, 5); }), 50U);
}

// Erased rows stay while a snapshot may want them, however often others collect, and go behind it.
TYPED_TEST(OwnWrites, ThatEraseAreCollectedBehindTheOldestSnapshot) {
  basic_database<TypeParam> db;
  auto& rows = db.template create_table<std::uint64_t, std::uint64_t>("rows");
  constexpr std::uint64_t many = 2'000;
  for (std::uint64_t k = 0; k < many; ++k) db.transact([&](auto& t) { t.insert(rows, k, k); });
  db.read_only([&](auto& snapshot) {
    std::jthread([&] {
      for (std::uint64_t k = 0; k < many; ++k) db.transact([&](auto& t) { t.erase(rows, k); });
      db.collect();
      db.collect();
    }).join();
    EXPECT_EQ(rows.absent_records(), many);
    std::uint64_t seen = 0;
    snapshot.scan(rows, std::uint64_t{0}, many, [&](std::uint64_t, std::uint64_t) {
      ++seen;
      return true;
    });
    EXPECT_EQ(seen, many);
  });
  for (int i = 0; i < 5; ++i) db.collect();
  EXPECT_EQ(rows.absent_records(), 0U);
}

}  // namespace
}  // namespace elidex
