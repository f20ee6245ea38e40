// The commit that this CPU favours, decided once: DBX's where hardware regions commit, Silo's where
// they don't.
//
//   basic_database<capability_commit> db;           // what elidex::database is
//   db.protocol().by_regions()
//
// Of DBX's two it takes the one that locks in its region (dbx_locking_commit.hpp): with TPC-C's
// rows it was twice as fast on the simulated machine, where the other one's regions outgrow the L1.
//
// Thread-safety and errors: as the two have them.
#pragma once

#include "elidex/htm.hpp"
#include "elidex/internal/txn/commit_protocols.hpp"
#include "elidex/internal/txn/dbx_locking_commit.hpp"

namespace elidex::internal {

class capability_commit {
 public:
  commit_result operator()(transaction_context& t, commit_clock& epochs) {
    return by_regions_ ? dbx_(t, epochs) : silo_(t, epochs);
  }
  bool by_regions() const noexcept { return by_regions_; }
  lock_counts region_counts() const noexcept { return dbx_.region_counts(); }

 private:
  const bool by_regions_ = htm::capability().rtm_commits;
  silo_commit silo_;
  dbx_locking_commit<> dbx_;
};

}  // namespace elidex::internal
