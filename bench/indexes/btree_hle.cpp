// The B+tree under a spin lock with the HLE prefixes.

#include "bench/indexes/elidex_map.hpp"
#include "elidex/internal/tree/btree.hpp"
#include "papers/karnagel/hle_lock.hpp"

namespace elidex::bench {

using namespace internal;
using namespace papers;

namespace {

template <class Key>
using btree_hle = elidex_map<btree<Key, index_value, coarse<hle_lock>, paper_fan_out>>;

}  // namespace

index_info btree_hle_info() {
  return {.name = "btree/hle",
          .description = "the B+tree, its spin lock elided by the CPU itself (HLE prefixes)",
          .make_u64 = make_driven<std::uint64_t, btree_hle<std::uint64_t>>,
          .make_string = make_driven<std::string, btree_hle<std::string>>,
          .remark = remark_on_hle};
}

}  // namespace elidex::bench
