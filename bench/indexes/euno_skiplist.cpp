// The Euno-SkipList of paper 003, whole and with its principles added one after the other (figure
// 16).

#include "bench/indexes/asked_for.hpp"
#include "bench/indexes/elidex_map.hpp"
#include "papers/eunomia/euno_skip_list.hpp"

namespace elidex::bench {

using namespace internal;
using namespace papers;

namespace {

struct split_only : euno_skip_parts {
  static constexpr auxiliary_lock_use locks_segment_for = auxiliary_lock_use::none;
  static constexpr bool partitioned = false;
  static constexpr bool controls_conflicts = false;
};
struct split_and_partitioned : euno_skip_parts {
  static constexpr auxiliary_lock_use locks_segment_for = auxiliary_lock_use::none;
  static constexpr bool controls_conflicts = false;
};
// Every segment that is asked for something has a control, and keeps it.
struct not_adaptive : euno_skip_parts {
  static constexpr std::uint64_t hot_after = 0;
  static constexpr unsigned conflicts_to_stay = 0;
};

// As paper 003's trees: all retry as DBX does.
using regions = split_regions<elided<ttas_lock, asked_for<dbx_budgets>>>;

template <class Key>
using whole = elidex_map<euno_skip_list<Key, index_value, regions>>;
template <class Key>
using split = elidex_map<euno_skip_list<Key, index_value, regions, split_only>>;
template <class Key>
using split_part = elidex_map<euno_skip_list<Key, index_value, regions, split_and_partitioned>>;
template <class Key>
using split_part_ccm = elidex_map<euno_skip_list<Key, index_value, regions, not_adaptive>>;

}  // namespace

index_info euno_skiplist_info() {
  return {.name = "euno-skiplist",
          .description =
              "Eunomia's skip list: split regions, towers apart, conflict control where it is hot",
          .make_u64 = make_driven<std::uint64_t, whole<std::uint64_t>>,
          .remark = remark_on_rtm};
}
index_info euno_skiplist_split_info() {
  return {.name = "euno-skiplist/split",
          .description = "as skiplist/htm with the region split in two (paper 003's +Split HTM)",
          .make_u64 = make_driven<std::uint64_t, split<std::uint64_t>>,
          .remark = remark_on_rtm};
}
index_info euno_skiplist_split_part_info() {
  return {.name = "euno-skiplist/split+part",
          .description =
              "as euno-skiplist/split with towers on cache lines of their own (+Partitioned)",
          .make_u64 = make_driven<std::uint64_t, split_part<std::uint64_t>>,
          .remark = remark_on_rtm};
}
index_info euno_skiplist_split_part_ccm_info() {
  return {
      .name = "euno-skiplist/split+part+ccm",
      .description =
          "as euno-skiplist/split+part with conflict control in every segment, hot or not (+CCM)",
      .make_u64 = make_driven<std::uint64_t, split_part_ccm<std::uint64_t>>,
      .remark = remark_on_rtm};
}

}  // namespace elidex::bench
