// The B+tree with optimistic lock coupling.

#include "bench/indexes/elidex_map.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/tree/btree.hpp"

namespace elidex::bench {

using namespace internal;

namespace {

template <class Key>
using btree_optimistic = elidex_map<btree<Key, index_value, optimistic, paper_fan_out>>;

// Strings have it as ordered_map.
template <class Key>
using large = elidex_map<btree<Key, index_value, optimistic, node_bytes<1024, 1024>>>;

}  // namespace

index_info btree_optimistic_info() {
  return {
      .name = "btree/optimistic",
      .description =
          "the B+tree with optimistic lock coupling: versions in the nodes, readers write nothing",
      .make_u64 = make_driven<std::uint64_t, btree_optimistic<std::uint64_t>>,
      .make_string = make_driven<std::string, btree_optimistic<std::string>>,
      .loads_in_parallel = true};
}

index_info btree_optimistic_large_info() {
  return {.name = "btree/optimistic-1k",
          .description = "btree/optimistic with nodes of 1024 bytes",
          .make_u64 = make_driven<std::uint64_t, large<std::uint64_t>>,
          .make_string = make_driven<std::string, large<std::string>>,
          .loads_in_parallel = true};
}

}  // namespace elidex::bench
