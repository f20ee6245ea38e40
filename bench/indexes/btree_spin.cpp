// The B+tree under one spin lock, test-then-set with exchange.

#include "bench/indexes/elidex_map.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/internal/tree/btree.hpp"

namespace elidex::bench {

using namespace internal;

namespace {

template <class Key>
using btree_spin = elidex_map<btree<Key, index_value, coarse<ttas_lock>, paper_fan_out>>;

}  // namespace

index_info btree_spin_info() {
  return {.name = "btree/spin",
          .description = "the B+tree under one test-then-set spin lock",
          .make_u64 = make_driven<std::uint64_t, btree_spin<std::uint64_t>>,
          .make_string = make_driven<std::string, btree_spin<std::string>>};
}

}  // namespace elidex::bench
