#pragma once
// driven<Key, Map> makes an any_index out of a map: the whole request loop is compiled once for
// each map, with the map's operations inlined.
//
// Map (a default constructible class) provides, with key_arg<Key> and index_value:
//   bool read(key, value&)   bool insert(key, value)   bool update(key, value)   bool modify(key,
//                                                      delta)
//   optional: bool upsert(key, value)
//             pair<value, bool> get_or_insert(key, value), which returns the key's value and
//             whether it inserted the key. driven combines other calls where these are missing
//             std::size_t read_many(span of keys, sum&), which says how many were there
//             std::size_t insert_many(span of keys, value), which gives key i the value + i, and
//             returns how many were new
//             void insert_all(range of pairs of key and value), which ascend, into an empty map
//             bool erase(key)   std::size_t scan(from, limit, sum&)   std::size_t memory_bytes()
//                                                                     const
//             index_counters counters() const
//             an inner class `visit`, alive on a worker thread while that runs a stream
// put overwrites a key that is there, modify adds delta to its value atomically; each returns false
// without the key. Where erase, scan, put or modify is missing the index must not be registered for
// the workloads that need it: such a request throws.
//
// Thread-safety: that of the map.

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <ranges>
#include <span>
#include <stdexcept>
#include <utility>

#include "bench/indexes/any_index.hpp"

namespace elidex::bench {

// Whether a map really changes several keys with one call: without insert_many() driven would fall
// back on single calls.
template <class Map, class Key>
concept has_insert_many = requires(Map& map, std::span<const key_arg<Key>> keys) {
  map.insert_many(keys, index_value{});
};

template <class Key, class Map>
class driven final : public any_index<Key> {
 public:
  void run(const request_stream<Key>& stream, run_control& control,
           worker_result& result) override {
    if constexpr (requires { typename Map::visit; }) {
      const typename Map::visit here;
      loop(stream, control, result);
    } else {
      loop(stream, control, result);
    }
  }

  [[nodiscard]] std::size_t memory_bytes() const override {
    if constexpr (requires { map_.memory_bytes(); }) return map_.memory_bytes();
    return 0;
  }

  [[nodiscard]] index_counters counters() const override {
    if constexpr (requires { map_.counters(); }) return map_.counters();
    return {};
  }

 private:
  void loop(const request_stream<Key>& stream, run_control& control, worker_result& result) {
    index_value next_value = 1;
    std::size_t stores = 0;
    run_worker(
        stream, control, result,
        [&](request_cursor<Key>& cursor, const request<Key>& wanted, std::size_t most,
            worker_result& counts) -> std::size_t {
          bool done = false;
          switch (wanted.kind) {
            case request_kind::read: {
              index_value value = 0;
              done = map_.read(wanted.key, value);
              counts.checksum += value;
              break;
            }
            case request_kind::look: {
              index_value value = 0;
              if (map_.read(wanted.key, value)) counts.checksum += value;
              return 1;
            }
            case request_kind::insert:
              done = map_.insert(wanted.key, next_value++);
              break;
            case request_kind::upsert:
              upsert(wanted.key, next_value++);
              return 1;
            case request_kind::store:
              done = store(stream, stores++, wanted.key, counts);
              break;
            case request_kind::insert_all:
              return insert_all(cursor, wanted.key);
            case request_kind::put:
              if constexpr (requires { map_.update(wanted.key, next_value); }) {
                done = map_.update(wanted.key, next_value++);
              } else {
                throw std::logic_error("this index has no values to update");
              }
              break;
            case request_kind::modify:
              if constexpr (requires { map_.modify(wanted.key, index_value{1}); }) {
                done = map_.modify(wanted.key, index_value{1});
              } else {
                throw std::logic_error("this index has no values to update");
              }
              break;
            case request_kind::erase:
              if constexpr (requires { map_.erase(wanted.key); }) {
                done = map_.erase(wanted.key);
              } else {
                throw std::logic_error("this index cannot erase");
              }
              break;
            case request_kind::scan:
              if constexpr (requires { map_.scan(wanted.key, std::size_t{}, counts.checksum); }) {
                done = map_.scan(wanted.key, cursor.scan_length(), counts.checksum) > 0;
              } else {
                throw std::logic_error("this index cannot scan");
              }
              break;
            case request_kind::read_many:
              return read_many(cursor, wanted.key, std::min(most, cursor.keys_at_once()), counts);
            case request_kind::insert_many:
              return insert_many(cursor, wanted.key, std::min(most, cursor.keys_at_once()),
                                 next_value, counts);
          }
          counts.misses += done ? 0 : 1;
          return 1;
        });
  }

  void upsert(key_arg<Key> key, index_value value) {
    if constexpr (requires { map_.upsert(key, value); }) {
      map_.upsert(key, value);
    } else if constexpr (requires { map_.update(key, value); }) {
      while (!map_.update(key, value) && !map_.insert(key, value)) {
      }
    } else {
      throw std::logic_error("this index has no values to update");
    }
  }

  std::pair<index_value, bool> get_or_insert(key_arg<Key> key, index_value value) {
    if constexpr (requires { map_.get_or_insert(key, value); }) {
      return map_.get_or_insert(key, value);
    } else {
      if (map_.insert(key, value)) return {value, true};
      map_.read(key, value);
      return {value, false};
    }
  }

  // The n-th store of the stream. Returns whether the key was still there the second time.
  bool store(const request_stream<Key>& stream, std::size_t n, key_arg<Key> key,
             worker_result& counts)
    requires std::same_as<Key, std::uint64_t>
  {
    value_room::record& mine = stream.room().nth_record(n);
    const auto address = reinterpret_cast<index_value>(&mine);
    if (get_or_insert(key, address).second) ++counts.added;
    std::byte* const value = stream.room().values() + n * stream.value_bytes();
    std::memset(value, static_cast<int>(key & 0x7F), stream.value_bytes());
    const auto [at, added_again] = get_or_insert(key, address);
    // relaxed: pairs with no load, because no thread reads this pointer.
    reinterpret_cast<value_room::record*>(at)->value.store(value, std::memory_order_relaxed);
    return !added_again;
  }

  static bool store(const request_stream<Key>&, std::size_t, key_arg<Key>, worker_result&) {
    throw std::logic_error("fronts have integer keys");
  }

  // `first` and all behind it; says how many.
  std::size_t insert_all(request_cursor<Key>& cursor, key_arg<Key> first) {
    const std::size_t many = 1 + cursor.remaining();
    const auto records =
        std::views::iota(std::size_t{0}, many) | std::views::transform([&](std::size_t i) {
          return std::pair(i == 0 ? first : cursor.next().key, static_cast<index_value>(i + 1));
        });
    if constexpr (requires { map_.insert_all(records); }) {
      map_.insert_all(records);
    } else {
      for (const auto& [key, value] : records) map_.insert(key, value);
    }
    return many;
  }

  using several_keys = std::array<key_arg<Key>, keys_at_once_max>;

  // `first` and those behind it, `many` in all.
  static several_keys next_keys(request_cursor<Key>& cursor, key_arg<Key> first, std::size_t many) {
    several_keys keys;
    keys[0] = first;
    for (std::size_t i = 1; i < many; ++i) keys[i] = cursor.next().key;
    return keys;
  }

  // Returns `many`. Key i gets the value next_value + i.
  std::size_t insert_many(request_cursor<Key>& cursor, key_arg<Key> first, std::size_t many,
                          index_value& next_value, worker_result& counts) {
    const several_keys keys = next_keys(cursor, first, many);
    std::size_t inserted = 0;
    if constexpr (has_insert_many<Map, Key>) {
      inserted = map_.insert_many(std::span(keys).first(many), next_value);
    } else {
      for (std::size_t i = 0; i < many; ++i)
        inserted += map_.insert(keys[i], next_value + i) ? 1U : 0U;
    }
    next_value += many;
    counts.misses += many - inserted;
    return many;
  }

  // Returns `many`.
  std::size_t read_many(request_cursor<Key>& cursor, key_arg<Key> first, std::size_t many,
                        worker_result& counts) {
    const several_keys keys = next_keys(cursor, first, many);
    std::size_t found = 0;
    if constexpr (requires { map_.read_many(std::span(keys), counts.checksum); }) {
      found = map_.read_many(std::span(keys).first(many), counts.checksum);
    } else {
      for (std::size_t i = 0; i < many; ++i) {
        index_value value = 0;
        if (map_.read(keys[i], value)) ++found;
        counts.checksum += value;
      }
    }
    counts.misses += many - found;
    return many;
  }

  Map map_;
};

}  // namespace elidex::bench
