// Statistics of locks by name: all locks of one name share their counts, and the counts outlive the
// locks.
//
//   elidex::mutex lock("orders");
//   ...
//   for (const auto& one : elidex::named_lock_stats()) std::cout << one << '\n';
//
// prints, in one line:
//
//   orders: locks 1200, waited 31 (0.4 ms); attempts 0, commits 0, aborts 0, fallbacks 1200
//   (100.0 %), off periods 0
//
// Locks without a name count as "(unnamed)", and only while the machine commits transactions.
// Elsewhere counting would cost more than the lock itself.
//
// Thread-safety: all functions, from any thread. Records are never freed, so a thread may read a
// record while a lock ends.
// Errors: lock_record_named() and named_lock_stats() throw std::bad_alloc, and std::system_error
// from their mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "elidex/internal/sync/lock_stats.hpp"

namespace elidex::internal {

struct named_lock_counts {
  std::string name;
  lock_counts counts;
  std::uint64_t waits = 0;      // acquisitions that found the lock held
  std::uint64_t waited_ns = 0;  // the sum of these waits
};

// Prints one line.
std::ostream& operator<<(std::ostream& out, const named_lock_counts& one);

// Returns the counts in the order of the names, without names that have counted nothing.
std::vector<named_lock_counts> named_lock_stats();

// The counters of all locks of one name.
class lock_record {
 public:
  lock_counters counters;

  // Counts one wait of this length.
  void count_wait(std::uint64_t ns) noexcept {
    // relaxed, without a partner: counts publish nothing.
    waits_.fetch_add(1, std::memory_order_relaxed);
    waited_ns_.fetch_add(ns, std::memory_order_relaxed);  // as above
  }
  // Stores the counts, but not the name.
  void read(named_lock_counts& into) const noexcept {
    into.counts = counters.read();
    into.waits = waits_.load(std::memory_order_relaxed);          // no partner, as above
    into.waited_ns = waited_ns_.load(std::memory_order_relaxed);  // no partner, as above
  }

 private:
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<std::uint64_t> waited_ns_{0};
};

// Returns the counters of that name. They are made at the first call.
lock_record& lock_record_named(std::string_view name);
// Returns the counters of all locks without a name.
lock_record& record_of_unnamed_locks() noexcept;

}  // namespace elidex::internal
