// The B+tree under one POSIX mutex.

#include "bench/indexes/elidex_map.hpp"
#include "elidex/internal/tree/btree.hpp"
#include "papers/karnagel/posix_mutex.hpp"

namespace elidex::bench {

using namespace internal;
using namespace papers;

namespace {

template <class Key>
using btree_mutex = elidex_map<btree<Key, index_value, coarse<posix_mutex>, paper_fan_out>>;

}  // namespace

index_info btree_mutex_info() {
  return {.name = "btree/mutex",
          .description = "the B+tree under one POSIX mutex",
          .make_u64 = make_driven<std::uint64_t, btree_mutex<std::uint64_t>>,
          .make_string = make_driven<std::string, btree_mutex<std::string>>};
}

}  // namespace elidex::bench
