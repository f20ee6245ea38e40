// elidex::hash_map, for keys whose order nobody asks for.

#include "elidex/hash_map.hpp"

#include "bench/indexes/elidex_map.hpp"

namespace elidex::bench {
namespace {

template <class Key>
using hashed = elidex_map<hash_map<Key, index_value>>;
static_assert(has_insert_many<hashed<std::uint64_t>, std::uint64_t>);

}  // namespace

index_info hash_map_info() {
  return {.name = "hash_map",
          .description =
              "elidex::hash_map: buckets of two cache lines under optimistic versions, split where "
              "they stand",
          .make_u64 = make_driven<std::uint64_t, hashed<std::uint64_t>>,
          .make_string = make_driven<std::string, hashed<std::string>>,
          .loads_in_parallel = true,
          .no_scan = "has its keys in no order"};
}

}  // namespace elidex::bench
