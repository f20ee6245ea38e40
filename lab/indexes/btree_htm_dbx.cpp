// The B+tree under an elided spin lock with DBX's budgets: the HTM-B+Tree of paper 003, section 6.1.

#include "elidex/index/btree.hpp"
#include "elidex/sync/elided.hpp"
#include "elidex/sync/spin_locks.hpp"
#include "lab/indexes/elidex_map.hpp"

namespace elidex::lab {
namespace {

// DBX's, unless an experiment asks for another number of retries after conflicts.
struct asked_for_budgets : dbx_budgets {
  asked_for_budgets() noexcept {
    if (conflict_retries_asked_for) conflict = lock_busy = *conflict_retries_asked_for;
  }
};

template <class Key>
using btree_htm_dbx = elidex_map<btree<Key, index_value, coarse<elided<ttas_lock, asked_for_budgets>>, paper_fan_out>>;

}  // namespace

index_info btree_htm_dbx_info() {
  return {.name = "btree/htm-dbx",
          .description = "as btree/rtm with the retry budgets of DBX (paper 003's HTM-B+Tree)",
          .make_u64 = make_driven<std::uint64_t, btree_htm_dbx>,
          .make_string = make_driven<std::string, btree_htm_dbx>,
          .remark = remark_on_rtm};
}

}  // namespace elidex::lab
