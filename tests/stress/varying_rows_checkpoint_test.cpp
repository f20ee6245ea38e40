// Checkpoints of rows of varying length beside writers, under threads.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"
#include "support/spread_threads.hpp"
#include "support/varying_rows.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

// Some with bodies, some without.
constexpr std::array<std::size_t, 6> lengths{0, 40, 900, 1'200, 300, 2'500};

// A checkpoint reads rows while they change. Together with the log it has them all.
TEST(VaryingRowCheckpoints, BesideWriters) {
  faulty_disk disk;
  std::array<std::optional<document>, 16> expected;
  const auto with_documents = [&](const auto& use) {
    silo_database db;
    auto& documents = db.create_table<u64, document>("documents");
    db.open(disk.directory(), {.level = db::durability::async});
    use(db, documents);
  };
  const auto read = [&](auto& db, auto& documents) {
    std::array<std::optional<document>, 16> found;
    db.read_only([&](auto& t) {
      for (u64 key = 0; key < found.size(); ++key) found[key] = t.get(documents, key);
    });
    return found;
  };
  for (int opening = 0; opening < 3; ++opening) {
    with_documents([&](auto& db, auto& documents) {
      EXPECT_EQ(read(db, documents), expected);
      const auto work = [&](int me) {
        stay_on_nth_core(me);
        random_numbers random(seed_or(3) + static_cast<u64>(me + 10 * opening));
        for (int turn = 0; turn < repetitions(600); ++turn) {
          if (me == 0) {
            if (turn % 60 == 0) db.checkpoint();
            continue;
          }
          const u64 key = random.below(expected.size());
          const document row = document::of(random.below(1'000), lengths[random.below(6)]);
          db.transact([&](auto& t) {
            if (row.seed % 5 == 0) {
              t.erase(documents, key);
            } else if (!t.update(documents, key, [&](document& d) { d = row; })) {
              t.insert(documents, key, row);
            }
          });
        }
      };
      std::vector<std::thread> all;
      for (int me = 0; me < 3; ++me) all.emplace_back(work, me);
      for (std::thread& one : all) one.join();
      expected = read(db, documents);
    });
  }
  with_documents([&](auto& db, auto& documents) { EXPECT_EQ(read(db, documents), expected); });
}

}  // namespace
}  // namespace elidex::testing
