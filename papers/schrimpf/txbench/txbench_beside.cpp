// The latches that stand beside the thesis's: the library's newest, and the thesis's own loop in
// two of its variants.

#include "papers/schrimpf/structures/locks.hpp"
#include "papers/schrimpf/txbench/txbench_run.hpp"

namespace elidex::bench {

using namespace internal;
using namespace papers;

namespace {

// As the library's variants, with the thesis's loop (section 2.4.3, TAS-T): it exchanges before it
// looks.
struct exchanging_lock_mutex_latches : innodb_latches<hle_spin_loop, posix_mutex> {};
struct exchanging_transaction_latches : innodb_latches<posix_mutex, hle_spin_loop> {};

}  // namespace

std::span<const txbench_variant> txbench_variants_beside() {
  static constexpr txbench_variant all[] = {
      {"db/2pl:sharded", &run_txbench_with<sharded_latches<>>},
      {"db/2pl:lock-mutex-tas-t", &run_txbench_with<exchanging_lock_mutex_latches>},
      {"db/2pl:transaction-latches-tas-t", &run_txbench_with<exchanging_transaction_latches>},
  };
  return all;
}

}  // namespace elidex::bench
