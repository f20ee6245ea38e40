// The Delta Storage Index with the transformations of paper 001, section 5, under each of the
// paper's locks.

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
using under = delta_under<Sync, elision_friendly_delta>;

}  // namespace

index_info delta_tuned_none_info() {
  auto info = under<unsynchronized>::info(
      "delta-tuned/none", "the elision-friendly Delta Storage Index, without synchronisation");
  info.single_thread = true;
  return info;
}

index_info delta_tuned_rw_info() {
  return under<coarse<tbb::spin_rw_mutex>>::info(
      "delta-tuned/rw", "the elision-friendly Delta Storage Index, under oneTBB's spin_rw_mutex");
}

index_info delta_tuned_spin_info() {
  return under<coarse<ttas_lock>>::info(
      "delta-tuned/spin", "the elision-friendly Delta Storage Index, under a spin lock");
}

index_info delta_tuned_rtm_info() {
  auto info = under<coarse<elided<ttas_lock, asked_for<default_retry>>>>::info(
      "delta-tuned/rtm", "the elision-friendly Delta Storage Index, its spin lock elided by RTM");
  info.remark = remark_on_rtm;
  return info;
}

index_info delta_tuned_rtm_noretry_info() {
  auto info = under<coarse<elided<ttas_lock, no_retries>>>::info(
      "delta-tuned/rtm-noretry",
      "as delta-tuned/rtm, but the first abort takes the lock, if it is free");
  info.remark = remark_on_rtm;
  return info;
}

index_info delta_tuned_hle_info() {
  auto info = under<coarse<hle_lock>>::info(
      "delta-tuned/hle",
      "the elision-friendly Delta Storage Index, its spin lock elided by the CPU itself");
  info.remark = remark_on_hle;
  return info;
}

// Not one of the paper's: without locks or transactions.
index_info delta_tuned_optimistic_info() {
  return under<optimistic>::info(
      "delta-tuned/optimistic",
      "the elision-friendly Delta Storage Index, under optimistic lock coupling");
}

}  // namespace elidex::bench
