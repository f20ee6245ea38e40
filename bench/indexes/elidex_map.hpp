// The adapter between the driver and elidex's own maps.
//
//   template <class Key>
//   using tree = elidex_map<btree<Key, index_value, coarse<posix_mutex>>>;
//   ... make_driven<std::string, tree<std::string>> ...
//
// Statistics: the lock's where the policy elides one, or the sum of its two; otherwise the tree's
// restarts count as conflicts. Thread-safety: that of the map.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "bench/indexes/factories.hpp"
#include "elidex/htm.hpp"
#include "elidex/internal/sync/lock_stats.hpp"

namespace elidex::bench {

using namespace internal;

template <class Sync>
  requires requires(const Sync& sync) { sync.lock().stats(); }
auto lock_counts_of(const Sync& sync) {
  return sync.lock().stats();
}
template <class Sync>
  requires requires(const Sync& sync) { sync.upper_lock().stats() + sync.lower_lock().stats(); }
auto lock_counts_of(const Sync& sync) {
  return sync.upper_lock().stats() + sync.lower_lock().stats();
}

inline index_counters counters_of(const lock_counts& counts) {
  return {.attempts = counts.attempts(),
          .commits = counts.commits,
          .fallbacks = counts.fallbacks,
          .aborts_conflict = counts.aborts_by(htm::abort_cause::conflict),
          .aborts_capacity = counts.aborts_by(htm::abort_cause::capacity),
          .aborts_explicit = counts.aborts_by(htm::abort_cause::explicit_),
          .aborts_interrupt = counts.aborts_by(htm::abort_cause::interrupt),
          .aborts_other = counts.aborts_by(htm::abort_cause::other)};
}

template <class Map>
class elidex_map {
  using key_argument = typename Map::key_argument;

 public:
  bool read(key_argument key, index_value& value) {
    const auto found = map_.get(key);
    if (!found) return false;
    value = *found;
    return true;
  }
  std::size_t read_many(std::span<const key_argument> keys, index_value& sum)
    requires requires(const Map& map) { map.multi_get({}, {}); }
  {
    std::array<std::optional<index_value>, keys_at_once_max> values;
    map_.multi_get(keys, values);
    std::size_t found = 0;
    for (const std::optional<index_value>& value : std::span(values).first(keys.size())) {
      if (!value) continue;
      sum += *value;
      ++found;
    }
    return found;
  }
  // Key i gets the value `first` + i. Returns how many keys were new.
  std::size_t insert_many(std::span<const key_argument> keys, index_value first)
    requires requires(Map& map, std::span<const index_value> values) {
      map.multi_upsert(keys, values);
    }
  {
    std::array<index_value, keys_at_once_max> values;
    std::iota(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(keys.size()), first);
    return map_.multi_upsert(keys, std::span(values).first(keys.size()));
  }
  template <class Range>
  void insert_all(const Range& records)
    requires requires(Map& map) { map.bulk_load(records); }
  {
    map_.bulk_load(records);
  }
  bool insert(key_argument key, index_value value) { return map_.insert(key, value); }
  bool update(key_argument key, index_value value) { return !map_.upsert(key, value); }
  bool upsert(key_argument key, index_value value) { return map_.upsert(key, value); }
  std::pair<index_value, bool> get_or_insert(key_argument key, index_value value)
    requires requires(Map& map) { map.get_or_insert(key, [] { return index_value{}; }); }
  {
    return map_.get_or_insert(key, [value] { return value; });
  }
  std::pair<index_value, bool> get_or_insert(key_argument key, index_value value)
    requires requires(Map& map) { map.insert_or_get(key, value); }
  {
    return map_.insert_or_get(key, value);
  }
  bool modify(key_argument key, index_value delta) {
    return map_.update(key, [delta](index_value& value) { value += delta; });
  }
  bool erase(key_argument key) { return map_.erase(key); }
  std::size_t scan(key_argument from, std::size_t limit, index_value& sum)
    requires requires(const Map& map) { map.scan(from, limit, [](key_argument, index_value) {}); }
  {
    return map_.scan(from, limit, [&sum](key_argument, index_value value) { sum += value; });
  }

  std::size_t scan(key_argument from, std::size_t limit, index_value& sum)
    requires requires(const Map& map) { map.scan_n(from, limit, [](key_argument, index_value) {}); }
  {
    return map_.scan_n(from, limit, [&sum](key_argument, index_value value) { sum += value; });
  }

  [[nodiscard]] std::size_t memory_bytes() const { return map_.memory_bytes(); }

  [[nodiscard]] index_counters counters() const {
    if constexpr (requires { lock_counts_of(map_.sync()); }) {
      return counters_of(lock_counts_of(map_.sync()));
    } else if constexpr (requires { map_.htm_counts(); }) {
      index_counters counts = counters_of(map_.htm_counts());
      counts.aborts_conflict += static_cast<std::uint64_t>(map_.stats().restarts);
      return counts;
    } else {
      return {.aborts_conflict = static_cast<std::uint64_t>(map_.stats().restarts)};
    }
  }

 private:
  Map map_;
};

/// For index_info::remark of what elides its lock by the HLE prefixes, or by RTM.
inline std::string remark_on_hle() {
  return htm::capability().hle_advertised ? std::string()
                                          : "takes its lock every time here: the CPU offers no HLE";
}
inline std::string remark_on_rtm() {
  const htm::htm_capability& here = htm::capability();
  return here.rtm_commits ? std::string()
                          : std::string("takes its lock every time here: ") + here.reason;
}

}  // namespace elidex::bench
