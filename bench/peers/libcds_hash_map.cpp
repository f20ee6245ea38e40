// The peer libcds-hash: its split-ordered list over Michael's list, with hazard pointers: a
// lock-free hash map that grows. Values are read and written in place as atomics, inside find(),
// which keeps the node alive. It must be told how many keys there will be at most, or it stops
// growing.

#include <cds/container/michael_list_hp.h>
// After the list that it is to be made of.
#include <cds/container/split_list_map.h>

#include <atomic>
#include <functional>
#include <memory>

#include "bench/indexes/factories.hpp"
#include "bench/peers/libcds_threads.hpp"

namespace elidex::bench {
namespace {

constexpr std::size_t keys_max = std::size_t{1} << 24;

template <class Key>
struct split_list_traits : cds::container::split_list::traits {
  using ordered_list = cds::container::michael_list_tag;
  // Without an order of its own: std::hash of a string is that of a view of it.
  struct hash {
    std::size_t operator()(key_arg<Key> key) const { return std::hash<key_arg<Key>>{}(key); }
  };
  struct ordered_list_traits : cds::container::michael_list::traits {
    using less = std::less<>;
  };
};

template <class Key>
using split_list =
    cds::container::SplitListMap<cds::gc::HP, Key, index_value, split_list_traits<Key>>;

template <class Key>
class libcds_hash_map {
 public:
  using visit = attached;

  libcds_hash_map() {
    collector::ensure();
    const attached here;
    map_ = std::make_unique<split_list<Key>>(keys_max, 1);
  }
  libcds_hash_map(const libcds_hash_map&) = delete;
  libcds_hash_map& operator=(const libcds_hash_map&) = delete;
  ~libcds_hash_map() {
    const attached here;
    map_.reset();
  }

  bool read(key_arg<Key> key, index_value& value) {
    return map_->find(Key(key), [&](auto& item) {
      // acquire: partner of the release in update().
      value = std::atomic_ref(item.second).load(std::memory_order_acquire);
    });
  }

  bool insert(key_arg<Key> key, index_value value) { return map_->insert(Key(key), value); }

  bool update(key_arg<Key> key, index_value value) {
    return map_->find(Key(key), [&](auto& item) {
      // release: partner of the acquire in read().
      std::atomic_ref(item.second).store(value, std::memory_order_release);
    });
  }

  bool modify(key_arg<Key> key, index_value delta) {
    return map_->find(Key(key), [&](auto& item) { std::atomic_ref(item.second).fetch_add(delta); });
  }

  bool erase(key_arg<Key> key) { return map_->erase(Key(key)); }

 private:
  std::unique_ptr<split_list<Key>> map_;
};

}  // namespace

index_info libcds_hash_map_info() {
  return {.name = "libcds-hash",
          .description =
              "peer: libcds SplitListMap with hazard pointers, lock-free; values as atomics; 16 M "
              "buckets at most",
          .make_u64 = make_driven<std::uint64_t, libcds_hash_map<std::uint64_t>>,
          .make_string = make_driven<std::string, libcds_hash_map<std::string>>,
          .loads_in_parallel = true,
          .no_scan = "has its keys in no order"};
}

}  // namespace elidex::bench
