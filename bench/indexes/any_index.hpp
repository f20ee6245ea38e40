#pragma once
// An index as the driver sees it: one virtual call runs a thread's whole stream, so that the cost
// per request is the index's own and nothing is dispatched in between.
//
//   std::unique_ptr<any_index<std::uint64_t>> index = find_index("absl+mutex")->make_u64();
//   index->run(stream, control, result);       // on each worker thread
//
// Values are 64-bit integers throughout (8 bytes, as in paper 003, section 6.1). Thread-safety:
// run() may be called from several threads at once unless index_info::single_thread says otherwise;
// counters() and memory_bytes() between runs only.

#include <cstdint>
#include <string>

#include "bench/runner/run_control.hpp"
#include "bench/workload/requests.hpp"

namespace elidex::bench {

using index_value = std::uint64_t;

/// What an index that elides locks or validates versions counts; all zero for the others.
struct index_counters {
  std::uint64_t attempts = 0;  // transactions or optimistic passes begun
  std::uint64_t commits = 0;
  std::uint64_t fallbacks = 0;  // operations that took the lock after all
  std::uint64_t aborts_conflict = 0;
  std::uint64_t aborts_capacity = 0;
  std::uint64_t aborts_explicit = 0;
  std::uint64_t aborts_interrupt = 0;
  std::uint64_t aborts_other = 0;

  [[nodiscard]] std::uint64_t aborts() const noexcept {
    return aborts_conflict + aborts_capacity + aborts_explicit + aborts_interrupt + aborts_other;
  }
  /// 0 where nothing was requested.
  [[nodiscard]] double aborts_per_request(std::uint64_t requests) const noexcept {
    return share(aborts(), requests);
  }
  /// Of the operations that ended, those that took the lock after all.
  [[nodiscard]] double fallback_pct() const noexcept {
    return 100 * share(fallbacks, commits + fallbacks);
  }
  /// Of the attempts, those that aborted.
  [[nodiscard]] double wasted_pct() const noexcept { return 100 * share(aborts(), attempts); }

  index_counters& operator+=(const index_counters& more) noexcept {
    attempts += more.attempts;
    commits += more.commits;
    fallbacks += more.fallbacks;
    aborts_conflict += more.aborts_conflict;
    aborts_capacity += more.aborts_capacity;
    aborts_explicit += more.aborts_explicit;
    aborts_interrupt += more.aborts_interrupt;
    aborts_other += more.aborts_other;
    return *this;
  }
  /// `before` must have been read of the same index, earlier.
  friend index_counters operator-(const index_counters& after,
                                  const index_counters& before) noexcept {
    return {.attempts = after.attempts - before.attempts,
            .commits = after.commits - before.commits,
            .fallbacks = after.fallbacks - before.fallbacks,
            .aborts_conflict = after.aborts_conflict - before.aborts_conflict,
            .aborts_capacity = after.aborts_capacity - before.aborts_capacity,
            .aborts_explicit = after.aborts_explicit - before.aborts_explicit,
            .aborts_interrupt = after.aborts_interrupt - before.aborts_interrupt,
            .aborts_other = after.aborts_other - before.aborts_other};
  }

 private:
  static double share(std::uint64_t part, std::uint64_t whole) noexcept {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

template <class Key>
class any_index {
 public:
  any_index() = default;
  any_index(const any_index&) = delete;
  any_index& operator=(const any_index&) = delete;
  virtual ~any_index() = default;

  /// Executes one thread's stream under the control's clock.
  virtual void run(const request_stream<Key>& stream, run_control& control,
                   worker_result& result) = 0;

  /// What the index says it occupies, or 0 where it keeps no account.
  [[nodiscard]] virtual std::size_t memory_bytes() const { return 0; }

  /// Totals since it was made.
  [[nodiscard]] virtual index_counters counters() const { return {}; }
};

}  // namespace elidex::bench
