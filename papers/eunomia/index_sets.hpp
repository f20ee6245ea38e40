// Which maps a database's tables are made of: paper 003 section 7's three, beside ordered_map
// (database.hpp).
//
//   // HTM-B+Tree under DBX's commit: the paper's DBX
//   basic_database<db::dbx_commit<>, htm_btree_indexes> dbx;
//   // Euno-B+Tree under the same: Euno-DBX
//   basic_database<db::dbx_commit<>, euno_btree_indexes> euno_dbx;
//   basic_database<db::silo_commit, masstree_indexes> silo;  // Masstree under Silo's commit
//
// A set has `template <class Key> using map`, a map from Key to record* with get, insert, erase and
// scan (table.hpp). Those of Eunomia and Masstree have integer keys only; a table with string
// keys is an ordered_map in these sets.
//
// What a look-up does inside a hardware region. DBX's commit looks into the indexes again from
// within its region: whether what was not there is still not there
// (transaction::observations_hold()), by get() and scan(). These regions nest flatly. So:
//   HTM-B+Tree    joins: it reads the tree's lock and aborts the whole region if it is held
//                 (elided.hpp, invariant 3), so no region sees what a fallback is in the middle of.
//                 The nodes on the way join the read set: an insert into a leaf that was looked at
//                 aborts the commit. What a look-up writes is the thread's own: a pin, and a list
//                 on its stack
//   Euno-B+Tree   the same twice, a level for each of its regions: three levels with the commit's,
//                 of the seven that there are. A look-up takes no lock bit of a hot leaf
//                 (fixed_key_btree::at_joined_leaf()): waiting for one would abort, and having it
//                 would show at the commit only. It may lower the suspicion of a leaf, one request
//                 in 64, which is a write to a shared line
//   euno-btree+   the same; no leaf has a control. A scan of a leaf that is not in order sorts its
//                 copy
//   Masstree      has no regions of its own. It reads versions; a version that is being changed is
//                 waited for, which aborts
//   ordered_map   over hardware regions as euno-btree+; over optimistic ones as Masstree
// No look-up allocates inside: get() has nothing to allocate, and table::walk() asks scan() for no
// more than fits into the list on the stack (64 records), as long as leaves have five slots or
// more. Over smaller leaves a commit may throw std::bad_alloc, and then has unlocked what it had
// locked. Nothing else of an index is called inside a region: inserts come before the commit, and
// unlinking after it.
//
// An abort below the outermost region has the status's nested bit, for which DBX's budgets have no
// retry at all: its own commit has no regions inside. Under `dbx_commit<dbx_budgets>` every clash
// during such a look-up therefore takes the lock at once; `nesting_dbx_budgets` (retry.hpp) counts
// it as the conflict, the overflow or the held lock that it was.
//
// Thread-safety: types alone. From: paper 003 sections 6.1 and 7.1.
#pragma once

#include <concepts>
#include <type_traits>

#include "elidex/elided.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/sync/retry.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/internal/sync/split_regions.hpp"
#include "elidex/internal/tree/btree.hpp"
#include "elidex/internal/tree/fixed_key_btree.hpp"
#include "elidex/internal/tree/separated_leaf.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/ordered_map.hpp"
#include "papers/eunomia/euno_btree.hpp"
#include "papers/eunomia/masstree.hpp"

namespace elidex::papers {

using namespace internal;

// Map<Key> where Key is an integer, ordered_map elsewhere.
template <class Key, template <class> class Map>
struct integer_map {
  using type = ordered_tree<Key, record*>;
};
template <std::integral Key, template <class> class Map>
struct integer_map<Key, Map> {
  using type = Map<Key>;
};

// One B+tree a table, under any policy. Strings too.
template <class Sync, class Shape = paper_fan_out>
struct btree_indexes {
  template <class Key>
  using map = btree<Key, record*, Sync, Shape>;
};

template <class Sync, class Shape = partitioned_fan_out<>, class Control = adaptive_control>
class fixed_key_btree_indexes {
  template <class Key>
  using tree = fixed_key_btree<Key, record*, Sync, Shape, Control>;

 public:
  template <class Key>
  using map = typename integer_map<Key, tree>::type;
};

class masstree_indexes {
  template <class Key>
  using tree = masstree<Key, record*, optimistic>;

 public:
  template <class Key>
  using map = typename integer_map<Key, tree>::type;
};

// The paper's: all retry as DBX does.
using htm_btree_indexes = btree_indexes<coarse<elided<ttas_lock, dbx_budgets>>>;
using euno_btree_indexes = fixed_key_btree_indexes<split_regions<elided<ttas_lock, dbx_budgets>>>;
// Keys apart from values, no control, budgets of its own.
using euno_btree_plus_indexes =
    fixed_key_btree_indexes<htm_split_regions, separated_fan_out<>, no_control>;

}  // namespace elidex::papers
