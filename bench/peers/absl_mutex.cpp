// The peer absl+mutex: Abseil's B-tree, every operation under one std::mutex. The fastest of all on
// one thread.

#include <absl/container/btree_map.h>
#include <absl/strings/string_view.h>

#include <mutex>

#include "bench/indexes/factories.hpp"

namespace elidex::bench {
namespace {

template <class Key>
class absl_mutex {
 public:
  bool read(key_arg<Key> key, index_value& value) {
    const std::lock_guard hold(mutex_);
    const auto found = map_.find(wanted(key));
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
    const auto found = map_.find(wanted(key));
    if (found == map_.end()) return false;
    found->second = value;
    return true;
  }

  bool modify(key_arg<Key> key, index_value delta) {
    const std::lock_guard hold(mutex_);
    const auto found = map_.find(wanted(key));
    if (found == map_.end()) return false;
    found->second += delta;
    return true;
  }

  bool erase(key_arg<Key> key) {
    const std::lock_guard hold(mutex_);
    return map_.erase(wanted(key)) == 1;
  }

  std::size_t scan(key_arg<Key> from, std::size_t limit, index_value& sum) {
    const std::lock_guard hold(mutex_);
    std::size_t count = 0;
    for (auto at = map_.lower_bound(wanted(from)); at != map_.end() && count < limit; ++at, ++count)
      sum += at->second;
    return count;
  }

 private:
  // Abseil's own view type, with which its comparison of strings is three-way and makes no copy.
  static std::uint64_t wanted(std::uint64_t key) { return key; }
  static absl::string_view wanted(std::string_view key) { return {key.data(), key.size()}; }

  std::mutex mutex_;
  absl::btree_map<Key, index_value> map_;
};

}  // namespace

index_info absl_mutex_info() {
  return {.name = "absl+mutex",
          .description = "peer: absl::btree_map, every operation under one std::mutex",
          .make_u64 = make_driven<std::uint64_t, absl_mutex<std::uint64_t>>,
          .make_string = make_driven<std::string, absl_mutex<std::string>>};
}

}  // namespace elidex::bench
