// elidex::ordered_map, the map to use.

#include "elidex/ordered_map.hpp"

#include "bench/indexes/elidex_map.hpp"

namespace elidex::bench {
namespace {

template <class Key>
using ordered = elidex_map<ordered_map<Key, index_value>>;
static_assert(has_insert_many<ordered<std::uint64_t>, std::uint64_t>);

}  // namespace

index_info ordered_map_info() {
  return {.name = "ordered_map",
          .description =
              "elidex::ordered_map: euno-btree+ with large nodes, with hardware transactions where "
              "this CPU commits them; strings: btree/optimistic-1k",
          .make_u64 = make_driven<std::uint64_t, ordered<std::uint64_t>>,
          .make_string = make_driven<std::string, ordered<std::string>>,
          .loads_in_parallel = true};
}

}  // namespace elidex::bench
