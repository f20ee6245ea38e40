// Transactions under threads: histories without cycles, money that stays, snapshots of one moment,
// keys that come and go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elidex/database.hpp"
#include "support/databases.hpp"
#include "support/list_append.hpp"
#include "support/random_seed.hpp"
#include "support/spread_threads.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

constexpr int threads = 3;

template <class Database>
class DatabaseStress : public ::testing::Test {};
using databases =
    ::testing::Types<silo_database, dbx_database, small_nodes_database, dbx_over_htm_btree,
                     dbx_over_euno_btree, locking_dbx_database, locking_dbx_over_htm_btree,
                     locking_dbx_over_euno_btree, locking_dbx_over_euno_btree_plus,
                     locking_dbx_over_hot_euno_btree, silo_over_masstree, two_phase_database,
                     small_nodes_two_phase_database>;
TYPED_TEST_SUITE(DatabaseStress, databases);

struct list_row {
  static constexpr std::size_t room = 60;
  std::uint32_t size = 0;
  std::array<element, room> elements{};
};

std::vector<element> elements_of(const list_row& row) {
  return {row.elements.begin(), row.elements.begin() + row.size};
}

// What a transaction sees of a list; an absent row is an empty list.
list_observation observation_of(u64 key, const std::optional<list_row>& row) {
  return {key, row ? elements_of(*row) : std::vector<element>()};
}

// A database of lists, and what its transactions saw and appended. Lists are rows, so a full one is
// left alone. With `creating` the rows are inserted by whoever needs them first, and read by scans
// as well.
template <class Database>
class list_histories {
 public:
  list_histories(isolation level, bool creating)
      : level_(level), creating_(creating), histories_(threads), of_snapshots_(threads) {}

  // All threads work on the same few lists, which are new in each round.
  void round(int nth, u64 seed) {
    const u64 first_key = static_cast<u64>(nth) * keys;
    if (!creating_) {
      db_.transact([&](auto& t) {
        for (u64 k = 0; k < keys; ++k) t.insert(lists_, first_key + k, list_row());
      });
    }
    spinning_meeting all(threads);
    in_threads(threads, [&](int me) {
      random_numbers random(seed * 1000 + static_cast<u64>(nth * threads + me));
      all.meet(0);
      for (int turn = 0; turn < 20; ++turn) {
        const u64 a = first_key + random.below(keys);
        const u64 b = first_key + random.below(keys);
        const unsigned what = static_cast<unsigned>(random.below(4));
        const u64 began = now();
        if (what == 3) {
          note(of_snapshots_, me, began,
               db_.read_only([&](auto& t) { return read_both(t, a, b); }));
          continue;
        }
        note(histories_, me, began, db_.transact(level_, [&](auto& t) {
          if (what == 0) return append_to_both(t, a, b);
          if (what == 1) return read_one_append_to_other(t, b, a);
          return read_all_append_to_one(t, first_key, a);
        }));
      }
    });
  }

  // The first cycle, in words; empty: none.
  std::string cycle() {
    std::vector<appending_transaction> history;
    for (const auto* part : {&histories_, &of_snapshots_}) {
      for (const auto& one : *part) history.insert(history.end(), one.begin(), one.end());
    }
    std::map<u64, std::vector<element>> finally;
    db_.read_only([&](auto& t) {
      t.scan(lists_, u64{0}, ~u64{0}, [&](u64 key, const list_row& row) {
        finally[key] = elements_of(row);
        return true;
      });
    });
    if (history_file_ != nullptr) {
      std::ofstream file(history_file_);
      write_history(history, file);
    }
    return find_cycle(history, finally);
  }

 private:
  static constexpr u64 keys = 4;  // of a round

  // Ticks only for a history that is written: a clock that threads share orders them.
  u64 now() { return history_file_ != nullptr ? clock_++ : 0; }
  void note(std::vector<std::vector<appending_transaction>>& in, int me, u64 began,
            appending_transaction done) {
    done.thread = me;
    done.began = began;
    done.ended = now();
    in[static_cast<std::size_t>(me)].push_back(std::move(done));
  }

  template <class Snapshot>
  appending_transaction read_both(Snapshot& t, u64 a, u64 b) {
    appending_transaction mine;
    for (const u64 key : {a, b}) mine.reads.push_back(observation_of(key, t.get(lists_, key)));
    return mine;
  }

  template <class Transaction>
  appending_transaction append_to_both(Transaction& t, u64 a, u64 b) {
    appending_transaction mine;
    append(t, a, mine);
    if (a != b) append(t, b, mine);
    return mine;
  }

  template <class Transaction>
  appending_transaction read_one_append_to_other(Transaction& t, u64 one, u64 other) {
    appending_transaction mine;
    const auto row = t.get(lists_, one);
    if (one != other) mine.reads.push_back(observation_of(one, row));
    append(t, other, mine);
    return mine;
  }

  template <class Transaction>
  appending_transaction read_all_append_to_one(Transaction& t, u64 first_key, u64 appended_to) {
    appending_transaction mine;
    std::map<u64, list_observation> found;
    for (u64 k = 0; k < keys; ++k) found[first_key + k] = {first_key + k, {}};
    const auto range = between(first_key, first_key + keys);
    t.scan(lists_, appended_to % 2 == 0 ? range : range.descending(),
           [&](u64 key, const list_row& row) { found[key] = {key, elements_of(row)}; });
    for (const auto& [key, one] : found) {
      if (key != appended_to) mine.reads.push_back(one);
    }
    append(t, appended_to, mine);
    return mine;
  }

  // Reads the list and appends an element of its own to it.
  template <class Transaction>
  void append(Transaction& t, u64 key, appending_transaction& mine) {
    auto row = t.get(lists_, key);
    if (!row && !creating_) return;
    mine.reads.push_back(observation_of(key, row));
    const bool is_new = !row;
    if (is_new) row.emplace();
    if (row->size == list_row::room) return;
    const element one = next_++;
    row->elements[row->size++] = one;
    mine.appends.emplace_back(key, one);
    if (is_new) {
      t.insert(lists_, key, *row);
    } else {
      t.upsert(lists_, key, *row);
    }
  }

  const isolation level_;
  const bool creating_;
  Database db_;
  typename Database::template table<u64, list_row>& lists_ =
      db_.template create_table<u64, list_row>("lists");
  // Of each thread:
  std::vector<std::vector<appending_transaction>> histories_;
  std::vector<std::vector<appending_transaction>> of_snapshots_;
  std::atomic<element> next_{1};
  const char* const history_file_ = std::getenv("ELIDEX_TEST_HISTORY");
  std::atomic<u64> clock_{0};
};

// What is wrong with a history in which each transaction reads and appends to some lists.
template <class Database>
std::string history_of(int turns, u64 seed, isolation level, bool creating) {
  list_histories<Database> lists(level, creating);
  for (int round = 0; round < turns / 20; ++round) lists.round(round, seed);
  return lists.cycle();
}

TYPED_TEST(DatabaseStress, HistoriesHaveNoCycles) {
  const u64 seed = seed_or(1);
  EXPECT_EQ(history_of<TypeParam>(repetitions(10'000), seed, isolation::serializable, false), "")
      << "seed " << seed;
}

TYPED_TEST(DatabaseStress, HistoriesWithInsertsAndScansHaveNoCycles) {
  const u64 seed = seed_or(2);
  EXPECT_EQ(history_of<TypeParam>(repetitions(10'000), seed, isolation::serializable, true), "")
      << "seed " << seed;
}

TEST(DatabaseStressCanary, WithoutValidationThereIsACycle) {
  u64 seed = 0;
  EXPECT_TRUE(found_in_time([&] {
    return history_of<basic_database<blind_commit>>(400, ++seed, isolation::serializable, false) !=
           "";
  }));
}

TEST(DatabaseStressCanary, ReadCommittedLosesUpdates) {
  u64 seed = 0;
  EXPECT_TRUE(found_in_time([&] {
    return history_of<silo_database>(400, ++seed, isolation::read_committed, false) != "";
  }));
}

TEST(ListAppend, FindsEachKindOfAnomaly) {
  using ::testing::HasSubstr;
  // Write skew: each reads what the other appends to.
  EXPECT_THAT(find_cycle({{{{1, 1}}, {{2, {}}}}, {{{2, 2}}, {{1, {}}}}}, {{1, {1}}, {2, {2}}}),
              HasSubstr("-rw->"));
  // Lost update: both read the empty list, one append is gone.
  EXPECT_EQ(find_cycle({{{{1, 1}}, {{1, {}}}}, {{{1, 2}}, {{1, {}}}}}, {{1, {2}}}),
            "an append is lost");
  // Dirty read: of what nobody committed.
  EXPECT_THAT(find_cycle({{{}, {{1, {7}}}}}, {{1, {}}}), HasSubstr("no beginning"));
  EXPECT_EQ(find_cycle({{{{1, 1}}, {{1, {}}}}, {{{1, 2}}, {{1, {1}}}}}, {{1, {1, 2}}}), "");
}

// Money is moved and all snapshots and all transactions that read everything see the same sum.
TYPED_TEST(DatabaseStress, MoneyStays) {
  constexpr u64 accounts_max = 50;
  constexpr std::int64_t each = 100;
  TypeParam db;
  auto& accounts = db.template create_table<u64, account>("accounts");
  db.transact([&](auto& t) {
    for (u64 n = 0; n < accounts_max; ++n) t.insert(accounts, n, account{each});
  });
  const auto sum_of = [&](auto& t) {
    std::int64_t sum = 0;
    t.scan(accounts, u64{0}, accounts_max, [&](u64, const account& a) {
      sum += a.balance;
      return true;
    });
    return sum;
  };
  std::atomic<int> wrong{0};
  in_threads(threads + 1, [&](int me) {
    random_numbers random(seed_or(3) + static_cast<u64>(me));
    for (int turn = 0; turn < repetitions(20'000); ++turn) {
      if (me == threads) {
        wrong += db.read_only(sum_of) == each * static_cast<std::int64_t>(accounts_max) ? 0 : 1;
        continue;
      }
      if (turn % 64 == 0) {
        wrong += db.transact(sum_of) == each * static_cast<std::int64_t>(accounts_max) ? 0 : 1;
        continue;
      }
      const u64 from = random.below(accounts_max);
      const u64 to = random.below(accounts_max);
      // Whoever is emptied is closed, and opened again by the next who pays in.
      db.transact([&](auto& t) {
        const auto giver = t.get(accounts, from);
        if (!giver || from == to) return;
        if (giver->balance <= 10) {
          t.erase(accounts, from);
        } else {
          t.update(accounts, from, [](account& a) { a.balance -= 10; });
        }
        const std::int64_t amount = std::min<std::int64_t>(giver->balance, 10);
        if (!t.update(accounts, to, [&](account& a) { a.balance += amount; }))
          t.insert(accounts, to, account{amount});
      });
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(db.read_only(sum_of), each * static_cast<std::int64_t>(accounts_max));
}

// A machine whose regions commit does it by them, under contention too.
template <class Database>
class DatabaseStressDbx : public ::testing::Test {};
using region_databases =
    ::testing::Types<dbx_database, dbx_over_htm_btree, dbx_over_euno_btree, locking_dbx_database,
                     locking_dbx_over_htm_btree, locking_dbx_over_euno_btree>;
TYPED_TEST_SUITE(DatabaseStressDbx, region_databases);

TYPED_TEST(DatabaseStressDbx, CommitsByRegions) {
  if (!htm::enabled()) GTEST_SKIP() << "no region commits here";
  TypeParam db;
  auto& accounts = db.template create_table<u64, account>("accounts");
  db.transact([&](auto& t) {
    for (u64 n = 0; n < 50; ++n) t.insert(accounts, n, account{0});
  });
  in_threads(threads, [&](int me) {
    random_numbers random(seed_or(5) + static_cast<u64>(me));
    for (int turn = 0; turn < 200; ++turn) {
      const u64 one = random.below(50);
      db.transact([&](auto& t) {
        t.update(accounts, one, [](account& a) { ++a.balance; });
        t.update(accounts, (one + 7) % 50, [](account& a) { --a.balance; });
        // So that the commit looks into the index again.
        t.get(accounts, 1000 + one);
        t.scan(accounts, u64{60}, u64{70}, [](u64, const account&) { return true; });
      });
    }
  });
  const lock_counts counts = db.protocol().htm_counts();
  EXPECT_GT(counts.commits, 10 * counts.fallbacks);
}

// Rows are whole, in transactions and snapshots.
TYPED_TEST(DatabaseStress, RowsAreNeverTorn) {
  TypeParam db;
  auto& rows = db.template create_table<u64, wide_row>("rows");
  db.transact([&](auto& t) { t.insert(rows, u64{1}, wide_row::of(0)); });
  std::atomic<int> torn{0};
  in_threads(threads, [&](int me) {
    for (int turn = 0; turn < repetitions(40'000); ++turn) {
      if (me == 0) {
        db.transact([&](auto& t) { t.upsert(rows, u64{1}, wide_row::of(static_cast<u64>(turn))); });
      } else if (me == 1) {
        torn += db.transact([&](auto& t) { return t.get(rows, u64{1})->torn(); }) ? 1 : 0;
      } else {
        torn += db.read_only([&](auto& t) { return t.get(rows, u64{1})->torn(); }) ? 1 : 0;
      }
    }
  });
  EXPECT_EQ(torn, 0);
}

// Keys come and go while others look, and what is erased is given back in the end.
TYPED_TEST(DatabaseStress, ErasedRecordsAreReclaimed) {
  TypeParam db;
  auto& rows = db.template create_table<u64, wide_row>("rows");
  in_threads(threads, [&](int me) {
    random_numbers random(seed_or(4) + static_cast<u64>(me));
    for (int turn = 0; turn < repetitions(20'000); ++turn) {
      const u64 key = random.below(64);
      db.transact([&](auto& t) {
        if (!t.erase(rows, key)) t.insert(rows, key, wide_row::of(key));
      });
      if (turn % 100 == 0) db.collect();
    }
  });
  db.transact([&](auto& t) {
    for (u64 key = 0; key < 64; ++key) t.erase(rows, key);
  });
  for (int i = 0; i < 5; ++i) db.collect();
  EXPECT_EQ(rows.absent_records(), 0u);
  EXPECT_EQ(rows.map().size(), 0u);
}

}  // namespace
}  // namespace elidex::testing
