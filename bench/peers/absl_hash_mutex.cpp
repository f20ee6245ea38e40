// The peer absl-hash+mutex: Abseil's hash map, every operation under one std::mutex.

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>

#include <mutex>

#include "bench/indexes/factories.hpp"

namespace elidex::bench {
namespace {

template <class Key>
class absl_hash_mutex {
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

 private:
  // Abseil's own view type, with which it looks for strings without a copy.
  static std::uint64_t wanted(std::uint64_t key) { return key; }
  static absl::string_view wanted(std::string_view key) { return {key.data(), key.size()}; }

  std::mutex mutex_;
  absl::flat_hash_map<Key, index_value> map_;
};

}  // namespace

index_info absl_hash_mutex_info() {
  return {.name = "absl-hash+mutex",
          .description = "peer: absl::flat_hash_map, every operation under one std::mutex",
          .make_u64 = make_driven<std::uint64_t, absl_hash_mutex<std::uint64_t>>,
          .make_string = make_driven<std::string, absl_hash_mutex<std::string>>,
          .no_scan = "has its keys in no order"};
}

}  // namespace elidex::bench
