// The B+tree under an elided spin lock with DBX's budgets: the HTM-B+Tree of paper 003, section
// 6.1.

#include "bench/indexes/asked_for.hpp"
#include "bench/indexes/elidex_map.hpp"
#include "bench/indexes/node_version.hpp"
#include "elidex/elided.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/internal/tree/btree.hpp"

namespace elidex::bench {

using namespace internal;

namespace {

using lock = coarse<elided<ttas_lock, asked_for<dbx_budgets>>>;

struct with_version_in_head : lock {
  using node_lock = node_version<alignof(std::uint64_t)>;
};
struct with_version_on_own_line : lock {
  using node_lock = node_version<64>;
};

template <class Key>
using plain = elidex_map<btree<Key, index_value, lock, paper_fan_out>>;
template <class Key>
using in_head = elidex_map<btree<Key, index_value, with_version_in_head, paper_fan_out>>;
template <class Key>
using on_own_line = elidex_map<btree<Key, index_value, with_version_on_own_line, paper_fan_out>>;

template <class Key>
std::unique_ptr<any_index<Key>> make_asked_for() {
  switch (leaf_version_asked_for) {
    case leaf_version::in_head:
      return make_driven<Key, in_head<Key>>();
    case leaf_version::on_own_line:
      return make_driven<Key, on_own_line<Key>>();
    case leaf_version::none:
      break;
  }
  return make_driven<Key, plain<Key>>();
}

}  // namespace

index_info btree_htm_dbx_info() {
  return {.name = "btree/htm-dbx",
          .description = "as btree/rtm with the retry budgets of DBX (paper 003's HTM-B+Tree)",
          .make_u64 = make_asked_for<std::uint64_t>,
          .make_string = make_asked_for<std::string>,
          .remark = remark_on_rtm};
}

}  // namespace elidex::bench
