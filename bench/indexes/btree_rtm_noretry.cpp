// The B+tree under an elided spin lock whose first abort takes the lock, if it is free: paper
// 001, figure 6.

#include "bench/indexes/elidex_map.hpp"
#include "elidex/elided.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/internal/tree/btree.hpp"
#include "papers/karnagel/no_retries.hpp"

namespace elidex::bench {

using namespace internal;
using namespace papers;

namespace {

template <class Key>
using btree_rtm_noretry =
    elidex_map<btree<Key, index_value, coarse<elided<ttas_lock, no_retries>>, paper_fan_out>>;

}  // namespace

index_info btree_rtm_noretry_info() {
  return {
      .name = "btree/rtm-noretry",
      .description = "as btree/rtm, but the first abort takes the lock, if it is free (paper 001)",
      .make_u64 = make_driven<std::uint64_t, btree_rtm_noretry<std::uint64_t>>,
      .make_string = make_driven<std::string, btree_rtm_noretry<std::string>>,
      .remark = remark_on_rtm};
}

}  // namespace elidex::bench
