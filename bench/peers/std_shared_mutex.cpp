// The peer std+shared_mutex: the standard library's tree; readers share the lock, writers have it
// to themselves.

#include <map>
#include <mutex>
#include <shared_mutex>

#include "bench/indexes/factories.hpp"

namespace elidex::bench {
namespace {

template <class Key>
class std_shared_mutex {
 public:
  bool read(key_arg<Key> key, index_value& value) {
    const std::shared_lock hold(mutex_);
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    value = found->second;
    return true;
  }

  bool insert(key_arg<Key> key, index_value value) {
    const std::lock_guard hold(mutex_);
    return map_.try_emplace(Key(key), value).second;
  }

  bool update(key_arg<Key> key, index_value value) {
    const std::lock_guard hold(mutex_);
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    found->second = value;
    return true;
  }

  bool modify(key_arg<Key> key, index_value delta) {
    const std::lock_guard hold(mutex_);
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    found->second += delta;
    return true;
  }

  bool erase(key_arg<Key> key) {
    const std::lock_guard hold(mutex_);
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    map_.erase(found);
    return true;
  }

  std::size_t scan(key_arg<Key> from, std::size_t limit, index_value& sum) {
    const std::shared_lock hold(mutex_);
    std::size_t count = 0;
    for (auto at = map_.lower_bound(from); at != map_.end() && count < limit; ++at, ++count)
      sum += at->second;
    return count;
  }

 private:
  std::shared_mutex mutex_;
  std::map<Key, index_value, std::less<>> map_;
};

}  // namespace

index_info std_shared_mutex_info() {
  return {.name = "std+shared_mutex",
          .description = "peer: std::map under one std::shared_mutex, writers exclusive",
          .make_u64 = make_driven<std::uint64_t, std_shared_mutex<std::uint64_t>>,
          .make_string = make_driven<std::string, std_shared_mutex<std::string>>};
}

}  // namespace elidex::bench
