#include "bench/table_store/databases.hpp"

#include "bench/table_store/database_types.hpp"
#include "elidex/htm.hpp"

namespace elidex::bench::table_store {

using namespace internal;

namespace {

std::string remark_on_choice() {
  const auto& can = htm::capability();
  return std::string("is ") + (can.rtm_commits ? "db/dbx-locking" : "db/silo") +
         " here: " + can.reason;
}
std::string remark_on_regions() {
  const auto& can = htm::capability();
  return can.rtm_commits ? std::string() : std::string("commits with its lock only: ") + can.reason;
}

constexpr database_info all[] = {
    {"db/occ",
     "the table store as it comes: DBX with short hardware transactions where this CPU commits "
     "them, else Silo",
     &remark_on_choice},
    {"db/silo",
     "the table store with Silo's commit: locks what it writes, validates, no hardware "
     "transactions",
     nullptr},
    {"db/dbx",
     "the table store with DBX's commit: one hardware transaction, Silo's under a lock where it "
     "doesn't commit",
     &remark_on_regions},
    {"db/dbx-locking",
     "the same with a short hardware transaction: it validates and locks, and rows are copied "
     "after it",
     &remark_on_regions},
    {"db/2pl",
     "the table store with two-phase locking as InnoDB has it: rows and gaps in a lock system, "
     "read views for "
     "consistent reads",
     nullptr},
    {"db/dbx-locking:htm-btree",
     "paper 003's DBX: a hardware transaction that validates and locks, rows copied after it; "
     "btree/htm-dbx",
     &remark_on_regions},
    {"db/dbx-locking:euno-btree",
     "paper 003's Euno-DBX as the paper's text has it: the same over euno-btree",
     &remark_on_regions},
    {"db/dbx-locking:euno-btree/leaf-lock",
     "paper 003's Euno-DBX as released: the same over euno-btree/leaf-lock", &remark_on_regions},
    {"db/dbx-locking:euno-btree+", "the same over euno-btree+", &remark_on_regions},
    {"db/dbx:htm-btree", "db/dbx over btree/htm-dbx", &remark_on_regions},
    {"db/dbx:euno-btree", "db/dbx over euno-btree", &remark_on_regions},
    {"db/dbx:euno-btree+", "db/dbx over euno-btree+", &remark_on_regions},
    {"db/silo:masstree", "paper 003's Silo: db/silo over masstree", nullptr},
};
static_assert(std::size(all) == own_databases::size + paper_databases::size);

}  // namespace

std::span<const database_info> databases() {
  return all;
}

const database_info* find_database(std::string_view name) {
  for (const database_info& one : all) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::size_t number_of(const database_info& one) {
  return static_cast<std::size_t>(&one - all);
}

}  // namespace elidex::bench::table_store
