#include "lab/tpcc/variants.hpp"

#include "elidex/database.hpp"
#include "elidex/db/dbx_locking_commit.hpp"
#include "elidex/db/two_phase_locking.hpp"
#include "lab/tpcc/native_run.hpp"
#include "lab/tpcc/paper_databases.hpp"

namespace elidex::lab::tpcc {
namespace {

template <class Database>
std::unique_ptr<loaded_company> load(const scale& wanted, std::uint64_t seed, const kept_in& where) {
  return std::make_unique<native_company<Database>>(wanted, seed, where);
}

std::string remark_on_choice() {
  const auto& can = htm::capability();
  return std::string("is ") + (can.rtm_commits ? "db/dbx-locking" : "db/silo") + " here: " + can.reason;
}
std::string remark_on_regions() {
  const auto& can = htm::capability();
  return can.rtm_commits ? std::string() : std::string("commits with its lock only: ") + can.reason;
}

constexpr database_info all[] = {
    {"db/occ", "the table store as it comes: DBX with short regions where this CPU commits them, else Silo",
     &load<basic_database<db::capability_commit>>, &remark_on_choice},
    {"db/silo", "the table store with Silo's commit: locks what it writes, validates, no hardware transactions",
     &load<basic_database<db::silo_commit>>, nullptr},
    {"db/dbx", "the table store with DBX's commit: one hardware region, Silo's under a lock where it doesn't commit",
     &load<basic_database<db::dbx_commit<>>>, &remark_on_regions},
    {"db/dbx-locking", "the same with short regions: they validate and lock, and rows are copied behind them",
     &load<basic_database<db::dbx_locking_commit<>>>, &remark_on_regions},
    {"db/2pl",
     "the table store with two-phase locking as InnoDB has it: rows and gaps in a lock system, read views for "
     "consistent reads",
     &load<basic_database<db::two_phase_locking<>>>, nullptr},
    {"db/dbx-locking:htm-btree",
     "paper 003's DBX: a region that validates and locks, rows copied behind it; btree/htm-dbx",
     &load_dbx_locking_over_htm_btree, &remark_on_regions},
    {"db/dbx-locking:euno-btree", "paper 003's Euno-DBX: the same over euno-btree", &load_dbx_locking_over_euno_btree,
     &remark_on_regions},
    {"db/dbx-locking:euno-btree+", "the same over euno-btree+", &load_dbx_locking_over_euno_btree_plus,
     &remark_on_regions},
    {"db/dbx:htm-btree", "db/dbx over btree/htm-dbx", &load_dbx_over_htm_btree, &remark_on_regions},
    {"db/dbx:euno-btree", "db/dbx over euno-btree", &load_dbx_over_euno_btree, &remark_on_regions},
    {"db/dbx:euno-btree+", "db/dbx over euno-btree+", &load_dbx_over_euno_btree_plus, &remark_on_regions},
    {"db/silo:masstree", "paper 003's Silo: db/silo over masstree", &load_silo_over_masstree, nullptr},
};

// Measured: 217 to 225 with one and two warehouses, indexes included.
constexpr double bytes_per_row = 225;
// Upper bounds for what a run adds: mostly the order lines of NEW-ORDER, 4.5 of them for each transaction of the mix.
constexpr double bytes_per_transaction = 1'000;
constexpr double transactions_per_second_max = 100'000;

}  // namespace

double rows_at_first(const scale& wanted) noexcept {
  const double customers = double{scale::districts} * wanted.customers;
  // A customer's row, its name, its payment, its order twice, 0.3 of a new order and 10 lines.
  return wanted.items + double{1} * wanted.warehouses * (1 + scale::districts + wanted.items + customers * 15.3);
}

double bytes_at_first(const scale& wanted) noexcept {
  return bytes_per_row * rows_at_first(wanted);
}
double bytes_of_transactions(double seconds, double threads) noexcept {
  return seconds * threads * transactions_per_second_max * bytes_per_transaction;
}

std::span<const database_info> databases() {
  return all;
}

const database_info* find_database(std::string_view name) {
  for (const database_info& one : all) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

}  // namespace elidex::lab::tpcc
