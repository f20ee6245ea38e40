// Anomalies of two and three transactions, looked for in explored schedules: whatever the order of
// their steps, the outcome is that of one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "elidex/database.hpp"
#include "schedule/explore.hpp"
#include "support/databases.hpp"
#include "support/varying_rows.hpp"

namespace elidex::testing {
namespace {

using ::testing::HasSubstr;
using bodies_type = std::vector<std::function<void()>>;
using u64 = std::uint64_t;

template <class Database>
struct with_accounts {
  Database db;
  typename Database::template table<u64, account>& accounts =
      db.template create_table<u64, account>("accounts");

  with_accounts() {
    db.transact([&](auto& t) {
      t.insert(accounts, u64{10}, account{100});
      t.insert(accounts, u64{20}, account{100});
    });
  }
  std::optional<account> now(u64 key) {
    return db.read_only([&](auto& t) { return t.get(accounts, key); });
  }
};

// Each empties one account if the other has money: one of them must see what the other did.
template <class Database>
struct write_skew : with_accounts<Database> {
  static constexpr u64 steps = 200;
  bodies_type bodies() {
    const auto empty_one = [this](u64 mine, u64 other) {
      return [this, mine, other] {
        this->db.transact([&](auto& t) {
          if (t.get(this->accounts, other)->balance > 0) t.upsert(this->accounts, mine, account{0});
        });
      };
    };
    return {empty_one(10, 20), empty_one(20, 10)};
  }
  std::string verdict() {
    return this->now(10)->balance + this->now(20)->balance == 0 ? "write skew" : "";
  }
};

template <class Database>
struct lost_update : with_accounts<Database> {
  static constexpr u64 steps = 200;
  bodies_type bodies() {
    const auto add_one = [this] {
      this->db.transact([&](auto& t) {
        t.upsert(this->accounts, u64{10}, account{t.get(this->accounts, u64{10})->balance + 1});
      });
    };
    return {add_one, add_one, add_one};
  }
  std::string verdict() { return this->now(10)->balance == 103 ? "" : "lost update"; }
};

// Each inserts a row if there are no more than before: there must not be two more. A descending
// scan locks other rows before it locks the gap of the insert, so a scan that looks only once is
// found sooner.
template <class Database, bool Descends = false>
struct phantoms : with_accounts<Database> {
  static constexpr u64 steps = 400;
  static constexpr int rows = Descends ? 5 : 2;
  phantoms() {
    this->db.transact([&](auto& t) {
      for (u64 key = 30; key <= 10 * rows; key += 10) t.insert(this->accounts, key, account{100});
    });
  }
  bodies_type bodies() {
    const auto insert_one = [this](u64 key) {
      return [this, key] {
        this->db.transact([&](auto& t) {
          int many = 0;
          t.scan(this->accounts, Descends ? below(u64{100}).descending() : below(u64{100}),
                 [&](u64, const account&) { ++many; });
          if (many == rows) t.insert(this->accounts, key, account{1});
        });
      };
    };
    return {insert_one(11), insert_one(12)};
  }
  std::string verdict() { return this->now(11) && this->now(12) ? "a phantom" : ""; }
};

// Each inserts a row above the last one if that is 20. The scan ends after one row.
template <class Database>
struct phantoms_at_the_top : with_accounts<Database> {
  static constexpr u64 steps = 400;
  bodies_type bodies() {
    const auto insert_above = [this](u64 key) {
      return [this, key] {
        this->db.transact([&](auto& t) {
          u64 last = 0;
          t.scan(this->accounts, all.descending(), [&](u64 found, const account&) {
            last = found;
            return false;
          });
          if (last == 20) t.insert(this->accounts, key, account{1});
        });
      };
    };
    return {insert_above(31), insert_above(32)};
  }
  std::string verdict() { return this->now(31) && this->now(32) ? "a phantom" : ""; }
};

// The same in looks at keys that are not there, by three, around an insert that is rolled back and
// an account that is closed and unlinked.
template <class Database>
struct phantoms_of_three : with_accounts<Database> {
  static constexpr u64 steps = 800;
  bodies_type bodies() {
    const auto insert_unless = [this](u64 mine, u64 others) {
      return [this, mine, others] {
        this->db.transact([&](auto& t) {
          if (!t.get(this->accounts, others)) t.upsert(this->accounts, mine, account{1});
        });
      };
    };
    return {insert_unless(11, 12), insert_unless(12, 11), [this] {
              try {
                this->db.transact([&](auto& t) {
                  t.insert(this->accounts, u64{13}, account{1});
                  t.erase(this->accounts, u64{20});
                  throw 1;
                });
              } catch (int) {
              }
              this->db.transact([&](auto& t) { t.erase(this->accounts, u64{20}); });
              for (int i = 0; i < 3; ++i) this->db.collect();
            }};
  }
  std::string verdict() { return this->now(11) && this->now(12) ? "a phantom" : ""; }
};

// Two look at keys that are not there and insert what the other looks for, beside an insert that
// has to wait for a reader: what stands in the index as long as that waits is nothing to hold on
// to.
template <class Database>
struct phantoms_beside_waiting_inserts : with_accounts<Database> {
  static constexpr u64 steps = 800;
  bodies_type bodies() {
    const auto insert_unless = [this](u64 mine, u64 others) {
      return [this, mine, others] {
        this->db.transact([&](auto& t) {
          if (!t.get(this->accounts, others)) t.upsert(this->accounts, mine, account{1});
        });
      };
    };
    return {insert_unless(15, 5), insert_unless(5, 15),
            [this] { this->db.transact([&](auto& t) { t.get(this->accounts, u64{18}); }); },
            [this] {
              this->db.transact([&](auto& t) { t.insert(this->accounts, u64{17}, account{1}); });
            }};
  }
  std::string verdict() { return this->now(5) && this->now(15) ? "a phantom" : ""; }
};

// One moves money, one reads both accounts as a snapshot, one closes and opens an account.
template <class Database>
struct snapshots : with_accounts<Database> {
  static constexpr u64 steps = 400;
  std::int64_t seen = 200;
  std::int64_t seen_later = 200;
  bodies_type bodies() {
    const auto look = [this] {
      return this->db.read_only([&](auto& t) {
        std::int64_t sum = 0;
        for (const u64 key : {u64{10}, u64{20}, u64{30}}) {
          const auto row = t.get(this->accounts, key);
          sum += row ? row->balance : 0;
        }
        return sum;
      });
    };
    return {[this] {
              this->db.transact([&](auto& t) {
                if (!t.update(this->accounts, u64{20}, [](account& a) { a.balance += 30; })) return;
                t.update(this->accounts, u64{10}, [](account& a) { a.balance -= 30; });
              });
            },
            [this, look] {
              seen = look();
              seen_later = look();
            },
            [this] {
              this->db.transact([&](auto& t) {
                const std::int64_t all = t.get(this->accounts, u64{20})->balance;
                t.erase(this->accounts, u64{20});
                t.insert(this->accounts, u64{30}, account{all});
              });
              this->db.collect();
              this->db.transact([&](auto& t) {
                const std::int64_t all = t.get(this->accounts, u64{30})->balance;
                t.erase(this->accounts, u64{30});
                t.upsert(this->accounts, u64{20}, account{all});
              });
            }};
  }
  std::string verdict() {
    return seen == 200 && seen_later == 200
               ? ""
               : "a snapshot saw " + std::to_string(seen) + " and " + std::to_string(seen_later);
  }
};

// Two rows always have the same seed. Their records have room for a row without a text, so a row
// with a text has a body. Writers replace bodies, erase rows with them and insert them again.
template <class Database>
struct bodies_that_change {
  static constexpr u64 steps = 800;
  Database db;
  typename Database::template table<u64, document>& documents =
      db.template create_table<u64, document>("documents");
  std::string wrong;

  bodies_that_change() {
    db.transact([&](auto& t) { write(t, 1, 0); });
    db.transact([&](auto& t) { write(t, 2, 9); });
  }
  template <class Transaction>
  void write(Transaction& t, u64 seed, std::size_t length) {
    for (const u64 key : {u64{1}, u64{2}}) t.upsert(documents, key, document::of(seed, length));
  }
  // Each row is whole. They are of one moment if the transaction commits.
  std::string look(auto& t) {
    const auto one = t.get(documents, u64{1});
    const auto other = t.get(documents, u64{2});
    if (one && other && !(one->is_whole() && other->is_whole())) wrong = "a torn row";
    if (one.has_value() != other.has_value()) return " sees one row of two";
    return one && one->seed != other->seed ? " sees rows of two moments" : "";
  }
  void note(const char* who, const std::string& what) {
    if (!what.empty()) wrong = who + what;
  }
  bodies_type bodies() {
    return {[this] {
              db.transact([&](auto& t) { write(t, 3, 20); });
              db.transact([&](auto& t) {
                t.erase(documents, u64{1});
                t.erase(documents, u64{2});
              });
              db.transact([&](auto& t) { write(t, 4, 12); });
            },
            [this] {
              db.transact([&](auto& t) {
                for (const u64 key : {u64{1}, u64{2}})
                  t.update(documents, key, [](document& d) { d = document::of(d.seed + 1, 0); });
              });
              db.collect();
              db.transact([&](auto& t) { write(t, 5, 7); });
            },
            [this] {
              note("a transaction", db.transact([&](auto& t) { return look(t); }));
              note("a snapshot", db.read_only([&](auto& t) { return look(t) + look(t); }));
            }};
  }
  std::string verdict() {
    note("the end", db.read_only([&](auto& t) { return look(t); }));
    return wrong;
  }
};

template <class Database>
class DatabaseSchedules : public ::testing::Test {};
using databases =
    ::testing::Types<silo_database, dbx_database, locking_dbx_over_htm_btree,
                     locking_dbx_over_hot_euno_btree, silo_over_masstree, two_phase_database>;
TYPED_TEST_SUITE(DatabaseSchedules, databases);

TYPED_TEST(DatabaseSchedules, NoWriteSkew) {
  EXPECT_EQ(explore<write_skew<TypeParam>>(1'000), "");
}
TYPED_TEST(DatabaseSchedules, NoLostUpdate) {
  EXPECT_EQ(explore<lost_update<TypeParam>>(1'000), "");
}
TYPED_TEST(DatabaseSchedules, NoPhantoms) {
  EXPECT_EQ(explore<phantoms<TypeParam>>(1'000), "");
}
TYPED_TEST(DatabaseSchedules, NoPhantomsOfDescendingScans) {
  EXPECT_EQ((explore<phantoms<TypeParam, true>>(1'000)), "");
  EXPECT_EQ(explore<phantoms_at_the_top<TypeParam>>(1'000), "");
}
TYPED_TEST(DatabaseSchedules, NoPhantomsOfThree) {
  EXPECT_EQ(explore<phantoms_of_three<TypeParam>>(1'000), "");
}
TYPED_TEST(DatabaseSchedules, NoPhantomsBesideWaitingInserts) {
  EXPECT_EQ(explore<phantoms_beside_waiting_inserts<TypeParam>>(2'000), "");
}
TYPED_TEST(DatabaseSchedules, SnapshotsAreOfOneMoment) {
  EXPECT_EQ(explore<snapshots<TypeParam>>(1'000), "");
}

TYPED_TEST(DatabaseSchedules, RowsWithBodiesAreWhole) {
  EXPECT_EQ(explore<bodies_that_change<TypeParam>>(1'000), "");
}

using careless_database = basic_database<blind_commit>;

TEST(DatabaseSchedulesCanary, WriteSkewIsFound) {
  EXPECT_THAT(explore<write_skew<careless_database>>(1'000), HasSubstr("write skew"));
}
TEST(DatabaseSchedulesCanary, LostUpdatesAreFound) {
  EXPECT_THAT(explore<lost_update<careless_database>>(1'000), HasSubstr("lost update"));
}
TEST(DatabaseSchedulesCanary, PhantomsAreFound) {
  EXPECT_THAT(explore<phantoms<careless_database>>(1'000), HasSubstr("a phantom"));
}
TEST(DatabaseSchedulesCanary, PhantomsOfDescendingScansAreFound) {
  EXPECT_THAT((explore<phantoms<careless_database, true>>(1'000)), HasSubstr("a phantom"));
  EXPECT_THAT(explore<phantoms_at_the_top<careless_database>>(1'000), HasSubstr("a phantom"));
}
TEST(DatabaseSchedulesCanary, RowsOfTwoMomentsAreFound) {
  EXPECT_THAT(explore<bodies_that_change<careless_database>>(1'000), HasSubstr("a transaction"));
}
// Locks of gaps don't do without the second look.
TEST(DatabaseSchedulesCanary, PhantomsBetweenALookAndItsLockAreFound) {
  EXPECT_THAT(explore<phantoms<careless_two_phase_database>>(20'000), HasSubstr("a phantom"));
  EXPECT_THAT((explore<phantoms<careless_two_phase_database, true>>(20'000)),
              HasSubstr("a phantom"));
}

}  // namespace
}  // namespace elidex::testing
