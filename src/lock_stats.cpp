#include "elidex/internal/sync/lock_stats.hpp"

#include <cstdio>
#include <numeric>
#include <ostream>

namespace elidex::internal {

std::uint64_t lock_counts::aborts_total() const noexcept {
  return std::accumulate(aborts.begin(), aborts.end(), std::uint64_t{0});
}

double lock_counts::fallback_pct() const noexcept {
  if (acquisitions() == 0) return 0;
  return 100.0 * static_cast<double>(fallbacks) / static_cast<double>(acquisitions());
}

lock_counts& lock_counts::operator+=(const lock_counts& other) noexcept {
  commits += other.commits;
  fallbacks += other.fallbacks;
  off_periods += other.off_periods;
  for (std::size_t i = 0; i < aborts.size(); ++i) aborts[i] += other.aborts[i];
  return *this;
}

lock_counts& lock_counts::operator-=(const lock_counts& earlier) noexcept {
  commits -= earlier.commits;
  fallbacks -= earlier.fallbacks;
  off_periods -= earlier.off_periods;
  for (std::size_t i = 0; i < aborts.size(); ++i) aborts[i] -= earlier.aborts[i];
  return *this;
}

std::ostream& operator<<(std::ostream& out, const lock_counts& counts) {
  out << "attempts " << counts.attempts() << ", commits " << counts.commits << ", aborts "
      << counts.aborts_total();
  const char* before = " (";
  for (std::size_t i = 0; i < counts.aborts.size(); ++i) {
    if (counts.aborts[i] == 0) continue;
    out << before << to_string(static_cast<htm::abort_cause>(i)) << ' ' << counts.aborts[i];
    before = ", ";
  }
  if (counts.aborts_total() != 0) out << ')';
  // Formatted here, so that the stream's own precision and flags neither matter nor change.
  char share[16];
  std::snprintf(share, sizeof share, "%.1f", counts.fallback_pct());
  return out << ", fallbacks " << counts.fallbacks << " (" << share << " %), off periods "
             << counts.off_periods;
}

lock_counts lock_counters::read() const noexcept {
  lock_counts sum;
  for (const shard& one : shards_) {
    // relaxed, without a partner: a snapshot of counts needs no order among them.
    sum.commits += one.commits.load(std::memory_order_relaxed);
    sum.fallbacks += one.fallbacks.load(std::memory_order_relaxed);      // as above
    sum.off_periods += one.off_periods.load(std::memory_order_relaxed);  // as above
    for (std::size_t i = 0; i < one.aborts.size(); ++i) {
      sum.aborts[i] += one.aborts[i].load(std::memory_order_relaxed);  // as above
    }
  }
  return sum;
}

}  // namespace elidex::internal
