// Pugh's concurrent skip list: the FGLock-SkipList of paper 003, section 6.1.

#include "bench/indexes/elidex_map.hpp"
#include "papers/eunomia/locked_skip_list.hpp"

namespace elidex::bench {

using namespace papers;

namespace {

template <class Key>
using skiplist_fglock = elidex_map<locked_skip_list<Key, index_value>>;

}  // namespace

index_info skiplist_fglock_info() {
  return {.name = "skiplist/fglock",
          .description =
              "Pugh's skip list with a lock on every link; scans are no snapshots (paper 003's "
              "FGLock-SkipList)",
          .make_u64 = make_driven<std::uint64_t, skiplist_fglock<std::uint64_t>>,
          .loads_in_parallel = true};
}

}  // namespace elidex::bench
