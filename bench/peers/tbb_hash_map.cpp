// The peer tbb-hash: oneTBB's concurrent hash map, a table of chained nodes. An accessor holds its
// node's lock, shared or not, so that values are read and written as they are. It is given the
// standard allocator, as all are.

#include <oneapi/tbb/concurrent_hash_map.h>

#include "bench/indexes/factories.hpp"

namespace elidex::bench {
namespace {

template <class Key>
class tbb_hash_map {
  using map_type = tbb::concurrent_hash_map<Key, index_value, tbb::tbb_hash_compare<Key>,
                                            std::allocator<std::pair<const Key, index_value>>>;

 public:
  bool read(key_arg<Key> key, index_value& value) {
    typename map_type::const_accessor found;
    if (!map_.find(found, wanted(key))) return false;
    value = found->second;
    return true;
  }

  // Without an accessor, which it would have to lock.
  bool insert(key_arg<Key> key, index_value value) { return map_.emplace(Key(key), value); }

  bool update(key_arg<Key> key, index_value value) {
    typename map_type::accessor found;
    if (!map_.find(found, wanted(key))) return false;
    found->second = value;
    return true;
  }

  bool modify(key_arg<Key> key, index_value delta) {
    typename map_type::accessor found;
    if (!map_.find(found, wanted(key))) return false;
    found->second += delta;
    return true;
  }

  bool erase(key_arg<Key> key) { return map_.erase(wanted(key)); }

 private:
  // It looks for keys of its own type only.
  static std::uint64_t wanted(std::uint64_t key) { return key; }
  static std::string wanted(std::string_view key) { return std::string(key); }

  map_type map_;
};

}  // namespace

index_info tbb_hash_map_info() {
  return {.name = "tbb-hash",
          .description = "peer: tbb::concurrent_hash_map, chained nodes with a lock each",
          .make_u64 = make_driven<std::uint64_t, tbb_hash_map<std::uint64_t>>,
          .make_string = make_driven<std::string, tbb_hash_map<std::string>>,
          .loads_in_parallel = true,
          .no_scan = "has its keys in no order"};
}

}  // namespace elidex::bench
