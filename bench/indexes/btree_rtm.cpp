// The B+tree under a spin lock elided by hardware transactions: budgets by abort cause, adaptation.

#include "bench/indexes/asked_for.hpp"
#include "bench/indexes/elidex_map.hpp"
#include "elidex/elided.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/internal/tree/btree.hpp"

namespace elidex::bench {

using namespace internal;

namespace {

template <class Key>
using btree_rtm = elidex_map<
    btree<Key, index_value, coarse<elided<ttas_lock, asked_for<default_retry>>>, paper_fan_out>>;

}  // namespace

index_info btree_rtm_info() {
  return {.name = "btree/rtm",
          .description =
              "the B+tree, its spin lock elided by RTM with a retry budget for each abort cause",
          .make_u64 = make_driven<std::uint64_t, btree_rtm<std::uint64_t>>,
          .make_string = make_driven<std::string, btree_rtm<std::string>>,
          .remark = remark_on_rtm};
}

}  // namespace elidex::bench
