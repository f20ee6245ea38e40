// The Delta Storage Index as paper 001 has it first (section 2), under each of the paper's locks.

#include <oneapi/tbb/spin_rw_mutex.h>

#include "bench/indexes/asked_for.hpp"
#include "bench/indexes/delta_set.hpp"
#include "elidex/elided.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/no_retries.hpp"

namespace elidex::bench {

using namespace internal;
using namespace papers;

namespace {

template <class Sync>
using under = delta_under<Sync, original_delta>;

}  // namespace

index_info delta_none_info() {
  auto info = under<unsynchronized>::info(
      "delta/none", "the Delta Storage Index (paper 001), without synchronisation");
  info.single_thread = true;
  return info;
}

index_info delta_rw_info() {
  return under<coarse<tbb::spin_rw_mutex>>::info(
      "delta/rw", "the Delta Storage Index (paper 001), under oneTBB's spin_rw_mutex");
}

index_info delta_spin_info() {
  return under<coarse<ttas_lock>>::info("delta/spin",
                                        "the Delta Storage Index (paper 001), under a spin lock");
}

index_info delta_rtm_info() {
  auto info = under<coarse<elided<ttas_lock, asked_for<default_retry>>>>::info(
      "delta/rtm", "the Delta Storage Index (paper 001), its spin lock elided by RTM");
  info.remark = remark_on_rtm;
  return info;
}

index_info delta_rtm_noretry_info() {
  auto info = under<coarse<elided<ttas_lock, no_retries>>>::info(
      "delta/rtm-noretry", "as delta/rtm, but the first abort takes the lock, if it is free");
  info.remark = remark_on_rtm;
  return info;
}

index_info delta_hle_info() {
  auto info = under<coarse<hle_lock>>::info(
      "delta/hle", "the Delta Storage Index (paper 001), its spin lock elided by the CPU itself");
  info.remark = remark_on_hle;
  return info;
}

}  // namespace elidex::bench
