// A small program that uses each kind of object: ./dev package compiles and runs it against the
// packages. It prints one line and returns 0 if all results are as expected.
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "elidex/column.hpp"
#include "elidex/database.hpp"
#include "elidex/hash_map.hpp"
#include "elidex/mutex.hpp"
#include "elidex/ordered_map.hpp"
#include "elidex/version.hpp"

namespace {

struct account {
  std::int64_t balance;
};

constexpr std::uint64_t threads = 4;
constexpr std::uint64_t rounds = 1000;

bool maps_and_locks() {
  elidex::ordered_map<std::string, std::uint64_t> words;
  elidex::hash_map<std::uint64_t, std::uint64_t> squares;
  elidex::mutex lock("packaging/use");
  std::uint64_t sum = 0;
  {
    std::vector<std::jthread> running;
    for (std::uint64_t t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        for (std::uint64_t n = t; n < rounds; n += threads) {
          words.upsert(std::to_string(n), n);
          squares.upsert(n, n * n);
          const std::lock_guard guard(lock);
          sum += n;
        }
      });
    }
  }
  return words.size() == rounds && words.get("17") == 17 && squares.get(30) == 900 &&
         sum == rounds * (rounds - 1) / 2;
}

bool columns() {
  elidex::column<std::string> cities;
  for (const char* const city : {"Lima", "Bergen", "Lima"}) cities.insert(city);
  cities.merge();
  return cities.count("Lima") == 2;
}

bool tables(const std::string& directory) {
  {
    elidex::database db;
    auto& accounts = db.create_table<std::uint64_t, account>("accounts");
    db.open(directory, {.level = elidex::db::durability::sync});
    db.transact([&](auto& t) { t.insert(accounts, std::uint64_t{1}, account{30}); });
    db.close();
  }
  elidex::database db;
  auto& accounts = db.create_table<std::uint64_t, account>("accounts");
  db.open(directory, {.level = elidex::db::durability::sync});
  std::int64_t balance = 0;
  db.transact([&](auto& t) { balance = t.get(accounts, std::uint64_t{1}).value().balance; });
  return balance == 30;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("store: wrong number of arguments (expected DIRECTORY, which is empty)\n", stderr);
    return 2;
  }
  const bool right = maps_and_locks() && columns() && tables(arguments[1]);
  std::printf("elidex %s: %s\n", elidex::version,
              right ? "all results are right" : "wrong results");
  return right ? 0 : 1;
}
