// Rows of varying length under threads: readers, snapshots and scans see whole rows while writers
// change their lengths, erase them and insert them again.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "support/random_seed.hpp"
#include "support/spread_threads.hpp"
#include "support/varying_rows.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

// Some with bodies, some without.
constexpr std::array<std::size_t, 6> lengths{0, 40, 900, 1'200, 300, 2'500};
// With in_records the numbers of words differ, but all records have the largest room.
enum class rows_lie : std::uint8_t { in_records, in_records_or_bodies };

// Two rows of a pair always have the same seed, and both or neither are present.
template <class Database>
class pairs_of_rows {
 public:
  static constexpr u64 keys = 8;  // pairs: 2k and 2k + 1

  explicit pairs_of_rows(rows_lie where) : where_(where) {}

  void write(random_numbers& random) {
    const u64 key = 2 * random.below(keys);
    const u64 seed = random.below(1'000);
    const bool erases = random.below(5) == 0;
    db_.transact([&](auto& t) {
      for (const u64 one : {key, key + 1}) {
        const document row = document::of(seed, length(seed + one));
        if (erases) {
          t.erase(documents_, one);
        } else if (seed % 2 == 0 || !t.update(documents_, one, [&](document& d) { d = row; })) {
          t.upsert(documents_, one, row);
        }
      }
    });
    if (seed % 50 == 0) db_.collect();
  }
  // Both return what is wrong.
  template <class Transaction>
  int wrong_pair(Transaction& t, u64 key) {
    return wrong(t.get(documents_, 2 * key), t.get(documents_, 2 * key + 1));
  }
  template <class Transaction>
  int wrong_rows(Transaction& t) {
    std::array<std::optional<document>, 2 * keys> found;
    t.scan(documents_, u64{0}, 2 * keys, [&](u64 key, const document& row) { found[key] = row; });
    int many = 0;
    for (std::size_t key = 0; key < keys; ++key) many += wrong(found[2 * key], found[2 * key + 1]);
    return many;
  }
  // What a reader without a transaction may see: any committed row, whole.
  int wrong_record(u64 key) {
    const epoch_pin pinned;
    const record* const found = documents_.find(key);
    if (found == nullptr) return 0;
    const record::seen_row seen = found->read(buffer());
    return seen.stamp.absent() || documents_.row_of(seen.words).is_whole() ? 0 : 1;
  }
  Database& db() { return db_; }

 private:
  std::size_t length(u64 number) const {
    if (where_ == rows_lie::in_records) return longest_in_room - number % 60;
    return lengths[number % lengths.size()];
  }
  static int wrong(const std::optional<document>& one, const std::optional<document>& other) {
    if (one.has_value() != other.has_value()) return 1;
    return !one || (one->is_whole() && other->is_whole() && one->seed == other->seed) ? 0 : 1;
  }
  static std::vector<u64>& buffer() {
    thread_local std::vector<u64> words;
    return words;
  }

  const rows_lie where_;
  Database db_;
  typename Database::template table<u64, document>& documents_ =
      db_.template create_table<u64, document>("documents");
};

template <class Database>
int wrong_rows_under_threads(rows_lie where, int turns, u64 seed) {
  pairs_of_rows<Database> rows(where);
  std::atomic<int> wrong{0};
  in_threads(4, [&](int me) {
    random_numbers random(seed + static_cast<u64>(me));
    for (int turn = 0; turn < turns; ++turn) {
      if (me < 2) {
        rows.write(random);
        continue;
      }
      const u64 key = random.below(pairs_of_rows<Database>::keys);
      switch (me == 2 ? random.below(2) : 2 + random.below(2)) {
        case 0:
          wrong += rows.db().transact([&](auto& t) { return rows.wrong_pair(t, key); });
          break;
        case 1:
          wrong += rows.wrong_record(2 * key);
          break;
        case 2:
          wrong += rows.db().read_only([&](auto& t) { return rows.wrong_pair(t, key); });
          break;
        default:
          wrong += rows.db().read_only([&](auto& t) { return rows.wrong_rows(t); });
      }
    }
  });
  return wrong;
}

template <class Database>
class VaryingRowStress : public ::testing::Test {};
using databases = ::testing::Types<silo_database, dbx_database, locking_dbx_database,
                                   small_nodes_database, two_phase_database>;
TYPED_TEST_SUITE(VaryingRowStress, databases);

TYPED_TEST(VaryingRowStress, RowsInTheirRecordsAreNeverTorn) {
  const u64 seed = seed_or(1);
  EXPECT_EQ(wrong_rows_under_threads<TypeParam>(rows_lie::in_records, repetitions(4'000), seed), 0)
      << "seed " << seed;
}
TYPED_TEST(VaryingRowStress, RowsWithBodiesAreNeverTorn) {
  const u64 seed = seed_or(2);
  EXPECT_EQ(
      wrong_rows_under_threads<TypeParam>(rows_lie::in_records_or_bodies, repetitions(4'000), seed),
      0)
      << "seed " << seed;
}

// Writes rows without a lock, so that readers see parts of them.
class unlocked_commit {
 public:
  internal::commit_result operator()(internal::transaction_context& t,
                                     internal::commit_clock& clock) {
    const std::lock_guard guard(mutex_);
    for (;;) {
      internal::provide_versions(t, clock);
      const internal::commit_clock::commit_phase phase(clock);
      for (auto& w : t.writes()) w.had = w.row->stamp();
      internal::commit_stamp stamp;
      if (internal::stamp_for(t, clock, clock.now(), stamp) != internal::locking::locked) continue;
      internal::write_rows<internal::commit_by::region>(t, stamp, clock);
      return internal::commit_result::committed;
    }
  }

 private:
  std::mutex mutex_;
};

TEST(VaryingRowStressCanary, RowsThatAreWrittenWithoutALockAreFound) {
  u64 seed = 0;
  EXPECT_TRUE(found_in_time([&] {
    return wrong_rows_under_threads<basic_database<unlocked_commit>>(rows_lie::in_records,
                                                                     repetitions(400), ++seed) != 0;
  }));
}

}  // namespace
}  // namespace elidex::testing
