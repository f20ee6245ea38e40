#pragma once
// Paper 003's databases (section 7) as the benchmarks run them: those of
// papers/eunomia/index_sets.hpp with what an experiment turns.
//
//   conflict_retries_asked_for = 16;  // bench/indexes/asked_for.hpp, before the database is made
//   commit_retries_asked_for = 16;
//   dbx_locking_over<htm_btree_set> db;
//
// DBX's and Euno-DBX's commit is the same one, and so are the budgets of all their regions, but for
// euno-btree+, which has its own. An abort within a commit's look-ups counts by its cause
// (nesting_dbx_budgets): DBX's code, whose commit looks at versions and has no region inside, has
// no budget for it.
//
// Thread-safety: types, and one function that reads. Errors: none.

#include "bench/indexes/asked_for.hpp"
#include "bench/indexes/elidex_map.hpp"
#include "bench/indexes/node_version.hpp"
#include "elidex/database.hpp"
#include "elidex/internal/txn/dbx_locking_commit.hpp"
#include "papers/eunomia/index_sets.hpp"

namespace elidex::bench::table_store {

using namespace internal;

using dbx_index_lock = elided<ttas_lock, asked_for<dbx_budgets>>;
struct versioned_index_region : coarse<dbx_index_lock> {
  using node_lock = node_version<alignof(std::uint64_t)>;
};

struct region_with_version_line : coarse<dbx_index_lock> {
  using node_lock = node_version<64>;
};

using htm_btree_set = papers::btree_indexes<coarse<dbx_index_lock>>;
// The paper's: with a version in each leaf.
using versioned_htm_btree_set = papers::btree_indexes<versioned_index_region>;
using version_line_htm_btree_set = papers::btree_indexes<region_with_version_line>;
using euno_btree_set = papers::fixed_key_btree_indexes<split_regions<dbx_index_lock>>;
using released_euno_btree_set =
    papers::fixed_key_btree_indexes<split_regions<dbx_index_lock>, papers::partitioned_fan_out<>,
                                    papers::locking_control>;
using euno_btree_plus_set = papers::fixed_key_btree_indexes<
    split_regions<elided<ttas_lock, asked_for<short_region_budgets>>>, separated_fan_out<>,
    no_control>;

using commit_budgets = asked_for<nesting_dbx_budgets, commit_retries_asked_for>;

// Rows copied inside the commit's region, and behind it.
template <class Indexes>
using dbx_over = basic_database<db::dbx_commit<commit_budgets>, Indexes>;
template <class Indexes>
using dbx_locking_over = basic_database<db::dbx_locking_commit<commit_budgets>, Indexes>;
using silo_over_masstree = basic_database<db::silo_commit, papers::masstree_indexes>;

}  // namespace elidex::bench::table_store
