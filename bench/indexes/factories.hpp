#pragma once
// What an index's source file needs to register itself: the factory that index_info points to, and
// the list of the info functions that registry.cpp collects.

#include <memory>

#include "bench/indexes/driven.hpp"
#include "bench/indexes/registry.hpp"

namespace elidex::bench {

/// A factory for a Map of Key, a map as described in driven.hpp.
// Map is a type and not a template: GCC gives two alias templates of one name in two unnamed
// namespaces the same symbol, so that one index ran in place of another.
template <class Key, class Map>
std::unique_ptr<any_index<Key>> make_driven() {
  return std::make_unique<driven<Key, Map>>();
}

index_info ordered_map_info();
index_info btree_none_info();
index_info btree_mutex_info();
index_info btree_spin_info();
index_info btree_rw_info();
index_info btree_rtm_info();
index_info btree_rtm_noretry_info();
index_info btree_hle_info();
index_info btree_htm_dbx_info();
index_info btree_optimistic_info();
index_info btree_optimistic_large_info();
index_info euno_btree_info();
index_info euno_btree_split_info();
index_info euno_btree_partitioned_info();
index_info euno_btree_controlled_info();
index_info euno_btree_released_info();
index_info euno_btree_optimistic_info();
index_info euno_btree_improved_info();
index_info euno_btree_improved_optimistic_info();
index_info masstree_info();
index_info masstree_htm_info();

index_info delta_none_info();
index_info delta_rw_info();
index_info delta_spin_info();
index_info delta_rtm_info();
index_info delta_rtm_noretry_info();
index_info delta_hle_info();
index_info delta_tuned_none_info();
index_info delta_tuned_rw_info();
index_info delta_tuned_spin_info();
index_info delta_tuned_rtm_info();
index_info delta_tuned_rtm_noretry_info();
index_info delta_tuned_hle_info();
index_info delta_tuned_optimistic_info();
index_info delta_optimistic_info();

index_info skiplist_htm_info();
index_info skiplist_fglock_info();
index_info skiplist_lockfree_info();
index_info euno_skiplist_info();
index_info euno_skiplist_split_info();
index_info euno_skiplist_split_part_info();
index_info euno_skiplist_split_part_ccm_info();

index_info hash_map_info();

index_info absl_mutex_info();
index_info absl_hash_mutex_info();
index_info std_shared_mutex_info();
index_info tbb_map_info();
index_info tbb_hash_map_info();
index_info libcds_map_info();
index_info libcds_hash_map_info();
index_info congee_map_info();
index_info bplustree_map_info();
index_info crossbeam_skiplist_info();
index_info scc_tree_info();
index_info concurrent_map_info();
index_info scc_hash_info();
index_info dashmap_info();
index_info papaya_info();

}  // namespace elidex::bench
