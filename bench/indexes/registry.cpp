#include "bench/indexes/registry.hpp"

#include <algorithm>
#include <array>

#include "bench/indexes/factories.hpp"

namespace elidex::bench {

std::span<const index_info> indexes() {
  static const std::array all{
      ordered_map_info(),
      btree_none_info(),
      btree_mutex_info(),
      btree_spin_info(),
      btree_rw_info(),
      btree_rtm_info(),
      btree_rtm_noretry_info(),
      btree_hle_info(),
      btree_htm_dbx_info(),
      btree_optimistic_info(),
      btree_optimistic_large_info(),
      euno_btree_info(),
      euno_btree_split_info(),
      euno_btree_partitioned_info(),
      euno_btree_controlled_info(),
      euno_btree_released_info(),
      euno_btree_optimistic_info(),
      euno_btree_improved_info(),
      euno_btree_improved_optimistic_info(),
      masstree_info(),
      masstree_htm_info(),
      delta_none_info(),
      delta_rw_info(),
      delta_spin_info(),
      delta_rtm_info(),
      delta_rtm_noretry_info(),
      delta_hle_info(),
      delta_tuned_none_info(),
      delta_tuned_rw_info(),
      delta_tuned_spin_info(),
      delta_tuned_rtm_info(),
      delta_tuned_rtm_noretry_info(),
      delta_tuned_hle_info(),
      delta_tuned_optimistic_info(),
      delta_optimistic_info(),
      skiplist_htm_info(),
      skiplist_fglock_info(),
      skiplist_lockfree_info(),
      euno_skiplist_info(),
      euno_skiplist_split_info(),
      euno_skiplist_split_part_info(),
      euno_skiplist_split_part_ccm_info(),
      hash_map_info(),
#if !defined(ELIDEX_SIMULATED)  // the peers' own libraries are not compiled for the machine
      absl_mutex_info(),
      absl_hash_mutex_info(),
      std_shared_mutex_info(),
      tbb_map_info(),
      tbb_hash_map_info(),
      libcds_map_info(),
      libcds_hash_map_info(),
      congee_map_info(),
      bplustree_map_info(),
      crossbeam_skiplist_info(),
      scc_tree_info(),
      concurrent_map_info(),
      scc_hash_info(),
      dashmap_info(),
      papaya_info(),
#endif
  };
  return all;
}

const index_info* find_index(std::string_view name) {
  const auto all = indexes();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const index_info& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::optional<std::string> why_not(const index_info& index, const workload& what, unsigned threads,
                                   key_type keys) {
  const auto because = [&](std::string_view reason) {
    return std::string(index.name) + " " + std::string(reason);
  };
  if (!index.not_built.empty()) return because("is not built: " + std::string(index.not_built));
  if (keys == key_type::u64 ? index.make_u64 == nullptr : index.make_string == nullptr) {
    return because(keys == key_type::u64 ? "has no u64 keys" : "has no string keys");
  }
  if (index.single_thread && threads > 1 && !what.only_reads()) {
    return because("has no synchronisation: one thread only, or reads only");
  }
  if (what.kind == workload_kind::bulk_load && threads > 1)
    return because("is loaded with one call: one thread only");
  if (what.kind == workload_kind::fronts && keys != key_type::u64)
    return because("cannot run " + std::string(what.name) + " (expected --key-type u64)");
  if (what.scans && !index.no_scan.empty()) return because(index.no_scan);
  if (what.updates() && !index.no_update.empty()) return because(index.no_update);
  if (what.erases && !index.no_erase.empty()) return because(index.no_erase);
  return std::nullopt;
}

}  // namespace elidex::bench
