#pragma once
// A company that is loaded in a moment, for tests.

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "bench/tpcc/consistency.hpp"
#include "bench/tpcc/terminal.hpp"
#include "elidex/database.hpp"

namespace elidex::bench::tpcc {

inline date no_clock() noexcept {
  return 1'700'000'000'000'000;
}

template <class Database = basic_database<db::silo_commit>>
struct small_company {
  explicit small_company(std::uint32_t warehouses = 2, std::uint64_t seed = 1,
                         std::uint32_t customers = 30)
      : in(db, {.warehouses = warehouses, .customers = customers, .items = 100}, seed, &no_clock) {
    in.load();
  }

  template <class Table>
  auto row(Table& table, std::uint64_t key) {
    return db.transact([&](auto& t) { return t.get(table, key); });
  }
  template <class Table>
  std::size_t rows(Table& table) {
    std::size_t many = 0;
    db.read_only([&](auto& t) {
      t.scan(table, std::uint64_t{0}, UINT64_MAX, [&](std::uint64_t, const auto&) {
        ++many;
        return true;
      });
    });
    return many;
  }
  template <class Table, class Fn>
  void change(Table& table, std::uint64_t key, Fn fn) {
    ASSERT_TRUE(db.transact([&](auto& t) { return t.update(table, key, fn); }));
  }
  template <class Table>
  void erase(Table& table, std::uint64_t key) {
    ASSERT_TRUE(db.transact([&](auto& t) { return t.erase(table, key); }));
  }

  // The conditions that don't hold.
  std::set<int> broken() {
    std::set<int> conditions;
    for (const violation& one : violations(in)) conditions.insert(one.condition);
    return conditions;
  }
  std::string told() {
    std::string text;
    for (const violation& one : violations(in)) text += one.text + "\n";
    return text;
  }

  Database db;
  company<Database> in;
};

}  // namespace elidex::bench::tpcc
