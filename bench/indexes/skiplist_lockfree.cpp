// Fraser's skip list: the LockFree-SkipList of paper 003, section 6.1.

#include "bench/indexes/elidex_map.hpp"
#include "papers/eunomia/lock_free_skip_list.hpp"

namespace elidex::bench {

using namespace papers;

namespace {

template <class Key>
using skiplist_lockfree = elidex_map<lock_free_skip_list<Key, index_value>>;

}  // namespace

index_info skiplist_lockfree_info() {
  return {
      .name = "skiplist/lockfree",
      .description =
          "Fraser's lock-free skip list; scans are no snapshots (paper 003's LockFree-SkipList)",
      .make_u64 = make_driven<std::uint64_t, skiplist_lockfree<std::uint64_t>>,
      .loads_in_parallel = true};
}

}  // namespace elidex::bench
