#pragma once
// YCSB's transactions as native_run (bench/table_store/native_run.hpp) drives them: a client for
// each thread, and behind each run the table's counters beside what the clients committed.
//
//   native_run<ycsb_txn::driven_store<basic_database<db::silo_commit>>> s({.keys = 100'000}, seed,
//       {});
//   // empty: nothing is lost, nothing came twice, no field is torn
//   s.run({.threads = 2, .seconds = 5}).violations
//
// Thread-safety: native_run's. Errors: std::invalid_argument for settings that cannot be.

#include <string>

#include "bench/table_store/workload.hpp"
#include "bench/ycsb_txn/ycsb_txn.hpp"

namespace elidex::bench::ycsb_txn {

using namespace internal;

template <class Database>
class driven_store {
 public:
  using database_type = Database;
  using settings = ycsb_txn::settings;
  using user = client<store<Database>>;

  driven_store(Database& in, const settings& wanted, std::uint64_t seed)
      : store_(in, wanted, seed) {}

  std::size_t shares() const noexcept { return store_.shares(); }
  void load_share(std::size_t i) { store_.load_share(i); }

  std::size_t kinds() const noexcept { return kind_names.size(); }
  user make_user(unsigned, std::uint64_t seed) { return user(store_, seed); }
  table_store::step_result step(user& who) const {
    return {static_cast<std::size_t>(who.step()), false};
  }

  void add(const user& who) noexcept { committed_ += who.increments(); }
  void check(table_store::run_outcome& outcome) {
    const auto there = store_.counted();
    outcome.missing = static_cast<std::int64_t>(committed_ - there.changes);
    const auto wrong = [&](const std::string& text) { outcome.violations.push_back(text); };
    if (outcome.missing != 0) {
      wrong(std::to_string(committed_) + " changes were committed, and the table has " +
            std::to_string(there.changes));
    }
    if (there.rows != store_.is.keys)
      wrong("the table has " + std::to_string(there.rows) + " rows of " +
            std::to_string(store_.is.keys));
    if (there.torn > 0)
      wrong(std::to_string(there.torn) + " rows have fields that are half changed");
  }

 private:
  store<Database> store_;
  std::uint64_t committed_ = 0;  // changes, since the load
};

}  // namespace elidex::bench::ycsb_txn
