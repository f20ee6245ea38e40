// Uses each public header, as a program outside of the project does: compiled with many warnings,
// all of them errors.

#include <cstdint>
#include <cstdio>
#include <elidex/column.hpp>
#include <elidex/condition_variable.hpp>
#include <elidex/database.hpp>
#include <elidex/elided.hpp>
#include <elidex/hash_map.hpp>
#include <elidex/htm.hpp>
#include <elidex/mutex.hpp>
#include <elidex/ordered_map.hpp>
#include <elidex/shared_mutex.hpp>
#include <elidex/version.hpp>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace {

#if defined(__SIZEOF_INT128__)
// Integral with GNU extensions. Keys are compared as 64 bits, so the maps must refuse it.
__extension__ using wide = __int128;
static_assert(!elidex::internal::integer_key<wide>);
#endif

struct account {
  std::int64_t balance;
};

bool maps_work() {
  elidex::ordered_map<std::uint64_t, std::uint64_t> ordered;
  elidex::ordered_map<std::string, std::string> strings;
  elidex::hash_map<std::uint64_t, std::uint64_t> hashed;
  ordered.insert(1, 2);
  strings.upsert("a", "b");
  hashed.upsert(3, 4);
  std::uint64_t sum = 0;
  ordered.scan_n(0, 10, [&](std::uint64_t key, std::uint64_t value) { sum += key + value; });
  return sum == 3 && strings.get("a") == "b" && hashed.get(3) == 4;
}

bool a_column_works() {
  elidex::column<std::string> cities;
  cities.insert("Oslo");
  cities.merge();
  return cities.count("Oslo") == 1;
}

template <class Database>
bool a_database_works() {
  Database db;
  auto& accounts = db.template create_table<std::uint64_t, account>("accounts");
  db.transact([&](auto& t) { t.upsert(accounts, 1, account{100}); });
  std::int64_t seen = 0;
  db.transact([&](auto& t) { seen = t.get(accounts, 1)->balance; });
  return seen == 100;
}

bool locks_work() {
  elidex::mutex plain;
  elidex::recursive_mutex recursive;
  elidex::shared_mutex shared;
  elidex::condition_variable changed;
  elidex::elided<elidex::ttas_lock> elided;
  elidex::basic_mutex<elidex::htm::never> never_elided;
  int sum = 0;
  {
    std::unique_lock guard(plain);
    changed.wait(guard, [] { return true; });
    ++sum;
  }
  changed.notify_all();
  {
    const std::scoped_lock guard(recursive, never_elided);
    const std::scoped_lock again(recursive);
    ++sum;
  }
  {
    const std::shared_lock guard(shared);
    ++sum;
  }
  sum += elided.run([] { return 1; });
  return sum == 4;
}

}  // namespace

int main() {
  const bool right = maps_work() && a_column_works() && a_database_works<elidex::database>() &&
                     a_database_works<elidex::basic_database<elidex::db::two_phase_locking<>>>() &&
                     locks_work();
  std::printf("elidex %s, %s: %s\n", elidex::version, elidex::htm::capability().reason,
              right ? "right" : "wrong");
  return right ? 0 : 1;
}
