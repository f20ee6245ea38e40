// Eunomia's B+tree, the steps that lead to it (paper 003, section 6.4), and the same without
// hardware regions.

#include "papers/eunomia/euno_btree.hpp"

#include "bench/indexes/asked_for.hpp"
#include "bench/indexes/elidex_map.hpp"
#include "elidex/internal/tree/fixed_key_btree.hpp"
#include "elidex/internal/tree/separated_leaf.hpp"

namespace elidex::bench {

using namespace internal;
using namespace papers;

namespace {

using key = std::uint64_t;
// The paper's trees retry as DBX does, all alike; the improved one has budgets of its own.
using regions = split_regions<elided<ttas_lock, asked_for<dbx_budgets>>>;
using short_regions = split_regions<elided<ttas_lock, asked_for<short_region_budgets>>>;

template <class Key>
using split =
    elidex_map<fixed_key_btree<Key, index_value, regions, dense_fan_out<>, no_control_yet>>;
template <class Key>
using partitioned =
    elidex_map<fixed_key_btree<Key, index_value, regions, partitioned_fan_out<>, no_control_yet>>;
template <class Key>
using controlled =
    elidex_map<fixed_key_btree<Key, index_value, regions, partitioned_fan_out<>, always_control>>;
template <class Key>
using adapting =
    elidex_map<fixed_key_btree<Key, index_value, regions, partitioned_fan_out<>, adaptive_control>>;
template <class Key>
using released =
    elidex_map<fixed_key_btree<Key, index_value, regions, partitioned_fan_out<>, locking_control>>;
template <class Key>
using improved =
    elidex_map<fixed_key_btree<Key, index_value, short_regions, separated_fan_out<>, no_control>>;
template <class Key>
using improved_without_regions =
    elidex_map<fixed_key_btree<Key, index_value, optimistic, separated_fan_out<>, no_control>>;
template <class Key>
using without_regions =
    elidex_map<fixed_key_btree<Key, index_value, optimistic, partitioned_fan_out<>, no_control>>;

}  // namespace

index_info euno_btree_info() {
  return {
      .name = "euno-btree",
      .description =
          "paper 003's Euno-B+Tree: split regions, partitioned leaves, adaptive conflict control",
      .make_u64 = make_driven<key, adapting<key>>,
      .remark = remark_on_rtm};
}

index_info euno_btree_split_info() {
  return {.name = "euno-btree/split",
          .description = "of euno-btree the split regions alone",
          .make_u64 = make_driven<key, split<key>>,
          .remark = remark_on_rtm};
}

index_info euno_btree_partitioned_info() {
  return {.name = "euno-btree/split+part",
          .description = "of euno-btree the split regions and partitioned leaves",
          .make_u64 = make_driven<key, partitioned<key>>,
          .remark = remark_on_rtm};
}

index_info euno_btree_controlled_info() {
  return {.name = "euno-btree/split+part+ccm",
          .description = "euno-btree with a conflict control at every leaf",
          .make_u64 = make_driven<key, controlled<key>>,
          .remark = remark_on_rtm};
}

index_info euno_btree_released_info() {
  return {.name = "euno-btree/leaf-lock",
          .description =
              "euno-btree as released: requests that may add or erase keys lock their leaf first",
          .make_u64 = make_driven<key, released<key>>,
          .remark = remark_on_rtm};
}

index_info euno_btree_optimistic_info() {
  return {.name = "euno-btree/optimistic",
          .description =
              "euno-btree's leaves under optimistic lock coupling, without hardware transactions",
          .make_u64 = make_driven<key, without_regions<key>>,
          .loads_in_parallel = true};
}

index_info euno_btree_improved_info() {
  return {.name = "euno-btree+",
          .description = "euno-btree with keys apart from values instead of segments",
          .make_u64 = make_driven<key, improved<key>>,
          .remark = remark_on_rtm};
}

index_info euno_btree_improved_optimistic_info() {
  return {.name = "euno-btree+/optimistic",
          .description =
              "euno-btree+'s leaves under optimistic lock coupling, without hardware transactions",
          .make_u64 = make_driven<key, improved_without_regions<key>>,
          .loads_in_parallel = true};
}

}  // namespace elidex::bench
