// Databases with a directory: what has been committed comes back, at each level, whatever happens
// to the disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/databases.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"
#include "support/thrown_code.hpp"
#include "unit/scripted_htm.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using namespace std::chrono_literals;
using db::durability;
using db::recovered_log;
using db::schema_mismatch;
using db::storage_options;
using db::unknown_table;
using ::testing::HasSubstr;

struct pair_row {
  std::int32_t a = 0;
  std::int64_t b = 0;
};

template <class Database>
class Durability : public ::testing::Test {};
using databases = ::testing::Types<silo_database, dbx_database, locking_dbx_database,
                                   small_nodes_database, two_phase_database>;
TYPED_TEST_SUITE(Durability, databases);

storage_options with(durability level) {
  return {.level = level, .group_time = 1h};
}

template <class Error, class Action>
std::string text_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing thrown";
}

using content = std::map<std::string, std::int64_t>;

// Tables with all kinds of keys.
template <class Database>
struct bank {
  template <class Key, class Row>
  using table = typename Database::template table<Key, Row>;

  explicit bank(faulty_disk& disk, const storage_options& options = with(durability::async),
                bool reversed = false) {
    const auto make = [&](auto& place, const char* name) {
      using row = typename std::remove_reference_t<decltype(*place)>::row_type;
      using key = typename std::remove_reference_t<decltype(*place)>::key_type;
      place = &db.template create_table<key, row>(name);
    };
    if (reversed) make(wide, "wide");
    make(numbered, "numbered");
    make(named, "named");
    make(around_zero, "around zero");
    if (!reversed) make(wide, "wide");
    found = db.open(disk.directory(), options);
  }

  content rows() {
    content all;
    db.read_only([&](auto& t) {
      t.scan(*numbered, std::uint64_t{0}, ~std::uint64_t{0},
             [&](std::uint64_t key, const account& row) {
               all["numbered " + std::to_string(key)] = row.balance;
               return true;
             });
      t.scan(*named, std::string(), std::string("\x7f"),
             [&](std::string_view key, const account& row) {
               all["named " + std::string(key)] = row.balance;
               return true;
             });
      t.scan(*around_zero, -1000, 1000, [&](std::int32_t key, const pair_row& row) {
        all["around zero " + std::to_string(key)] = row.a + row.b;
        return true;
      });
      t.scan(*wide, std::uint64_t{0}, ~std::uint64_t{0},
             [&](std::uint64_t key, const wide_row& row) {
               EXPECT_FALSE(row.torn());
               all["wide " + std::to_string(key)] = static_cast<std::int64_t>(row.words[0]);
               return true;
             });
    });
    return all;
  }

  void change_something(random_numbers& random) {
    db.transact([&, seed = random()](auto& t) {
      random_numbers again(seed);
      for (std::uint64_t i = 1 + again.below(4); i > 0; --i) {
        const std::uint64_t key = again.below(30);
        const auto value = static_cast<std::int64_t>(again.below(1'000));
        const bool erases = again.below(3) == 0;
        const bool updates = again.below(2) == 0;
        const auto change = [&](auto& in, const auto& by, const auto& row) {
          if (erases) {
            t.erase(in, by);
          } else if (!updates || !t.update(in, by, [&](auto& there) { there = row; })) {
            t.upsert(in, by, row);
          }
        };
        switch (again.below(4)) {
          case 0:
            change(*numbered, key, account{value});
            break;
          case 1:
            change(*named, "name " + std::to_string(key), account{value});
            break;
          case 2:
            change(*around_zero, static_cast<std::int32_t>(key) - 15, pair_row{1, value});
            break;
          default:
            change(*wide, key, wide_row::of(static_cast<std::uint64_t>(value)));
        }
      }
    });
  }

  Database db;
  table<std::uint64_t, account>* numbered = nullptr;
  table<std::string, account>* named = nullptr;
  table<std::int32_t, pair_row>* around_zero = nullptr;
  table<std::uint64_t, wide_row>* wide = nullptr;
  recovered_log found;
};

TYPED_TEST(Durability, WhatWasCommittedComesBack) {
  faulty_disk disk;
  random_numbers random(seed_or(21));
  content expected;
  for (int life = 0; life < 8; ++life) {
    bank<TypeParam> now(disk,
                        {.level = durability::async, .group_time = 1ms, .segment_bytes = 2000},
                        life % 2 == 1);
    ASSERT_EQ(now.rows(), expected) << life;
    for (int i = 0; i < 300; ++i) {
      now.change_something(random);
      if (i % 50 == 20) now.db.checkpoint();
      if (i % 70 == 20) now.db.collect();
    }
    expected = now.rows();
    if (life % 3 != 0) now.db.close();
  }
  EXPECT_FALSE(expected.empty());
}

TYPED_TEST(Durability, Levels) {
  faulty_disk disk;
  {
    bank<TypeParam> now(disk, with(durability::none));
    now.db.transact([&](auto& t) { t.upsert(*now.numbered, 1, account{5}); });
    now.db.wait_durable();
    EXPECT_EQ(code_thrown_by([&] { now.db.checkpoint(); }), std::errc::operation_not_supported);
    now.db.close();
  }
  EXPECT_TRUE(disk.names().empty());
  {
    bank<TypeParam> now(disk, with(durability::async));
    now.db.transact([&](auto& t) { t.upsert(*now.numbered, 1, account{5}); });
    faulty_disk before = disk.copy();
    EXPECT_TRUE(bank<TypeParam>(before).rows().empty());
    now.db.wait_durable();
    faulty_disk after = disk.copy();
    EXPECT_EQ(bank<TypeParam>(after).rows(), now.rows());
  }
  {
    bank<TypeParam> now(disk, with(durability::sync));
    now.db.transact([&](auto& t) { t.upsert(*now.numbered, 2, account{7}); });
    faulty_disk after = disk.copy();
    EXPECT_EQ(bank<TypeParam>(after).rows(), now.rows());
  }
  // none: reads what is there, and leaves it as it is.
  bank<TypeParam> now(disk, with(durability::none));
  EXPECT_EQ(now.rows(), (content{{"numbered 1", 5}, {"numbered 2", 7}}));
  now.db.transact([&](auto& t) { t.erase(*now.numbered, 1); });
  EXPECT_EQ(bank<TypeParam>(disk).rows(), (content{{"numbered 1", 5}, {"numbered 2", 7}}));
}

// At level sync who reads what another has committed, and waits for the disk still, waits as well.
TYPED_TEST(Durability, WhatATransactionHasSeenIsDurableWhenItReturns) {
  faulty_disk disk;
  bank<TypeParam> now(disk, with(durability::sync));
  now.db.transact([&](auto& t) { t.upsert(*now.numbered, 1, account{0}); });
  std::atomic<std::int64_t> lost{0};
  std::atomic<bool> done{false};
  {
    const std::jthread writer([&] {
      for (int i = 0; i < repetitions(300); ++i)
        now.db.transact(
            [&](auto& t) { t.update(*now.numbered, 1, [](account& a) { ++a.balance; }); });
      done.store(true);
    });
    const std::jthread reader([&] {
      for (unsigned way = 0; !done.load(); ++way) {
        const auto read = [&](auto& t) { return t.get(*now.numbered, 1)->balance; };
        const auto seen = way % 5 == 4 ? now.db.read_only(read)
                                       : now.db.transact(static_cast<isolation>(way % 5), read);
        faulty_disk left = disk.copy();
        bank<TypeParam> after(left, with(durability::none));
        const auto there =
            after.db.transact([&](auto& t) { return t.get(*after.numbered, 1)->balance; });
        if (there < seen) lost.fetch_add(1);
      }
    });
  }
  EXPECT_EQ(lost.load(), 0);
}

// The same of who finds nothing where a row was: what has been erased stays until the disk has it,
// and tells when.
TYPED_TEST(Durability, AnEraseThatWasSeenIsDurable) {
  faulty_disk disk;
  bank<TypeParam> now(disk, with(durability::sync));
  now.db.transact([&](auto& t) { t.upsert(*now.numbered, 1, account{1}); });
  disk.change_faults([](disk_faults& f) { f.power_off_at = 0; });
  EXPECT_EQ(code_thrown_by([&] { now.db.transact([&](auto& t) { t.erase(*now.numbered, 1); }); }),
            std::errc::io_error);
  for (int i = 0; i < 6; ++i) now.db.collect();
  EXPECT_EQ(now.numbered->absent_records(), 1U);
  const auto look = [&](auto& t) { return t.get(*now.numbered, 1).has_value(); };
  EXPECT_EQ(code_thrown_by([&] { now.db.transact(look); }), std::errc::io_error);
  EXPECT_EQ(code_thrown_by([&] { now.db.read_only(look); }), std::errc::io_error);
}

// At level async nobody is told so, and what has been erased goes before the disk has it: scans
// would step over ever more of it.
TYPED_TEST(Durability, AtLevelAsyncCollectionsDontWaitForTheDisk) {
  faulty_disk disk;
  {
    bank<TypeParam> now(disk);
    now.db.transact([&](auto& t) { t.upsert(*now.numbered, 1, account{1}); });
    now.db.wait_durable();
    now.db.transact([&](auto& t) { t.erase(*now.numbered, 1); });
    EXPECT_EQ(now.numbered->absent_records(), 1U);
    for (int i = 0; i < 6; ++i) now.db.collect();
    EXPECT_EQ(now.numbered->absent_records(), 0U);
    faulty_disk left = disk.copy();
    EXPECT_EQ(bank<TypeParam>(left, with(durability::none)).rows(), (content{{"numbered 1", 1}}));
    now.db.transact([&](auto& t) { t.upsert(*now.numbered, 1, account{2}); });
    now.db.transact([&](auto& t) { t.update(*now.numbered, 1, [](account& a) { ++a.balance; }); });
  }
  EXPECT_EQ(bank<TypeParam>(disk).rows(), (content{{"numbered 1", 3}}));
}

// What can be read at level async does not hang on the disk, nor on whether an erased row has been
// collected.
TYPED_TEST(Durability, AtLevelAsyncAllCanBeReadWhenTheDiskHasFailed) {
  faulty_disk disk;
  bank<TypeParam> now(disk);
  now.db.transact([&](auto& t) {
    for (const std::uint64_t key : {1U, 2U}) t.upsert(*now.numbered, key, account{1});
  });
  now.db.wait_durable();
  now.db.transact([&](auto& t) {
    t.erase(*now.numbered, 1);
    t.upsert(*now.numbered, 2, account{2});
  });
  disk.change_faults([](disk_faults& f) { f.power_off_at = 0; });
  EXPECT_EQ(code_thrown_by([&] { now.db.wait_durable(); }), std::errc::io_error);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(now.db.transact([&](auto& t) { return t.get(*now.numbered, 1).has_value(); }));
    EXPECT_EQ(now.db.transact([&](auto& t) { return t.get(*now.numbered, 2)->balance; }), 2);
    EXPECT_EQ(now.rows(), (content{{"numbered 2", 2}}));
    for (int k = 0; k < 6; ++k) now.db.collect();
  }
  EXPECT_EQ(code_thrown_by(
                [&] { now.db.transact([&](auto& t) { t.upsert(*now.numbered, 3, account{}); }); }),
            std::errc::io_error);
}

TYPED_TEST(Durability, TablesOfTheDirectory) {
  faulty_disk disk;
  {
    bank<TypeParam> first(disk);
    first.db.template create_table<std::uint64_t, account>("made later");
    auto& later = first.db.template find_table<std::uint64_t, account>("made later");
    first.db.transact([&](auto& t) { t.upsert(later, 3, account{4}); });
  }
  EXPECT_THAT(text_of<unknown_table>([&] { bank<TypeParam> without_it(disk); }),
              HasSubstr("made later"));
  TypeParam other;
  other.template create_table<std::uint64_t, account>("numbered");
  other.template create_table<std::string, account>("named");
  other.template create_table<std::uint32_t, pair_row>("around zero");  // was signed
  other.template create_table<std::uint64_t, wide_row>("wide");
  auto& later = other.template create_table<std::uint64_t, account>("made later");
  EXPECT_THAT(
      text_of<schema_mismatch>([&] { other.open(disk.directory()); }),
      HasSubstr(
          "around zero: the directory has rows of 16 bytes, keyed by signed integers of 4 bytes"));
  EXPECT_THROW(other.transact([&](auto& t) { t.upsert(later, 1, account{}); }), std::logic_error);
  EXPECT_THROW(other.read_only([&](auto& t) { t.get(later, 1); }), std::logic_error);
  EXPECT_THROW(other.open(disk.directory()), std::logic_error);

  TypeParam used;
  auto& some = used.template create_table<std::uint64_t, account>("some");
  used.transact([&](auto& t) { t.upsert(some, 1, account{}); });
  EXPECT_THROW(used.open(disk.directory()), std::logic_error);
  EXPECT_EQ(code_thrown_by([&] { used.checkpoint(); }), std::errc::operation_not_supported);
  used.close();  // nothing to close
}

TYPED_TEST(Durability, AFailingDiskStopsCommits) {
  faulty_disk disk;
  bank<TypeParam> now(disk, with(durability::sync));
  now.db.transact([&](auto& t) { t.upsert(*now.numbered, 1, account{5}); });
  disk.change_faults([](disk_faults& f) { f.fail_sync_at = 0; });
  EXPECT_EQ(code_thrown_by(
                [&] { now.db.transact([&](auto& t) { t.upsert(*now.numbered, 2, account{6}); }); }),
            std::errc::io_error);
  disk.change_faults([](disk_faults& f) { f.fail_sync_at = never; });
  EXPECT_EQ(code_thrown_by(
                [&] { now.db.transact([&](auto& t) { t.upsert(*now.numbered, 3, account{7}); }); }),
            std::errc::io_error);
  // What is durable can be read, and what came after is rolled back; the second row's fate nobody
  // knows.
  const auto read = [&](std::uint64_t key) {
    return now.db.read_only(
        [&](auto& t) { return t.get(*now.numbered, key).value_or(account{-1}).balance; });
  };
  EXPECT_EQ(read(1), 5);
  EXPECT_EQ(read(3), -1);
  EXPECT_EQ(code_thrown_by([&] { read(2); }), std::errc::io_error);
  EXPECT_EQ(code_thrown_by([&] { now.db.close(); }), std::errc::io_error);
  faulty_disk after = disk.copy();
  EXPECT_EQ((bank<TypeParam>(after).rows().at("numbered 1")), 5);
}

// What an exception tells a client is durable as well.
TYPED_TEST(Durability, WhatAnExceptionTellsIsDurable) {
  faulty_disk disk;
  bank<TypeParam> now(disk, {.level = durability::sync, .group_time = 20ms});
  std::atomic<int> refused_too_early{0};
  for (std::uint64_t key = 0; key < 5; ++key) {
    const std::jthread first([&] {
      try {
        now.db.transact([&](auto& t) { t.insert(*now.numbered, key, account{1}); });
      } catch (const db::duplicate_key&) {
        // The other one was first.
      }
    });
    try {
      now.db.transact([&](auto& t) { t.insert(*now.numbered, key, account{2}); });
    } catch (const db::duplicate_key&) {
      faulty_disk left = disk.copy();
      bank<TypeParam> after(left, with(durability::none));
      if (!after.rows().contains("numbered " + std::to_string(key))) refused_too_early.fetch_add(1);
    }
  }
  EXPECT_EQ(refused_too_early.load(), 0);
  now.db.close();
  now.db.wait_durable();  // it is
}

TYPED_TEST(Durability, AFullDiskSaysSo) {
  faulty_disk disk;
  random_numbers random(seed_or(22));
  content durable;
  {
    bank<TypeParam> now(disk, with(durability::sync));
    const std::uint64_t full = disk.used() + 20'000;
    disk.change_faults([&](disk_faults& f) { f.disk_bytes = full; });
    std::error_code code;
    while (!code) {
      durable = now.rows();
      code = code_thrown_by([&] { now.change_something(random); });
    }
    EXPECT_EQ(code, std::errc::no_space_on_device);
  }
  disk.change_faults([](disk_faults& f) { f.disk_bytes = never; });
  faulty_disk after = disk.copy();
  EXPECT_EQ((bank<TypeParam>(after).rows()), durable);
}

// A region's record comes into the log behind the region; meanwhile the log must not take the
// region's group as complete.
TEST(DurabilityOfRegions, TheLogWaitsForWhatARegionHasCommitted) {
  using scripted_database = basic_database<db::dbx_commit<dbx_budgets, test::scripted_htm>>;
  faulty_disk disk;
  content expected;
  {
    bank<scripted_database> now(disk, {.level = durability::async, .group_time = 200us});
    test::scripted_htm::reset({test::scripted_htm::conflict, test::scripted_htm::started});
    // a few groups, if nothing held them back
    test::scripted_htm::on_commit([] { std::this_thread::sleep_for(5ms); });
    for (std::uint64_t i = 0; i < 5; ++i)
      now.db.transact(
          [&](auto& t) { t.upsert(*now.numbered, i, account{static_cast<std::int64_t>(i)}); });
    EXPECT_EQ(test::scripted_htm::commits(), 5u);
    EXPECT_EQ(test::scripted_htm::faults(), 0u);
    test::scripted_htm::reset();
    expected = now.rows();
    now.db.close();
  }
  EXPECT_EQ(expected.size(), 5u);
  EXPECT_EQ(bank<scripted_database>(disk, with(durability::none)).rows(), expected);
}

// Transfers by several threads over one bank. Each thread counts its transfers in a row of its own.
template <class Database>
struct counted_transfers {
  static constexpr std::uint64_t accounts = 16;
  static constexpr std::uint64_t threads = 3;

  void insert_rows() {
    now.db.transact([&](auto& t) {
      for (std::uint64_t i = 0; i < accounts; ++i) t.insert(*now.numbered, i, account{100});
      for (std::uint64_t i = 0; i < threads; ++i) t.insert(*now.numbered, 1000 + i, account{0});
    });
    now.db.wait_durable();
  }

  // Returns when each thread has done its work or has met the failed disk.
  void run_beside_checkpoints(random_numbers& random) {
    std::vector<std::jthread> running;
    for (std::uint64_t me = 0; me < threads; ++me) {
      running.emplace_back(
          [this, me, seed = random()] { transfer_until_the_power_fails(me, seed); });
    }
    running.emplace_back([this] { write_checkpoints_until_the_power_fails(); });
  }

  void transfer_until_the_power_fails(std::uint64_t me, std::uint64_t seed) {
    random_numbers mine(seed);
    try {
      for (int i = 0; i < 2'000; ++i) {
        const std::int64_t count = transfer(me, mine);
        if (level == durability::sync) promised[me].store(count);
      }
    } catch (const std::system_error&) {
      // The power is off.
    }
  }
  void write_checkpoints_until_the_power_fails() {
    try {
      for (int i = 0; i < 20; ++i) {
        now.db.checkpoint();
        now.db.collect();
      }
    } catch (const std::system_error&) {
      // The power is off.
    }
  }

  // Returns how many transfers the thread has committed, this one included.
  std::int64_t transfer(std::uint64_t me, random_numbers& random) {
    return now.db.transact([&](auto& t) {
      const std::uint64_t from = random.below(accounts);
      const std::uint64_t to = random.below(accounts);
      const auto amount = static_cast<std::int64_t>(random.below(10));
      t.update(*now.numbered, from, [&](account& a) { a.balance -= amount; });
      t.update(*now.numbered, to, [&](account& a) { a.balance += amount; });
      std::int64_t number = 0;
      t.update(*now.numbered, 1000 + me, [&](account& a) { number = ++a.balance; });
      // This row is there after odd transfers only.
      if (number % 2 == 1) {
        t.upsert(*now.named, std::to_string(me), account{number});
      } else {
        t.erase(*now.named, std::to_string(me));
      }
      return number;
    });
  }

  // Checks what a recovery has found: whole transfers only, and all that were promised.
  void check(const content& rows, int life) const {
    std::int64_t sum = 0;
    for (std::uint64_t i = 0; i < accounts; ++i) sum += rows.at("numbered " + std::to_string(i));
    ASSERT_EQ(sum, std::int64_t{accounts} * 100) << "life " << life;
    for (std::uint64_t me = 0; me < threads; ++me) {
      const std::int64_t count = rows.at("numbered " + std::to_string(1000 + me));
      ASSERT_GE(count, promised[me].load());
      const auto odd = rows.find("named " + std::to_string(me));
      ASSERT_EQ(odd != rows.end(), count % 2 == 1);
      if (odd != rows.end()) {
        ASSERT_EQ(odd->second, count);
      }
    }
  }

  bank<Database>& now;
  durability level;
  // How many transfers of each thread have returned at level sync.
  std::array<std::atomic<std::int64_t>, threads> promised{};
};

// Transfers run beside checkpoints and collections. The power goes at a random moment, again and
// again.
TYPED_TEST(Durability, PowerFailuresUnderThreads) {
  random_numbers random(seed_or(23));
  for (const durability level : {durability::async, durability::sync}) {
    faulty_disk disk;
    for (int life = 0; life < repetitions(12); ++life) {
      bank<TypeParam> now(disk, {.level = level, .group_time = 200us, .segment_bytes = 10'000});
      counted_transfers<TypeParam> transfers{now, level};
      if (life == 0) transfers.insert_rows();
      const std::uint64_t last = disk.operations() + random.below(200);
      disk.change_faults([&](disk_faults& f) { f.power_off_at = last; });
      transfers.run_beside_checkpoints(random);
      disk = disk.after_power_failure(random);
      faulty_disk left = disk.copy();
      bank<TypeParam> after(left, with(durability::none));
      transfers.check(after.rows(), life);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace elidex::testing
