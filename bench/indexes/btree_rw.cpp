// The B+tree under oneTBB's reader-writer spin lock, the baseline of paper 001: readers share it.

#include <oneapi/tbb/spin_rw_mutex.h>

#include "bench/indexes/elidex_map.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/tree/btree.hpp"

namespace elidex::bench {

using namespace internal;

namespace {

template <class Key>
using btree_rw = elidex_map<btree<Key, index_value, coarse<tbb::spin_rw_mutex>, paper_fan_out>>;

}  // namespace

index_info btree_rw_info() {
  return {.name = "btree/rw",
          .description = "the B+tree under oneTBB's spin_rw_mutex, readers shared (paper 001)",
          .make_u64 = make_driven<std::uint64_t, btree_rw<std::uint64_t>>,
          .make_string = make_driven<std::string, btree_rw<std::string>>};
}

}  // namespace elidex::bench
