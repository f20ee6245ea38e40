#include "smoke.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <shared_mutex>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "elidex/column.hpp"
#include "elidex/condition_variable.hpp"
#include "elidex/database.hpp"
#include "elidex/hash_map.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/mutex.hpp"
#include "elidex/ordered_map.hpp"
#include "elidex/shared_mutex.hpp"

namespace {

using u64 = std::uint64_t;
constexpr u64 threads = 4;
constexpr u64 rounds = 500;

void expect(bool right, std::source_location here = std::source_location::current()) {
  if (!right) throw std::runtime_error("smoke.cpp:" + std::to_string(here.line()) + ": wrong");
}

template <class Work>
void on_threads(const Work& work) {
  std::vector<std::jthread> running;
  for (u64 t = 0; t < threads; ++t) running.emplace_back([&work, t] { work(t); });
}

struct account {
  std::int64_t balance;
};

// Static ones may be used until the very end of a process.
static_assert(std::is_trivially_destructible_v<elidex::mutex> &&
              std::is_trivially_destructible_v<elidex::shared_mutex> &&
              std::is_trivially_destructible_v<elidex::recursive_mutex>);

// They live until the program ends or the plug-in is unloaded.
elidex::mutex static_lock("smoke, static");
elidex::ordered_map<std::string, std::string> static_map;
elidex::database static_database;  // with a logger's thread

void maps() {
  elidex::ordered_map<u64, u64> ordered;
  elidex::ordered_map<std::string, std::string> strings;
  elidex::hash_map<u64, u64> hashed;
  on_threads([&](u64 t) {
    for (u64 n = 0; n < rounds; ++n) {
      const u64 key = n * threads + t;
      ordered.upsert(key, key + 1);
      strings.upsert(std::to_string(key), std::to_string(key + 1));
      hashed.upsert(key, key + 1);
    }
    for (u64 n = 0; n < rounds; n += 2) expect(ordered.erase(n * threads + t));
  });
  u64 seen = 0;
  ordered.scan_n(0, threads * rounds, [&](u64 key, u64 value) {
    expect(key / threads % 2 == 1 && value == key + 1);
    ++seen;
  });
  expect(seen == threads * rounds / 2);
  expect(strings.get("17") == "18" && strings.size() == threads * rounds);
  expect(hashed.get(17) == 18 && !hashed.contains(threads * rounds));
  static_map.upsert("left", "behind");
}

void column() {
  elidex::column<std::string> names;
  on_threads([&](u64) {
    for (u64 n = 0; n < rounds; ++n) names.insert("name " + std::to_string(n % 10));
  });
  names.merge();
  expect(names.count("name 3") == threads * rounds / 10);
  elidex::column<std::int64_t> numbers;
  const auto row = numbers.insert(-5);
  numbers.merge();
  expect(numbers.get(row).value() == -5);
}

void fill(elidex::database& db) {
  auto& accounts = db.create_table<u64, account>("accounts");
  db.transact([&](auto& t) {
    if (!t.get(accounts, u64{1})) t.insert(accounts, u64{1}, account{0});
  });
  on_threads([&](u64) {
    for (u64 n = 0; n < rounds / 10; ++n) {
      db.transact([&](auto& t) { t.update(accounts, u64{1}, [](account& a) { ++a.balance; }); });
    }
  });
}

std::int64_t balance_in(elidex::database& db) {
  std::int64_t balance = -1;
  auto& accounts = db.find_table<u64, account>("accounts");
  db.read_only([&](auto& t) {
    t.scan(accounts, u64{0}, [&](auto, const account& a) { balance = a.balance; });
  });
  return balance;
}

void databases(const std::filesystem::path& directory) {
  constexpr std::int64_t added = threads * (rounds / 10);
  elidex::database in_memory;
  fill(in_memory);
  expect(balance_in(in_memory) == added);

  const elidex::db::storage_options options{.level = elidex::db::durability::sync};
  {
    elidex::database kept;
    kept.create_table<u64, account>("accounts");
    kept.open((directory / "kept").string(), options);
    kept.transact(
        [&](auto& t) { t.insert(kept.find_table<u64, account>("accounts"), u64{1}, account{30}); });
    kept.checkpoint();
    kept.transact([&](auto& t) {
      t.update(kept.find_table<u64, account>("accounts"), u64{1}, [](account& a) { ++a.balance; });
    });
    kept.close();
  }
  {
    elidex::database again;
    again.create_table<u64, account>("accounts");
    again.open((directory / "kept").string(), options);
    expect(balance_in(again) == 31);
  }
  bool caught = false;
  try {
    elidex::database without_its_table;
    without_its_table.open((directory / "kept").string(), options);
  } catch (const elidex::db::unknown_table&) {  // thrown inside of the library
    caught = true;
  }
  expect(caught);
  static_database.open((directory / "static").string(), {.level = elidex::db::durability::async});
  static_database.transact([](auto&) {});
}

void locks() {
  elidex::mutex lock("smoke");
  elidex::condition_variable changed;
  u64 turn = 0;
  on_threads([&](u64 t) {
    for (u64 n = 0; n < 50; ++n) {
      std::unique_lock guard(lock);
      changed.wait(guard, [&] { return turn % threads == t; });
      ++turn;
      changed.notify_all();
    }
  });
  expect(turn == threads * 50);

  elidex::recursive_mutex twice;
  elidex::shared_mutex shared("smoke, shared");
  u64 sum = 0;
  on_threads([&](u64) {
    for (u64 n = 0; n < rounds; ++n) {
      const std::lock_guard outer(twice);
      const std::lock_guard inner(twice);
      ++sum;
      const std::shared_lock reader(shared);
      const std::lock_guard guard(static_lock);
    }
  });
  expect(sum == threads * rounds);

  bool found = false;
  for (const elidex::named_lock_counts& one : elidex::named_lock_stats()) {
    std::ostringstream line;
    line << one;
    found = found || (one.name == "smoke" && line.str().starts_with("smoke: locks "));
  }
  expect(found);
}

void threads_that_come_and_go() {
  elidex::ordered_map<u64, u64> map;
  for (u64 n = 0; n < 100; ++n) {
    std::uint32_t slot = 0;
    std::jthread([&] {
      map.upsert(n, n);
      slot = elidex::internal::this_thread_slot();
    });
    expect(slot < 2 * threads + 8);  // those that are gone have given theirs back
  }
  expect(map.size() == 100);
}

}  // namespace

int smoke(const char* directory) {
  try {
    maps();
    column();
    databases(directory);
    locks();
    threads_that_come_and_go();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

int smoke_touch() {
  try {
    const std::lock_guard guard(static_lock);
    elidex::ordered_map<u64, u64> map;
    elidex::database db;
    auto& accounts = db.create_table<u64, account>("accounts");
    const auto use = [&](u64 key) {
      map.upsert(key, key);
      static_map.upsert("key", std::to_string(key));
      db.transact([&](auto& t) { t.insert(accounts, key, account{1}); });
    };
    use(1);
    std::jthread([&] { use(2); });
    expect(map.size() == 2 && map.get(2) == 2);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

void smoke_leave_threads_running() {
  static auto& map = *new elidex::ordered_map<u64, u64>;
  static auto& db = *new elidex::database;
  static auto& accounts = db.create_table<u64, account>("accounts");
  static std::atomic<u64> running{0};
  for (u64 t = 0; t < threads; ++t) {
    std::thread([t] {
      for (u64 n = 0;; ++n) {
        map.upsert(n % 1000 * threads + t, n);
        db.transact([&](auto& s) {
          if (!s.get(accounts, t)) s.insert(accounts, t, account{0});
          s.update(accounts, t, [](account& a) { ++a.balance; });
        });
        const std::lock_guard guard(static_lock);
        if (n == 0) ++running;
        std::thread([] { map.upsert(0, 0); }).join();  // which may register while the process ends
      }
    }).detach();
  }
  while (running.load() != threads) std::this_thread::yield();
}
