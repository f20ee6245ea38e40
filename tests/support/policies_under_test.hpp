#pragma once
// The synchronisation policies that tests go through, with all kinds of locks.

#include <shared_mutex>

#include "elidex/elided.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/internal/sync/split_regions.hpp"
#include "elidex/internal/tree/btree.hpp"
#include "papers/eunomia/euno_skip_list.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/posix_mutex.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

using coarse_mutex = coarse<posix_mutex>;
using coarse_spin = coarse<ttas_lock>;
using coarse_shared = coarse<std::shared_mutex>;
using coarse_hle = coarse<hle_lock>;
using coarse_elided = coarse<elided<ttas_lock>>;
using coarse_elided_noretry = coarse<elided<ttas_lock, no_retry>>;
using coarse_elided_dbx = coarse<elided<ttas_lock, dbx_budgets>>;

using split_by_mutexes = split_regions<posix_mutex>;

// Eunomia's skip list with less than everything, and with controls that come and go all the time.
struct nothing_but_split_regions : euno_skip_parts {
  static constexpr bool partitioned = false;
  static constexpr bool controls_conflicts = false;
};
struct always_controlled : euno_skip_parts {
  static constexpr std::uint64_t hot_after = 0;
  static constexpr unsigned conflicts_to_stay = 0;
};
struct always_changing_control : euno_skip_parts {
  static constexpr std::uint64_t hot_after = 0;
  static constexpr unsigned requests_per_period = 3;
};

// Whether scan() shows the map as it was at one moment: a map without says so.
template <class Map>
inline constexpr bool scans_are_snapshots = true;
template <class Map>
  requires requires { Map::scans_are_snapshots; }
inline constexpr bool scans_are_snapshots<Map> = Map::scans_are_snapshots;

}  // namespace elidex::testing
