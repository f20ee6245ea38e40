#include <iostream>

#include "elidex/database.hpp"

struct account {
  std::int64_t balance;
};

int main() {
  elidex::database db;
  auto& accounts = db.create_table<std::uint64_t, account>("accounts");
  // db.open("bank", {.level = elidex::db::durability::sync}) would keep it in a directory.
  db.transact([&](auto& t) {
    t.upsert(accounts, 1, account{100});
    t.upsert(accounts, 2, account{0});
  });
  // All of it or, after an exception, nothing. A conflict with another thread runs it again.
  db.transact([&](auto& t) {
    t.update(accounts, 1, [](account& a) { a.balance -= 30; });
    t.update(accounts, 2, [](account& a) { a.balance += 30; });
  });
  db.read_only([&](auto& t) {  // a snapshot; no writer waits for it
    t.scan(accounts, 0,
           [](auto key, const account& a) { std::cout << key << ": " << a.balance << '\n'; });
  });
}
