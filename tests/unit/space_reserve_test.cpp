// A full disk: with a reserve the database leaves it by a checkpoint, without one the log fails.
#include "elidex/internal/log/space_reserve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <system_error>

#include "elidex/database.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"
#include "support/thrown_code.hpp"

namespace elidex::testing {
namespace {

using ::testing::Contains;
using ::testing::Not;

constexpr std::uint64_t room = 400'000;
constexpr std::uint64_t reserve = 150'000;
constexpr std::uint64_t rows = 100;

struct wide {
  std::array<std::uint64_t, 20> words{};
};

struct store {
  explicit store(faulty_disk& disk, std::uint64_t reserve_bytes = reserve,
                 db::durability level = db::durability::sync) {
    db.open(disk.directory(), {.level = level,
                               .segment_bytes = std::size_t{64} << 10,
                               .checkpoint_bytes = 0,
                               .reserve_bytes = reserve_bytes});
  }
  // Changes each row so often. The rows take 16 KB, and each round adds as much to the log.
  void change(std::uint64_t rounds) {
    for (std::uint64_t round = 0; round < rounds; ++round, ++last) {
      for (std::uint64_t key = 0; key < rows; key += 10) {
        db.transact([&](auto& t) {
          for (std::uint64_t i = key; i < key + 10; ++i) {
            wide row;
            row.words.fill(last + 1);
            t.upsert(table, i, row);
          }
        });
      }
    }
  }
  void check(std::uint64_t expected) {
    db.read_only([&](auto& t) {
      std::uint64_t count = 0;
      t.scan(table, all, [&](std::uint64_t, const wide& row) {
        EXPECT_EQ(row.words[0], expected);
        ++count;
      });
      EXPECT_EQ(count, rows);
    });
  }
  database db;
  database::table<std::uint64_t, wide>& table = db.create_table<std::uint64_t, wide>("rows");
  std::uint64_t last = 0;
};

TEST(SpaceReserve, LeavesAFullDisk) {
  faulty_disk disk;
  disk.faults().room_bytes = room;
  {
    store kept(disk);
    EXPECT_THAT(disk.names(), Contains(space_reserve::name));
    kept.change(200);  // eight times the room
    kept.check(200);
    EXPECT_GE(kept.db.automatic_checkpoints().written, 5U);
    EXPECT_EQ(kept.db.automatic_checkpoints().failed, 0U);
    kept.db.close();
    EXPECT_THAT(disk.names(), Contains(space_reserve::name));
    EXPECT_LE(disk.occupied(), room);
  }
  store(disk).check(200);
}

// The canary, and what the option is for.
TEST(SpaceReserve, WithoutOneTheLogFails) {
  faulty_disk disk;
  disk.faults().room_bytes = room;
  store kept(disk, 0);
  EXPECT_EQ(code_thrown_by([&] { kept.change(200); }), std::errc::no_space_on_device);
}

// A program that had no room left opens the directory again.
TEST(SpaceReserve, LetsOpenLeaveAFullDisk) {
  faulty_disk disk;
  {
    store kept(disk);
    kept.change(10);
    kept.db.close();
  }
  disk.faults().room_bytes = disk.occupied();  // other files have the rest
  EXPECT_EQ(code_thrown_by([&] {
              faulty_disk copy = disk.copy();
              copy.faults().room_bytes = disk.occupied() - reserve;
              copy.remove(space_reserve::name);
              store without(copy, 0);
            }),
            std::errc::no_space_on_device);
  store kept(disk);
  kept.check(10);
  kept.last = 10;
  kept.change(50);
  kept.check(60);
  EXPECT_GE(kept.db.automatic_checkpoints().written, 1U);
}

// Both the log and the checkpoint that leaves the disk find it full: the log fails, as without a
// reserve, and what was durable stays.
TEST(SpaceReserve, TooSmallIsAsNone) {
  faulty_disk disk;
  disk.faults().room_bytes = room;
  std::uint64_t durable = 0;
  {
    store kept(disk, 4'000);
    EXPECT_EQ(code_thrown_by([&] {
                for (;;) {
                  kept.change(1);
                  durable = kept.last;
                }
              }),
              std::errc::no_space_on_device);
  }
  disk.faults().room_bytes = never;
  store after(disk, 0);
  std::uint64_t least = never;
  after.db.read_only([&](auto& t) {
    t.scan(after.table, all,
           [&](std::uint64_t, const wide& row) { least = std::min(least, row.words[0]); });
  });
  EXPECT_GE(least, durable);
}

TEST(SpaceReserve, HasTheSizeOfTheLastOpen) {
  faulty_disk disk;
  store(disk).db.close();
  EXPECT_EQ(disk.bytes(space_reserve::name).size(), reserve);
  store(disk, 2'000'000).db.close();
  EXPECT_EQ(disk.bytes(space_reserve::name).size(), 2'000'000U);
  store(disk, 100, db::durability::none);  // writes nothing
  EXPECT_EQ(disk.bytes(space_reserve::name).size(), 2'000'000U);
  store(disk, 0).db.close();
  EXPECT_THAT(disk.names(), Not(Contains(space_reserve::name)));
}

// A disk that has too little room for the reserve: the database works without it.
TEST(SpaceReserve, MayNotFit) {
  faulty_disk disk;
  disk.faults().room_bytes = room;
  store kept(disk, 1'000'000);
  EXPECT_THAT(disk.names(), Not(Contains(space_reserve::name)));
  kept.change(3);
  kept.check(3);
}

TEST(SpaceReserve, APowerFailureLosesNothingDurable) {
  random_numbers random(seed_or(71));
  bool survives = false;
  for (std::uint64_t at = 0; !survives; at += 1 + random.below(150)) {
    faulty_disk disk;
    disk.faults().room_bytes = room;
    disk.faults().power_off_at = at;
    std::uint64_t durable = 0;
    try {
      store kept(disk);
      for (; durable < 40; durable = kept.last) kept.change(1);
      survives = true;
    } catch (const std::system_error&) {
    }
    faulty_disk after = disk.after_power_failure(random);
    store found(after);
    std::uint64_t least = never;
    std::uint64_t count = 0;
    found.db.read_only([&](auto& t) {
      t.scan(found.table, all, [&](std::uint64_t, const wide& row) {
        least = std::min(least, row.words[0]);
        ++count;
      });
    });
    if (durable != 0) {
      EXPECT_EQ(count, rows) << at;
      EXPECT_GE(least, durable) << at;
    }
  }
}

}  // namespace
}  // namespace elidex::testing
