#pragma once
// The databases under test, and rows for them.

#include <array>
#include <cstdint>

#include "elidex/database.hpp"
#include "elidex/internal/txn/dbx_locking_commit.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"
#include "papers/eunomia/index_sets.hpp"
#include "papers/schrimpf/thesis_latches.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

struct account {
  std::int64_t balance = 0;
  friend bool operator==(const account&, const account&) = default;
};

// One word would hide what is torn.
struct wide_row {
  std::array<std::uint64_t, 20> words{};
  static wide_row of(std::uint64_t n) {
    wide_row row;
    row.words.fill(n);
    return row;
  }
  bool torn() const {
    for (const std::uint64_t word : words) {
      if (word != words[0]) return true;
    }
    return false;
  }
};

struct btree_indexes {
  template <class Key>
  using map = btree<Key, internal::record*, optimistic, fan_out<4, 4>>;
};

using silo_database = basic_database<db::silo_commit>;
using dbx_database = basic_database<db::dbx_commit<>>;
using small_nodes_database = basic_database<db::silo_commit, btree_indexes>;
using two_phase_database = basic_database<db::two_phase_locking<>>;
using small_nodes_two_phase_database =
    basic_database<db::two_phase_locking<unmodified_latches>, btree_indexes>;

// Paper 003's. With "hot" leaves are small, and have a conflict control from their first collision
// on.
using dbx_over_htm_btree =
    basic_database<db::dbx_commit<nesting_dbx_budgets>, papers::htm_btree_indexes>;
using dbx_over_euno_btree =
    basic_database<db::dbx_commit<nesting_dbx_budgets>, papers::euno_btree_indexes>;
using locking_dbx_database = basic_database<db::dbx_locking_commit<>>;
using locking_dbx_over_htm_btree =
    basic_database<db::dbx_locking_commit<>, papers::htm_btree_indexes>;
using locking_dbx_over_euno_btree =
    basic_database<db::dbx_locking_commit<>, papers::euno_btree_indexes>;
using locking_dbx_over_euno_btree_plus =
    basic_database<db::dbx_locking_commit<>, papers::euno_btree_plus_indexes>;
using silo_over_masstree = basic_database<db::silo_commit, papers::masstree_indexes>;

struct soon_control : adaptive_control {
  static constexpr std::uint32_t collisions_to_switch_on = 1;
};
using locking_dbx_over_hot_euno_btree =
    basic_database<db::dbx_locking_commit<>,
                   papers::fixed_key_btree_indexes<split_regions<elided<ttas_lock, dbx_budgets>>,
                                                   partitioned_fan_out<8, 4>, soon_control>>;

// --- canaries: what the harness must find

// Locks and writes, but never looks whether what it has read still stands.
class blind_commit {
 public:
  internal::commit_result operator()(internal::transaction_context& t,
                                     internal::commit_clock& clock) {
    t.sort_writes();
    internal::provide_versions(t, clock);
    const internal::commit_clock::commit_phase phase(clock);
    for (const auto& [row, write] : t.writes_to_lock()) write->had = row->lock();
    const std::uint64_t group = clock.now();
    if (internal::lacks_memory(t, clock, group)) {
      for (auto& w : t.writes()) w.row->unlock(w.had);
      return internal::commit_result::conflict;
    }
    internal::write_rows<internal::commit_by::locks>(
        t, internal::stamp_after(internal::newest(t), group), clock);
    return internal::commit_result::committed;
  }
};

// Locks, but doesn't look at the index again after it has been granted a lock on a gap.
struct looks_once {
  static constexpr bool after_locking = false;
};
using careless_two_phase_database =
    basic_database<db::two_phase_locking<sharded_latches<>, looks_once>>;

}  // namespace elidex::testing
