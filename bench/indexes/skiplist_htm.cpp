// A skip list under one elided lock: the HTM-SkipList of paper 003, section 6.1.

#include "bench/indexes/asked_for.hpp"
#include "bench/indexes/elidex_map.hpp"
#include "elidex/elided.hpp"
#include "elidex/internal/sync/retry.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "papers/eunomia/skip_list.hpp"

namespace elidex::bench {

using namespace internal;
using namespace papers;

namespace {

template <class Key>
using skiplist_htm =
    elidex_map<skip_list<Key, index_value, coarse<elided<ttas_lock, asked_for<dbx_budgets>>>>>;

}  // namespace

index_info skiplist_htm_info() {
  return {.name = "skiplist/htm",
          .description =
              "a skip list in one hardware transaction per operation (paper 003's HTM-SkipList)",
          .make_u64 = make_driven<std::uint64_t, skiplist_htm<std::uint64_t>>,
          .remark = remark_on_rtm};
}

}  // namespace elidex::bench
