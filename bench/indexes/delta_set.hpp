// The adapter between the driver and the Delta Storage Index, which has values and their IDs but
// nothing besides: a key's value is the key itself, or its length.
//
// Thread-safety: that of the index.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "bench/indexes/elidex_map.hpp"
#include "papers/karnagel/delta_index.hpp"

namespace elidex::bench {

using namespace papers;

template <class Index>
class delta_set {
  using value_argument = typename Index::value_argument;

 public:
  bool read(value_argument key, index_value& value) {
    if (!index_.find(key)) return false;
    value = value_of(key);
    return true;
  }
  bool insert(value_argument key, index_value /*value*/) { return index_.find_or_add(key).is_new; }
  std::size_t scan(value_argument from, std::size_t limit, index_value& sum) {
    return index_.scan(from, limit,
                       [&sum](value_argument key, std::uint32_t /*id*/) { sum += value_of(key); });
  }

  [[nodiscard]] std::size_t memory_bytes() const { return index_.memory_bytes(); }

  [[nodiscard]] index_counters counters() const {
    if constexpr (requires { lock_counts_of(index_.sync()); }) {
      return counters_of(lock_counts_of(index_.sync()));
    } else {
      return {.aborts_conflict = static_cast<std::uint64_t>(index_.stats().restarts)};
    }
  }

 private:
  static index_value value_of(value_argument key) noexcept {
    if constexpr (std::is_same_v<value_argument, std::string_view>) {
      return key.size();
    } else {
      return key;
    }
  }

  Index index_;
};

/// What all of them have in common.
inline index_info delta_info(std::string_view name, std::string_view description) {
  return {.name = name,
          .description = description,
          .no_erase = "is a delta: it grows until it is merged as a whole",
          .no_update = "has values and their IDs and nothing to update"};
}

/// Parts: original_delta or elision_friendly_delta.
template <class Sync, class Parts>
struct delta_under {
  template <class Key>
  using set = delta_set<delta_index<Key, Sync, Parts>>;

  static index_info info(std::string_view name, std::string_view description) {
    index_info made = delta_info(name, description);
    made.make_u64 = make_driven<std::uint64_t, set<std::uint64_t>>;
    made.make_string = make_driven<std::string, set<std::string>>;
    return made;
  }
};

}  // namespace elidex::bench
