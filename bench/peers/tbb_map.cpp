// The peer tbb: oneTBB's concurrent skip list. Lookups, inserts and scans run concurrently without
// locks; erase does not (concurrent_map has only unsafe_erase), so the delete workload is not
// offered. Values are read and written in place as atomics, because the map leaves their
// synchronisation to its user. It is given the standard allocator, as all are.

#include <oneapi/tbb/concurrent_map.h>

#include <atomic>

#include "bench/indexes/factories.hpp"

namespace elidex::bench {
namespace {

template <class Key>
class tbb_map {
 public:
  bool read(key_arg<Key> key, index_value& value) {
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    value = load(found->second);
    return true;
  }

  bool insert(key_arg<Key> key, index_value value) { return map_.emplace(Key(key), value).second; }

  bool update(key_arg<Key> key, index_value value) {
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    // release: partner of the acquire in load().
    std::atomic_ref(found->second).store(value, std::memory_order_release);
    return true;
  }

  bool modify(key_arg<Key> key, index_value delta) {
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    std::atomic_ref(found->second).fetch_add(delta);
    return true;
  }

  std::size_t scan(key_arg<Key> from, std::size_t limit, index_value& sum) {
    std::size_t count = 0;
    for (auto at = map_.lower_bound(from); at != map_.end() && count < limit; ++at, ++count)
      sum += load(at->second);
    return count;
  }

 private:
  static index_value load(index_value& value) {
    // acquire: partner of the release in update().
    return std::atomic_ref(value).load(std::memory_order_acquire);
  }

  tbb::concurrent_map<Key, index_value, std::less<>,
                      std::allocator<std::pair<const Key, index_value>>>
      map_;
};

}  // namespace

index_info tbb_map_info() {
  return {.name = "tbb",
          .description =
              "peer: tbb::concurrent_map, a skip list; values as atomics; scans see no snapshot",
          .make_u64 = make_driven<std::uint64_t, tbb_map<std::uint64_t>>,
          .make_string = make_driven<std::string, tbb_map<std::string>>,
          .loads_in_parallel = true,
          .no_erase = "has no erase that other threads may run beside"};
}

}  // namespace elidex::bench
