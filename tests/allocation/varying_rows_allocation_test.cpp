// Every allocation of a transaction with bodies fails once, those of its commit too. Then nothing
// has changed, and the transaction succeeds when it is repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <new>

#include "support/failing_allocations.hpp"
#include "support/varying_rows.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;
using rows_by_key = std::map<u64, document>;

template <class Database>
class VaryingRowAllocation : public ::testing::Test {
 protected:
  static constexpr u64 keys = lengths_around_room.size();

  VaryingRowAllocation() {
    db_.transact([&](auto& t) {
      for (u64 key = 0; key < keys; ++key)
        t.insert(documents_, key, document::of(1, lengths_around_room[key]));
    });
  }
  // Changes the length of each row, so that bodies come, go and are replaced.
  template <class Transaction>
  void take_turn(Transaction& t, u64 turn) {
    for (u64 key = 0; key < keys; ++key) {
      const document row = document::of(turn, lengths_around_room[(key + turn) % keys]);
      switch ((key + turn) % 4) {
        case 0:
          if (!t.erase(documents_, key)) t.insert(documents_, key, row);
          break;
        case 1:
          t.upsert(documents_, key, row);
          break;
        default:
          if (!t.update(documents_, key, [&](document& d) { d = row; }))
            t.upsert(documents_, key, row);
      }
    }
    t.insert(documents_, 100 + turn, document::of(turn, 4'000));
  }
  rows_by_key all() {
    rows_by_key found;
    db_.read_only([&](auto& t) {
      t.scan(documents_, u64{0}, [&](u64 key, const document& row) { found.emplace(key, row); });
    });
    return found;
  }

  Database db_;
  typename Database::template table<u64, document>& documents_ =
      db_.template create_table<u64, document>("documents");
};
using databases =
    ::testing::Types<silo_database, dbx_database, locking_dbx_database, two_phase_database>;
TYPED_TEST_SUITE(VaryingRowAllocation, databases);

TYPED_TEST(VaryingRowAllocation, AFailureChangesNothing) {
  for (u64 turn = 1; turn < 6; ++turn) {
    const rows_by_key before = this->all();
    bool threw = true;
    for (int nth = 1; threw; ++nth) {
      threw = false;
      try {
        const failing_allocation armed(nth);
        this->db_.transact([&](auto& t) { this->take_turn(t, turn); });
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      if (threw) {
        ASSERT_EQ(this->all(), before) << "allocation " << nth << " of turn " << turn;
      }
      // A snapshot begins a group, so the next commit keeps versions.
    }
    EXPECT_NE(this->all(), before);
    EXPECT_EQ(this->all().count(100 + turn), 1U);
    this->db_.collect();
  }
}

// Retired bodies do not pile up: they may be long.
TEST(VaryingRowMemory, RetiredBodiesAreFreedSoon) {
  silo_database db;
  auto& documents = db.create_table<u64, document>("documents");
  const document row = document::of(1, 1'000'000);
  const auto write = [&] { db.transact([&](auto& t) { t.upsert(documents, 1, row); }); };
  for (int i = 0; i < 5; ++i) write();
  const std::int64_t before = allocations_alive;
  std::int64_t most = 0;
  for (int i = 0; i < 300; ++i) {
    write();
    most = std::max(most, allocations_alive - before);
  }
  EXPECT_LE(most, 8);
}

}  // namespace
}  // namespace elidex::testing
