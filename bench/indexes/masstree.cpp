// Masstree, and Masstree in hardware regions: what paper 003 compares Eunomia with (section 6.1).

#include "papers/eunomia/masstree.hpp"

#include "bench/indexes/asked_for.hpp"
#include "bench/indexes/elidex_map.hpp"
#include "elidex/elided.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/sync/spin_locks.hpp"

namespace elidex::bench {

using namespace internal;
using namespace papers;

namespace {

template <class Key>
using fine_grained = elidex_map<masstree<Key, index_value, optimistic>>;
template <class Key>
using in_regions =
    elidex_map<masstree<Key, index_value, coarse<elided<ttas_lock, asked_for<dbx_budgets>>>>>;

}  // namespace

index_info masstree_info() {
  return {.name = "masstree",
          .description =
              "Masstree: versions with marks, permutations in the leaves, readers write nothing",
          .make_u64 = make_driven<std::uint64_t, fine_grained<std::uint64_t>>,
          .loads_in_parallel = true};
}

index_info masstree_htm_info() {
  return {.name = "masstree/htm",
          .description =
              "Masstree with each operation in one hardware transaction (paper 003's HTM-Masstree)",
          .make_u64 = make_driven<std::uint64_t, in_regions<std::uint64_t>>,
          .remark = remark_on_rtm};
}

}  // namespace elidex::bench
