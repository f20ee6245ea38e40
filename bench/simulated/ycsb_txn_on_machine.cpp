#include "bench/simulated/ycsb_txn_on_machine.hpp"

#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/support/bad_input.hpp"

namespace elidex::bench {
namespace {

// run_database()'s workload.
template <class Database>
class clients {
 public:
  static constexpr std::size_t kinds = ycsb_txn::kind_names.size();
  clients(Database& db, const ycsb_txn_request& wanted)
      : in_(db, wanted.is, wanted.run.seed), wanted_(wanted), changes_(wanted.run.threads) {
    in_.load();
  }
  template <class Fn>
  void for_each_table(const Fn& fn) {
    fn(in_.rows);
  }
  auto make_user(unsigned number) {
    return ycsb_txn::client(in_, wanted_.run.seed * 1'000 + number);
  }
  template <class User>
  table_store::step_result step(User& who) const {
    return {static_cast<std::size_t>(who.step()), false};
  }
  template <class User>
  void add(unsigned number, const User& who) noexcept {
    changes_[number] = who.increments();
  }
  void check() {
    const auto committed = std::accumulate(changes_.begin(), changes_.end(), std::uint64_t{0});
    const auto there = in_.counted();
    if (there.changes != committed || there.rows != wanted_.is.keys || there.torn != 0)
      throw std::runtime_error(wanted_.run.index + ": the table does not have what was committed");
  }

 private:
  ycsb_txn::store<Database> in_;
  const ycsb_txn_request& wanted_;
  std::vector<std::uint64_t> changes_;  // by thread
};

template <class Database>
ycsb_txn_result run_with(const ycsb_txn_request& wanted) {
  const std::unique_ptr<Database> db = make_on_machine<Database>(wanted.run.machine);
  clients<Database> in(*db, wanted);
  ycsb_txn_result outcome = run_database(wanted.run, *db, in);
  in.check();
  return outcome;
}

}  // namespace

std::vector<std::string_view> ycsb_txn_databases_on_machine() {
  return {"db/occ", "db/silo"};
}

ycsb_txn_result run_ycsb_txn_on_machine(const ycsb_txn_request& wanted) {
  check_threads(wanted.run);
  if (wanted.run.index == "db/silo") return run_with<basic_database<db::silo_commit>>(wanted);
  if (wanted.run.index == "db/occ") return run_with<basic_database<>>(wanted);
  throw bad_input("--index: '" + wanted.run.index +
                  "' does not run YCSB's transactions on the simulated machine (expected: db/occ "
                  "or db/silo)");
}

}  // namespace elidex::bench
