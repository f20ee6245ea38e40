// Every allocation of an optimistic transaction fails once, those of its commit too: then nothing
// of it is there, no row stays locked, and the transaction comes through when it is repeated.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "support/databases.hpp"
#include "support/failing_allocations.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;
using model = std::map<std::string, std::int64_t>;

std::string name_of(u64 number) {
  std::string name = "a name too long to be kept inside of a string ";
  return name.append(std::to_string(1'000 + number));
}

template <class Database>
class CommitAllocation : public ::testing::Test {
 protected:
  using numbers_table = typename Database::template table<u64, account>;
  using names_table = typename Database::template table<std::string, account>;

  static constexpr u64 keys = 300;

  CommitAllocation() {
    db_.transact([&](auto& t) {
      for (u64 key = 0; key < keys; key += 2) {
        t.insert(numbers_, key, account{1});
        t.insert(names_, name_of(key), account{1});
      }
    });
  }

  // Looks at ranges and at keys that are not there, which the commit does again with rows locked.
  template <class Transaction>
  void take_turn(Transaction& t, u64 turn) {
    std::int64_t seen = 0;
    t.scan(numbers_, u64{0}, keys, [&](u64, const account& row) { seen += row.balance; });
    t.scan(names_, name_of(0), [&](std::string_view, const account& row) { seen += row.balance; });
    u64 visited = 0;
    t.scan(numbers_, below(keys).descending(), [&](u64, const account&) { return ++visited < 20; });
    t.scan(names_, up_to(name_of(9)).descending(), [](std::string_view, const account&) {});
    t.get(numbers_, keys + 1 + 2 * turn);
    t.get(names_, name_of(keys + 1 + 2 * turn));
    for (u64 key = 0; key < 20; key += 2) t.upsert(numbers_, key, account{seen});
    t.insert(numbers_, keys + 2 * turn, account{seen});
    t.erase(names_, name_of(2 * turn));
  }

  // The first row that is locked, in words.
  std::string locked_row() {
    const epoch_pin pinned;
    std::string found;
    const auto look = [&](const char* in) {
      return [&found, in](const internal::record* row) {
        if (row->stamp().locked()) found = std::string("a row of ") + in + " is locked";
        return found.empty();
      };
    };
    numbers_.walk(u64{0}, look("numbers"));
    names_.walk(std::string_view(), look("names"));
    return found;
  }
  model rows() {
    model found;
    db_.read_only([&](auto& t) {
      t.scan(numbers_, u64{0},
             [&](u64 key, const account& row) { found[std::to_string(key)] = row.balance; });
      t.scan(names_, std::string(), [&](std::string_view key, const account& row) {
        found[std::string(key)] = row.balance;
      });
    });
    return found;
  }

  Database db_;
  numbers_table& numbers_ = db_.template create_table<u64, account>("numbers");
  names_table& names_ = db_.template create_table<std::string, account>("names");
};
using databases =
    ::testing::Types<silo_database, small_nodes_database, dbx_database, locking_dbx_database,
                     dbx_over_htm_btree, locking_dbx_over_euno_btree, silo_over_masstree>;
TYPED_TEST_SUITE(CommitAllocation, databases);

TYPED_TEST(CommitAllocation, AFailureLeavesNothingLocked) {
  for (u64 turn = 0; turn < 3; ++turn) {
    const model before = this->rows();
    bool threw = true;
    for (int nth = 1; threw; ++nth) {
      threw = false;
      const failing_allocation armed(nth);
      try {
        bool repeated = false;
        this->db_.transact([&](auto& t) {
          // Nobody else runs: a commit that locked rows and threw has met itself.
          if (std::exchange(repeated, true))
            throw std::logic_error("repeated; " + this->locked_row());
          this->take_turn(t, turn);
        });
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      ASSERT_EQ(this->locked_row(), "") << "after allocation " << nth << " of turn " << turn;
      if (threw) {
        ASSERT_EQ(this->rows(), before) << "after allocation " << nth << " of turn " << turn;
      }
    }
    EXPECT_NE(this->rows(), before);
  }
}

}  // namespace
}  // namespace elidex::testing
