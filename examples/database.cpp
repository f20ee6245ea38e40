// Two tables, a transaction that moves money between rows, and a report of one moment. See
// docs/DATABASE.md.
#include "elidex/database.hpp"

#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

struct account {
  std::int64_t balance;
};

int main() {
  elidex::database db;  // any number of threads may use it
  auto& accounts = db.create_table<std::uint64_t, account>("accounts");
  auto& names = db.create_table<std::string, std::uint64_t>("account by name");
  db.transact([&](auto& t) {
    for (std::uint64_t number = 0; number < 10; ++number) {
      t.insert(accounts, number, account{100});
      t.insert(names, "account " + std::to_string(number), number);
    }
  });

  std::vector<std::thread> threads;
  for (std::uint64_t me = 0; me < 2; ++me) {
    threads.emplace_back([&, me] {
      for (std::uint64_t turn = 0; turn < 10'000; ++turn) {
        db.transact([&](auto& t) {  // may run several times, so it changes nothing but the database
          const std::uint64_t from = *t.get(names, "account " + std::to_string(turn % 10));
          const std::uint64_t to = (turn * 7 + me + 1) % 10;
          if (from == to || t.get(accounts, from)->balance < 5) return;
          t.update(accounts, from, [](account& a) { a.balance -= 5; });
          t.update(accounts, to, [](account& a) { a.balance += 5; });
        });
      }
    });
  }
  const auto sum = [&] {
    return db.read_only([&](auto& t) {
      std::int64_t total = 0;
      t.scan(accounts, std::uint64_t{0}, std::uint64_t{10}, [&](std::uint64_t, const account& a) {
        total += a.balance;
        return true;
      });
      return total;
    });
  };
  const std::int64_t meanwhile = sum();
  for (std::thread& one : threads) one.join();
  std::cout << "sum meanwhile " << meanwhile << ", at the end " << sum() << '\n';
}
