// What fork() leaves: a child has the parent's maps, databases and locks, and none of its threads.
#include <gtest/gtest.h>

#if defined(__unix__)

#  include <barrier>
#  include <chrono>
#  include <filesystem>
#  include <map>
#  include <memory>
#  include <string>
#  include <thread>

#  include "elidex/column.hpp"
#  include "elidex/condition_variable.hpp"
#  include "elidex/hash_map.hpp"
#  include "elidex/internal/memory/epoch.hpp"
#  include "elidex/mutex.hpp"
#  include "elidex/ordered_map.hpp"
#  include "elidex/shared_mutex.hpp"
#  include "support/databases.hpp"
#  include "support/emulator.hpp"
#  include "support/forked_child.hpp"
#  include "support/thread_sanitizer.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using namespace std::chrono_literals;
using db::durability;
using db::forked_child;
using u64 = std::uint64_t;

// Runs `fn` while another thread is inside of `around`, which calls the function that it is given.
template <class Around, class Fn>
void while_another_thread_is_in(Around&& around, Fn&& fn) {
  std::barrier both(2);
  std::jthread other([&] {
    around([&] {
      both.arrive_and_wait();
      both.arrive_and_wait();
    });
  });
  both.arrive_and_wait();
  fn();
  both.arrive_and_wait();
}

template <class Error, class Action>
std::string unless_thrown(const char* what, Action&& action) {
  try {
    action();
  } catch (const Error&) {
    return "";
  }
  return std::string(what) + " throws nothing";
}

TEST(ForkedChildCanary, AChildThatEndsBeforeItsResultIsFound) {
  EXPECT_EQ(in_child([]() -> std::string { ::_exit(3); }), "ended with status 3");
  EXPECT_EQ(in_child([]() -> std::string {
              ::raise(SIGKILL);
              return "";
            }),
            "ended by signal 9");
}

// --- Epochs

TEST(ForkedChild, PinsOfOtherThreadsHaveEndedAndItsOwnHaveNot) {
  const auto pinned = [](const auto& inside) {
    const epoch_pin pin;
    const epoch_pin nested;
    inside();
  };
  while_another_thread_is_in(pinned, [] {
    const auto moves_on = [] {
      const u64 before = try_advance_epoch();
      return try_advance_epoch() > before && try_advance_epoch() > before + 1;
    };
    EXPECT_FALSE(moves_on()) << "in the parent";
    EXPECT_EQ(in_child([&] { return moves_on() ? "" : "held back"; }), "");
    const epoch_pin own;
    EXPECT_EQ(in_child([&] { return moves_on() ? "its own pin is forgotten" : ""; }), "");
    // In a child's child as well.
    EXPECT_EQ(in_child([&] { return in_child([&] { return moves_on() ? "forgotten" : ""; }); }),
              "");
  });
}

TEST(ForkedChild, SnapshotsAndCommitsOfOtherThreadsDoNotHoldTheClockBack) {
  internal::commit_clock clock;
  const auto moves_on = [&] {
    const u64 now = clock.advance();
    clock.move_horizon();
    return clock.completed() == now - 1 && clock.horizon() == now;
  };
  const auto reads = [&](const auto& inside) {
    const internal::commit_clock::snapshot snapshot(clock);
    inside();
  };
  const auto commits = [&](const auto& inside) {
    const internal::commit_clock::commit_phase phase(clock);
    inside();
  };
  const auto look = [&] {
    EXPECT_FALSE(moves_on()) << "in the parent";
    EXPECT_EQ(in_child([&] { return moves_on() ? "" : "held back"; }), "");
    EXPECT_EQ(in_child([&] { return in_child([&] { return moves_on() ? "" : "held back"; }); }),
              "");
  };
  while_another_thread_is_in(reads, look);
  while_another_thread_is_in(commits, look);
}

TEST(ForkedChild, ItsOwnSnapshotsAndCommitsGoOn) {
  internal::commit_clock clock;
  const auto kept = [&] {
    const u64 before = clock.settled_horizon();
    clock.advance();
    clock.advance();
    return clock.settled_horizon() <= before + 1;
  };
  const auto forgotten = [&] { return kept() ? "" : "forgotten"; };
  {
    const internal::commit_clock::snapshot snapshot(clock);
    EXPECT_EQ(in_child(forgotten), "");
    EXPECT_EQ(in_child([&] { return in_child(forgotten); }), "");
  }
  const internal::commit_clock::commit_phase phase(clock);
  EXPECT_EQ(in_child(forgotten), "");
}

// --- In memory

template <class Map, class MakeKey>
std::string use_map(Map& map, const MakeKey& key, int keys) {
  for (int n = 0; n < keys; ++n) map.upsert(key(n), n + 1);
  for (int n = 0; n < keys; n += 2) map.erase(key(n));
  for (int n = 0; n < keys; ++n) {
    const auto found = map.get(key(n));
    if (found.has_value() != (n % 2 == 1) || (found && *found != n + 1))
      return "wrong: " + std::to_string(n);
  }
  return "";
}

TEST(ForkedChild, UsesMapsWhoseThreadsAreBetweenCalls) {
  ordered_map<u64, int> numbers;
  ordered_map<std::string, int> names;
  hash_map<u64, int> hashed;
  const auto number = [](int n) { return static_cast<u64>(n); };
  const auto name = [](int n) { return "name " + std::to_string(n); };
  constexpr int keys = 5'000;
  const auto use_all = [&] {
    return use_map(numbers, number, keys) + use_map(names, name, keys) +
           use_map(hashed, number, keys);
  };
  const auto between_calls = [&](const auto& inside) {
    use_all();
    auto cursor = names.cursor();
    cursor.seek(name(1));
    inside();
  };
  while_another_thread_is_in(between_calls, [&] {
    EXPECT_EQ(in_child([&] {
                std::string wrong = use_all() + use_all();
                if (names.stats().retired_objects > 5'000) wrong += "; nothing is reclaimed";
                return wrong;
              }),
              "");
    EXPECT_EQ(use_all(), "") << "in the parent";
  });
}

#  if !defined(ELIDEX_THREAD_SANITIZER)  // ends a forked child that starts a thread
// QEMU 7.2 fails an assertion of its own, in a program without elidex too.
constexpr const char* no_threads_in_child = "QEMU aborts if a forked child starts a thread";

TEST(ForkedChild, ItsNewThreadsUseMaps) {
  if (runs_in_qemu()) GTEST_SKIP() << no_threads_in_child;
  ordered_map<std::string, int> map;
  const auto pinned = [](const auto& inside) {
    const epoch_pin pin;
    inside();
  };
  while_another_thread_is_in(pinned, [&] {
    EXPECT_EQ(in_child([&] {
                std::string results[4];
                {
                  std::vector<std::jthread> threads;
                  for (int t = 0; t < 4; ++t) {
                    threads.emplace_back([&, t] {
                      const auto key = [t](int n) {
                        return std::to_string(t) + " " + std::to_string(n);
                      };
                      results[t] = use_map(map, key, 2'000);
                    });
                  }
                }
                return results[0] + results[1] + results[2] + results[3];
              }),
              "");
  });
}
#  endif

TEST(ForkedChild, MergesAColumnThoughOthersWerePinned) {
  column<std::string> cities;
  for (int n = 0; n < 1'000; ++n) cities.insert("city " + std::to_string(n % 100));
  const auto pinned = [](const auto& inside) {
    const epoch_pin pin;
    inside();
  };
  while_another_thread_is_in(pinned, [&] {
    EXPECT_EQ(in_child([&] {
                cities.merge();
                cities.insert("Oslo");
                return cities.find("Oslo").size() == 1 && cities.get(7) == "city 7" ? "" : "wrong";
              }),
              "");
  });
}

TEST(ForkedChild, UsesMutexesThatOthersDoNotHold) {
  mutex lock;
  shared_mutex shared;
  condition_variable ready;
  const auto use_all = [&] {
    {
      const std::lock_guard guard(lock);
      ready.notify_all();
    }
    const std::shared_lock reading(shared);
    return shared.try_lock() ? "a writer beside a reader" : "";
  };
  use_all();
  std::jthread([&] { use_all(); }).join();
  EXPECT_EQ(in_child(use_all), "");
  // What the forking thread holds its child holds.
  const std::lock_guard guard(lock);
  EXPECT_EQ(in_child([&] {
              lock.unlock();
              return use_all();
            }),
            "");
}

template <class Database>
class ForkedDatabase : public ::testing::Test {};
using databases = ::testing::Types<silo_database, locking_dbx_database, two_phase_database>;
TYPED_TEST_SUITE(ForkedDatabase, databases);

TYPED_TEST(ForkedDatabase, InMemoryGoesOnBesideTransactionsOfOtherThreads) {
  TypeParam db;
  auto& accounts = db.template create_table<u64, account>("accounts");
  const auto use = [&]() -> std::string {
    for (u64 key = 10; key < 600; ++key)
      db.transact([&](auto& t) { t.upsert(accounts, key, account{1}); });
    for (u64 key = 10; key < 600; ++key) db.transact([&](auto& t) { t.erase(accounts, key); });
    for (int i = 0; i < 4; ++i) db.collect();
    std::int64_t sum = 0;
    db.read_only([&](auto& t) {
      t.scan(accounts, u64{0}, [&](u64, const account& row) { sum += row.balance; });
    });
    if (sum != 5) return "the sum is " + std::to_string(sum);
    const std::size_t absent = accounts.absent_records();
    return absent == 0 ? "" : std::to_string(absent) + " erased records are kept";
  };
  db.transact([&](auto& t) { t.upsert(accounts, 1, account{5}); });
  const auto transacts = [&](const auto& inside) {
    bool again = false;
    db.transact(isolation::read_committed, [&](auto& t) {
      t.get(accounts, 2);
      if (!std::exchange(again, true)) inside();
    });
  };
  const auto reads = [&](const auto& inside) {
    db.read_only([&](auto& t) {
      t.get(accounts, 1);
      inside();
    });
  };
  while_another_thread_is_in(transacts, [&] { EXPECT_EQ(in_child(use), ""); });
  while_another_thread_is_in(reads, [&] { EXPECT_EQ(in_child(use), ""); });
  EXPECT_EQ(use(), "") << "in the parent";
}

// --- With a directory

class temporary_directory {
 public:
  temporary_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "elidex-fork-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~temporary_directory() { std::filesystem::remove_all(path_); }
  std::string log() const { return (path_ / "log").string(); }
  // Names and sizes.
  std::map<std::string, std::uintmax_t> files() const {
    std::map<std::string, std::uintmax_t> found;
    for (const auto& one : std::filesystem::directory_iterator(log()))
      found[one.path().filename()] = one.file_size();
    return found;
  }

 private:
  std::filesystem::path path_;
};

template <class Database>
struct durable_bank {
  durable_bank(const temporary_directory& directory, durability level) {
    db->open(directory.log(), {.level = level, .group_time = 1h});
  }
  void upsert(u64 key, std::int64_t balance) {
    db->transact([&](auto& t) { t.upsert(accounts, key, account{balance}); });
  }
  std::optional<std::int64_t> balance(u64 key) {
    std::optional<account> found;
    db->read_only([&](auto& t) { found = t.get(accounts, key); });
    return found ? std::optional(found->balance) : std::nullopt;
  }
  std::unique_ptr<Database> db = std::make_unique<Database>();
  typename Database::template table<u64, account>& accounts =
      db->template create_table<u64, account>("accounts");
};

TYPED_TEST(ForkedDatabase, RefusesAtOnceWhatNeedsTheParentsLog) {
  for (const durability level : {durability::async, durability::sync}) {
    const temporary_directory directory;
    {
      durable_bank<TypeParam> bank(directory, level);
      bank.upsert(1, 5);
      bank.db->wait_durable();
      const auto before = directory.files();
      const auto refused = [](const char* what, const auto& action) {
        EXPECT_EQ(in_child([&] { return unless_thrown<forked_child>(what, action); }), "") << what;
      };
      refused("a transaction that writes", [&] { bank.upsert(1, 6); });
      refused("wait_durable()", [&] { bank.db->wait_durable(); });
      refused("checkpoint()", [&] { bank.db->checkpoint(); });
      refused("close()", [&] { bank.db->close(); });
      refused("create_table()", [&] { bank.db->template create_table<u64, account>("more"); });
      EXPECT_EQ(in_child([&] { return bank.balance(1) == 5 ? "" : "another balance"; }), "");
      // In the middle of a transaction: the parent's commits, the child's does not.
      pid_t child = -1;
      try {
        bank.db->transact([&](auto& t) {
          if (child < 0) child = ::fork();
          if (child == 0) ::alarm(child_seconds_max);
          t.upsert(bank.accounts, child == 0 ? 3 : 2, account{7});
        });
        if (child == 0) ::_exit(1);
      } catch (const forked_child&) {
        if (child == 0) ::_exit(0);
        throw;
      }
      int status = 1;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0) << "the child of a transaction";
      bank.db->wait_durable();
      EXPECT_EQ(directory.files().size(), before.size());
    }
    durable_bank<TypeParam> again(directory, durability::none);
    EXPECT_EQ(again.balance(1), 5);
    EXPECT_EQ(again.balance(2), 7);
    EXPECT_EQ(again.balance(3), std::nullopt);
  }
}

TYPED_TEST(ForkedDatabase, IsDestroyedWithoutTouchingTheParentsDirectory) {
  for (const durability level : {durability::async, durability::sync}) {
    const temporary_directory directory;
    durable_bank<TypeParam> bank(directory, level);
    bank.upsert(1, 5);
    // The parent's logger writes after upsert(), and once more after the group is durable.
    bank.db->wait_durable();
    decltype(directory.files()) before;
    do {
      before = directory.files();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    } while (directory.files() != before);
    EXPECT_EQ(in_child([&]() -> std::string {
                bank.db.reset();
                return "";
              }),
              "");
    EXPECT_EQ(directory.files(), before);
    EXPECT_THROW(internal::open_log_directory(directory.log()), std::system_error)
        << "the lock is gone";
    bank.upsert(1, 6);
    bank.db->close();
    EXPECT_EQ(bank.balance(1), 6);
  }
}

TYPED_TEST(ForkedDatabase, AChildThatLivesOnDoesNotKeepTheDirectoryLocked) {
  const temporary_directory directory;
  std::optional<durable_bank<TypeParam>> bank(std::in_place, directory, durability::async);
  bank->upsert(1, 5);
  int until_closed[2];
  ASSERT_EQ(::pipe(until_closed), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(child_seconds_max);
    ::close(until_closed[1]);
    char byte = 0;
    ::_exit(::read(until_closed[0], &byte, 1) == 0 ? 0 : 1);
  }
  bank.reset();
  EXPECT_NO_THROW(bank.emplace(directory, durability::async));
  ::close(until_closed[0]);
  ::close(until_closed[1]);
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

#  if !defined(ELIDEX_THREAD_SANITIZER)
TYPED_TEST(ForkedDatabase, AChildKeepsADirectoryOfItsOwn) {
  if (runs_in_qemu()) GTEST_SKIP() << no_threads_in_child;
  const temporary_directory parents;
  const temporary_directory childs;
  durable_bank<TypeParam> bank(parents, durability::sync);
  bank.upsert(1, 5);
  EXPECT_EQ(in_child([&]() -> std::string {
              durable_bank<TypeParam> own(childs, durability::sync);
              own.upsert(1, 9);
              own.db->checkpoint();
              own.db->close();
              return "";
            }),
            "");
  durable_bank<TypeParam> again(childs, durability::none);
  EXPECT_EQ(again.balance(1), 9);
}
#  endif

}  // namespace
}  // namespace elidex::testing

#endif
