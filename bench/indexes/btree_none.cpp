// The B+tree without synchronisation: the yardstick for what each policy costs. One thread only.

#include "bench/indexes/elidex_map.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/tree/btree.hpp"

namespace elidex::bench {

using namespace internal;

namespace {

template <class Key>
using btree_none = elidex_map<btree<Key, index_value, unsynchronized, paper_fan_out>>;

}  // namespace

index_info btree_none_info() {
  return {.name = "btree/none",
          .description = "the B+tree without synchronisation",
          .make_u64 = make_driven<std::uint64_t, btree_none<std::uint64_t>>,
          .make_string = make_driven<std::string, btree_none<std::string>>,
          .single_thread = true};
}

}  // namespace elidex::bench
