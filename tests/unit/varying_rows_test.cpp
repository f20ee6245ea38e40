// Rows of varying length under each commit protocol: they grow, shrink, get bodies and lose them.
#include "support/varying_rows.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "unit/scripted_htm.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;
using rows_by_key = std::map<u64, document>;

// --- memory ---

TEST(RecordMemory, HasAClassForEachRoom) {
  using classes = record_memory::classes;
  std::map<std::size_t, std::size_t> index_of_room;
  for (std::size_t words = 0; words <= record_memory::room_max; ++words) {
    const std::size_t room = classes::room_for(words);
    EXPECT_GE(room, words);
    EXPECT_EQ(classes::room_for(room), room);
    EXPECT_LT(classes::index_of(room), classes::count);
    index_of_room[room] = classes::index_of(room);
  }
  EXPECT_EQ(index_of_room.size(), classes::count);
  std::set<std::size_t> indexes;
  for (const auto& [room, index] : index_of_room) indexes.insert(index);
  EXPECT_EQ(indexes.size(), classes::count);
  EXPECT_EQ(classes::room_for(record_memory::room_max + 1), 1U);
  EXPECT_EQ(classes::room_for(varying_row_bytes_max / sizeof(u64)), 1U);
}

TEST(RecordMemory, BlocksOfAllRoomsAreApart) {
  record_memory memory(record_memory::any_room, 1);
  std::map<std::uintptr_t, std::size_t> ends;  // room by address
  for (int round = 0; round < 20; ++round) {
    for (std::size_t words = 1; words <= record_memory::room_max; words += 3) {
      const std::size_t room = memory.room_for(words);
      ends.emplace(reinterpret_cast<std::uintptr_t>(memory.allocate(room)), room);
    }
  }
  std::uintptr_t end = 0;
  std::size_t taken = 0;
  for (const auto& [at, room] : ends) {
    EXPECT_EQ(at % alignof(record), 0U);
    EXPECT_GE(at, end);
    end = at + record::bytes_for(room + 1);
    taken += end - at;
    EXPECT_GE(end - at, memory.record_distance());
  }
  EXPECT_GE(memory.reserved_bytes(), taken);
  for (const auto& [at, room] : ends) memory.deallocate(reinterpret_cast<void*>(at), room);
}

TEST(RecordMemory, RecordsOfOneSizeShareNoLineUnlessTheyHave96Bytes) {
  for (const std::size_t words_behind : {0U, 1U}) {
    for (std::size_t room = 1; room < 40; ++room) {
      SCOPED_TRACE(::testing::Message() << room << " words and " << words_behind);
      record_memory memory(room, words_behind);
      const std::size_t bytes = record::bytes_for(room + words_behind);
      const bool shares = bytes > 64 && bytes <= 96;
      std::set<std::uintptr_t> taken;
      for (int i = 0; i < 100; ++i)
        taken.insert(reinterpret_cast<std::uintptr_t>(memory.allocate(room)));
      std::uintptr_t end = 0;
      std::set<std::uintptr_t> places;  // as lock_address() has them
      for (const std::uintptr_t at : taken) {
        EXPECT_EQ(at % (shares ? 32 : 64), 0U);
        EXPECT_GE(at, end);
        end = at + bytes;
        EXPECT_TRUE(places.insert(at / memory.record_distance()).second);
      }
      for (const std::uintptr_t at : taken) memory.deallocate(reinterpret_cast<void*>(at), room);
    }
  }
}

TEST(RecordMemory, ASmallRowTakesItsWordsAndAHeader) {
  constexpr std::size_t rows = 10'000;
  constexpr std::size_t text = 40;
  silo_database db;
  auto& documents = db.create_table<u64, document>("documents");
  db.transact([&](auto& t) {
    for (u64 key = 0; key < rows; ++key) t.insert(documents, key, document::of(key, text));
  });
  constexpr std::size_t row_bytes = words_for(document::fixed_bytes + text) * sizeof(u64);
  constexpr std::size_t record_bytes = row_bytes + sizeof(u64) + 24 + 8;
  // A pool obtains chunks of a quarter of what it has.
  constexpr std::size_t chunk_slack = rows * record_bytes / 4;
  const std::size_t bytes = documents.memory_bytes() - documents.map().memory_bytes();
  EXPECT_LE(bytes, rows * record_bytes + chunk_slack);
}

// --- rows ---

template <class Database>
class VaryingRows : public ::testing::Test {
 protected:
  using table = typename Database::template table<u64, document>;

  rows_by_key all() {
    return db_.read_only([&](auto& t) { return seen_by(t); });
  }
  template <class Transaction>
  rows_by_key seen_by(Transaction& t) {
    rows_by_key found;
    t.scan(documents_, u64{0}, ~u64{0},
           [&](u64 key, const document& row) { found.emplace(key, row); });
    return found;
  }
  // Makes the transaction in another thread, because this one has a snapshot or a transaction.
  template <class Fn>
  void transact_elsewhere(Fn&& fn) {
    std::thread([&] { db_.transact(fn); }).join();
  }

  Database db_;
  table& documents_ = db_.template create_table<u64, document>("documents");
};
using databases = ::testing::Types<silo_database, dbx_database, locking_dbx_database,
                                   small_nodes_database, two_phase_database>;
TYPED_TEST_SUITE(VaryingRows, databases);

TYPED_TEST(VaryingRows, FromEachLengthToEachOther) {
  auto& db = this->db_;
  auto& documents = this->documents_;
  for (const bool within_a_group : {true, false}) {
    for (const std::size_t from : lengths_around_room) {
      for (const std::size_t to : lengths_around_room) {
        const auto step = [&](const std::optional<document>& expected, const auto& change) {
          db.transact(change);
          const auto get = [&](auto& t) { return t.get(documents, u64{1}); };
          ASSERT_EQ(db.transact(get), expected) << from << " to " << to;
          // A snapshot begins a group if there was a commit in the old one.
          if (!within_a_group) {
            ASSERT_EQ(db.read_only(get), expected) << from << " to " << to;
          }
        };
        step(document::of(1, from),
             [&](auto& t) { t.insert(documents, 1, document::of(1, from)); });
        step(document::of(2, to), [&](auto& t) {
          EXPECT_TRUE(t.update(documents, 1, [&](document& d) { d = document::of(2, to); }));
        });
        step(document::of(3, from),
             [&](auto& t) { t.upsert(documents, 1, document::of(3, from)); });
        step({}, [&](auto& t) { EXPECT_TRUE(t.erase(documents, 1)); });
        step(document::of(4, to), [&](auto& t) { t.insert(documents, 1, document::of(4, to)); });
        step({}, [&](auto& t) { EXPECT_TRUE(t.erase(documents, 1)); });
      }
      db.collect();
    }
  }
}

TYPED_TEST(VaryingRows, SnapshotsSeeOldRowsWhole) {
  auto& db = this->db_;
  auto& documents = this->documents_;
  constexpr u64 keys = lengths_around_room.size();
  db.transact([&](auto& t) {
    for (u64 key = 0; key < keys; ++key)
      t.insert(documents, key, document::of(key, lengths_around_room[key]));
  });
  const rows_by_key before = this->all();
  db.read_only([&](auto& snapshot) {
    for (u64 round = 1; round <= 12; ++round) {
      this->transact_elsewhere([&](auto& t) {
        for (u64 key = 0; key < keys; ++key) {
          const document row = document::of(round, lengths_around_room[(key + round) % keys]);
          if ((key + round) % 5 == 0) {
            t.erase(documents, key);
          } else {
            t.upsert(documents, key, row);
          }
        }
        t.insert(documents, keys + round, document::of(round, 3'000));
      });
      // Other snapshots begin new groups, so that versions are made and cut.
      std::thread([&] { EXPECT_EQ(this->all().count(keys + round), 1U); }).join();
      db.collect();
      ASSERT_EQ(this->seen_by(snapshot), before) << round;
      for (const auto& [key, row] : before) ASSERT_EQ(snapshot.get(documents, key), row);
    }
  });
  db.transact([&](auto& t) {
    for (u64 key = 0; key < 2 * keys + 12; ++key) t.erase(documents, key);
  });
  for (int i = 0; i < 5; ++i) db.collect();
  EXPECT_EQ(this->all(), rows_by_key());
  EXPECT_EQ(documents.absent_records(), 0U);
}

TYPED_TEST(VaryingRows, ATransactionSeesItsOwnWrites) {
  auto& db = this->db_;
  auto& documents = this->documents_;
  db.transact([&](auto& t) { t.insert(documents, 1, document::of(1, 5'000)); });
  db.transact([&](auto& t) {
    EXPECT_TRUE(t.update(documents, 1, [](document& d) { d = document::of(2, 10); }));
    EXPECT_EQ(t.get(documents, 1), document::of(2, 10));
    t.upsert(documents, 1, document::of(3, 100'000));
    EXPECT_EQ(this->seen_by(t), (rows_by_key{{1, document::of(3, 100'000)}}));
    EXPECT_TRUE(t.erase(documents, 1));
    EXPECT_FALSE(t.get(documents, 1));
    EXPECT_EQ(this->seen_by(t), rows_by_key());
    t.insert(documents, 1, document::of(4, 2'000));
    t.insert(documents, 2, document::of(5, 3'000));
    EXPECT_TRUE(t.update(documents, 2, [](document& d) { d = document::of(6, d.length + 1); }));
    EXPECT_THROW(t.insert(documents, 2, document::of(7, 4'000)), db::duplicate_key);
  });
  EXPECT_EQ(this->all(), (rows_by_key{{1, document::of(4, 2'000)}, {2, document::of(6, 3'001)}}));
}

TYPED_TEST(VaryingRows, ARollbackLeavesTheOldRows) {
  auto& db = this->db_;
  auto& documents = this->documents_;
  db.transact([&](auto& t) {
    t.insert(documents, 1, document::of(1, 5'000));
    t.insert(documents, 2, document::of(2, 50));
    t.insert(documents, 3, document::of(3, 6'000));
  });
  const rows_by_key before = this->all();
  struct gives_up {};
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(db.transact([&](auto& t) {
      t.upsert(documents, 1, document::of(9, 9'000));
      t.update(documents, 2, [](document& d) { d = document::of(9, 9'000); });
      t.erase(documents, 3);
      t.insert(documents, 4, document::of(9, 9'000));
      throw gives_up();
    }),
                 gives_up);
    EXPECT_EQ(this->all(), before);
    db.collect();
  }
}

// Under two-phase locking the second writer waits for the first one's lock.
template <class Database>
class OptimisticVaryingRows : public VaryingRows<Database> {};
using optimistic_databases =
    ::testing::Types<silo_database, dbx_database, locking_dbx_database, small_nodes_database>;
TYPED_TEST_SUITE(OptimisticVaryingRows, optimistic_databases);

// The commit that fails has bodies, too.
TYPED_TEST(OptimisticVaryingRows, AConflictRepeatsTheTransaction) {
  auto& db = this->db_;
  auto& documents = this->documents_;
  for (const std::size_t first : lengths_around_room) {
    for (const std::size_t second : {std::size_t{40}, std::size_t{5'000}}) {
      db.transact([&](auto& t) { t.upsert(documents, 1, document::of(1, first)); });
      int attempts = 0;
      db.transact([&](auto& t) {
        EXPECT_TRUE(t.get(documents, 1)->is_whole());
        t.upsert(documents, 1, document::of(3, second));
        t.upsert(documents, 2, document::of(3, first));
        if (attempts++ != 0) return;
        this->transact_elsewhere([&](auto& other) {
          other.update(documents, 1, [&](document& d) { d = document::of(2, d.length / 2); });
        });
      });
      EXPECT_EQ(attempts, 2);
      EXPECT_EQ(this->all(),
                (rows_by_key{{1, document::of(3, second)}, {2, document::of(3, first)}}));
    }
  }
}

// A reader without a snapshot keeps a body alive by its pin.
TYPED_TEST(VaryingRows, ABodyStaysAsLongAsAReaderIsPinned) {
  auto& db = this->db_;
  auto& documents = this->documents_;
  for (const bool erases : {false, true}) {
    for (const bool in_new_groups : {false, true}) {
      db.transact([&](auto& t) { t.upsert(documents, 1, document::of(1, 5'000)); });
      const epoch_pin pinned;
      std::vector<u64> buffer;
      const record::seen_row seen = documents.find(1)->read(buffer);
      for (int turn = 0; turn < 200; ++turn) {
        this->transact_elsewhere([&](auto& t) {
          if (!erases || !t.erase(documents, 1)) t.upsert(documents, 1, document::of(2, 6'000));
        });
        if (in_new_groups) std::thread([&] { static_cast<void>(this->all()); }).join();
        if (turn % 20 == 0) std::thread([&] { db.collect(); }).join();
      }
      EXPECT_EQ(documents.row_of(seen.words), document::of(1, 5'000));
    }
  }
}

// --- a row that changes between a commit's preparation and its locks ---

// Silo's commit, with a function that runs once in between.
class interrupted_silo {
 public:
  void interrupt(std::function<void()> by) { by_ = std::move(by); }
  internal::commit_result operator()(internal::transaction_context& t,
                                     internal::commit_clock& clock) {
    return internal::commit_by_locks(t, clock, [&](internal::commit_stamp& stamp) {
      if (const auto by = std::exchange(by_, nullptr)) by();
      return internal::lock_one_by_one(t, clock, stamp);
    });
  }

 private:
  std::function<void()> by_;
};

// DBX's commits, with a function that runs once before the first region.
template <class Commit>
class interrupted_regions : public Commit {
 public:
  void interrupt(std::function<void()> by) {
    test::scripted_htm::reset();
    test::scripted_htm::on_begin([by = std::move(by)](std::size_t) mutable {
      if (const auto once = std::exchange(by, nullptr)) once();
    });
  }
};

template <class Commit>
class InterruptedCommits : public ::testing::Test {};
using interrupted_commits = ::testing::Types<
    interrupted_silo, interrupted_regions<db::dbx_commit<dbx_budgets, test::scripted_htm>>,
    interrupted_regions<db::dbx_locking_commit<nesting_dbx_budgets, test::scripted_htm>>>;
TYPED_TEST_SUITE(InterruptedCommits, interrupted_commits);

// The commit has not expected the body that it finds, or misses the one that it has expected.
TYPED_TEST(InterruptedCommits, FindBodiesThatCameAndWent) {
  basic_database<TypeParam> db;
  auto& documents = db.template create_table<u64, document>("documents");
  constexpr std::array<std::size_t, 3> lengths{40, 60, 5'000};
  for (const std::size_t first : lengths) {
    for (const std::optional<std::size_t> between :
         {std::optional<std::size_t>(), std::optional<std::size_t>(40),
          std::optional<std::size_t>(6'000)}) {
      for (const std::size_t last : lengths) {
        db.transact([&](auto& t) { t.upsert(documents, 1, document::of(1, first)); });
        int runs = 0;
        db.transact([&](auto& t) {
          t.upsert(documents, 1, document::of(3, last));
          t.upsert(documents, 2, document::of(3, last));
          if (runs++ != 0) return;
          db.protocol().interrupt([&] {
            ++runs;
            std::thread([&] {
              db.transact([&](auto& other) {
                if (!between) {
                  other.erase(documents, 1);
                } else {
                  other.upsert(documents, 1, document::of(2, *between));
                }
              });
            }).join();
          });
        });
        EXPECT_GE(runs, 2);
        const auto rows = db.transact(
            [&](auto& t) { return std::pair(t.get(documents, u64{1}), t.get(documents, u64{2})); });
        EXPECT_EQ(rows.first, document::of(3, last));
        EXPECT_EQ(rows.second, document::of(3, last));
      }
    }
  }
}

// --- limits ---

TEST(VaryingRowLimits, ARowTakesSixteenMebibytes) {
  silo_database db;
  auto& documents = db.create_table<u64, document>("documents");
  constexpr std::size_t most = varying_row_bytes_max - document::fixed_bytes;
  const document largest{.seed = 1, .length = most, .text = std::string(most, 'x')};
  const document larger{.seed = 1, .length = most + 1, .text = std::string(most + 1, 'x')};
  db.transact([&](auto& t) {
    t.insert(documents, 1, largest);
    EXPECT_THROW(t.insert(documents, 2, larger), db::row_too_large);
    EXPECT_THROW(t.upsert(documents, 1, larger), db::row_too_large);
    EXPECT_THROW(t.update(documents, 1, [](document& d) { d.text.push_back('x'); }),
                 db::row_too_large);
    EXPECT_FALSE(t.get(documents, 2));
  });
  EXPECT_TRUE(db.read_only([&](auto& t) { return t.get(documents, 1) == largest; }));

  const db::schema columns({{.name = "note", .type = db::column_type::text, .nullable = true}});
  auto& notes = db.create_table<u64>("notes", columns);
  db::row row = notes.make_row();
  row.set("note", std::string(varying_row_bytes_max - 5, 'y'));
  EXPECT_EQ(row.words().size_bytes(), varying_row_bytes_max);
  EXPECT_THROW(row.set("note", std::string(varying_row_bytes_max - 4, 'z')), db::row_too_large);
  EXPECT_EQ(row.text("note").size(), varying_row_bytes_max - 5);
  EXPECT_EQ(row.text("note").back(), 'y');
  db.transact([&](auto& t) { t.insert(notes, 1, row); });
  EXPECT_TRUE(db.read_only([&](auto& t) { return t.get(notes, 1) == row; }));
}

// --- lock names ---

struct tiny_row {
  std::optional<std::uint8_t> value;
  std::string text;
};
ELIDEX_ROW(tiny_row, value, text);

TEST(VaryingRowLocks, EachRecordHasItsOwnName) {
  constexpr u64 rows = 3'000;
  two_phase_database db;
  auto& table = db.create_table<u64, tiny_row>("tiny");
  db.transact([&](auto& t) {
    for (u64 key = 0; key < rows; ++key)
      t.insert(table, key, tiny_row{.value = {}, .text = std::string(key % 40, 't')});
  });
  std::set<std::tuple<std::uint32_t, std::uint32_t, u64>> names;
  {
    const epoch_pin pinned;
    table.walk(u64{0}, [&](const record* one) {
      const record_address at = lock_address(table, *one);
      EXPECT_LT(at.heap, record_address::heap_numbers);
      EXPECT_NE(at.page, 0U);
      names.emplace(at.space, at.heap, at.page);
      return true;
    });
  }
  EXPECT_EQ(names.size(), rows);

  // One transaction has every second row; another one does not wait for the rest.
  db.transact([&](auto& t) {
    for (u64 key = 0; key < rows; key += 2)
      t.update(table, key, [](tiny_row& row) { row.value = 1; });
    const u64 waits = db.protocol().counts().waits;
    std::thread([&] {
      db.transact([&](auto& other) {
        for (u64 key = 1; key < rows; key += 2)
          other.update(table, key, [](tiny_row& row) { row.value = 2; });
      });
    }).join();
    EXPECT_EQ(db.protocol().counts().waits, waits);
  });
  db.read_only([&](auto& t) {
    t.scan(table, u64{0}, rows, [&](u64 key, const tiny_row& row) {
      EXPECT_EQ(row.value, std::optional<std::uint8_t>(key % 2 + 1));
      EXPECT_EQ(row.text.size(), key % 40);
    });
  });
}

// InnoDB's consistent read: one moment without locks.
TEST(VaryingRowLocks, ARepeatableReadSeesTheOldRow) {
  two_phase_database db;
  auto& documents = db.create_table<u64, document>("documents");
  db.transact([&](auto& t) { t.insert(documents, 1, document::of(1, 5'000)); });
  db.transact(isolation::repeatable_read, [&](auto& t) {
    EXPECT_EQ(t.get(documents, 1), document::of(1, 5'000));
    for (u64 round = 2; round < 8; ++round) {
      std::thread([&] {
        db.transact([&](auto& other) {
          if (round % 3 == 0) other.erase(documents, 1);
          other.upsert(documents, 1, document::of(round, round * 700));
        });
      }).join();
      EXPECT_EQ(t.get(documents, 1), document::of(1, 5'000));
      t.scan(documents, u64{0}, u64{5},
             [](u64, const document& row) { EXPECT_EQ(row, document::of(1, 5'000)); });
    }
    // An update sees the newest row.
    EXPECT_TRUE(t.update(documents, 1, [](document& d) { EXPECT_EQ(d.seed, 7U); }));
  });
}

}  // namespace
}  // namespace elidex::testing
