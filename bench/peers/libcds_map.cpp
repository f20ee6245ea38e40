// The peer libcds: its lock-free skip list with hazard pointers. It has no range scan (its
// iterators are for debugging), so workload e is not offered. Values are read and written in place
// as atomics, inside find(), which keeps the node alive.

#include <cds/container/skip_list_map_hp.h>

#include <atomic>
#include <compare>

#include "bench/indexes/factories.hpp"
#include "bench/peers/libcds_threads.hpp"

namespace elidex::bench {

namespace {

struct compare_keys {
  template <class Left, class Right>
  int operator()(const Left& left, const Right& right) const {
    return left < right ? -1 : (right < left ? 1 : 0);
  }
};

struct skip_list_traits : cds::container::skip_list::traits {
  using compare = compare_keys;
};

template <class Key>
using skip_list = cds::container::SkipListMap<cds::gc::HP, Key, index_value, skip_list_traits>;

template <class Key>
class libcds_map {
 public:
  using visit = attached;

  libcds_map() {
    collector::ensure();
    const attached here;
    map_ = std::make_unique<skip_list<Key>>();
  }
  libcds_map(const libcds_map&) = delete;
  libcds_map& operator=(const libcds_map&) = delete;
  ~libcds_map() {
    const attached here;
    map_.reset();
  }

  bool read(key_arg<Key> key, index_value& value) {
    return map_->find(key, [&](auto& item) {
      // acquire: partner of the release in update().
      value = std::atomic_ref(item.second).load(std::memory_order_acquire);
    });
  }

  bool insert(key_arg<Key> key, index_value value) { return map_->emplace(Key(key), value); }

  bool update(key_arg<Key> key, index_value value) {
    return map_->find(key, [&](auto& item) {
      // release: partner of the acquire in read().
      std::atomic_ref(item.second).store(value, std::memory_order_release);
    });
  }

  bool modify(key_arg<Key> key, index_value delta) {
    return map_->find(key, [&](auto& item) { std::atomic_ref(item.second).fetch_add(delta); });
  }

  bool erase(key_arg<Key> key) { return map_->erase(key); }

 private:
  std::unique_ptr<skip_list<Key>> map_;
};

}  // namespace

index_info libcds_map_info() {
  return {
      .name = "libcds",
      .description = "peer: libcds SkipListMap with hazard pointers, lock-free; values as atomics",
      .make_u64 = make_driven<std::uint64_t, libcds_map<std::uint64_t>>,
      .make_string = make_driven<std::string, libcds_map<std::string>>,
      .loads_in_parallel = true,
      .no_scan = "has no range scan that other threads may run beside"};
}

}  // namespace elidex::bench
